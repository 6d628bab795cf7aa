"""The class with which ann-benchmarks runs outpace.ann."""

from __future__ import annotations

from typing import Any

import numpy as np

from outpace.ann import Index

from ..base.module import BaseANN

_METRICS = {"euclidean": "l2", "angular": "cosine"}


class Outpace(BaseANN):
    """One index; its queries take a recall to reach (below one) or an effort."""

    def __init__(self, metric: str, settings: dict[str, Any]) -> None:
        self._metric, self._settings = _METRICS[metric], settings
        self._index: Any = None
        self._aim: dict[str, float] = {}
        self.name = self._named()

    def fit(self, X: np.ndarray) -> None:  # noqa: N803  the name that ann-benchmarks calls it by
        self._index = Index.build(np.ascontiguousarray(X, dtype=np.float32), metric=self._metric, **self._settings)

    def set_query_arguments(self, aim: float) -> None:
        self._aim = {"recall": aim} if aim < 1 else {"effort": aim}
        self.name = self._named()

    def query(self, v: np.ndarray, n: int) -> np.ndarray:
        ids: np.ndarray = self._index.search(v, k=n, **self._aim)[0]
        return ids.reshape(-1)

    def batch_query(self, X: np.ndarray, n: int) -> None:  # noqa: N803
        self.res = self._index.search(X, k=n, **self._aim)[0]

    def _named(self) -> str:
        told = [f"{name}={value}" for name, value in (*sorted(self._settings.items()), *self._aim.items())]
        return f"outpace ({', '.join(told) or 'defaults'})"
