"""SVS, Intel's scalable-vs: Vamana graphs, with LVQ and LeanVec compression on Intel's own processors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from outpace import machine
from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, beams, installed, module, swept

_METRICS = {"l2": "L2", "cosine": "MIP"}


class SvsPeer:
    """A Vamana graph."""

    name = "svs"
    install = "pip install scalable-vs"

    def version(self) -> str:
        return installed("svs", "scalable-vs")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        # Elsewhere the wheel ends the process as soon as compression is asked for.
        compressed = "Intel" in machine.describe().cpu
        lean = "leanvec" if shape.dimension >= 128 else "lvq8x0"
        plain = ((32, "float16"), (64, "float16"), (32, "float32"), (64, "float32"))
        choices = ((32, "float16"), (32, "lvq4x8"), (64, "lvq4x8"), (64, lean)) if compressed else plain
        return tuple(
            Configuration(
                f"R{degree}-{kind}",
                {"graph_max_degree": degree, "window_size": 200, "kind": kind},
                swept("search_window_size", beams()),
            )
            for degree, kind in choices
        )

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        svs = module("svs")
        plan = svs.VamanaBuildParameters(
            graph_max_degree=parameters["graph_max_degree"], window_size=parameters["window_size"]
        )
        kind = str(parameters["kind"])
        scratch = folder / "vectors.fvecs"
        if kind.startswith("float"):
            source: Any = vectors.astype(np.dtype(kind))
        else:
            svs.write_vecs(vectors, str(scratch))
            source = _compressed(svs, kind, svs.VectorDataLoader(str(scratch), svs.DataType.float32), shape)
        index = svs.Vamana.build(plan, source, getattr(svs.DistanceType, _METRICS[shape.metric]), threads)
        scratch.unlink(missing_ok=True)
        index.save(*(str(folder / part) for part in ("config", "graph", "data")))

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors
        svs = module("svs")
        kind, data = str(parameters["kind"]), str(folder / "data")
        if kind.startswith("float"):
            stored = svs.VectorDataLoader(data, getattr(svs.DataType, kind))
        else:
            stored = svs.LeanVecLoader(data) if kind == "leanvec" else svs.LVQLoader(data)
        metric = getattr(svs.DistanceType, _METRICS[shape.metric])
        graph = svs.GraphLoader(str(folder / "graph"))
        return _Search(svs.Vamana(str(folder / "config"), graph, stored, metric, num_threads=1))


def _compressed(svs: Any, kind: str, loader: Any, shape: Shape) -> Any:
    if kind == "leanvec":
        return svs.LeanVecLoader(loader, max(shape.dimension // 4, 64), svs.LeanVecKind.lvq8, svs.LeanVecKind.float16)
    primary, _, residual = kind.removeprefix("lvq").partition("x")
    return svs.LVQLoader(loader, primary=int(primary), residual=int(residual))


class _Search:
    def __init__(self, index: Any) -> None:
        self._index = index

    def set(self, effort: Parameters) -> None:
        self._index.search_window_size = effort["search_window_size"]

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query, k)[0]

    def search_many(self, queries: Floats, k: int) -> Any:
        return self._index.search(queries, k)[0]
