"""Ground: the first rows of a data set, its queries, and who the nearest really are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets.truth import ground_truth
from outpace.bench.ann import datasets
from outpace.bench.ann.datasets import Floats, Ids, Metric
from outpace.errors import OutpaceError


@dataclass(frozen=True)
class Source:
    """Where vectors come from; another process reads them anew instead of being sent them."""

    path: Path
    metric: Metric
    rows: int

    def train(self) -> Floats:
        # A copy, so that the rows that are not used leave memory.
        return datasets.vectors(self.path, "train", self.metric)[: self.rows].copy()

    def queries(self) -> Floats:
        return datasets.vectors(self.path, "test", self.metric)


@dataclass(frozen=True)
class Ground:
    """A data set in memory."""

    name: str
    source: Source
    train: Floats
    queries: Floats

    def nearest(self, rows: Ids, numbers: Ids, k: int) -> Ids:
        """The k nearest of these rows to the queries of these numbers, by comparing with each."""
        metric = "euclidean" if self.source.metric == "l2" else "angular"
        found, _ = ground_truth(self.train[rows], self.queries[numbers], metric, k=k)
        return rows[found]

    def facts(self) -> dict[str, Any]:
        """What a result file says of it."""
        return {"vectors": len(self.train), "dimension": self.train.shape[1], "metric": self.source.metric}


def read(data: str, rows: int | None) -> Ground:
    """The data set of this path or name, or its first rows."""
    path = datasets.locate(data, datasets.data_folder()).resolve()
    whole = datasets.load(path)
    if rows is not None and not 0 < rows <= len(whole.train):
        raise OutpaceError(f"--rows is {rows}: {whole.name} has {len(whole.train)}")
    count = rows or len(whole.train)
    name = whole.name if count == len(whole.train) else f"{whole.name}, first {count}"
    return Ground(name, Source(path, whole.metric, count), whole.train[:count].copy(), whole.queries)
