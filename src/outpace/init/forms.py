"""Forms of a Python input: which lengths and shapes its parts have, and whether what is in them has a pattern.

Few references take every form, such as sequences of any two lengths, so what is asked is the widest that works.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

_ANOTHER_SIZE = '''def another_size(rng: np.random.Generator, size: int, most: int, least: int = 0) -> int:
    """The same size in half of the calls, else any other one, small ones as often as large ones."""
    other = least + (most + 1 - least) * rng.random() ** rng.integers(1, 6)
    return size if rng.random() < 0.5 else min(int(other), most)'''
_ARRANGED = '''def arranged(rng: np.random.Generator, items):
    """The items, or in some calls the same sorted, mirrored, some again and again, or a stretch of them twice."""
    form, made, size = int(rng.integers(4)), list(items), len(items)
    if size < 2 or rng.random() >= PATTERNS:
        return items
    if form == 0:
        made.sort(reverse=bool(rng.integers(2)))
    elif form == 1:
        made[(size + 1) // 2 :] = made[: size // 2][::-1]
    elif form == 2:
        period = int(size ** rng.random())
        made = [max(made)] * size if period == 1 else (made[:period] * (size // period + 1))[:size]
    else:
        length = int(rng.integers(1, size))
        start, to = rng.integers(0, size - length + 1, 2).tolist()
        made[to : to + length] = made[start : start + length]
    if isinstance(items, str):
        return "".join(made)
    return bytes(made) if isinstance(items, bytes) else np.array(made) if isinstance(items, np.ndarray) else made'''

_LIKENED = '''def likened(rng: np.random.Generator, first, other, *names: str):
    """The other, or in some calls the same with a stretch of the first in it, from and to either end or any place."""
    most = min(len(first), len(other))
    # Where one may not go as far as the other, what belongs in the one has no place in the other.
    if rng.random() >= PATTERNS or not most or any(LIMITS.get(name) != LIMITS.get(names[0]) for name in names):
        return other
    length = int(most * (1 - rng.random() ** 2)) + 1
    left = (len(items) - length for items in (first, other))
    start, to = (int(rng.choice((0, room, rng.integers(room + 1)))) for room in left)
    parts = other[:to], first[start : start + length], other[to + length :]
    return np.concatenate(parts) if isinstance(other, np.ndarray) else parts[0] + parts[1] + parts[2]'''

HELPERS = (("another_size", _ANOTHER_SIZE), ("arranged", _ARRANGED), ("likened", _LIKENED))
# Those of make_input itself, and those of the helpers.
NAMES = ("other", "rows", "columns", *(name for name, _ in HELPERS))

MATRICES = ("matrix", "real matrix", "table")
_PLAIN = ("text", "words", "lines", "bytes", "ints", "naturals", "floats", "flags", "points", "array", "whole array")
_SEQUENCES = (*_PLAIN, "numbers", "json", "sorted", "counts", "weights", "texts by word")


@dataclass(frozen=True)
class Form:
    """One choice for each of three matters, at first the narrowest."""

    lengths: str = "one"
    matrices: str = "square"
    patterns: str = "none"

    def but(self, choices: Mapping[str, str]) -> Form:
        """The same with these choices."""
        return replace(self, **choices)

    def choice(self, matter: str) -> str:
        """The choice for one matter."""
        chosen: str = getattr(self, matter)
        return chosen


def ladders(kinds: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """For each matter in which parameters of these kinds leave a choice: all choices, widest first."""
    matrices = _of(kinds, MATRICES)
    found: dict[str, tuple[str, ...]] = {}
    if len(_of(kinds, _SEQUENCES)) > 1:
        found["lengths"] = ("any", "not empty", "one")
    if matrices:
        found["matrices"] = (*(("any", "chained") if len(matrices) > 1 else ()), "alike", "square")
    if _of(kinds, _PLAIN):
        found["patterns"] = ("some", "none")
    return found


def told(matter: str, choice: str, kinds: Mapping[str, str]) -> str:
    """What is not asked with this choice."""
    if matter == "patterns":
        return "nothing is sorted, mirrored or repeated on purpose"
    names = [repr(name) for name in _of(kinds, _SEQUENCES if matter == "lengths" else MATRICES)]
    return {
        "one": f"{_listed(names)} always have one length",
        "not empty": f"{_listed(names[1:])} {'are' if len(names) > 2 else 'is'} never empty where {names[0]} is not",
        "chained": f"each of {_listed(names)} has as many rows as the one before has columns",
        "alike": f"{_listed(names)} always have the same rows and columns",
        "square": f"matrices are always square{' and of one size' if len(names) > 1 else ''}",
    }[choice]


def sizes(kind: str, before: Sequence[str], form: Form) -> list[str]:
    """The statements that draw the size of a parameter, given the kinds of those made before it."""
    if kind in MATRICES and not any(each in MATRICES for each in before):
        if form.matrices == "square":
            return ["rows = columns = draw_size(rng, side, 10)"]
        return ["rows = draw_size(rng, side, 10)", "columns = another_size(rng, rows, side, 1)"]
    if kind in MATRICES:
        return {
            "any": ["rows, columns = another_size(rng, rows, side, 1), another_size(rng, columns, side, 1)"],
            "chained": ["rows, columns = columns, another_size(rng, columns, side, 1)"],
        }.get(form.matrices, [])
    if _apart(kind, before, form):
        return [f"other = another_size(rng, size, most{', 1' if form.lengths == 'not empty' else ''})"]
    return []


def formed(kind: str, before: Mapping[str, str], form: Form, made: str) -> str:
    """The expression of a parameter with its own size, and with a pattern now and then.

    `before` holds the kinds of those made before it, by their variables.
    """
    if _apart(kind, [*before.values()], form):
        made = re.sub(r"\bsize\b", "other", made)
    if kind not in _PLAIN or form.patterns != "some":
        return made
    alike = next((name for name, one in before.items() if one == kind), "")
    return f"likened(rng, {alike}, arranged(rng, {made}))" if alike else f"arranged(rng, {made})"


def _apart(kind: str, before: Sequence[str], form: Form) -> bool:
    """Whether it is a sequence of another length than the first one."""
    return form.lengths != "one" and kind in _SEQUENCES and any(each in _SEQUENCES for each in before)


def _of(kinds: Mapping[str, str], wanted: Sequence[str]) -> list[str]:
    return [name for name, kind in kinds.items() if kind in wanted]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
