"""The diff: two sources as numbered hunks, each of which can be taken back alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from outpace.task.candidate import Candidate
from outpace.task.lines import with_ends
from outpace.task.variation import Point, folds

Kind = Literal["same", "old", "new"]
# The lines that are shown of blocks, by the line that each begins with.
Folds = Mapping[int, tuple[int, ...]]
# Of difflib: what became of some units, [first, end) of both sides.
_Code = tuple[str, int, int, int, int]

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
class _Unit:
    """Lines [first, end) of a text that change together, and those of them that are shown."""

    text: str
    first: int
    end: int
    shown: tuple[int, ...]


def _units(rows: Sequence[str], folded: Folds) -> list[_Unit]:
    """Every line by itself, but alternatives as one."""
    units: list[_Unit] = []
    at = 0
    while at < len(rows):
        shown = folded.get(at, (at,))
        units.append(_Unit("".join(rows[number] for number in shown), at, shown[-1] + 1, shown))
        at = shown[-1] + 1
    return units


def hunks(reference: str, winner: str, folded: tuple[Folds, Folds] = ({}, {})) -> tuple[Hunk, ...]:
    """What changed, in the order of the lines; `folded` are the blocks of either text of which a part is shown."""
    before, after = with_ends(reference), with_ends(winner)
    old, new = _units(before, folded[0]), _units(after, folded[1])
    many = max(len(before), len(after)) > EXACT_LINES
    matcher = SequenceMatcher(None, [unit.text for unit in old], [unit.text for unit in new], autojunk=many)
    groups = [part for group in matcher.get_grouped_opcodes(CONTEXT) for part in _apart(group, old, new)]
    return tuple(_hunk(before, after, old, new, group) for group in groups)


def _apart(group: Sequence[_Code], old: Sequence[_Unit], new: Sequence[_Unit]) -> list[list[_Code]]:
    """Each of several alternatives that changed by itself, however near they are: each was chosen by itself."""

    def chosen(code: _Code) -> bool:
        return code[0] != "equal" and any(
            len(unit.shown) > 1 for unit in (*old[code[1] : code[2]], *new[code[3] : code[4]])
        )

    parts: list[list[_Code]] = [[]]
    for at, code in enumerate(group):
        parts[-1].append(code)
        if code[0] == "equal" and 0 < at < len(group) - 1 and (chosen(group[at - 1]) or chosen(group[at + 1])):
            parts.append([code])
    return parts


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
    folded = folds(points, reference), folds(points, winner)
    for file in sorted({*reference.files, *winner.files}):
        before, after = reference.files.get(file, ""), winner.files.get(file, "")
        for hunk in hunks(before, after, (folded[0].get(file, {}), folded[1].get(file, {}))):
            changed = {**winner.files, file: without(before, after, hunk)}
            title = f"{file}, {_span(hunk)}"
            found.append(Part(len(found) + 1, title, hunk, file, Candidate(changed, winner.flags)))
    if reference.flags != winner.flags:
        title = f"flags {_flags(winner.flags)} instead of {_flags(reference.flags)}"
        plain = Candidate(winner.files, reference.flags)
        found.append(Part(len(found) + 1, title, None, "", plain))
    return tuple(found)


def _hunk(
    before: Sequence[str],
    after: Sequence[str],
    old: Sequence[_Unit],
    new: Sequence[_Unit],
    group: Sequence[_Code],
) -> Hunk:
    changed = [code for code in group if code[0] != "equal"]
    lines: list[Line] = []
    for tag, old_from, old_to, new_from, new_to in group:
        was, now = old[old_from:old_to], new[new_from:new_to]
        if tag == "equal":
            for one, other in zip(was, now, strict=True):
                # Of alternatives that did not change, where they begin and end.
                pairs = list(zip(one.shown, other.shown, strict=True))
                pairs = pairs if len(pairs) == 1 else [pairs[0], pairs[-1]]
                lines += [Line("same", after[right], left + 1, right + 1) for left, right in pairs]
        else:
            lines += _compared(before, after, [at for unit in was for at in unit.shown], [
                at for unit in now for at in unit.shown])  # fmt: skip
    return Hunk(
        _range(old, changed[0][1], changed[-1][2], len(before)),
        _range(new, changed[0][3], changed[-1][4], len(after)),
        tuple(lines),
    )


def _compared(before: Sequence[str], after: Sequence[str], old: Sequence[int], new: Sequence[int]) -> list[Line]:
    """The lines of one change: alternatives have some in common."""
    lines: list[Line] = []
    matcher = SequenceMatcher(None, [before[at] for at in old], [after[at] for at in new], autojunk=False)
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag == "equal":
            pairs = zip(old[old_from:old_to], new[new_from:new_to], strict=True)
            lines += [Line("same", after[right], left + 1, right + 1) for left, right in pairs]
        else:
            lines += [Line("old", before[at], at + 1, None) for at in old[old_from:old_to]]
            lines += [Line("new", after[at], None, at + 1) for at in new[new_from:new_to]]
    return lines


def _range(units: Sequence[_Unit], first: int, end: int, total: int) -> tuple[int, int]:
    start = units[first].first if first < len(units) else total
    return start, units[end - 1].end if end > first else start


def _span(hunk: Hunk) -> str:
    added = [line.new - 1 for line in hunk.lines if line.kind == "new" and line.new is not None]
    removed = [line.old - 1 for line in hunk.lines if line.kind == "old" and line.old is not None]
    seen = added or removed
    first, end = min(seen), max(seen) + 1
    where = f"line {first + 1}" if end == first + 1 else f"lines {first + 1} to {end}"
    return where if added else f"{where} removed"


def _flags(flags: Sequence[str]) -> str:
    return " ".join(flags) or "(none)"
