"""Reservoir: a fixed number of the vectors that came by, each with the same chance, to measure recall again with."""

from typing import Any

import numpy as np
import numpy.typing as npt

KEPT = 500


class Reservoir:
    """Vitter's algorithm R; what it keeps depends on the order of the vectors alone."""

    def __init__(self, rows: npt.NDArray[Any], seen: int) -> None:
        self.rows = np.array(rows[:KEPT], dtype=np.float32)
        self.seen = max(seen, len(self.rows))
        self._random = np.random.default_rng(self.seen)  # kept: making one takes longer than adding a vector

    def offer(self, vectors: npt.NDArray[Any]) -> None:
        room = min(KEPT - len(self.rows), len(vectors)) if self.seen == len(self.rows) else 0
        if room:
            fresh = vectors[:room].astype(np.float32)
            self.rows = np.concatenate([self.rows, fresh]) if len(self.rows) else fresh
            self.seen += room
        rest = vectors[room:]
        if len(rest) == 0:
            return
        places = self._random.integers(0, np.arange(self.seen + 1, self.seen + len(rest) + 1))
        for at in np.flatnonzero(places < len(self.rows)):
            self.rows[places[at]] = rest[at]
        self.seen += len(rest)
