"""Peers for the benchmark's own tests: exact ones that are quick, slow, dying, failing, endless or wrong on purpose."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import Configuration, Parameters, Searcher, Vectors
from outpace.bench.ann.peers.exact import ExactPeer

EFFORTS = tuple({"effort": effort} for effort in (1, 2, 3))


class Quick(ExactPeer):
    """Looks at a share of the vectors that grows with the effort; leaves a mark for each build."""

    name = "ann_peers:Quick"

    def version(self) -> str:
        return "1"

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        return (Configuration("only", {}, EFFORTS),)

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        super().build(vectors, shape, parameters, threads, folder)
        with Path(os.environ["ANN_MARKS"]).open("a") as marks:
            marks.write(f"{self.name}\n")

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        return _Shares(super().load(folder, vectors, shape, parameters), np.load(folder / "vectors.npy"))


class _Shares:
    def __init__(self, exact: Any, vectors: Floats) -> None:
        self._exact, self._vectors, self._share = exact, vectors, 1.0

    def set(self, effort: Parameters) -> None:
        self._share = int(effort["effort"]) / 3

    def search(self, query: Floats, k: int) -> Any:
        some = self._vectors[: round(len(self._vectors) * self._share)]
        return np.argsort(np.square(some - query).sum(axis=1), kind="stable")[:k]

    def search_many(self, queries: Floats, k: int) -> Any:
        return [self.search(query, k) for query in queries]


class TwoWays(Quick):
    """One index, opened in two ways: with all of its vectors, or with a tenth of them."""

    name = "ann_peers:TwoWays"

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        del shape
        return tuple(Configuration(f"1/{part}", {"kind": "line"}, EFFORTS, {"part": part}) for part in (1, 10))

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape
        assert parameters["kind"] == "line"
        stored = np.load(folder / "vectors.npy")
        return _Shares(None, stored[: len(stored) // int(parameters["part"])])


class Slow(Quick):
    """The same, ten times over."""

    name = "ann_peers:Slow"

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        inner = super().load(folder, vectors, shape, parameters)

        class Repeating:
            def set(self, effort: Parameters) -> None:
                inner.set(effort)

            def search(self, query: Floats, k: int) -> Any:
                return [inner.search(query, k) for _ in range(10)][-1]

            def search_many(self, queries: Floats, k: int) -> Any:
                return [self.search(query, k) for query in queries]

        return Repeating()


class Sleepy(Quick):
    """Sleeps before every answer: behind all others on any machine, however busy."""

    name = "ann_peers:Sleepy"

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape, parameters

        class Sleeping(_Shares):
            def search(self, query: Floats, k: int) -> Any:
                time.sleep(0.02)
                return super().search(query, k)

        return Sleeping(None, np.load(folder / "vectors.npy"))


class Dying(Quick):
    """Its process is killed in the middle of a search."""

    name = "ann_peers:Dying"

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        inner = super().load(folder, vectors, shape, parameters)

        class Fatal:
            def set(self, effort: Parameters) -> None:
                inner.set(effort)
                os.kill(os.getpid(), signal.SIGSEGV)

            def search(self, query: Floats, k: int) -> Any:
                return inner.search(query, k)

            def search_many(self, queries: Floats, k: int) -> Any:
                return inner.search_many(queries, k)

        return Fatal()


class Failing(Quick):
    """Its build raises an error."""

    name = "ann_peers:Failing"

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        del vectors, parameters, threads, folder
        raise MemoryError(f"no room for {shape.count} vectors")


class Mended(Quick):
    """Builds nothing until the first file is there, and finds nothing until the second is."""

    name = "ann_peers:Mended"

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        _needed("may-build")
        super().build(vectors, shape, parameters, threads, folder)

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        _needed("may-search")
        return super().load(folder, vectors, shape, parameters)


class HalfWorking(TwoWays):
    """Its second way of opening the index fails."""

    name = "ann_peers:HalfWorking"

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        if parameters["part"] == 10:
            raise OSError("a tenth is too little")
        return super().load(folder, vectors, shape, parameters)


def _needed(name: str) -> None:
    if not Path(os.environ["ANN_MARKS"]).with_name(name).exists():
        raise OSError(f"no file named {name}")


class Endless(Quick):
    """Its build does not end, and neither does the tool that it started."""

    name = "ann_peers:Endless"

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        del vectors, shape, parameters, threads, folder
        child = os.fork()
        if child == 0:
            while True:
                time.sleep(1)
        Path(os.environ["ANN_MARKS"]).write_text(f"{os.getpid()} {child}")
        while True:
            time.sleep(1)


class Absent(Quick):
    """Cannot be imported."""

    name = "ann_peers:Absent"
    install = "pip install absent"

    def version(self) -> str:
        raise ImportError("no module named absent")
