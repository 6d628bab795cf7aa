"""GLASS and CRINN: HNSW searched over quantised vectors; CRINN is GLASS rewritten by a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, beams, from_source, module, swept

_GRAPHS = ((32, 200), (48, 300))
# Below so many dimensions uniform codes are padded with zeros to a whole cache line: finer ones cost no more to read.
_LINE = 64
# Vectors become FP16 in blocks of so many dimensions, and both libraries fill the rest of the last block from the next
# vector. That spoils L2, whose recall then ends near 0.7; inner products stay right, as the query's padding is zero.
_BLOCK = 16
# Both re-rank one and a half times as many candidates as are asked for, whatever the effort is. Asking for more than k
# is the public way to go deeper; the answers come nearest first, and the benchmark takes the first k.
_ASKED, _REFINED = (10, 20, 40, 100), ("SQ4U", "SQ8U", "SQ8")


class GlassPeer:
    """The `glass` module of zilliztech/pyglass; a package of the same name on PyPI is something else."""

    name = "glass"
    install = "build github.com/zilliztech/pyglass from source (pip install ./python), or set OUTPACE_PEER_PATH_GLASS"

    def version(self) -> str:
        if not hasattr(module("glass"), "Searcher"):
            raise ImportError(f"the module glass is another library: {self.install}")
        return from_source(self.name, "glass")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        refine = "FP32" if shape.dimension % _BLOCK else "FP16"
        if shape.dimension < _LINE:
            return _configurations(shape, (("SQ8", refine), ("BF16", "")), "L2")
        # Unit vectors go as L2 too, which finds as much: up to a fifth faster over SQ8U, and no slower over SQ4U.
        return _configurations(shape, (("SQ8U", refine), ("SQ4U", refine)), "L2")

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        del shape
        _build(module("glass"), vectors, parameters, threads, folder)

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del shape
        glass = module("glass")
        graph = glass.Graph(str(folder / "graph.glass"), "glass")
        kinds = (str(parameters["search"]), str(parameters["refine"]))
        return _Search(glass.Searcher(graph, vectors(), _metric(parameters), *kinds))


class CrinnPeer:
    """The modules of deepreinforce-ai/CRINN, one for up to 128 dimensions and one for more."""

    name = "crinn"
    install = "build github.com/deepreinforce-ai/CRINN from source and set OUTPACE_PEER_PATH_CRINN to its folder"

    def version(self) -> str:
        return from_source(self.name, "crinn", "crinn_high")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        # It re-ranks integer codes with FP16 and nothing else. Where FP16 fails, it searches by inner products, or over
        # codes that it does not re-rank.
        spoilt = shape.dimension % _BLOCK != 0
        if shape.dimension < _LINE or (spoilt and shape.metric == "l2"):
            return _configurations(shape, (("FP32", ""), ("BF16", "")), "L2")
        return _configurations(shape, (("SQ8U", ""), ("SQ4U", "")), "IP" if spoilt else "L2")

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        _build(_crinn(shape.dimension), vectors, parameters, threads, folder)

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        crinn = _crinn(shape.dimension)
        graph = crinn.Graph(str(folder / "graph.glass"), "glass")
        return _Search(crinn.Searcher(graph, vectors(), _metric(parameters), str(parameters["search"])))


def _crinn(dimension: int) -> Any:
    # Both register types of the same names, so that a process can import only one of them.
    return module("crinn_high" if dimension > 128 else "crinn")


def _configurations(shape: Shape, kinds: tuple[tuple[str, str], ...], metric: str) -> tuple[Configuration, ...]:
    # Unit vectors can be searched by either metric, others by their own.
    told = {"metric": metric} if shape.metric == "cosine" else {}
    return tuple(
        Configuration(
            "-".join((f"R{degree}-L{width}-{kind}", *told.values())),
            {"R": degree, "L": width},
            # Fewer than k make a batch faster, and CRINN's single queries up to 128 dimensions; others ignore it.
            swept("ef", beams(least=1), **({"ask": _ASKED} if kind in _REFINED else {})),
            # Both kinds of codes walk the same graph.
            opened={"search": kind, "refine": refine, **told},
        )
        for kind, refine in kinds
        for degree, width in _GRAPHS
    )


def _metric(parameters: Parameters) -> str:
    return str(parameters.get("metric", "L2"))


def _build(library: Any, vectors: Floats, parameters: Parameters, threads: int, folder: Path) -> None:
    library.set_num_threads(threads)
    # By L2, however it is searched: CRINN drops a neighbour that is nearer to another one than a share (at first two
    # thirds) of its distance to the vector. An inner product as a distance is negative, so that a share of it is more
    # and not less, and a graph loses up to half of its edges and of its recall. FP32 here makes graphs no better.
    index = library.Index("HNSW", "L2", "SQ8U", int(parameters["R"]), int(parameters["L"]))
    index.build(vectors).save(str(folder / "graph.glass"))


class _Search:
    def __init__(self, searcher: Any) -> None:
        self._searcher = searcher
        self._ask = 0
        searcher.optimize(1)

    def set(self, effort: Parameters) -> None:
        self._searcher.set_ef(effort["ef"])
        self._ask = int(effort.get("ask", 0))

    def search(self, query: Floats, k: int) -> Any:
        answer = self._searcher.search(query, max(k, self._ask))
        return answer[0] if isinstance(answer, tuple) else answer

    def search_many(self, queries: Floats, k: int) -> Any:
        answer = self._searcher.batch_search(queries, max(k, self._ask), 1)
        ids = answer[0] if isinstance(answer, tuple) else answer
        return ids.reshape(len(queries), -1)
