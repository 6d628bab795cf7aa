"""The diff: two sources as numbered hunks, each of which can be taken back alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from outpace.candidate import Candidate
from outpace.lines import with_ends
from outpace.variation import Point, idle_lines

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


@dataclass(frozen=True)
class _Seen:
    """The lines of a text that are shown, each with its number from 0, and how many lines there are."""

    lines: tuple[str, ...]
    at: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, text: str, idle: Collection[int]) -> _Seen:
        rows = with_ends(text)
        at = tuple(number for number in range(len(rows)) if number not in idle)
        return cls(tuple(rows[number] for number in at), at, len(rows))

    def span(self, first: int, end: int) -> tuple[int, int]:
        """Where shown lines [first, end) stand, with those around them that are not shown: they change together."""
        return self.at[first - 1] + 1 if first else 0, self.at[end] if end < len(self.at) else self.total


def hunks(reference: str, winner: str, idle: tuple[Collection[int], Collection[int]] = ((), ())) -> tuple[Hunk, ...]:
    """What changed, in the order of the lines; the `idle` lines of either text belong to a change and are not shown."""
    before, after = _Seen.of(reference, idle[0]), _Seen.of(winner, idle[1])
    many = max(before.total, after.total) > EXACT_LINES
    groups = SequenceMatcher(None, before.lines, after.lines, autojunk=many).get_grouped_opcodes(CONTEXT)
    return tuple(_hunk(before, after, group) for group in groups)


def without(reference: str, winner: str, hunk: Hunk) -> str:
    """The winner with the reference's lines in place of the hunk's."""
    before, after = with_ends(reference), with_ends(winner)
    return "".join(after[: hunk.new[0]] + before[slice(*hunk.old)] + after[hunk.new[1] :])


def parts(reference: Candidate, winner: Candidate, points: Sequence[Point] = ()) -> tuple[Part, ...]:
    """Every change of the winner: the hunks of each file, then the flags.

    Of alternatives that the task declares only those in use are shown: one that was commented out instead of another
    is no change that anybody made.
    """
    found: list[Part] = []
    idle = idle_lines(points, reference), idle_lines(points, winner)
    for file in sorted({*reference.files, *winner.files}):
        before, after = reference.files.get(file, ""), winner.files.get(file, "")
        for hunk in hunks(before, after, (idle[0].get(file, ()), idle[1].get(file, ()))):
            changed = {**winner.files, file: without(before, after, hunk)}
            title = f"{file}, {_span(hunk)}"
            found.append(Part(len(found) + 1, title, hunk, file, Candidate(changed, winner.flags)))
    if reference.flags != winner.flags:
        title = f"flags {_flags(winner.flags)} instead of {_flags(reference.flags)}"
        plain = Candidate(winner.files, reference.flags)
        found.append(Part(len(found) + 1, title, None, "", plain))
    return tuple(found)


def _hunk(before: _Seen, after: _Seen, group: Sequence[tuple[str, int, int, int, int]]) -> Hunk:
    changed = [code for code in group if code[0] != "equal"]
    lines: list[Line] = []
    for tag, old_from, old_to, new_from, new_to in group:
        if tag == "equal":
            lines += [
                Line("same", after.lines[new], before.at[old] + 1, after.at[new] + 1)
                for old, new in zip(range(old_from, old_to), range(new_from, new_to), strict=True)
            ]
        else:
            lines += [Line("old", before.lines[at], before.at[at] + 1, None) for at in range(old_from, old_to)]
            lines += [Line("new", after.lines[at], None, after.at[at] + 1) for at in range(new_from, new_to)]
    old, new = before.span(changed[0][1], changed[-1][2]), after.span(changed[0][3], changed[-1][4])
    return Hunk(old, new, tuple(lines))


def _span(hunk: Hunk) -> str:
    added = [line.new - 1 for line in hunk.lines if line.kind == "new" and line.new is not None]
    removed = [line.old - 1 for line in hunk.lines if line.kind == "old" and line.old is not None]
    seen = added or removed
    first, end = min(seen), max(seen) + 1
    where = f"line {first + 1}" if end == first + 1 else f"lines {first + 1} to {end}"
    return where if added else f"{where} removed"


def _flags(flags: Sequence[str]) -> str:
    return " ".join(flags) or "(none)"
