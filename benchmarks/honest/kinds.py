"""Kinds: each folder of `tasks/` is a task whose `faster.*` is an honest optimisation of its one editable file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from outpace.task import Task
from outpace.task.candidate import Candidate
from outpace.task.file import make_task, read_files

TASKS = Path(__file__).parent / "tasks"


@dataclass(frozen=True)
class Kind:
    """One optimisation: the task with its reference, and what is said to be faster."""

    task: Task
    faster: str

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def language(self) -> str:
        """What it is written in; a command's is that of its source."""
        suffix = Path(self.task.editable[0]).suffix
        language = {".c": "C", ".cpp": "C++", ".py": "Python"}[suffix]
        return f"{language} command" if self.task.entry.kind == "command" else language

    @property
    def candidate(self) -> Candidate:
        return Candidate({self.task.editable[0]: self.faster}, self.task.build.flags)

    def sources(self, side: int) -> dict[str, bytes]:
        """The files of the reference (0) or the candidate (1)."""
        own = {name: self.task.files[name] for name in self.task.editable}
        return own if side == 0 else {self.task.editable[0]: self.faster.encode()}


def kinds(names: list[str] | None = None) -> list[Kind]:
    """All of them, or those that are named, in the order of their names."""
    folders = {folder.name: folder for folder in sorted(TASKS.iterdir()) if (folder / "task.toml").is_file()}
    for name in names or []:
        if name not in folders:
            raise SystemExit(f"there is no kind '{name}'; there are {', '.join(folders)}")
    return [_kind(folder) for name, folder in folders.items() if not names or name in names]


def _kind(folder: Path) -> Kind:
    files = read_files(folder)
    (name,) = [name for name in files if name.startswith("faster.")]
    faster = files.pop(name).decode()
    return Kind(make_task(folder, files), faster)
