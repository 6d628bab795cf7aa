"""Updates: what adding and removing costs in `outpace.ann` and others, and what becomes of an index by it.

    python benchmarks/ann_updates.py [--data NAME ...] [--rounds N]        results/ann-updates.json

Every library has two processes with the same index. In the one, a random half is removed and added back under new ids;
the other stays as it was built, and searches of the two are compared. Then batches of new vectors are added to the one
and removed again in each round. All changes are made by one thread on one core. Memory is what a process holds more
than before it built its index.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from contenders import result, script
from contenders.ground import Ground
from contenders.libraries import OURS, chosen
from contenders.names import Names
from contenders.remote import Remote, RemoteFailed
from contenders.subject import Clock, Subject, Timed
from contenders.sweep import climbed, near
from outpace.bench.ann.curve import Curve, Reading, at_level, by_round, interval, ratio
from outpace.bench.ann.datasets import Ids
from outpace.bench.ann.recall import recall
from outpace.judge.cores import exclusive, kept_off, timing_cores

RESULTS = Path(__file__).parent / "results" / "ann-updates.json"
K, LEVEL = 10, 0.95
ENOUGH, SLOWEST = 0.97, 0.1
CALLS = {1: 50, 100: 5, 10_000: 1}  # calls of each batch size in a round
LARGE = 10_000  # the batches in which half of an index comes and goes
BAR = 0.10  # how far an index of ours that was half replaced may be from a fresh one
REMARKS = {
    OURS: "some work is put off, and falls upon the change that comes when it is due: the graph is mended when enough "
    "is removed, and recall measured again when a third has changed",
    "hnswlib": "its room is fixed, so that additions take the places of removed vectors (`replace_deleted`), which it "
    "does more slowly than it appends",
}
CANNOT = {"faiss-hnsw": "faiss cannot remove from HNSW", "exact": "it has no index that could change"}


def batches(rows: Ids, size: int) -> list[Ids]:
    return [rows[begin : begin + size] for begin in range(0, len(rows), size)]


def planned(calls: Mapping[int, int], count: int) -> dict[int, int]:
    """The batch sizes that such a set has room for: what comes and goes is at most a tenth of it."""
    return {size: number for size, number in calls.items() if size * number <= count // 10}


@dataclass
class Spent:
    """All that coming and going took: a mean keeps what one change in many pays for, and a median loses it."""

    seconds: float = 0.0
    changes: int = 0


@dataclass
class Pair:
    """A library's two processes: the index that changes and the one that stays, with their readings."""

    changed: Remote
    fresh: Remote
    about: dict[str, str]
    build_seconds: float
    bytes: dict[str, int]
    names: Names
    costs: dict[str, list[float]]
    spent: Spent
    readings: dict[str, list[Reading]]


class Contest:
    """One data set."""

    def __init__(self, data: Ground, given: argparse.Namespace) -> None:
        self.data, self.given = data, given
        self.core = timing_cores(1)
        self.calls = planned(CALLS, len(data.train))
        self.base = len(data.train) - sum(size * number for size, number in self.calls.items())
        chance = np.random.default_rng(given.seed)
        self.half = chance.permutation(self.base)[: self.base // 2]
        self.numbers = np.arange(min(given.queries, len(data.queries)))
        kept = np.setdiff1d(np.arange(self.base), self.half)
        self.truth = {
            "full": data.nearest(np.arange(self.base), self.numbers, K),
            "half": data.nearest(kept, self.numbers, K),
        }
        self.chance = random.Random(given.seed)
        self.pairs: dict[str, Pair] = {}
        self.missing: dict[str, str] = dict(CANNOT)
        self.disturbed: list[bool] = []

    def run(self) -> dict[str, Any]:
        """All that is done to the libraries, one step after another."""
        with contextlib.ExitStack() as stack:
            for name in self.given.libraries:
                self.attempt(name, partial(self.start, name, stack))
            stack.enter_context(kept_off(self.core))
            # The half first: what comes and goes is more than the index was built with, and leaves its room behind.
            for name in self.shuffled():
                self.attempt(name, partial(self.halve, name))
            self.search(("half",))
            for name in self.shuffled():
                self.attempt(name, partial(self.complete, name))
            self.search(("fresh", "changed"))
            for number in range(self.given.rounds):
                self.say(f"changes, round {number + 1} of {self.given.rounds}")
                for name in self.shuffled():
                    self.attempt(name, partial(self.come_and_go, self.pairs[name]))
        return self.told()

    def attempt(self, name: str, step: Callable[[], None]) -> None:
        """One step of a library; one that fails is out, and the result says why."""
        try:
            step()
        except RemoteFailed as fault:
            if name == OURS:
                raise
            self.say(f"{name} is out: {fault}")
            self.missing[name] = str(fault)
            self.pairs.pop(name, None)

    def start(self, name: str, stack: contextlib.ExitStack) -> None:
        """Build both indexes of a library."""
        self.say(f"building {name} twice")
        cores = os.sched_getaffinity(0)
        both = [stack.enter_context(Remote(Subject, name, self.data.source, cores=cores)) for _ in range(2)]
        built = [each.ask("build", self.base, self.given.threads_build) for each in both]
        for each in both:
            each.ask("pin", self.core)
        about = both[0].ask("describe")
        names = Names(np.arange(len(self.data.train), dtype=np.int64))
        held = {"fresh": built[1].index_bytes}
        self.pairs[name] = Pair(
            *both, about, built[0].seconds, held, names, defaultdict(list), Spent(), defaultdict(list)
        )

    def took(self, pair: Pair, method: Literal["add", "remove"], what: str, rows: Ids, size: int) -> float:
        """Let rows come or go in batches of this size, and note the microseconds for each row; the seconds for all."""
        parts = batches(rows, size)
        ids = [pair.names.ids[part] for part in parts]
        with exclusive(self.core):
            clock: Clock = pair.changed.ask(method, *((parts, ids) if method == "add" else (ids,)))
        self.disturbed.append(clock.disturbed)
        pair.costs[what].append(1e6 * clock.seconds / len(rows))
        if method == "remove":
            pair.names = pair.names.renamed(rows)
        return clock.seconds

    def come_and_go(self, pair: Pair) -> None:
        """Add the rows that are set aside, in batches of every size, and remove them again."""
        begin = self.base
        for size, number in self.calls.items():
            rows = np.arange(begin, begin + size * number)
            begin += len(rows)
            pair.spent.seconds += self.took(pair, "add", f"add by {size}", rows, size)
            pair.spent.seconds += self.took(pair, "remove", f"remove by {size}", rows, size)
            pair.spent.changes += 2 * len(rows)

    def halve(self, name: str) -> None:
        """Remove the half."""
        self.say(f"removing half from {name}")
        pair = self.pairs[name]
        self.took(pair, "remove", "remove the half", self.half, LARGE)
        pair.bytes["half"] = pair.changed.ask("index_bytes")

    def complete(self, name: str) -> None:
        """Add the half back."""
        self.say(f"adding the half to {name}")
        pair = self.pairs[name]
        self.took(pair, "add", "add the half back", self.half, LARGE)
        pair.bytes["changed"] = pair.changed.ask("index_bytes")

    def search(self, states: Sequence[str]) -> None:
        """Rounds of searches of these indexes, at efforts around the level."""
        efforts: dict[str, list[float]] = {}
        for name in self.shuffled():
            self.attempt(name, lambda name=name: efforts.update({name: self.tuned(name, states)}))
        for number in range(self.given.rounds):
            self.say(f"searches, round {number + 1} of {self.given.rounds}")
            for name in self.shuffled():
                self.attempt(name, partial(self.sweep, name, states, efforts[name], number))

    def tuned(self, name: str, states: Sequence[str]) -> list[float]:
        """The efforts around the level in any of these states; of ours, the level itself too."""
        self.say(f"choosing efforts of {name}")
        found = {LEVEL} if name == OURS else set()
        for state in states:
            tried = climbed(
                lambda effort, state=state: self.measured(name, state, effort),
                self.pairs[name].changed.ask("efforts"),
                enough=ENOUGH,
                slowest=SLOWEST,
            )
            found |= set(near(tried, (LEVEL,)))
        return sorted(found)

    def sweep(self, name: str, states: Sequence[str], efforts: Sequence[float], number: int) -> None:
        """One round of a library: the indexes in turn at each effort, as close together as can be."""
        for effort in self.chance.sample(efforts, len(efforts)):
            for state in self.chance.sample(states, len(states)):
                reading = Reading("", effort, number, *self.measured(name, state, effort))
                self.pairs[name].readings[state].append(reading)

    def measured(self, name: str, state: str, effort: float) -> tuple[float, float]:
        """Recall and queries per second of one index at an effort."""
        pair = self.pairs[name]
        remote = pair.fresh if state == "fresh" else pair.changed
        with exclusive(self.core):
            timed: Timed = remote.ask("sweep", effort, self.numbers, None, K, self.given.seconds)
        self.disturbed.append(timed.clock.disturbed)
        answers = timed.ids if state == "fresh" else pair.names.rows(timed.ids)
        count = len(answers)
        truth = self.truth["half" if state == "half" else "full"][:count]
        return recall(answers, self.data.train, self.data.queries[self.numbers[:count]], truth, K), timed.qps

    def shuffled(self) -> list[str]:
        return self.chance.sample(sorted(self.pairs), len(self.pairs))

    def say(self, what: str) -> None:
        print(f"{self.data.name}: {what}", flush=True)

    def told(self) -> dict[str, Any]:
        """The data set's part of the result file."""
        ours = self.pairs[OURS]
        return {
            **self.data.facts(),
            "indexed": self.base,
            "queries": len(self.numbers),
            "missing": self.missing,
            "disturbed": round(float(np.mean(self.disturbed)), 3),
            "libraries": {name: pair_told(pair, ours) for name, pair in self.pairs.items()},
        }


def at_the_level(strands: Curve) -> float | None:
    return at_level(strands, LEVEL)


def pair_told(pair: Pair, ours: Pair) -> dict[str, Any]:
    """One library: its costs, how many times ours they are, and its index before and after."""
    speeds = {state: by_round(each, at_the_level) for state, each in pair.readings.items()}
    row = {
        **pair.about,
        "build_seconds": round(pair.build_seconds, 1),
        "microseconds": {what: result.spread(values) for what, values in pair.costs.items()},
        "microseconds_mean": float(f"{1e6 * pair.spent.seconds / pair.spent.changes:.5g}"),
        "times_ours": {what: result.told(times(values, ours.costs[what])) for what, values in pair.costs.items()},
        "bytes": pair.bytes,
        "memory_ratio": round(pair.bytes["changed"] / pair.bytes["fresh"], 4),
        "qps": {state: result.told(interval(list(each.values()))) for state, each in speeds.items()},
        "qps_ratio": result.told(ratio(speeds["changed"], speeds["fresh"])),
        "same_setting": same_setting(pair.readings["fresh"], pair.readings["changed"]),
    }
    if pair is ours:
        row["asked"] = {
            state: round(float(np.median([each.recall for each in found if each.effort == LEVEL])), 4)
            for state, found in pair.readings.items()
        }
        speed = row["qps_ratio"]
        row["kept"] = {
            "speed": speed is not None and speed["middle"] >= 1 - BAR,
            "memory": row["memory_ratio"] <= 1 + BAR,
        }
    return row


def same_setting(fresh: Sequence[Reading], changed: Sequence[Reading]) -> dict[str, float]:
    """What the setting that comes nearest to the level in a fresh index finds there, and in the changed one."""
    before, after = ({each.effort: each.recall for each in readings} for readings in (fresh, changed))
    effort = min(before.keys() & after.keys(), key=lambda each: abs(before[each] - LEVEL))
    return {"effort": effort, "fresh": round(before[effort], 4), "changed": round(after[effort], 4)}


def times(theirs: Sequence[float], ours: Sequence[float]) -> Any:
    """How many times ours a cost is, round by round."""
    return ratio(dict(enumerate(theirs)), dict(enumerate(ours)))


def main() -> int:
    parser = script.arguments(__doc__, RESULTS, rounds=9)
    parser.add_argument("--libraries", nargs="+", metavar="NAME", help="default: all that can remove")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=5.0, help="at most, for one sweep over the queries")
    given = parser.parse_args()
    given.libraries = chosen(given.libraries, without=(*CANNOT, "hnswlib-fetch"))
    rules = {"k": K, "level": LEVEL, "rounds": given.rounds, "remarks": REMARKS}
    return script.run(__file__, given, rules, lambda *each: Contest(*each).run())


if __name__ == "__main__":
    sys.exit(main())
