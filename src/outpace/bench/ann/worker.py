"""A peer's own process: it imports one library, builds or loads one index, and times the queries itself."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, cast

import numpy as np

from outpace.bench.ann import datasets, memory
from outpace.bench.ann.datasets import Floats, Metric, Shape
from outpace.bench.ann.messages import (
    Build,
    Built,
    Ended,
    Failed,
    Imported,
    Load,
    Loaded,
    Ready,
    Reply,
    Request,
    Sweep,
    Swept,
    Version,
    receive,
    send,
)
from outpace.bench.ann.orphans import end_with_parent
from outpace.bench.ann.peers import find, put_on_path
from outpace.bench.ann.peers.base import Peer, Searcher, ids_of

# Between two looks at the clock; a look at every query would cost a fast library a percent.
_STRIDE = 32
_FIRST = 100


class Worker:
    """The state between messages: at most one index."""

    def __init__(self, peer: Peer, replies: int) -> None:
        self._peer, self._replies = peer, replies
        self._searcher: Searcher | None = None
        self._queries: Floats = np.empty((0, 0), dtype=np.float32)

    def answer(self, request: Request) -> Reply:
        """Do what is asked."""
        match request:
            case Version():
                return Imported(self._peer.version())
            case Build():
                return self._build(request)
            case Load():
                return self._load(request)
            case Sweep():
                return self._sweep(request)

    def _build(self, asked: Build) -> Reply:
        metric = cast(Metric, asked.metric)
        self._peer.version()
        vectors = datasets.vectors(Path(asked.data), "train", metric)
        shape = Shape(len(vectors), vectors.shape[1], metric)
        send(self._replies, Ready())
        begin = time.perf_counter()
        self._peer.build(vectors, shape, asked.parameters, asked.threads, Path(asked.folder))
        return Built(time.perf_counter() - begin, memory.peak())

    def _load(self, asked: Load) -> Reply:
        metric, data = cast(Metric, asked.metric), Path(asked.data)
        os.sched_setaffinity(0, {asked.core})
        self._peer.version()
        self._queries = datasets.vectors(data, "test", metric)
        shape = Shape(datasets.train_count(data), self._queries.shape[1], metric)
        before = memory.resident()
        begin = time.perf_counter()
        searcher = self._peer.load(
            Path(asked.folder), lambda: datasets.vectors(data, "train", metric), shape, asked.parameters
        )
        seconds = time.perf_counter() - begin
        for query in self._queries[:_FIRST]:
            searcher.search(query, 10)
        self._searcher = searcher
        return Loaded(seconds, before, memory.resident())

    def _sweep(self, asked: Sweep) -> Reply:
        if self._searcher is None:
            return Failed("asked for queries before an index was loaded")
        self._searcher.set(asked.effort)
        warm, queries = self._queries[asked.warm_begin : asked.warm_end], self._queries[asked.begin : asked.end]
        timed = _in_one_call if asked.batch else _one_by_one
        timed(self._searcher, warm, asked.k, asked.seconds)
        wall, cpu, answers = timed(self._searcher, queries, asked.k, asked.seconds)
        return Swept(wall, cpu, len(answers), ids_of(answers, len(answers), asked.k).tobytes())


def _one_by_one(searcher: Searcher, queries: Floats, k: int, seconds: float) -> tuple[float, float, Any]:
    search, rows = searcher.search, list(queries)
    answers: list[Any] = []
    keep = answers.append
    cpu, begin = time.process_time(), time.perf_counter()
    until = begin + seconds
    for start in range(0, len(rows), _STRIDE):
        for query in rows[start : start + _STRIDE]:
            keep(search(query, k))
        if time.perf_counter() > until:
            break
    return time.perf_counter() - begin, time.process_time() - cpu, answers


def _in_one_call(searcher: Searcher, queries: Floats, k: int, seconds: float) -> tuple[float, float, Any]:
    del seconds  # one call cannot be cut short
    cpu, begin = time.process_time(), time.perf_counter()
    answers = searcher.search_many(queries, k)
    return time.perf_counter() - begin, time.process_time() - cpu, answers


def main() -> None:
    """Serve messages until the benchmark closes its end."""
    end_with_parent()
    peer = find(sys.argv[1])
    requests, replies = int(sys.argv[2]), int(sys.argv[3])
    put_on_path(peer)
    worker = Worker(peer, replies)
    while True:
        try:
            request: Request = receive(requests, Request)
        except Ended:
            return
        try:
            reply = worker.answer(request)
        except Exception as fault:  # whatever a library raises is a finding about it, told and written down
            reply = Failed(f"{type(fault).__name__}: {fault}"[:500])
        send(replies, reply)


if __name__ == "__main__":
    main()
