"""The candidate: the sources of one attempt, named by their hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from outpace.task import Task

BEGIN, END = "outpace: begin", "outpace: end"


@dataclass(frozen=True)
class Candidate:
    """The editable files as this attempt has them, and the compiler flags it chose from those allowed."""

    files: Mapping[str, str]
    flags: tuple[str, ...] = field(default=())

    @property
    def hash(self) -> str:
        """Equal sources and flags have equal hashes, whoever proposed them."""
        digest = hashlib.sha256()
        for name in sorted(self.files):
            digest.update(f"{name}\0{len(self.files[name].encode())}\0".encode())
            digest.update(self.files[name].encode())
        digest.update("\0".join(self.flags).encode())
        return digest.hexdigest()


def reference(task: Task) -> Candidate:
    """The task's own sources, as the user wrote them, with the flags the task builds with."""
    return Candidate({name: task.text(name) for name in task.editable}, task.build.flags)


def forbidden_change(task: Task, candidate: Candidate) -> str:
    """Why a candidate edits what it may not, or "" when it keeps to the editable files, regions and flags."""
    for name in candidate.files:
        if name not in task.editable:
            return f"{name} may not be edited; editable are {', '.join(task.editable)}"
    for name in task.editable:
        if name not in candidate.files:
            return f"{name} is missing from the candidate"
        theirs, ours = fixed_text(candidate.files[name]), fixed_text(task.text(name))
        if has_regions(task.text(name)) and theirs != ours:
            return f"{name} was changed outside the lines between '{BEGIN}' and '{END}'"
    return _forbidden_flag(task, candidate.flags)


def _forbidden_flag(task: Task, flags: tuple[str, ...]) -> str:
    allowed = set(task.build.flags).union(*task.build.flag_choices)
    for flag in flags:
        if flag not in allowed:
            return f"flag {flag} is not among those the task allows: {' '.join(sorted(allowed - {''}))}"
    for flag in fixed_flags(task):
        if flag not in flags:
            return f"flag {flag} must stay: only those of the task's choices may differ"
    for group in task.build.flag_choices:
        chosen = sorted({flag for flag in flags if flag in group})
        if len(chosen) > 1:
            return f"flags {' and '.join(chosen)} exclude each other: choose one"
    return ""


def fixed_flags(task: Task) -> tuple[str, ...]:
    """The flags that every candidate is built with, whatever it chooses."""
    choices = {flag for group in task.build.flag_choices for flag in group}
    return tuple(flag for flag in task.build.flags if flag not in choices)


def with_fixed_flags(task: Task, flags: tuple[str, ...]) -> tuple[str, ...]:
    """These flags, with those that are no choice put first where they were left out."""
    return (*(flag for flag in fixed_flags(task) if flag not in flags), *flags)


def choose_flag(flags: tuple[str, ...], group: tuple[str, ...], choice: str) -> tuple[str, ...]:
    """The flags with the group's member replaced by `choice`; "" leaves the group out."""
    kept = tuple(flag for flag in flags if flag not in group)
    return (*kept, choice) if choice else kept


def has_regions(text: str) -> bool:
    """Whether only parts of this file may be edited."""
    return any(opens_region(line) for line in text.splitlines())


def opens_region(line: str) -> bool:
    """Whether an editable region starts after this line."""
    return line.rstrip(" */->").endswith(BEGIN)


def closes_region(line: str) -> bool:
    """Whether an editable region ends before this line; `outpace: end alternatives` is another mark."""
    return line.rstrip(" */->").endswith(END)


def fixed_text(text: str) -> tuple[str, ...]:
    """The lines outside the editable regions, the marker lines included."""
    fixed: list[str] = []
    inside = False
    for line in text.splitlines():
        if closes_region(line):
            inside = False
        if not inside:
            fixed.append(line)
        if opens_region(line):
            inside = True
    return tuple(fixed)
