"""GLASS and CRINN: HNSW searched over quantised vectors; CRINN is GLASS rewritten by a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, beams, from_source, module, swept

_METRICS = {"l2": "L2", "cosine": "IP"}


class GlassPeer:
    """The `glass` module of zilliztech/pyglass; a package of the same name on PyPI is something else."""

    name = "glass"
    install = "build github.com/zilliztech/pyglass from source (pip install ./python), or set OUTPACE_PEER_PATH_GLASS"

    def version(self) -> str:
        if not hasattr(module("glass"), "Searcher"):
            raise ImportError(f"the module glass is another library: {self.install}")
        return from_source(self.name, "glass")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        choices = ((32, 200, "SQ8U"), (48, 300, "SQ8U"), (32, 200, "SQ4U"), (48, 300, "SQ4U"))
        return _configurations(choices, "FP16")

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        _build(module("glass"), vectors, shape, parameters, threads, folder)

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        glass = module("glass")
        graph = glass.Graph(str(folder / "graph.glass"), "glass")
        return _Search(
            glass.Searcher(
                graph, vectors(), _METRICS[shape.metric], str(parameters["search"]), str(parameters["refine"])
            )
        )


class CrinnPeer:
    """The modules of deepreinforce-ai/CRINN, one for up to 128 dimensions and one for more."""

    name = "crinn"
    install = "build github.com/deepreinforce-ai/CRINN from source and set OUTPACE_PEER_PATH_CRINN to its folder"

    def version(self) -> str:
        return from_source(self.name, "crinn", "crinn_high")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        choices = ((32, 200, "SQ8U"), (48, 300, "SQ8U"), (32, 200, "SQ4U"), (48, 300, "SQ4U"))
        return _configurations(choices, "")

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        _build(_crinn(shape.dimension), vectors, shape, parameters, threads, folder)

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        crinn = _crinn(shape.dimension)
        graph = crinn.Graph(str(folder / "graph.glass"), "glass")
        return _Search(crinn.Searcher(graph, vectors(), _METRICS[shape.metric], str(parameters["search"])))


def _crinn(dimension: int) -> Any:
    # Both register types of the same names, so that a process can import only one of them.
    return module("crinn_high" if dimension > 128 else "crinn")


def _configurations(choices: tuple[tuple[int, int, str], ...], refine: str) -> tuple[Configuration, ...]:
    return tuple(
        Configuration(
            f"R{degree}-L{width}-{kind}",
            {"R": degree, "L": width, "search": kind, "refine": refine},
            swept("ef", beams()),
        )
        for degree, width, kind in choices
    )


def _build(library: Any, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
    library.set_num_threads(threads)
    index = library.Index("HNSW", _METRICS[shape.metric], "SQ8U", int(parameters["R"]), int(parameters["L"]))
    index.build(vectors).save(str(folder / "graph.glass"))


class _Search:
    def __init__(self, searcher: Any) -> None:
        self._searcher = searcher
        searcher.optimize(1)

    def set(self, effort: Parameters) -> None:
        self._searcher.set_ef(effort["ef"])

    def search(self, query: Floats, k: int) -> Any:
        answer = self._searcher.search(query, k)
        return answer[0] if isinstance(answer, tuple) else answer

    def search_many(self, queries: Floats, k: int) -> Any:
        answer = self._searcher.batch_search(queries, k, 1)
        ids = answer[0] if isinstance(answer, tuple) else answer
        return ids.reshape(len(queries), -1)
