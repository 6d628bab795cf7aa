"""Names: under which id each row of the data is in an index that rows leave and come back to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outpace.bench.ann.datasets import Ids


@dataclass(frozen=True)
class Names:
    """Under which id each row is in the index, or will be when it comes back, which it does under a new one.

    hnswlib forgets where an id is that comes back while its old place still waits to be used again.
    """

    ids: Ids

    def renamed(self, rows: Ids) -> Names:
        ids = self.ids.copy()
        ids[rows] += len(ids)
        return Names(ids)

    def rows(self, answers: Ids) -> Ids:
        """The rows that ids stand for; -1 where there is no answer or the id is not in use any more."""
        rows = np.where(answers >= 0, answers % len(self.ids), 0)
        return np.where((answers >= 0) & (self.ids[rows] == answers), rows, -1)
