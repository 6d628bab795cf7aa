"""VSAG: a graph over quantised vectors with exact re-ranking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, beams, installed, module, swept

# Beyond this it gives wrong answers at once rather than an error.
_WIDEST = 1000


class VsagPeer:
    """Its `hgraph` index."""

    name = "vsag"
    install = "pip install pyvsag"

    def version(self) -> str:
        return installed("pyvsag", "pyvsag")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        choices = ((32, "sq8_uniform"), (48, "sq8_uniform"), (32, "sq4_uniform"), (32, "fp32"))
        return tuple(
            Configuration(
                f"R{degree}-{kind}",
                {"max_degree": degree, "ef_construction": 300, "kind": kind},
                swept("ef_search", beams(most=_WIDEST)),
            )
            for degree, kind in choices
        )

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        index = _index(shape, parameters, threads)
        ids = np.arange(shape.count, dtype=np.int64)
        index.build(vectors=vectors.reshape(-1), ids=ids, num_elements=shape.count, dim=shape.dimension)
        index.save(str(folder / "index.vsag"))

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors
        index = _index(shape, parameters, 1)
        index.load(str(folder / "index.vsag"))
        return _Search(index)


def _index(shape: Shape, parameters: Parameters, threads: int) -> Any:
    kind = parameters["kind"]
    settings = {
        "dtype": "float32",
        "metric_type": "l2",  # of unit vectors too, where it orders as the cosine does
        "dim": shape.dimension,
        "index_param": {
            "base_quantization_type": kind,
            "max_degree": parameters["max_degree"],
            "ef_construction": parameters["ef_construction"],
            "use_reorder": kind != "fp32",
            "precise_quantization_type": "fp32",
            "build_thread_count": threads,
            # Without `use_elp_optimizer`: it tunes prefetching anew at every load, which took about as long as the
            # build did and changed little.
        },
    }
    return module("pyvsag").Index("hgraph", json.dumps(settings))


class _Search:
    def __init__(self, index: Any) -> None:
        self._index = index
        self._settings = ""

    def set(self, effort: Parameters) -> None:
        self._settings = json.dumps({"hgraph": dict(effort)})

    def search(self, query: Floats, k: int) -> Any:
        return self._index.knn_search(vector=query, k=k, parameters=self._settings)[0]

    def search_many(self, queries: Floats, k: int) -> Any:
        return [self.search(query, k) for query in queries]
