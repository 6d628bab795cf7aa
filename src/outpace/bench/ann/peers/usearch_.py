"""usearch: HNSW over several storage types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, beams, installed, module, swept

_METRICS = {"l2": "l2sq", "cosine": "ip"}


class UsearchPeer:
    """HNSW over float32 or float16."""

    name = "usearch"
    install = "pip install usearch"

    def version(self) -> str:
        return installed("usearch.index", "usearch")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        choices = ((16, 200, "f16"), (16, 200, "f32"), (32, 400, "f16"), (32, 400, "f32"))
        return tuple(
            Configuration(
                f"M{m}-efc{ef}-{kind}",
                {"connectivity": m, "expansion_add": ef, "dtype": kind},
                swept("expansion_search", beams()),
            )
            for m, ef, kind in choices
        )

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        index = module("usearch.index").Index(ndim=shape.dimension, metric=_METRICS[shape.metric], **parameters)
        index.add(None, vectors, threads=threads)
        index.save(str(folder / "index.usearch"))

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors
        index = module("usearch.index").Index(ndim=shape.dimension, metric=_METRICS[shape.metric], **parameters)
        index.load(str(folder / "index.usearch"))
        return _Search(index)


class _Search:
    def __init__(self, index: Any) -> None:
        self._index = index

    def set(self, effort: Parameters) -> None:
        self._index.expansion_search = effort["expansion_search"]

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query, k, threads=1).keys

    def search_many(self, queries: Floats, k: int) -> Any:
        return self._index.search(queries, k, threads=1).keys
