"""The diff: two sources as numbered hunks, each of which can be taken back alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from outpace.candidate import Candidate
from outpace.lines import with_ends

Kind = Literal["same", "old", "new"]

# As in a unified diff: changes nearer to each other than twice this are one hunk.
CONTEXT = 3
# Matching is quadratic or worse. Beyond this many lines difflib may pass over lines that occur often.
EXACT_LINES = 800


@dataclass(frozen=True)
class Line:
    """One line of a hunk, with its number in the reference and in the winner."""

    kind: Kind
    text: str
    old: int | None
    new: int | None


@dataclass(frozen=True)
class Hunk:
    """Lines `old` of the reference that became lines `new` of the winner, both half-open and counted from 0."""

    old: tuple[int, int]
    new: tuple[int, int]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Part:
    """One change of the winner, and the winner without it; `hunk` is None for the compiler flags."""

    number: int
    title: str
    hunk: Hunk | None
    file: str
    without: Candidate


def hunks(reference: str, winner: str) -> tuple[Hunk, ...]:
    """What changed, in the order of the lines."""
    before, after = with_ends(reference), with_ends(winner)
    many = max(len(before), len(after)) > EXACT_LINES
    groups = SequenceMatcher(None, before, after, autojunk=many).get_grouped_opcodes(CONTEXT)
    return tuple(_hunk(before, after, group) for group in groups)


def without(reference: str, winner: str, hunk: Hunk) -> str:
    """The winner with the reference's lines in place of the hunk's."""
    before, after = with_ends(reference), with_ends(winner)
    return "".join(after[: hunk.new[0]] + before[slice(*hunk.old)] + after[hunk.new[1] :])


def parts(reference: Candidate, winner: Candidate) -> tuple[Part, ...]:
    """Every change of the winner: the hunks of each file, then the flags."""
    found: list[Part] = []
    for file in sorted({*reference.files, *winner.files}):
        before, after = reference.files.get(file, ""), winner.files.get(file, "")
        for hunk in hunks(before, after):
            changed = {**winner.files, file: without(before, after, hunk)}
            title = f"{file}, {_span(hunk)}"
            found.append(Part(len(found) + 1, title, hunk, file, Candidate(changed, winner.flags)))
    if reference.flags != winner.flags:
        title = f"flags {_flags(winner.flags)} instead of {_flags(reference.flags)}"
        plain = Candidate(winner.files, reference.flags)
        found.append(Part(len(found) + 1, title, None, "", plain))
    return tuple(found)


def _hunk(before: Sequence[str], after: Sequence[str], group: Sequence[tuple[str, int, int, int, int]]) -> Hunk:
    changed = [code for code in group if code[0] != "equal"]
    lines: list[Line] = []
    for tag, old_from, old_to, new_from, new_to in group:
        if tag == "equal":
            lines += [
                Line("same", after[new], old + 1, new + 1)
                for old, new in zip(range(old_from, old_to), range(new_from, new_to), strict=True)
            ]
        else:
            lines += [Line("old", before[at], at + 1, None) for at in range(old_from, old_to)]
            lines += [Line("new", after[at], None, at + 1) for at in range(new_from, new_to)]
    return Hunk((changed[0][1], changed[-1][2]), (changed[0][3], changed[-1][4]), tuple(lines))


def _span(hunk: Hunk) -> str:
    first, end = hunk.new if hunk.new[0] < hunk.new[1] else hunk.old
    where = f"line {first + 1}" if end == first + 1 else f"lines {first + 1} to {end}"
    return where if hunk.new[0] < hunk.new[1] else f"{where} removed"


def _flags(flags: Sequence[str]) -> str:
    return " ".join(flags) or "(none)"
