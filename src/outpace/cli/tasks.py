"""`outpace tasks`: the tasks below some folders."""

from __future__ import annotations

import json as json_module
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from outpace.cli.plain import flat
from outpace.errors import TaskError
from outpace.shown import shown
from outpace.task import Task
from outpace.task.file import load_task

_SKIPPED = {"__pycache__", "build", "dist", "node_modules"}
_LANGUAGES = {
    ".c": "C",
    ".cpp": "C++",
    ".cc": "C++",
    ".cxx": "C++",
    ".hpp": "C++",
    ".hh": "C++",
    ".py": "Python",
    ".rs": "Rust",
    ".go": "Go",
}


@dataclass(frozen=True)
class Found:
    """A folder with a task.toml; `problem` is "" where the task can be used."""

    folder: str
    name: str
    entry: str
    language: str
    problem: str


def tasks(*folders: Path, json: bool = False) -> int:
    """List the tasks below folders, and say of each whether it can be used.

    Parameters
    ----------
    folders
        Where to look; by default `examples` and the current folder.
    json
        Print the list as JSON.
    """
    for each in folders:
        if not each.is_dir():
            raise TaskError(f"{each} is no folder: name one that holds tasks")
    found = list(find(*(folders or (Path("examples"), Path()))))
    if json:
        print(json_module.dumps([asdict(each) for each in found], indent=1))
    elif not found:
        print("No task found; `outpace init SOURCE FUNCTION` makes one.")
    else:
        _print(found)
    return 1 if any(each.problem for each in found) else 0


def find(*folders: Path) -> Iterator[Found]:
    """Every task below the folders once, in the order of their names; hidden folders are left out."""
    seen: set[Path] = set()
    for top in folders:
        for place, below, files in os.walk(top):
            below[:] = sorted(each for each in below if each not in _SKIPPED and not each.startswith("."))
            path = Path(place)
            if "task.toml" in files and path.resolve() not in seen:
                seen.add(path.resolve())
                yield _look(path)


def _look(path: Path) -> Found:
    try:
        task = load_task(path)
    except TaskError as error:
        return Found(str(path), path.name, "", "", flat(error))
    return Found(str(path), task.name, _entry(task), _language(task), "")


def _entry(task: Task) -> str:
    if task.entry.kind == "command":
        return " ".join(task.entry.command)
    return task.entry.function


def _language(task: Task) -> str:
    # A header is of the language that it is compiled as.
    headers = "C++" if task.build.compiler.endswith("++") else "C"
    known = {**_LANGUAGES, ".h": headers}
    kinds = dict.fromkeys(known.get(Path(name).suffix, Path(name).suffix.lstrip(".") or "?") for name in task.editable)
    return ", ".join(kinds)


def _print(found: list[Found]) -> None:
    console = Console(highlight=False, markup=False)
    place = min(max(len(each.folder) for each in found), console.width // 2)
    kind = max(len(each.language) for each in found)
    for each in found:
        # The end of a long path tells more than its beginning.
        folder = each.folder if len(each.folder) <= place else f"...{each.folder[3 - place :]}"
        state = Text("wrong", "red") if each.problem else Text("good ", "green")
        detail = each.problem.removeprefix(f"{each.folder}/") or each.entry
        row = Text.assemble(shown(folder).ljust(place + 2), each.language.ljust(kind + 2), state, "  ", shown(detail))
        console.print(row, no_wrap=True, overflow="ellipsis")
    for each in found:
        if each.problem:
            print(shown(each.problem))
