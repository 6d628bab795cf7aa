"""The class with which ann-benchmarks runs outpace.ann."""

from __future__ import annotations

from typing import Any

import numpy as np

from outpace.ann import Index

from ..base.module import BaseANN

_METRICS = {"euclidean": "l2", "angular": "cosine"}


class Outpace(BaseANN):
    """One index; its queries take an effort."""

    def __init__(self, metric: str, settings: dict[str, Any]) -> None:
        self._metric, self._settings = _METRICS[metric], settings
        self._index: Any = None
        self._effort = 1
        self.name = self._named()

    def fit(self, X: np.ndarray) -> None:  # noqa: N803  the name that ann-benchmarks calls it by
        self._index = Index.build(np.ascontiguousarray(X, dtype=np.float32), metric=self._metric, **self._settings)

    def set_query_arguments(self, effort: int) -> None:
        self._effort = effort
        self.name = self._named()

    def query(self, v: np.ndarray, n: int) -> np.ndarray:
        ids: np.ndarray = self._index.search(v, k=n, effort=self._effort)[0]
        return ids.reshape(-1)

    def batch_query(self, X: np.ndarray, n: int) -> None:  # noqa: N803
        self.res = self._index.search(X, k=n, effort=self._effort)[0]

    def _named(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in sorted(self._settings.items())) or "defaults"
        return f"outpace ({settings}, effort={self._effort})"
