"""The exact peer: every distance computed with NumPy, the yardstick that is never wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors


class ExactPeer:
    """A flat scan."""

    name = "exact"
    install = "comes with this package"

    def version(self) -> str:
        """NumPy does the work."""
        return f"numpy {np.__version__}"

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        """There is nothing to choose."""
        del shape
        return (Configuration("flat", {}, ({"effort": 1},)),)

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        """Store the vectors."""
        del shape, parameters, threads
        np.save(folder / "vectors.npy", vectors)

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        """Read them back."""
        del vectors, shape, parameters
        return _Scan(np.load(folder / "vectors.npy"))


class _Scan:
    def __init__(self, vectors: Floats) -> None:
        self._vectors = vectors
        self._norms = np.einsum("nd,nd->n", vectors, vectors)

    def set(self, effort: Parameters) -> None:
        """One effort serves all."""

    def search(self, query: Floats, k: int) -> Any:
        distances = self._norms - 2 * (self._vectors @ query)
        nearest = np.argpartition(distances, k - 1)[:k] if k < len(distances) else np.arange(len(distances))
        return nearest[np.argsort(distances[nearest])]

    def search_many(self, queries: Floats, k: int) -> Any:
        return [self.search(query, k) for query in queries]
