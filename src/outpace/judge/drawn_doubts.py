"""Drawn doubts: which of a pair's doubtful answers are looked into where there are more than there is time for.

Inputs of one size are a class of their own. What is wrong of large inputs alone is rare among all answers, and saves
most of the time; drawn from all together it would hardly ever be met. Of each class the answer that is furthest off is
looked into always, and of the others as many as there is time for, drawn by chance: the wrong ones would have to be
few, and nearer to right than the rounding of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from outpace.domains.base import Input

# The doubts of one pair may take so many seconds; where they take longer, so many of each class are looked into.
SECONDS, FEWEST = 0.5, 2
# What one takes until that was seen, for each so many bytes, and how many bytes of answers a class keeps.
EACH_SECONDS, EACH_BYTES, KEPT_BYTES = 5e-4, 64 << 10, 64 << 20


@dataclass(frozen=True)
class Doubt:
    """An answer that is wrong unless the reference moves a great deal at this input."""

    given: Input
    answer: Any
    expected: Any


@dataclass
class _Class:
    """The doubts of inputs of about one size: the furthest off, some drawn by chance, and how many there were."""

    furthest: Doubt | None = None
    distance: float = -1.0
    drawn: list[Doubt] = field(default_factory=list)
    met: int = 0


class DrawnDoubts:
    """The doubts of one pair, as many as are looked into."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._classes: dict[int, _Class] = {}
        self._always: list[Doubt] = []
        # Seconds that one doubt of a class took.
        self._each: dict[int, float] = {}

    def add(self, doubt: Doubt, seconds: float, *, always: bool) -> None:
        """Draw for one more doubt; to ask about it takes the reference so long, as far as is known beforehand."""
        if always:
            self._always.append(doubt)
            return
        size = weight(doubt.given) + weight(doubt.expected)
        number = size.bit_length()
        found = self._classes.setdefault(number, _Class())
        distance = how_far(doubt.expected, doubt.answer)
        if found.furthest is None or distance > found.distance:
            # The one before takes its chance among the others.
            doubt, found.furthest, found.distance = found.furthest or doubt, doubt, distance
            if doubt is found.furthest:
                return
        each = self._each.get(number, seconds + EACH_SECONDS * (1 + size / EACH_BYTES))
        room = min(SECONDS / len(self._classes) / each, KEPT_BYTES / (3 * size + 1))
        found.met += 1
        if len(found.drawn) < max(int(room), FEWEST) - 1:
            found.drawn.append(doubt)
        elif found.drawn and (at := int(self._rng.integers(found.met))) < len(found.drawn):
            found.drawn[at] = doubt

    def taken(self) -> Iterator[tuple[int, list[Doubt]]]:
        """The doubts to look into, class by class, each with the bytes of one; after that there are none."""
        classes, always = self._classes, self._always
        self._classes, self._always = {}, []
        if always:
            yield max(weight(each.given) + weight(each.expected) for each in always), always
        for number, found in classes.items():
            assert found.furthest is not None
            yield 1 << number, [found.furthest, *found.drawn]

    def took(self, size: int, seconds: float) -> None:
        """So long took one of this size."""
        self._each[(size - 1).bit_length()] = seconds


def weight(value: Any) -> int:
    """About how many bytes a value has."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, Mapping):
        return sum(weight(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        # As many as the first few have, each.
        some = value[:8]
        return len(value) * (8 + sum(map(weight, some)) // max(len(some), 1))
    return 8


def how_far(expected: Any, answer: Any) -> float:
    """The largest error of an answer's numbers, relative to the largest of its array or list; more is further off."""
    if isinstance(expected, Mapping) and isinstance(answer, Mapping):
        return max((how_far(value, answer.get(name)) for name, value in expected.items()), default=0.0)
    try:
        with np.errstate(all="ignore"):
            right, got = (np.asarray(each, complex) for each in (expected, answer))
    except (TypeError, ValueError, OverflowError):
        if isinstance(expected, list) and isinstance(answer, list):
            return max(map(how_far, expected, answer), default=0.0)
        # Texts, or whole numbers that no float holds: they are right or wrong, and never doubtful.
        return 0.0
    if right.shape != got.shape:
        return math.inf
    with np.errstate(all="ignore"):
        error = np.abs(got - right)[~((got == right) | (np.isnan(got) & np.isnan(right)))]
        worst = float(error.max(initial=0.0))
        scale = float(np.abs(right[np.isfinite(right)]).max(initial=0.0))
    if not math.isfinite(worst):
        return math.inf
    return worst / scale if scale else worst
