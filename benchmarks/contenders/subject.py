"""A subject: one library with the vectors, in the process where it is built, filtered, changed and timed by itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contenders.ground import Source
from contenders.libraries import LIBRARIES, PROFILES, Library, Masks
from outpace.bench.ann import memory
from outpace.bench.ann.datasets import Ids, Shape
from outpace.bench.ann.peers.base import ids_of

# Queries between two looks at the clock: a look costs a thousandth of them, and slow ones do not go on for long.
_STRIDE = 8
# Fast libraries answer the queries again until so many seconds have passed: a few milliseconds would tell little. So
# that slow ones, too, find caches that have seen these queries, all begin with a pass of so many seconds at most that
# is not timed.
_LEAST = 0.2
_BUSY = 0.95
_FEW = 2000


@dataclass(frozen=True)
class Clock:
    """What something took by the wall and by the processor."""

    wall: float
    cpu: float

    @property
    def seconds(self) -> float:
        """The smaller one: with one thread they differ by the time that others had the core."""
        return min(self.wall, self.cpu)

    @property
    def disturbed(self) -> bool:
        """Whether others had the core for more than a little."""
        return self.cpu < _BUSY * self.wall


@dataclass(frozen=True)
class Timed:
    """Answers to the first queries, as many as there was time for, and what all passes over the queries took."""

    ids: Ids
    answered: int
    clock: Clock

    @property
    def qps(self) -> float:
        """Queries answered in a second."""
        return self.answered / self.clock.seconds


@dataclass(frozen=True)
class Built:
    """What a build took and left in memory."""

    seconds: float
    index_bytes: int


class Subject:
    """Methods for a `Remote`: whatever they take and return can be sent."""

    def __init__(self, name: str, source: Source) -> None:
        self._kind: Callable[[], Library] = (LIBRARIES | PROFILES)[name]
        self._library = self._kind()
        self._train, self._queries = source.train(), source.queries()
        self._shape = Shape(len(self._train), self._train.shape[1], source.metric)
        self._before = 0

    def describe(self) -> dict[str, str]:
        """The library's version and how its index was built."""
        return {"version": self._library.version(), "built": self._library.built()}

    def efforts(self) -> tuple[float, ...]:
        return self._library.efforts(self._shape)

    def pin(self, cores: Collection[int]) -> None:
        """Every thread, also those that a library keeps."""
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(thread.name), cores)

    def build(self, count: int, threads: int) -> Built:
        """Index the first rows."""
        # A library's first index loads code and tables that stay, and they are no part of the second.
        few = self._train[: min(count, _FEW)]
        self._kind().build(few, self._shape.metric, len(few), threads)
        self._before = memory.resident()
        begin = time.perf_counter()
        self._library.build(self._train[:count], self._shape.metric, len(self._train), threads)
        return Built(time.perf_counter() - begin, self.index_bytes())

    def index_bytes(self) -> int:
        """What this process holds more than before the index was built."""
        return memory.resident() - self._before

    def allow(self, masks: Masks) -> float:
        """Make filters ready; seconds for each."""
        begin = time.perf_counter()
        self._library.allow(masks)
        return (time.perf_counter() - begin) / len(masks)

    def sweep(self, effort: float, numbers: Sequence[int], masks: Sequence[int] | None, k: int, limit: float) -> Timed:
        """Answer these queries one by one, each with the filter that stands beside it."""
        self._library.set(effort)
        queries = list(self._queries[numbers])
        jobs: list[tuple[Any, ...]] = [(query, k) for query in queries]
        call: Callable[..., Any] = self._library.search
        if masks is not None:
            jobs = [(query, k, mask) for query, mask in zip(queries, masks, strict=True)]
            call = self._library.search_allowed
        end = time.perf_counter() + min(_LEAST, limit)
        for job in jobs:
            call(*job)
            if time.perf_counter() > end:
                break
        answers: list[object] = []
        answered, spent, stop = 0, 0.0, _started()
        begin = time.perf_counter()
        while spent < min(_LEAST, limit):
            for start in range(0, len(jobs), _STRIDE):
                found = [call(*job) for job in jobs[start : start + _STRIDE]]
                answered += len(found)
                if len(answers) < len(jobs):
                    answers += found
                spent = time.perf_counter() - begin
                if spent > limit:
                    break
        clock = stop()
        return Timed(ids_of(answers, len(answers), k), answered, clock)

    def add(self, rows: Sequence[Ids], ids: Sequence[Ids]) -> Clock:
        """Add batches of rows under these ids."""
        batches = [np.ascontiguousarray(self._train[each]) for each in rows]
        stop = _started()
        for batch, names in zip(batches, ids, strict=True):
            self._library.add(batch, names)
        return stop()

    def remove(self, ids: Sequence[Ids]) -> Clock:
        """Remove batches of ids."""
        stop = _started()
        for names in ids:
            self._library.remove(names)
        return stop()


def _started() -> Callable[[], Clock]:
    cpu, wall = time.process_time(), time.perf_counter()
    return lambda: Clock(time.perf_counter() - wall, time.process_time() - cpu)
