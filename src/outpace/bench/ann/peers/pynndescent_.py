"""pynndescent: nearest-neighbour descent, compiled by numba."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, installed, module, swept

_METRICS = {"l2": "euclidean", "cosine": "dot"}


class PynndescentPeer:
    """A pruned graph of neighbours."""

    name = "pynndescent"
    install = "pip install pynndescent"

    def version(self) -> str:
        return installed("pynndescent", "pynndescent")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        efforts = swept("epsilon", (0.0, 0.02, 0.04, 0.07, 0.1, 0.14, 0.18, 0.22, 0.27, 0.32, 0.38, 0.45))
        choices = ((20, 1.5), (30, 1.5), (40, 2.0), (60, 2.0))
        return tuple(
            Configuration(f"n{count}-prune{prune:g}", {"n_neighbors": count, "prune": prune}, efforts)
            for count, prune in choices
        )

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        index = module("pynndescent").NNDescent(
            vectors,
            metric=_METRICS[shape.metric],
            n_neighbors=parameters["n_neighbors"],
            pruning_degree_multiplier=parameters["prune"],
            diversify_prob=1.0,
            random_state=0,
            n_jobs=threads,
        )
        index.prepare()
        with (folder / "index.pickle").open("wb") as file:
            pickle.dump(index, file, protocol=pickle.HIGHEST_PROTOCOL)

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape, parameters
        module("pynndescent")
        with (folder / "index.pickle").open("rb") as file:
            return _Search(pickle.load(file))


class _Search:
    def __init__(self, index: Any) -> None:
        self._index = index
        self._epsilon = 0.1

    def set(self, effort: Parameters) -> None:
        self._epsilon = float(effort["epsilon"])

    def search(self, query: Floats, k: int) -> Any:
        return self._index.query(query[None], k, epsilon=self._epsilon)[0]

    def search_many(self, queries: Floats, k: int) -> Any:
        return self._index.query(queries, k, epsilon=self._epsilon)[0]
