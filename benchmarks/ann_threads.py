"""Threads: what a second thread of `outpace.ann` brings, against a second process that shares nothing with the first.

    python benchmarks/ann_threads.py [--data NAME ...] [--rounds N]        results/ann-threads.json

One index is built, saved, and loaded by three processes: one that may use two cores, and two with one core each. In
every round each way of asking has its turn, in random order and for the same time: batches with `threads=2`, batches in
two processes at once, single queries from two Python threads, single queries in two processes at once, and for scale
one process alone. Recall is that of answers that were timed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contenders import result, script
from contenders.ground import Ground, Source
from contenders.remote import Remote
from outpace.bench.ann.curve import interval, ratio
from outpace.bench.ann.datasets import Floats, Ids
from outpace.bench.ann.recall import recall
from outpace.errors import OutpaceError
from outpace.judge.cores import exclusive, timing_cores

RESULTS = Path(__file__).parent / "results" / "ann-threads.json"
K, ASKED = 10, 0.95
BAR = 0.95  # of the speed of two processes
SOON = 0.05  # seconds until everybody has read the request and waits for the start
STRIDE = 32
# Each way of asking: the method, its threads, and the processes that are asked at once.
WAYS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "batch, threads=2": ("batch", 2, ("both",)),
    "batch, two processes": ("batch", 1, ("left", "right")),
    "batch, one process": ("batch", 1, ("left",)),
    "single, two Python threads": ("single", 2, ("both",)),
    "single, two processes": ("single", 1, ("left", "right")),
    "single, one process": ("single", 1, ("left",)),
}
# Two threads against two processes, and for scale two processes against one.
RATIOS = (
    ("batch, threads=2", "batch, two processes"),
    ("single, two Python threads", "single, two processes"),
    ("batch, two processes", "batch, one process"),
    ("single, two processes", "single, one process"),
)


@dataclass(frozen=True)
class Share:
    """What one thread answered: how many queries in a second, and the answers to those from `first` on."""

    qps: float
    first: int
    ids: Ids


class Asking:
    """An index in a process, asked from one time to another; the monotonic clock is the same in all processes."""

    def __init__(self, source: Source, queries: int) -> None:
        self._ann = importlib.import_module("outpace.ann")
        self._source = source
        self._queries: Floats = source.queries()[:queries]

    def build(self, path: Path, threads: int) -> dict[str, Any]:
        """Build an index of all vectors and save it."""
        index = self._ann.Index.build(self._source.train(), metric=self._source.metric, threads=threads)
        index.save(path)
        return {"engines": index.stats()["engines"]}

    def load(self, path: Path) -> None:
        """Take a saved index, and answer everything once."""
        self._index = self._ann.Index.load(path)
        self._index.search(self._queries, K, recall=ASKED)

    def batch(self, threads: int, start: float, end: float) -> list[Share]:
        """All queries in one call, again and again."""
        answered, ids = 0, np.empty((0, K), dtype=np.int64)
        _wait(start)
        begin = time.monotonic()
        while time.monotonic() < end:
            ids = self._index.search(self._queries, K, recall=ASKED, threads=threads)[0]
            answered += len(ids)
        return [Share(answered / (time.monotonic() - begin), 0, ids)]

    def single(self, threads: int, start: float, end: float) -> list[Share]:
        """Single queries from so many Python threads, each with its part of the queries."""
        parts = np.array_split(np.arange(len(self._queries)), threads)
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda part: self._one_by_one(int(part[0]), len(part), start, end), parts))

    def _one_by_one(self, first: int, count: int, start: float, end: float) -> Share:
        search, rows = self._index.search, list(self._queries[first : first + count])
        answered, kept = 0, []
        _wait(start)
        begin = time.monotonic()
        while True:
            for at in range(0, count, STRIDE):
                found = [search(row, K, recall=ASKED)[0] for row in rows[at : at + STRIDE]]
                answered += len(found)
                if len(kept) < count:
                    kept += found
                now = time.monotonic()
                if now > end:
                    return Share(answered / (now - begin), first, np.array(kept, dtype=np.int64))


def _wait(start: float) -> None:
    # Sleeping to the end would add the kernel's own delay to it.
    time.sleep(max(start - time.monotonic() - 0.005, 0))
    while time.monotonic() < start:
        pass


class Contest:
    """One data set."""

    def __init__(self, data: Ground, given: argparse.Namespace) -> None:
        self.data, self.given = data, given
        self.cores = timing_cores(2)
        if len(self.cores) < 2:
            raise OutpaceError("two threads need two cores, and this process may use one: allow it a second (taskset)")
        count = min(given.queries, len(data.queries))
        self.truth = data.nearest(np.arange(len(data.train)), np.arange(count), K)
        self.remotes: dict[str, Remote] = {}
        self.speeds: dict[str, dict[int, float]] = defaultdict(dict)
        self.recalls: dict[str, list[float]] = defaultdict(list)

    def run(self) -> dict[str, Any]:
        """All rounds, and what they tell."""
        with tempfile.TemporaryDirectory(prefix="outpace-threads-") as folder, contextlib.ExitStack() as stack:
            path = Path(folder) / "index.outpace"
            places = {"both": self.cores, "left": self.cores[:1], "right": self.cores[1:]}
            for name, cores in places.items():
                remote = Remote(Asking, self.data.source, len(self.truth), cores=cores)
                self.remotes[name] = stack.enter_context(remote)
            print(f"{self.data.name}: building", flush=True)
            facts = self.remotes["both"].ask("build", path, self.given.threads_build)
            for remote in self.remotes.values():
                remote.ask("load", path)
            chance = random.Random(self.given.seed)
            for number in range(self.given.rounds):
                print(f"{self.data.name}: round {number + 1} of {self.given.rounds}", flush=True)
                for way in chance.sample(sorted(WAYS), len(WAYS)):
                    self.measure(way, number)
        return self.data.facts() | facts | {"queries": len(self.truth)} | told(self.speeds, self.recalls)

    def measure(self, way: str, number: int) -> None:
        """One way of asking, once."""
        method, threads, names = WAYS[way]
        with exclusive(self.cores):
            start = time.monotonic() + SOON
            for name in names:
                self.remotes[name].begin(method, threads, start, start + self.given.seconds)
            shares = [share for name in names for share in self.remotes[name].wait()]
        self.speeds[way][number] = sum(share.qps for share in shares)
        counts = [len(share.ids) for share in shares]
        self.recalls[way].append(float(np.average([self.recall(share) for share in shares], weights=counts)))

    def recall(self, share: Share) -> float:
        rows = slice(share.first, share.first + len(share.ids))
        return recall(share.ids, self.data.train, self.data.queries[rows], self.truth[rows], K)


def told(speeds: Mapping[str, Mapping[int, float]], recalls: Mapping[str, list[float]]) -> dict[str, Any]:
    """Speeds, and the ratios inside the rounds."""
    ratios = []
    for one, other in RATIOS:
        found = ratio(speeds[one], speeds[other])
        threads = one not in {each for _, each in RATIOS}
        row: dict[str, Any] = {"of": one, "to": other, "ratio": result.told(found)}
        ratios.append(row | ({"kept": found is not None and found.middle >= BAR} if threads else {}))
    return {
        "ways": {
            way: {"qps": result.told(interval(list(each.values()))), "recall": round(min(recalls[way]), 4)}
            for way, each in speeds.items()
        },
        "ratios": ratios,
    }


def main() -> int:
    parser = script.arguments(__doc__, RESULTS, rounds=15)
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=1.5, help="of every measurement")
    given = parser.parse_args()
    rules = {"k": K, "asked": ASKED, "bar": BAR, "rounds": given.rounds}
    return script.run(__file__, given, rules, lambda *each: Contest(*each).run())


if __name__ == "__main__":
    sys.exit(main())
