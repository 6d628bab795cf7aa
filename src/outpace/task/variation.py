"""Variation points: the choices that a task's sources and flags declare, read, set and counted."""

from __future__ import annotations

import bisect
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from outpace.errors import TaskError
from outpace.task import Task
from outpace.task.candidate import Candidate, closes_region, has_regions, opens_region

Kind = Literal["choose", "alternatives", "flags"]
# The option of each point, by its index; None where a candidate no longer has the point.
Settings = tuple[int | None, ...]

# Matched against a line without the blanks around it: a pattern that strips both ends takes quadratic time.
_MARKER = re.compile(r"(//|#)\s*outpace:(.*)")
_WRONG_COMMENT = re.compile(r"\s*/\*+\s*outpace:")
_WORD = re.compile(r"[A-Za-z_]\w*")
# Every option of a choice is looked for in a line, and a candidate's lines may be long.
_MOST_TOKENS = 64


@dataclass(frozen=True)
class Point:
    """One choice; points are equal when a candidate's text cannot tell them apart."""

    kind: Kind
    file: str
    name: str
    options: tuple[str, ...]
    # Which one, of several in the file that are alike.
    turn: int = 0
    line: int = field(default=0, compare=False)
    # Of alternatives: each option's text, active and commented out, as the task's author would write it.
    spellings: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    # Of flags: all the reference's flags, in the order to keep.
    order: tuple[str, ...] = field(default=(), compare=False)

    @property
    def where(self) -> str:
        """The place of the declaration, as compilers write it."""
        return f"{self.file}:{self.line}" if self.file else "[build] flag_choices"

    def said(self, option: int | None) -> str:
        """An option in words that fit into a sentence."""
        if option is None:
            return f"{self.name} as it is"
        text = self.options[option]
        if self.kind == "choose":
            return f"{self.name}={text}"
        if self.kind == "alternatives":
            return f"option {text}"
        return text or "no " + "/".join(flag for flag in self.options if flag)


@dataclass(frozen=True)
class _Block:
    """One option of alternatives: the lines [first, last) of its file."""

    name: str
    first: int
    last: int
    active: bool


@dataclass(frozen=True)
class _Found:
    """A point as it stands in one text."""

    kind: Kind
    name: str
    options: tuple[str, ...]
    setting: int
    line: int
    # Of choose: where the token stands in the line after the marker.
    span: tuple[int, int] = (0, 0)
    # Of alternatives.
    blocks: tuple[_Block, ...] = ()
    prefix: str = ""


class _FaultError(Exception):
    """What is wrong with a point, on which line (from 0), and where to read on."""

    def __init__(self, line: int, reason: str, resume: int | None = None) -> None:
        super().__init__(reason)
        self.line = line
        self.resume = line + 1 if resume is None else resume


def points(task: Task) -> tuple[Point, ...]:
    """The task's points, sources first, then flags; a malformed one is a TaskError with file and line."""
    declared: list[Point] = []
    for name in task.editable:
        lines = task.text(name).split("\n")
        turns: Counter[tuple[str, ...]] = Counter()
        for found in _scan(lines):
            if isinstance(found, _FaultError):
                raise TaskError(f"{task.folder / name}:{found.line + 1}: {found}")
            alike = (found.kind, found.name, *found.options)
            spellings = tuple(_spellings(lines, found, block) for block in found.blocks)
            declared.append(Point(found.kind, name, found.name, found.options, turns[alike], found.line + 1, spellings))
            turns[alike] += 1
    return (*declared, *_flag_points(task))


def size(points: Sequence[Point]) -> int:
    """How many candidates the points span."""
    return math.prod(len(point.options) for point in points)


def settings(points: Sequence[Point], candidate: Candidate) -> Settings:
    """Which option of each point the candidate has; None where its text or flags no longer tell."""
    found = _locate(points, candidate)
    return tuple(
        _flag_setting(point, candidate.flags)
        if point.kind == "flags"
        else found[point].setting
        if point in found
        else None
        for point in points
    )


def apply(points: Sequence[Point], candidate: Candidate, wanted: Settings) -> Candidate:
    """The candidate with its points set; None, and points that it does not have, stay as they are.

    The result depends on the settings alone, not on the way that led there: equal programs keep equal hashes.
    """
    found = _locate(points, candidate)
    texts = {name: text.split("\n") for name, text in candidate.files.items()}
    # No change moves a line, so the places found stay right while the texts are written.
    for point, option in zip(points, wanted, strict=True):
        if point.kind == "flags" or option is None or point not in found:
            continue
        _set(texts[point.file], point, found[point], option)
    files = {name: "\n".join(lines) for name, lines in texts.items()}
    return Candidate(files, _set_flags(points, candidate.flags, wanted))


def frame(points: Sequence[Point], candidate: Candidate) -> str:
    """Names what a candidate is beside its points: two of equal frame and settings are the same program."""
    found = _locate(points, candidate)
    texts = {name: text.split("\n") for name, text in candidate.files.items()}
    for point, place in found.items():
        lines = texts[point.file]
        if place.kind == "choose":
            start, stop = place.span
            lines[place.line + 1] = f"{lines[place.line + 1][:start]}\0{lines[place.line + 1][stop:]}"
        for block in place.blocks:
            for at in range(block.first, block.last):
                lines[at] = lines[at].strip().removeprefix(place.prefix).strip()
    grouped = {flag for point in points if point.kind == "flags" for flag in point.options}
    digest = hashlib.sha256()
    for name in sorted(texts):
        digest.update(f"{name}\0{len(texts[name])}\0".encode() + "\n".join(texts[name]).encode())
    digest.update("\0".join(sorted(flag for flag in candidate.flags if flag not in grouped)).encode())
    return digest.hexdigest()[:16]


def folds(points: Sequence[Point], candidate: Candidate) -> dict[str, dict[int, tuple[int, ...]]]:
    """By file, each block of alternatives by its first line: those of its lines (from 0) that are in use.

    A person who reads what a candidate changed has no use for the others. Left out here are blocks in which a candidate
    wrote something of its own into an option that is not in use: that is not to be passed over.
    """
    found: dict[str, dict[int, tuple[int, ...]]] = {}
    for point, place in _locate(points, candidate).items():
        lines = candidate.files[point.file].split("\n")
        idle = [(index, block) for index, block in enumerate(place.blocks) if not block.active]
        if not idle or any(
            "\n".join(lines[block.first : block.last]) != point.spellings[index][1] for index, block in idle
        ):
            continue
        used = place.blocks[place.setting]
        # The last line is that which ends the block.
        found.setdefault(point.file, {})[place.line] = (
            place.line, *range(used.first - 1, used.last), place.blocks[-1].last
        )  # fmt: skip
    return found


def _locate(points: Sequence[Point], candidate: Candidate) -> dict[Point, _Found]:
    places: dict[Point, _Found] = {}
    for name in {point.file for point in points if point.kind != "flags"}:
        if name not in candidate.files:
            continue
        alike: dict[tuple[str, ...], list[_Found]] = {}
        for found in _scan(candidate.files[name].split("\n")):
            # A candidate from elsewhere may have garbled markers: those points are simply gone.
            if isinstance(found, _Found):
                alike.setdefault((found.kind, found.name, *found.options), []).append(found)
        own = [point for point in points if point.file == name and point.kind != "flags"]
        declared = Counter((point.kind, point.name, *point.options) for point in own)
        for point in own:
            key = (point.kind, point.name, *point.options)
            same = alike.get(key, [])
            # With one of several twins gone or added, nobody knows which is which.
            if len(same) == declared[key]:
                places[point] = same[point.turn]
    return places


# Reading a text


def _scan(lines: Sequence[str]) -> Iterator[_Found | _FaultError]:
    """The points of a text, and what is wrong with those that are none."""
    for first, last in _editable(lines):
        at = first
        # Found once: a text may open alternatives in thousands of lines.
        ends = [row for row in range(first, last) if _words(lines[row]) == ["end", "alternatives"]]
        while at < last:
            try:
                found, at = _point(lines, at, last, ends)
                if found is not None:
                    yield found
            except _FaultError as fault:
                yield fault
                at = fault.resume


def _editable(lines: Sequence[str]) -> list[tuple[int, int]]:
    """The stretches of lines that may change."""
    if not has_regions("\n".join(lines)):
        return [(0, len(lines))]
    stretches: list[tuple[int, int]] = []
    begin: int | None = None
    for at, line in enumerate(lines):
        if opens_region(line):
            begin = at + 1
        elif closes_region(line) and begin is not None:
            stretches.append((begin, at))
            begin = None
    return stretches


def _words(line: str) -> list[str]:
    """What a marker line says, word by word; nothing for any other line."""
    match = _MARKER.fullmatch(line.strip())
    return (match[2].split() or ["nothing"]) if match else []


def _point(lines: Sequence[str], at: int, last: int, ends: Sequence[int]) -> tuple[_Found | None, int]:
    words = _words(lines[at])
    if not words:
        if _WRONG_COMMENT.match(lines[at]):
            raise _FaultError(at, "a marker must be a line comment: write // outpace: ... or # outpace: ...")
        return None, at + 1
    if words[0] == "choose":
        return _choose(lines, at, last, tuple(words[1:])), at + 2
    if words == ["alternatives"]:
        return _alternatives(lines, at, ends)
    if words[0] == "option" or words[:2] == ["end", "alternatives"]:
        raise _FaultError(at, f"'{' '.join(words)}' stands outside 'outpace: alternatives'; put that before it")
    raise _FaultError(
        at,
        f"'outpace: {' '.join(words)}' is no marker; known are 'choose A B ...', 'alternatives', "
        "'option NAME', 'end alternatives', 'begin' and 'end'",
    )


def _choose(lines: Sequence[str], at: int, last: int, tokens: tuple[str, ...]) -> _Found:
    if len(tokens) < 2 or len(set(tokens)) < len(tokens):
        given = " ".join(tokens) or "none"
        raise _FaultError(at, f"'choose' needs two or more different tokens, it has {given}")
    if len(tokens) > _MOST_TOKENS:
        raise _FaultError(at, f"'choose' has {len(tokens)} tokens; {_MOST_TOKENS} are the most")
    if at + 1 >= last:
        raise _FaultError(at, "'choose' is not followed by a line that may be edited; put it before one")
    matches = list(_any_of(tokens).finditer(lines[at + 1]))
    if len(matches) != 1:
        shown = ", ".join(match[0] for match in matches) or "none"
        raise _FaultError(
            at,
            f"the line after 'choose' must hold exactly one of {', '.join(tokens)}, it holds {shown}: "
            f"'{lines[at + 1].strip()}'",
        )
    token = matches[0]
    before = _WORD.findall(lines[at + 1][: token.start()])
    name = before[-1] if before else "the value"
    return _Found("choose", name, tokens, tokens.index(token[0]), at, token.span())


def _any_of(tokens: Sequence[str]) -> re.Pattern[str]:
    # The longest first, so that of < and <=, or 1 and -1, the one that stands there is found.
    return re.compile("|".join(map(_whole, sorted(tokens, key=len, reverse=True))))


def _whole(token: str) -> str:
    """The token, not as a part of a word or of a decimal number."""
    before = r"(?<!\w)" if token[0].isalnum() or token[0] == "_" else ""
    after = r"(?!\w)" if token[-1].isalnum() or token[-1] == "_" else ""
    if token[0].isdigit():
        before += r"(?<!\.)"
    if token[-1].isdigit():
        after += r"(?!\.\d)"
    return before + re.escape(token) + after


def _alternatives(lines: Sequence[str], at: int, ends: Sequence[int]) -> tuple[_Found, int]:
    following = bisect.bisect(ends, at)
    if following == len(ends):
        raise _FaultError(at, "'alternatives' has no 'outpace: end alternatives' after it")
    end = ends[following]
    marker = _MARKER.fullmatch(lines[at].strip())
    assert marker is not None
    prefix = marker[1] + "~"
    rows = [row for row in range(at + 1, end) if _words(lines[row])]
    for row in rows:
        if _words(lines[row])[0] != "option":
            what = " ".join(_words(lines[row])[:2])
            raise _FaultError(row, f"'{what}' may not stand inside alternatives; move it out of them", end + 1)
        if len(_words(lines[row])) != 2:
            raise _FaultError(row, "'option' needs a name of one word", end + 1)
    names = tuple(_words(lines[row])[1] for row in rows)
    if len(names) < 2 or len(set(names)) < len(names):
        given = ", ".join(names) or "none"
        reason = f"alternatives need two or more options of different names, these have {given}"
        raise _FaultError(at, reason, end + 1)
    if any(line.strip() for line in lines[at + 1 : rows[0]]):
        raise _FaultError(at + 1, "lines before the first 'option' belong to none; move them up", end + 1)
    blocks = tuple(
        _Block(name, row + 1, stop, _is_active(lines, name, row, stop, prefix, end))
        for name, row, stop in zip(names, rows, [*rows[1:], end], strict=True)
    )
    active = [index for index, block in enumerate(blocks) if block.active]
    if len(active) != 1:
        which = ", ".join(names[index] for index in active) or "none"
        reason = f"exactly one option must be active, active are {which}; comment others out with '{prefix} '"
        raise _FaultError(at, reason, end + 1)
    found = _Found("alternatives", "alternatives", names, active[0], at, blocks=blocks, prefix=prefix)
    return found, end + 1


def _is_active(lines: Sequence[str], name: str, row: int, stop: int, prefix: str, end: int) -> bool:
    written = [line.strip() for line in lines[row + 1 : stop] if line.strip()]
    if not written:
        raise _FaultError(row, f"option {name} is empty; a comment in it will do", end + 1)
    commented = sum(line.startswith(prefix) for line in written)
    if 0 < commented < len(written):
        reason = f"option {name} is commented out in part: {commented} of {len(written)} lines have '{prefix}'"
        raise _FaultError(row, reason, end + 1)
    return commented == 0


# Writing a text


def _set(lines: list[str], point: Point, place: _Found, option: int) -> None:
    if place.kind == "choose":
        start, stop = place.span
        row = lines[place.line + 1]
        lines[place.line + 1] = row[:start] + point.options[option] + row[stop:]
        return
    for index, block in enumerate(place.blocks):
        body = "\n".join(lines[block.first : block.last])
        known = point.spellings[index]
        spelling = known if body in known else _spellings(lines, place, block)
        lines[block.first : block.last] = spelling[0 if index == option else 1].split("\n")


def _spellings(lines: Sequence[str], place: _Found, block: _Block) -> tuple[str, str]:
    """A block's text active and commented out, one of them as it stands."""
    body = lines[block.first : block.last]
    if not block.active:
        return "\n".join(_uncommented(line, place.prefix) for line in body), "\n".join(body)
    marker = lines[place.line]
    indent = marker[: len(marker) - len(marker.lstrip())]
    return "\n".join(body), "\n".join(_commented(line, place.prefix, indent) for line in body)


def _uncommented(line: str, prefix: str) -> str:
    bare = line.lstrip()
    if not bare.startswith(prefix):
        return line
    rest = bare.removeprefix(prefix).removeprefix(" ")
    return line[: len(line) - len(bare)] + rest if rest.strip() else rest


def _commented(line: str, prefix: str, indent: str) -> str:
    if not line.strip():
        return line
    if not line.startswith(indent):
        indent = ""
    return f"{indent}{prefix} {line[len(indent) :]}"


# Flags


def _flag_points(task: Task) -> tuple[Point, ...]:
    owners: dict[str, tuple[str, ...]] = {}
    for group in task.build.flag_choices:
        for flag in group:
            if flag and flag in owners:
                raise TaskError(
                    f"{task.folder / 'task.toml'}: flag_choices names {flag} twice, in {list(owners[flag])} "
                    f"and {list(group)}; keep one"
                )
            owners[flag] = group
        if len(set(group)) < 2:
            raise TaskError(
                f"{task.folder / 'task.toml'}: the flag_choices {list(group)} leave no choice; "
                'give another option, "" for none'
            )
    return tuple(Point("flags", "", "flags", group, order=task.build.flags) for group in task.build.flag_choices)


def _flag_setting(point: Point, flags: Sequence[str]) -> int | None:
    chosen = [flag for flag in flags if flag in point.options]
    if len(chosen) > 1 or (not chosen and "" not in point.options):
        return None
    return point.options.index(chosen[0] if chosen else "")


def _set_flags(points: Sequence[Point], flags: tuple[str, ...], wanted: Settings) -> tuple[str, ...]:
    """A chosen flag stands where the reference has one of its group; groups without one there come last."""
    groups = {
        point: _flag_setting(point, flags) if option is None else option
        for point, option in zip(points, wanted, strict=True)
        if point.kind == "flags"
    }
    if not groups:
        return flags
    order = next(iter(groups)).order
    rows: list[str] = []
    placed: set[Point] = set()
    for flag in (*order, *(each for each in flags if each not in order)):
        owner = next((point for point in groups if flag in point.options), None)
        if owner is None:
            rows += [flag] if flag in flags else []
        elif flag in order and owner not in placed:
            rows.append(_chosen(owner, groups[owner]))
            placed.add(owner)
    rows += [_chosen(point, option) for point, option in groups.items() if point not in placed]
    return tuple(flag for flag in rows if flag)


def _chosen(point: Point, option: int | None) -> str:
    return "" if option is None else point.options[option]
