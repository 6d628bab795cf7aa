"""The candidate: the sources of one attempt, named by their hash."""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field

from outpace.task import Task
from outpace.task.lines import has_lone_return, lines

BEGIN, END = "outpace: begin", "outpace: end"
# What may follow a mark on its line: the end of a comment, and blanks.
_AFTER_MARK = " \t\r\f\v*/->"


@dataclass(frozen=True)
class Candidate:
    """The editable files as this attempt has them, and the compiler flags it chose from those allowed."""

    files: Mapping[str, str]
    flags: tuple[str, ...] = field(default=())

    @property
    def hash(self) -> str:
        """Equal for equal bytes of all files and equal flags, in their order, and for nothing else."""
        digest = hashlib.sha256()
        for name in sorted(self.files):
            digest.update(f"{name}\0{len(self.files[name].encode())}\0".encode())
            digest.update(self.files[name].encode())
        digest.update("\0".join(self.flags).encode())
        return digest.hexdigest()


def reference(task: Task) -> Candidate:
    """The task's own sources, as the user wrote them, with the flags the task builds with."""
    return Candidate({name: task.text(name) for name in task.editable}, task.build.flags)


def same_sources(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates differ in flags at most; a comment more may be other code (`__LINE__`)."""
    return dict(one.files) == dict(other.files)


def forbidden_change(task: Task, candidate: Candidate) -> str:
    """Why a candidate edits what it may not, or "" when it keeps to the editable files, regions and flags."""
    for name in candidate.files:
        if name not in task.editable:
            return f"{name} may not be edited; editable are {', '.join(task.editable)}"
    for name in task.editable:
        if name not in candidate.files:
            return f"{name} is missing from the candidate"
        if not candidate.files[name].isascii() and _half_letter(candidate.files[name]):
            return f"{name} holds half a letter (a lone surrogate), which no file can"
        if has_lone_return(candidate.files[name]) and not has_lone_return(task.text(name)):
            # Whether a line ends there is for each compiler to say, and so what is a comment.
            return f"{name} holds a carriage return without a newline after it; end lines with a newline"
        # Whatever it is called: any program may be given to Python.
        if _encoding(candidate.files[name]) not in ("utf-8", _encoding(task.text(name))):
            return f"{name} names an encoding of its own in its first two lines; sources are UTF-8"
        if has_regions(task.text(name)) and (reason := _outside_regions(candidate.files[name], task.text(name))):
            return f"{name} {reason}"
    return _forbidden_flag(task, candidate.flags)


def _encoding(text: str) -> str:
    """As what Python reads a source: another encoding gives fixed lines and comments another meaning."""
    try:
        found, _ = tokenize.detect_encoding(io.BytesIO(text.encode("utf-8", "replace")).readline)
    except SyntaxError:
        return "unknown"
    return "utf-8" if found in ("utf-8-sig", "ascii") else found


def _half_letter(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _outside_regions(theirs: str, ours: str) -> str:
    if has_lone_return(theirs):
        # Whether a line ends there is for each compiler to say, and so what stands outside the regions.
        return "holds a carriage return without a newline after it; end lines with a newline"
    # A reply that gives a file whole cannot tell its line ends, so carriage returns may go; none may come.
    if fixed_text(theirs) not in (fixed_text(ours), fixed_text(ours.replace("\r\n", "\n"))):
        return f"was changed outside the lines between '{BEGIN}' and '{END}'"
    return ""


def _forbidden_flag(task: Task, flags: tuple[str, ...]) -> str:
    if "" in flags:
        # To a compiler it is the name of a file, and the hash does not tell it from no flag at all.
        return "an empty flag is none: leave it out"
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


def in_order(task: Task, flags: tuple[str, ...]) -> tuple[str, ...]:
    """These flags and the fixed ones, in the one order in which a compiler sees them.

    A choice stands where the task has one of its group, or else last. To a compiler the order may mean something
    (`-fno-associative-math -ffast-math`); were it free, it would be a choice that the search for the best flags lacks.
    """
    group_of = {flag: n for n, group in reversed(list(enumerate(task.build.flag_choices))) for flag in group}
    fixed = fixed_flags(task)
    chosen: dict[int, list[str]] = {}
    for flag in dict.fromkeys(flag for flag in flags if flag in group_of):
        chosen.setdefault(group_of[flag], []).append(flag)
    ordered: list[str] = []
    for flag in task.build.flags:
        ordered += chosen.pop(group_of[flag], []) if flag in group_of else [flag]
    for number in sorted(chosen):
        ordered += chosen[number]
    # What the task does not allow is kept, for whoever refuses it by name.
    return (*ordered, *(flag for flag in flags if flag not in group_of and flag not in fixed))


def has_regions(text: str) -> bool:
    """Whether only parts of this file may be edited."""
    return any(opens_region(line) for line in lines(text))


def opens_region(line: str) -> bool:
    """Whether an editable region starts after this line."""
    return line.rstrip(_AFTER_MARK).endswith(BEGIN)


def closes_region(line: str) -> bool:
    """Whether an editable region ends before this line; `outpace: end alternatives` is another mark."""
    return line.rstrip(_AFTER_MARK).endswith(END)


def fixed_text(text: str) -> tuple[str, ...]:
    """The lines outside the editable regions, the marker lines included."""
    fixed: list[str] = []
    inside = False
    for line in lines(text):
        if closes_region(line):
            inside = False
        if not inside:
            fixed.append(line)
        if opens_region(line):
            inside = True
    return tuple(fixed)
