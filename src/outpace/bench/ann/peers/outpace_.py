"""Ours: `outpace.ann`, with as many configurations as every peer, and once with its defaults alone."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from outpace import __version__
from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import (
    Configuration,
    Parameters,
    Searcher,
    Value,
    Vectors,
    beams,
    module,
    probes,
    swept,
)

OURS, DEFAULTS = "outpace", "outpace-defaults"
# No more strands than the other libraries that refine, which have four to six: more would be more chances to be lucky.
_DEPTHS = (12, 16, 25, 60, 200)
# Denser where the levels are: the curve is straight between two of them.
_AIMS = (
    0.5, 0.6, 0.7, 0.75, 0.8, 0.84, 0.87, 0.89, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99,
    0.993, 0.995, 0.997, 0.998, 0.999, 0.9993, 0.9995, 0.9999,
)  # fmt: skip


class OutpacePeer:
    """Lists of three sizes, and graphs from two numbers of candidates, searched with every effort and depth."""

    name = OURS
    install = "comes with this package"

    def version(self) -> str:
        package = module("outpace.ann")
        # Its code changes between releases, and an index that older code built must not be timed as the newer one's.
        digest = hashlib.sha256()
        for each in sorted(Path(package.__file__).parent.rglob("*")):
            if each.suffix in (".py", ".so"):
                digest.update(each.read_bytes())
        return f"{__version__}+{digest.hexdigest()[:8]}"

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        small, usual, large = (max(shape.count // size, 1) for size in (40, 80, 160))
        graph: dict[str, Value] = {"engine": "graph", "lists": usual}
        return (
            Configuration(f"lists{usual}-graph256", {**graph, "candidates": 256}, _scans(usual) + _walks()),
            Configuration(f"lists{small}", {"engine": "partitions", "lists": small}, _scans(small)),
            Configuration(f"lists{large}", {"engine": "partitions", "lists": large}, _scans(large)),
            Configuration(f"graph512-lists{usual}", {**graph, "candidates": 512}, _walks()),
        )

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        index = module("outpace.ann").Index.build(vectors, metric=shape.metric, threads=threads, **parameters)
        index.save(folder / "index.outpace")

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape, parameters
        return _Tuned(module("outpace.ann").Index.load(folder / "index.outpace"))


class OutpaceDefaultsPeer(OutpacePeer):
    """What a user gets who names a recall and nothing else."""

    name = DEFAULTS

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        return (Configuration("defaults", {}, swept("recall", _AIMS)),)

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape, parameters
        return _Aimed(module("outpace.ann").Index.load(folder / "index.outpace"))


def _scans(lists: int) -> tuple[Parameters, ...]:
    return swept("effort", probes(lists), depth=_DEPTHS, engine=("partitions",))


def _walks() -> tuple[Parameters, ...]:
    # A walk keeps as many candidates as are refined: below the depth every effort is the same search.
    return tuple(
        effort for depth in _DEPTHS for effort in swept("effort", beams(depth), depth=(depth,), engine=("graph",))
    )


class _Tuned:
    def __init__(self, index: Any) -> None:
        self._index = index
        self._effort, self._depth, self._engine = 32, 30, "auto"

    def set(self, effort: Parameters) -> None:
        self._effort, self._depth, self._engine = int(effort["effort"]), int(effort["depth"]), str(effort["engine"])

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query, k, effort=self._effort, depth=self._depth, engine=self._engine)[0]

    def search_many(self, queries: Floats, k: int) -> Any:
        return self._index.search(queries, k, effort=self._effort, depth=self._depth, engine=self._engine, threads=1)[0]


class _Aimed:
    def __init__(self, index: Any) -> None:
        self._index = index
        self._recall = 0.95

    def set(self, effort: Parameters) -> None:
        self._recall = float(effort["recall"])

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query, k, recall=self._recall)[0]

    def search_many(self, queries: Floats, k: int) -> Any:
        return self._index.search(queries, k, recall=self._recall, threads=1)[0]
