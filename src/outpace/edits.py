"""Edits: the SEARCH/REPLACE blocks that turn one text into another, read, placed, applied and written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

import numpy as np
import numpy.typing as npt

from outpace.errors import OutpaceError
from outpace.shown import shown_text
from outpace.task.lines import with_ends

MAX_EDITS = 200
CLOSE_FILE_LINES = 20_000
CLOSE_SEARCH_LINES = 400
ALIKE, CLEARLY = 0.85, 0.05
# What the inexact edits of one text may cost together, in line comparisons and cells of difflib's table: a
# few seconds for the most hostile reply. One search at both limits above takes half of it.
WORK = 2 * CLOSE_FILE_LINES * CLOSE_SEARCH_LINES

_COUNTED_PLACES = 100
_QUOTED_LINES, _QUOTED_CHARACTERS = 4, 100
# Characters are counted in this many classes: merging some keeps the bound an upper one.
_CLASSES = 64
_OPENING = re.compile(r"(<{5,})\s*SEARCH\s*")
_STRAY_MARKER = re.compile(r"<{5,}.*|={5,}\s*|>{5,}.*")
_TOO_MUCH = "too much of this reply matches the file only roughly; copy the SEARCH lines exactly"


class EditError(OutpaceError):
    """A reply's code cannot be read or has no certain place; the text says what to write instead."""


@dataclass(frozen=True)
class Edit:
    """Lines to look for and the lines to put there, without their line ends."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


@dataclass(frozen=True)
class _Place:
    start: int
    work: int = 0
    # From the SEARCH text's indentation to the file's.
    indents: Mapping[str, str] = field(default_factory=dict)


def read(block: str) -> tuple[Edit, ...]:
    """The edits written in a block; what stands between them is passed over."""
    edits: list[Edit] = []
    lines = iter(block.split("\n"))
    for line in lines:
        if opening := _OPENING.fullmatch(line):
            edits.append(_read_one(lines, len(opening[1])))
        elif _STRAY_MARKER.fullmatch(line):
            raise EditError(f"'{quoted(line)}' stands outside a SEARCH/REPLACE block; write <<<<<<< SEARCH first")
    return tuple(edits)


def _read_one(lines: Iterator[str], width: int) -> Edit:
    divider, closing = "=" * width, ">" * width
    parts: list[list[str]] = [[]]
    for line in lines:
        if line.rstrip() == divider:
            parts.append([])
        elif line.startswith(closing) and line[width:].strip() == "REPLACE":
            break
        elif (again := _OPENING.fullmatch(line)) and len(again[1]) == width:
            raise EditError(f"a SEARCH block is open when the next begins; end it with {quoted(closing)} REPLACE")
        else:
            parts[-1].append(line)
    else:
        raise EditError(f"a SEARCH block is not closed; end it with {quoted(closing)} REPLACE")
    if len(parts) != 2:
        # Guessing which row divides would put half of the SEARCH text into the file.
        raise EditError(
            f"a SEARCH block holds {len(parts) - 1} rows of {quoted(divider)}, not one; around text that has "
            "such a row, write all three marker rows longer"
        )
    return Edit(tuple(parts[0]), tuple(parts[1]))


def write(edits: Sequence[Edit]) -> str:
    """The block from which `read` gives these edits back, whatever marker rows they hold."""
    lines = [line for edit in edits for line in (*edit.search, *edit.replace)]
    width = max([6, *(len(row[0]) for line in lines if (row := re.match(r"<+|=+|>+", line)))]) + 1
    rows: list[str] = []
    for edit in edits:
        rows += ["<" * width + " SEARCH", *edit.search, "=" * width, *edit.replace, ">" * width + " REPLACE"]
    return "".join(row + "\n" for row in rows)


def apply(text: str, edits: Sequence[Edit]) -> str:
    """The text after each edit in turn; line ends and a missing final newline stay as the text has them."""
    if len(edits) > MAX_EDITS:
        raise EditError(f"{len(edits)} edits for one file, at most {MAX_EDITS}; give the file whole")
    lines, ends = _split(text)
    newline = "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"
    left = WORK
    for number, edit in enumerate(edits, 1):
        try:
            place = _locate(lines, edit.search, left)
        except EditError as error:
            raise EditError(f"edit {number} of {len(edits)}: {error}") from None
        left -= place.work
        # An empty file has no lines for even a blank SEARCH to take.
        here = slice(place.start, place.start + min(len(edit.search), len(lines)))
        new_ends = [newline] * len(edit.replace)
        if new_ends and ends[here]:
            new_ends[-1] = ends[here][-1]
        lines[here], ends[here] = _reindented(edit.replace, place.indents), new_ends
    return "".join(line + end for line, end in zip(lines, ends, strict=True))


def between(old: str, new: str) -> tuple[Edit, ...]:
    """Edits with which `apply` turns the old text into exactly the new one, or none where there are none."""
    before, after = _split(old)[0], _split(new)[0]
    if max(len(before), len(after)) > CLOSE_FILE_LINES:
        return ()
    # A SEARCH text that stands in several places needs more lines around it.
    for context in (2, 8, 32):
        # A fresh matcher each time: get_grouped_opcodes trims the opcodes that the matcher keeps.
        matcher = SequenceMatcher(None, before, after)
        edits = tuple(
            Edit(tuple(before[group[0][1] : group[-1][2]]), tuple(after[group[0][3] : group[-1][4]]))
            for group in matcher.get_grouped_opcodes(context)
        )
        try:
            if apply(old, edits) == new:
                return edits
        except EditError:
            continue
    return ()


def quoted(line: str) -> str:
    """A line of hostile text made safe to print: short, and with nothing unseen in it."""
    clean = " ".join(shown_text(line[:_QUOTED_CHARACTERS]).splitlines()).replace("\t", " ")
    whole = len(line) <= _QUOTED_CHARACTERS and len(clean) <= _QUOTED_CHARACTERS
    return clean if whole else clean[:_QUOTED_CHARACTERS] + "..."


def _split(text: str) -> tuple[list[str], list[str]]:
    """Lines and their ends."""
    whole = with_ends(text)
    lines = [line[:-2] if line.endswith("\r\n") else line.removesuffix("\n") for line in whole]
    return lines, [line[len(bare) :] for line, bare in zip(whole, lines, strict=True)]


def _locate(lines: Sequence[str], search: Sequence[str], left: int) -> _Place:
    if not any(line.strip() for line in search):
        if lines:
            raise EditError("the SEARCH text is empty but the file is not; copy the lines to replace into it")
        return _Place(0)
    if exact := _places(lines, search):
        return _Place(_only(exact))
    work = 2 * len(lines)
    if work > left:
        raise EditError(_TOO_MUCH)
    if found := _places([line.rstrip() for line in lines], [line.rstrip() for line in search]):
        return _Place(_only(found), work)
    if found := _places([line.strip() for line in lines], [line.strip() for line in search]):
        work += len(found) * len(search)
        if work > left:
            raise EditError(_TOO_MUCH)
        shape = _shape(search)
        start = _only([at for at in found if _shape(lines[at : at + len(search)]) == shape] or found)
    else:
        start, cost = _closest(lines, search, left - work)
        work += cost
    return _Place(start, work, _indents(search, lines[start : start + len(search)]))


def _places(lines: Sequence[str], search: Sequence[str]) -> list[int]:
    """The line indices at which the search lines stand, overlapping places included, up to a limit."""
    # One string search instead of a comparison of windows, which is quadratic in a file of equal lines.
    text, wanted = ("\n" + "".join(line + "\n" for line in part) for part in (lines, search))
    found: list[int] = []
    line, counted = 0, 0
    at = text.find(wanted)
    while at >= 0 and len(found) < _COUNTED_PLACES:
        line, counted = line + text.count("\n", counted, at), at
        found.append(line)
        at = text.find(wanted, at + 1)
    return found


def _only(found: Sequence[int]) -> int:
    if len(found) > 1:
        many = f"at least {len(found)}" if len(found) == _COUNTED_PLACES else str(len(found))
        numbers = ", ".join(str(at + 1) for at in found[:5]) + (", ..." if len(found) > 5 else "")
        raise EditError(f"the SEARCH text matches {many} places; include more lines (found at lines {numbers})")
    return found[0]


def _closest(lines: Sequence[str], search: Sequence[str], left: int) -> tuple[int, int]:
    """Where the one window much like the search begins, and what finding it cost."""
    if len(lines) > CLOSE_FILE_LINES or len(search) > CLOSE_SEARCH_LINES:
        raise EditError(
            f"the SEARCH text is not in the file, and {len(search)} lines against {len(lines)} are too many "
            f"to look for a close match; copy the lines exactly. It begins{_quoted(search)}"
        )
    if not lines:
        raise EditError(f"the file is empty; leave SEARCH empty too. It begins{_quoted(search)}")
    # A SEARCH longer than the file has no place; its head still finds the place to tell of.
    bare, head = [line.strip() for line in lines], [line.strip() for line in search[: len(lines)]]
    work = len(lines) * len(head)
    if work > left:
        raise EditError(_TOO_MUCH)
    bounds = _bounds(bare, head)
    scores: list[tuple[float, int]] = []
    best = 0.0
    for at in np.argsort(-bounds, kind="stable").tolist():
        # Five are scored whatever their bound, so that there is a closest place to tell of.
        if len(scores) >= 5 and bounds[at] < max(best, ALIKE) - CLEARLY:
            break
        window = bare[at : at + len(head)]
        work += sum(len(a) * len(b) for a, b in zip(window, head, strict=True) if a != b)
        if work > left:
            raise EditError(f"{_TOO_MUCH}. It begins{_quoted(search)}")
        scores.append((_likeness(window, head), at))
        best = max(best, scores[-1][0])
    (score, at), *others = sorted(scores, key=lambda pair: (-pair[0], pair[1]))
    rival, other = others[0] if others else (0.0, -1)
    if len(head) < len(search) or score < ALIKE:
        raise EditError(
            f"the SEARCH text is not in the file. It begins{_quoted(search)}\nThe closest place is line "
            f"{at + 1} ({score:.0%} alike){_quoted(lines[at : at + len(head)])}\nCopy the lines exactly."
        )
    if rival > score - CLEARLY:
        raise EditError(
            f"the SEARCH text is not in the file, and lines {at + 1} and {other + 1} are both like it "
            f"({score:.0%}, {rival:.0%}); copy the lines exactly. It begins{_quoted(search)}"
        )
    return at, work


def _bounds(lines: Sequence[str], search: Sequence[str]) -> npt.NDArray[np.float64]:
    """For each window, a likeness that `_likeness` cannot exceed: the characters in common, in any order."""
    counts, wanted = _character_counts(lines), _character_counts(search)
    windows = len(lines) - len(search) + 1
    common = np.zeros(windows, np.int64)
    for offset, row in enumerate(wanted):
        common += np.minimum(counts[offset : offset + windows], row).sum(axis=1)
    before = np.concatenate(([0], np.cumsum([len(line) for line in lines])))
    size = before[len(search) :] - before[:windows] + sum(len(line) for line in search)
    return np.asarray(2.0 * common / np.maximum(size, 1), np.float64)


def _character_counts(lines: Sequence[str]) -> npt.NDArray[np.int32]:
    codes = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), np.uint32) % _CLASSES
    row = np.repeat(np.arange(len(lines)), [len(line) for line in lines])
    counts = np.bincount(row * _CLASSES + codes, minlength=len(lines) * _CLASSES)
    return counts.reshape(len(lines), _CLASSES).astype(np.int32)


def _likeness(window: Sequence[str], search: Sequence[str]) -> float:
    """difflib's ratio of two texts of equally many lines, matching each line with its opposite alone."""
    # Line by line, because difflib on whole texts is quadratic in hundreds of lines, and because a window
    # that only matches when shifted by a line is not the place that is to be replaced.
    same = 0
    for a, b in zip(window, search, strict=True):
        if a == b:
            same += len(a)
        else:
            blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
            same += sum(block.size for block in blocks)
    return 2.0 * same / max(1, sum(map(len, (*window, *search))))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _shape(lines: Sequence[str]) -> list[str]:
    """The indentation of each line that is not blank, beyond what they all have."""
    indents = [_indent(line) for line in lines if line.strip()]
    shallowest = min(indents, key=len)
    return [indent.removeprefix(shallowest) for indent in indents]


def _indents(search: Sequence[str], window: Sequence[str]) -> dict[str, str]:
    indents: dict[str, str] = {}
    for theirs, ours in zip(search, window, strict=True):
        if theirs.strip() and ours.strip():
            indents.setdefault(_indent(theirs), _indent(ours))
    return indents


def _reindented(replace: Sequence[str], indents: Mapping[str, str]) -> list[str]:
    if all(theirs == ours for theirs, ours in indents.items()):
        return list(replace)
    longest_first = sorted(indents, key=len, reverse=True)
    return [_moved(line, longest_first, indents) if line.strip() else line for line in replace]


def _moved(line: str, longest_first: Sequence[str], indents: Mapping[str, str]) -> str:
    indent = _indent(line)
    for theirs in longest_first:
        if indent.startswith(theirs):
            return indents[theirs] + line[len(theirs) :]
    # Less indented than any line searched for: as many columns out from the shallowest as in the reply.
    shallowest = longest_first[-1]
    columns = len(indents[shallowest]) - (len(shallowest) - len(indent))
    return indents[shallowest][: max(columns, 0)] + line[len(indent) :]


def _quoted(lines: Sequence[str]) -> str:
    more = ["..."] if len(lines) > _QUOTED_LINES else []
    return ":" + "".join(f"\n    {quoted(line)}" for line in [*lines[:_QUOTED_LINES], *more])
