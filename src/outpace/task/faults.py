"""Faults of a task.toml: a reader's words become its line, its section, its key and what belongs there."""

from __future__ import annotations

import re
from typing import get_args

from outpace.task import EntryKind

_KINDS = {
    "str": "text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list in square brackets",
    "object": "a table",
}


def fault(name: str, text: str, section: str, words: str) -> str:
    """What msgspec said of one section ("" for the keys above all sections), as a person can mend it."""
    path = re.search(r" - at `\$\.?([^`]*)`$", words)
    inside = path[1] if path else ""
    key = re.split(r"[.\[]", inside)[0]
    table = not section and re.search(rf"^\s*\[+\s*{re.escape(key)}\b", text, re.MULTILINE) is not None
    if table:
        section, key, inside = key, "", ""
    if lacking := re.search(r"missing required field `(\w+)`", words):
        return f"{name}{_line(text, section, '')}: {_place(section, '')}{lacking[1]} is missing"
    if strange := re.search(r"unknown field `(\w+)`", words):
        at = _line(text, strange[1], "") or _line(text, "", strange[1])
        return f"{name}{at}: '{strange[1]}' is neither a key nor a section of a task.toml"
    said = words[: path.start()] if path else words
    if wrong := re.fullmatch(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`", said):
        said = f"must be {_KINDS.get(wrong[1], wrong[1])}, not {_KINDS.get(wrong[2], wrong[2])}"
        if inside.endswith("]"):
            said = f"holds a wrong element: each {said}"
    elif wrong := re.fullmatch(r"Invalid enum value (.*)", said):
        # The only key with a fixed set of values.
        said = f"= {wrong[1]} must be one of {', '.join(get_args(EntryKind))}"
    return f"{name}{_line(text, section, key)}: {_place(section, key)}{said}"


def placed(name: str, text: str, problem: str) -> str:
    """A problem that begins with `[section] key`, or names a key above all sections, with its line."""
    found = re.match(r"\[(\w+)\] (\w+)|(\w+) ", problem)
    if found is None:
        return f"{name}: {problem}"
    section, key = (found[1], found[2]) if found[1] else ("", found[3])
    at = _line(text, section, key) or (_line(text, section, "") if section else "")
    return f"{name}{at}: {problem}"


def _place(section: str, key: str) -> str:
    return "".join(f"{part} " for part in (f"[{section}]" if section else "", key) if part)


def _line(text: str, section: str, key: str) -> str:
    """`:N` for the line of a key in a section, or of the section where no key is given; "" where it is not found."""
    here = ""
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(r"\s*\[+\s*(\w+)", line):
            here = header[1]
            if here == section and not key:
                return f":{number}"
        elif key and here == section and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return f":{number}"
    return ""
