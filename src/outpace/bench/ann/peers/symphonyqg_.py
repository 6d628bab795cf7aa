"""SymphonyQG: a graph whose edges carry one-bit codes of the neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, beams, from_source, module, swept

# It rotates in powers of two from 64 to 2048, and ends the process where the dimension fits none. Zeros change no
# distance, so that vectors of 32 dimensions and less get some: to whole blocks of 16, as its kernels read them.
_LEAST, _MOST = 48, 2048


class SymphonyqgPeer:
    """The `symphonyqg` module of gouyt13/SymphonyQG."""

    name = "symphonyqg"
    install = "build github.com/gouyt13/SymphonyQG from source (AVX-512), or set OUTPACE_PEER_PATH_SYMPHONYQG"

    def version(self) -> str:
        module("symphonyqg")
        return from_source(self.name, "symphonyqg")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        if shape.dimension > _MOST:
            return ()
        return tuple(
            Configuration(f"R{degree}-EF{width}", {"degree": degree, "ef": width}, swept("ef", beams()))
            for degree, width in ((32, 200), (32, 400), (64, 400), (128, 400))
        )

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        index = _index(shape, parameters)
        index.build_index(_padded(vectors), int(parameters["ef"]), num_thread=threads)
        index.save(str(folder / "index.qg"))

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors
        index = _index(shape, parameters)
        index.load(str(folder / "index.qg"))
        return _Search(index) if shape.dimension == _whole(shape.dimension) else _PaddedSearch(index)


def _whole(dimension: int) -> int:
    return _LEAST if dimension <= _LEAST - 16 else dimension


def _padded(vectors: Floats) -> Floats:
    missing = _whole(vectors.shape[1]) - vectors.shape[1]
    return np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors


def _index(shape: Shape, parameters: Parameters) -> Any:
    # It knows L2 alone, which on unit vectors orders as the cosine does.
    return module("symphonyqg").Index("QG", "L2", shape.count, _whole(shape.dimension), int(parameters["degree"]))


class _Search:
    def __init__(self, index: Any) -> None:
        self._index = index
        index.set_ef(100)  # until it is set, a search has no room for any candidate

    def set(self, effort: Parameters) -> None:
        self._index.set_ef(effort["ef"])

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query, k)

    def search_many(self, queries: Floats, k: int) -> Any:
        return [self._index.search(query, k) for query in queries]


class _PaddedSearch(_Search):
    def __init__(self, index: Any) -> None:
        super().__init__(index)
        self._query = np.zeros(_LEAST, dtype=np.float32)  # one for all queries: a new one would cost each of them more

    def search(self, query: Floats, k: int) -> Any:
        self._query[: len(query)] = query
        return self._index.search(self._query, k)

    def search_many(self, queries: Floats, k: int) -> Any:
        return [self._index.search(query, k) for query in _padded(queries)]
