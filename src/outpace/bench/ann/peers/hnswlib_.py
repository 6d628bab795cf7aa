"""hnswlib: the reference implementation of HNSW."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, beams, installed, module, swept

_SPACES = {"l2": "l2", "cosine": "ip"}  # unit vectors: the inner product spares its own normalisation


class HnswlibPeer:
    """HNSW over float32."""

    name = "hnswlib"
    install = "pip install hnswlib"

    def version(self) -> str:
        return installed("hnswlib", "hnswlib")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        choices = ((16, 200), (16, 500), (24, 400), (32, 500))
        return tuple(
            Configuration(f"M{m}-efc{ef}", {"M": m, "ef_construction": ef}, swept("ef", beams())) for m, ef in choices
        )

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        index = module("hnswlib").Index(space=_SPACES[shape.metric], dim=shape.dimension)
        index.init_index(max_elements=shape.count, M=parameters["M"], ef_construction=parameters["ef_construction"])
        index.add_items(vectors, num_threads=threads)
        index.save_index(str(folder / "index.bin"))

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, parameters
        index = module("hnswlib").Index(space=_SPACES[shape.metric], dim=shape.dimension)
        index.load_index(str(folder / "index.bin"))
        index.set_num_threads(1)
        return _Search(index)


class _Search:
    def __init__(self, index: Any) -> None:
        self._index = index

    def set(self, effort: Parameters) -> None:
        self._index.set_ef(effort["ef"])

    def search(self, query: Floats, k: int) -> Any:
        return self._index.knn_query(query, k)[0]

    def search_many(self, queries: Floats, k: int) -> Any:
        return self._index.knn_query(queries, k)[0]
