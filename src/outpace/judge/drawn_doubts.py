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

# The doubts of one pair may take so many seconds or as long as the pair took, enough for all answers of a pair that
# lives a whole life. Where they take longer, some are looked into, and so many are kept for that beside the furthest
# off. A confirmation has a dozen and a half pairs: what is left out of a twentieth of the work is met in it.
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

    @property
    def asking(self) -> int:
        """About what asking about one variant takes: its input and its answer."""
        return self.nbytes + self.spots.answer_bytes


class DrawnDoubts:
    """The doubts of one pair, as many as are looked into."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._number = itertools.count()
        self._clear()

    def _clear(self) -> None:
        self._edges: list[Doubt] = []
        # By the power of two of what the reference spent, and by output.
        self._furthest: dict[tuple[int, int], Doubt] = {}
        # A heap, the last to be drawn on top: (-key, number, seconds to look into it, doubt).
        self._drawn: list[tuple[float, int, float, Doubt]] = []
        self._seconds, self._bytes = 0.0, 0

    def add(self, doubt: Doubt, spent: float, asking: float, *, edge: bool) -> None:
        """Draw for one more doubt: the reference spent so long on it, and is asked about it for so long."""
        if edge:
            self._edges.append(doubt)
            return
        cost = math.frexp(max(spent, 1e-9))[1]
        for output, distance in doubt.spots.distances.items():
            before = self._furthest.get((cost, output))
            if before is None or distance > before.spots.distances[output]:
                self._furthest[cost, output] = doubt
        # The smallest of such keys are a draw by weight, however many come after.
        key = float(self._rng.exponential()) / max(spent, 1e-9)
        seconds = asking + EACH_SECONDS * (1 + doubt.nbytes / EACH_BYTES)
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
        """The doubts to look into, in the order in which that is worth most; after that there are none."""
        furthest = sorted(self._furthest.values(), key=lambda each: max(each.spots.distances.values()), reverse=True)
        edges = [self._edges[at] for at in self._rng.permutation(len(self._edges))]
        # Those drawn with the greatest weights last.
        drawn = [doubt for *_, doubt in sorted(self._drawn, reverse=True)]
        self._clear()
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(edges, furthest, drawn))
        return list({id(each): each for each in in_turn if each is not None}.values())


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
