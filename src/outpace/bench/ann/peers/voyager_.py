"""voyager: HNSW with eight-bit storage as an option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, beams, installed, module, swept

_SPACES = {"l2": "Euclidean", "cosine": "InnerProduct"}


class VoyagerPeer:
    """HNSW over float32, or over floats of eight bits."""

    name = "voyager"
    install = "pip install voyager"

    def version(self) -> str:
        return installed("voyager", "voyager")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        choices = ((16, 200, "Float32"), (24, 400, "Float32"), (32, 500, "Float32"), (24, 400, "E4M3"))
        return tuple(
            Configuration(
                f"M{m}-efc{ef}-{kind}", {"M": m, "ef_construction": ef, "storage": kind}, swept("query_ef", beams())
            )
            for m, ef, kind in choices
        )

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        voyager = module("voyager")
        index = voyager.Index(
            getattr(voyager.Space, _SPACES[shape.metric]),
            num_dimensions=shape.dimension,
            M=parameters["M"],
            ef_construction=parameters["ef_construction"],
            max_elements=shape.count,
            storage_data_type=getattr(voyager.StorageDataType, str(parameters["storage"])),
        )
        index.add_items(vectors, num_threads=threads)
        index.save(str(folder / "index.voy"))

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape, parameters
        return _Search(module("voyager").Index.load(str(folder / "index.voy")))


class _Search:
    def __init__(self, index: Any) -> None:
        self._index = index
        self._ef = 10

    def set(self, effort: Parameters) -> None:
        self._ef = int(effort["query_ef"])

    def search(self, query: Floats, k: int) -> Any:
        return self._index.query(query, k, query_ef=self._ef)[0]

    def search_many(self, queries: Floats, k: int) -> Any:
        return self._index.query(queries, k, num_threads=1, query_ef=self._ef)[0]
