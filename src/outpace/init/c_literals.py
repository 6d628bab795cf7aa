"""Literals: the characters and numbers that a C function's source names, for inputs must hold what it tells apart."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_PIECES = re.compile(
    r"""//(?:[^\n\\]|\\.)*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*|[{};]""",
    re.DOTALL | re.MULTILINE,
)
_TEXT = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.DOTALL)
_NUMBER = r"(-?\s*(?<![\w.])(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))[uUlLfF]*(?![\w.])"
_COMPARES = r"(?:[=!]=|(?<![<-])<=?(?!<)|(?<![->])>=?(?!>))"
_BESIDE = (
    rf"{_COMPARES}\s*\(?\s*{_NUMBER}",
    rf"{_NUMBER}\s*\)?\s*{_COMPARES}",
    rf"\bcase\s*{_NUMBER}",
)
_CLAMPS = re.compile(r"\b\w*(?:min|max|clamp)\w*\s*\(([^()]*)\)", re.IGNORECASE)
_ESCAPES = {"n": 10, "t": 9, "r": 13, "v": 11, "f": 12, "a": 7, "b": 8, "e": 27}
# What the classes of the C library tell apart: their members, or the ends of their ranges.
_CLASSES = {
    "isspace": b" \t\n\v\f\r",
    "isblank": b" \t",
    "isdigit": b"09",
    "isxdigit": b"09afAF",
    "isalpha": b"azAZ",
    "isalnum": b"09azAZ",
    "isupper": b"AZ",
    "islower": b"az",
    "toupper": b"az",
    "tolower": b"AZ",
    "ispunct": b"!/:@[`{~",
    "isprint": b" ~",
    "isgraph": b"!~",
    "iscntrl": b"\x1f\x7f",
}
# Digits of a number beyond this are no number that any argument has.
_LONGEST = 400
# More than these are a table, not what something is compared with; a judge.py is to be read.
_TABLE, _MOST = 64, 96


@dataclass(frozen=True)
class Literals:
    """Bytes but 0, in order, and numbers in order."""

    chars: bytes = b""
    numbers: tuple[int | float, ...] = ()


def literals(name: str, source: str, others: Iterable[str] = ()) -> Literals:
    """What the function of that name, and all of these texts that it uses, name."""
    chunks = [chunk for text in (source, *others) for chunk in _chunks(text)]
    left = [(_names(chunk), chunk) for chunk in chunks]
    used, wanted = [], {name}
    while found := [chunk for names, chunk in left if names & wanted]:
        left = [(names, chunk) for names, chunk in left if not names & wanted]
        used += found
        wanted = {word for chunk in found for word in re.findall(r"[A-Za-z_]\w*", _TEXT.sub(" ", chunk))}
    chars = {char for chunk in used for char in _chars(chunk)}
    compared: dict[int | float, None] = {}
    for chunk in used:
        compared |= dict.fromkeys(_numbers(chunk))
    return Literals(bytes(sorted(chars - {0})), tuple(sorted(list(compared)[:_MOST])))


def _chunks(text: str) -> list[str]:
    """Definitions, declarations and directives, one by one, without their comments."""
    found, start, depth, kept = [], 0, 0, ""
    for match in _PIECES.finditer(text):
        piece = match[0]
        if piece.startswith(("//", "/*")):
            kept, start = kept + text[start : match.start()] + " ", match.end()
        elif piece.lstrip().startswith("#"):
            found.append(piece)
            kept, start = kept + text[start : match.start()], match.end()
        elif piece == "{":
            if re.search(r"\bnamespace\b[\w\s:]*$|extern\s*\"C\"\s*$", kept + text[start : match.start()]):
                kept, start = "", match.end()
            else:
                depth += 1
        elif piece == "}":
            depth = max(depth - 1, 0)
            whole = kept + text[start : match.end()]
            # `} name;` goes on behind its bracket, a function does not.
            if not depth and not re.search(r"^[^({]*(?:=|\b(?:enum|struct|union|typedef)\b)", whole):
                found.append(whole)
                kept, start = "", match.end()
        elif piece == ";" and not depth:
            found.append(kept + text[start : match.end()])
            kept, start = "", match.end()
    return found


def _names(chunk: str) -> set[str]:
    """What a chunk defines."""
    if directive := re.match(r"[ \t]*#\s*define\s+(\w+)", chunk):
        return {directive[1]}
    if chunk.lstrip().startswith("#"):
        return set()
    if re.match(r"\s*(?:typedef\s+)?enum\b", chunk):
        return set(re.findall(r"(\w+)\s*(?:=[^,}]*)?[,}]", chunk))
    if "{" not in chunk and not re.search(r"=", chunk):
        return set()
    found = re.search(r"(\w+)\s*(?:\[[^=({]*|=|\()", chunk)
    return {found[1]} if found else set()


def _chars(chunk: str) -> set[int]:
    if chunk.lstrip().startswith("#") and not re.match(r"[ \t]*#\s*define", chunk):
        return set()
    found = {char for name, chars in _CLASSES.items() if re.search(rf"\b{name}\s*\(", chunk) for char in chars}
    for literal in _TEXT.findall(chunk):
        said = _said(literal[1:-1])
        # Letters in quotes of their own may be the ends of a range.
        found |= {each + step for each in said for step in ((-1, 0, 1) if literal[0] == "'" else (0,))}
    return {each for each in found if 0 < each < 256}


def _said(inside: str) -> list[int]:
    found = []
    for match in re.finditer(r"\\x([0-9a-fA-F]+)|\\([0-7]{1,3})|\\(.)|([^\\])", inside, re.DOTALL):
        if match[1] or match[2]:
            found.append(int(match[1] or match[2], 16 if match[1] else 8) & 255)
        elif match[3]:
            found.append(_ESCAPES.get(match[3], ord(match[3]) & 255))
        else:
            found += match[4].encode()
    return found


def _numbers(chunk: str) -> list[int | float]:
    """Numbers that are compared with or switched on, and those of constants."""
    code = _TEXT.sub(lambda literal: f" {_said(literal[0][1:-1])[0]} " if re.match("'.", literal[0]) else " ", chunk)
    if chunk.lstrip().startswith("#") or not re.match(r"[^=({]*\(", code):
        if chunk.lstrip().startswith("#") and not re.match(r"[ \t]*#\s*define", chunk):
            return []
        texts = re.findall(_NUMBER, re.sub(r"^[ \t]*#\s*define\s+\w+|\[[^\]]*\]", " ", code))
        return _values(texts) if len(texts) <= _TABLE else []
    texts = [each for pattern in _BESIDE for each in re.findall(pattern, code)]
    texts += [each for inside in _CLAMPS.findall(code) for each in re.findall(_NUMBER, inside)]
    return _values(texts)


def _values(texts: Sequence[str]) -> list[int | float]:
    """Those that a double can hold; others are no input."""
    values = (_value(each) for each in texts if len(each) < _LONGEST)
    return [each for each in values if abs(each) <= sys.float_info.max]


def _value(text: str) -> int | float:
    text = "".join(text.split())
    digits = text.lstrip("-")
    sign = -1 if text.startswith("-") else 1
    if re.match("0[xX]", digits):
        return sign * int(digits, 16)
    if re.search(r"[.eE]", digits):
        return sign * float(digits)
    return sign * int(digits, 8 if re.fullmatch(r"0[0-7]+", digits) else 10)
