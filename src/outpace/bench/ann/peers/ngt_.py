"""NGT: its optimised graph from the wheel, and its quantised graph where the tool that builds one is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors, installed, module, swept

_EPSILONS = (-0.1, -0.06, -0.03, 0.0, 0.02, 0.04, 0.06, 0.08, 0.11, 0.14, 0.18, 0.23, 0.3)
# An index may have up to this many edges at a node once it is quantised.
_EDGES = 96


class NgtPeer:
    """ONNG: a graph of neighbours whose degrees are adjusted."""

    name = "ngt-onng"
    install = "pip install ngt"

    def version(self) -> str:
        return installed("ngtpy", "ngt")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        return _configurations(swept("epsilon", _EPSILONS))

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        _build_graph(vectors, shape, parameters, threads, folder)

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape, parameters
        return _Graph(module("ngtpy").Index(str(folder / "onng"), read_only=True, log_disabled=True))


class NgtQgPeer:
    """QG: the same graph with quantised neighbours beside each node."""

    name = "ngt-qg"
    install = "pip install ngt, and build NGT's command line tools from source: the wheel has no `qbg`"

    def version(self) -> str:
        told = installed("ngtpy", "ngt")
        if shutil.which("qbg") is None:
            raise ImportError(f"ngt {told} is here, but not the tool `qbg` that builds quantised graphs")
        return told

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        return _configurations(swept("epsilon", _EPSILONS, result_expansion=(1.2, 2.0, 4.0, 10.0)))

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        _build_graph(vectors, shape, parameters, threads, folder)
        index = str(folder / "onng")
        subprocess.run(["qbg", "create-qg", index], check=True)
        subprocess.run(
            ["qbg", "build-qg", "-o20000", "-M6", "-ib", "-I400", "-Gz", "-Pn", f"-E{_EDGES}", index], check=True
        )

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape, parameters
        index = module("ngtpy").QuantizedIndex(str(folder / "onng"), _EDGES, log_disabled=True)
        index.set_with_distance(False)
        return _Quantised(index)


def _configurations(efforts: tuple[Parameters, ...]) -> tuple[Configuration, ...]:
    choices = ((40, 10, 60), (40, 16, 120), (100, 10, 120), (100, 32, 120))
    return tuple(
        Configuration(f"E{edges}-o{out}-i{into}", {"edges": edges, "outgoing": out, "incoming": into}, efforts)
        for edges, out, into in choices
    )


def _build_graph(vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
    ngtpy = module("ngtpy")
    first = folder / "anng"
    ngtpy.create(
        str(first),
        shape.dimension,
        edge_size_for_creation=int(parameters["edges"]),
        edge_size_for_search=0,
        distance_type="L2",  # of unit vectors too, where it orders as the cosine does
    )
    index = ngtpy.Index(str(first), log_disabled=True)
    index.batch_insert(vectors, num_threads=threads)
    index.save()
    index.close()
    optimizer = ngtpy.Optimizer(log_disabled=True)
    optimizer.set(num_of_outgoings=int(parameters["outgoing"]), num_of_incomings=int(parameters["incoming"]))
    # Its own tuning of search parameters would sweep for minutes, and the efforts here say them all.
    optimizer.set_processing_modes(
        search_parameter_optimization=False, prefetch_parameter_optimization=False, accuracy_table_generation=False
    )
    optimizer.execute(str(first), str(folder / "onng"))
    shutil.rmtree(first)


class _Graph:
    def __init__(self, index: Any) -> None:
        self._index = index
        self._epsilon = 0.1

    def set(self, effort: Parameters) -> None:
        self._epsilon = float(effort["epsilon"])

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query, k, epsilon=self._epsilon, with_distance=False)

    def search_many(self, queries: Floats, k: int) -> Any:
        return [self.search(query, k) for query in queries]


class _Quantised:
    def __init__(self, index: Any) -> None:
        self._index = index

    def set(self, effort: Parameters) -> None:
        self._index.set(epsilon=effort["epsilon"], result_expansion=effort["result_expansion"])

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query, k)

    def search_many(self, queries: Floats, k: int) -> Any:
        return [self._index.search(query, k) for query in queries]
