"""Drawn doubts: which of a pair's doubtful answers are looked into where there are more than there is time for.

They are drawn by what the reference spent on them: whoever leaves out a share of the work is met in that share of the
draws, whether he does so on few dear inputs or on many cheap ones. And of inputs of about one cost the answers that are
furthest off are looked into always, one for each output: noise that may be in the one hides nothing in another.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.domains.base import Input
from outpace.judge.spots import Spots

# The doubts of one pair may take so many seconds, enough for all answers of a pair that lives a whole life. Where they
# take longer, so many are looked into beside the furthest off. A confirmation has a dozen and a half pairs: what is
# left out of a twentieth of the work is met in it.
SECONDS, FEWEST = 1.5, 6
# What one takes beside the reference's calls, and for each so many bytes.
EACH_SECONDS, EACH_BYTES = 5e-4, 64 << 10
# Bytes of inputs and numbers that are kept for a pair; beyond that fewer are drawn, but never fewer than so many.
KEPT_BYTES, FEWEST_LARGE = 64 << 20, 2


@dataclass(frozen=True)
class Doubt:
    """An answer that is wrong unless the reference moves a great deal at this input."""

    given: Input
    spots: Spots

    @property
    def nbytes(self) -> int:
        """About what keeping it takes."""
        return weight(self.given) + self.spots.nbytes


class DrawnDoubts:
    """The doubts of one pair, as many as are looked into."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._number = itertools.count()
        # How many times as long as was reckoned beforehand doubts take.
        self._slower = 1.0
        self._clear()

    def _clear(self) -> None:
        self._always: list[Doubt] = []
        # By the power of two of what the reference spent, and by output.
        self._furthest: dict[tuple[int, str], Doubt] = {}
        # A heap, the last to be drawn on top: (-key, number, seconds to look into it, doubt).
        self._drawn: list[tuple[float, int, float, Doubt]] = []
        self._seconds, self._bytes = 0.0, 0

    def add(self, doubt: Doubt, spent: float, asking: float, *, always: bool) -> None:
        """Draw for one more doubt: the reference spent so long on it, and is asked about it for so long."""
        if always:
            self._always.append(doubt)
            return
        cost = math.frexp(max(spent, 1e-9))[1]
        for output, distance in doubt.spots.distances.items():
            before = self._furthest.get((cost, output))
            if before is None or distance > before.spots.distances[output]:
                self._furthest[cost, output] = doubt
        # The smallest of such keys are a draw by weight, however many come after.
        key = float(self._rng.exponential()) / max(spent, 1e-9)
        seconds = self._slower * (asking + EACH_SECONDS * (1 + doubt.nbytes / EACH_BYTES))
        heapq.heappush(self._drawn, (-key, next(self._number), seconds, doubt))
        self._seconds += seconds
        self._bytes += doubt.nbytes
        while self._too_many():
            _, _, seconds, last = heapq.heappop(self._drawn)
            self._seconds -= seconds
            self._bytes -= last.nbytes

    def _too_many(self) -> bool:
        if self._bytes > KEPT_BYTES:
            return len(self._drawn) > FEWEST_LARGE
        return self._seconds > SECONDS and len(self._drawn) > FEWEST

    def taken(self) -> list[Doubt]:
        """The doubts to look into; after that there are none."""
        drawn = (doubt for *_, doubt in self._drawn)
        found = list({id(each): each for each in (*self._always, *self._furthest.values(), *drawn)}.values())
        self._reckoned = self._seconds
        self._clear()
        return found

    def took(self, seconds: float) -> None:
        """So long took those that were taken last."""
        if self._reckoned > 0:
            self._slower = min(max(self._slower * seconds / self._reckoned, 0.1), 100.0)


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
