"""Filters: how fast `outpace.ann` and others search among the vectors that a filter allows, at equal recall.

    python benchmarks/ann_filters.py [--data NAME ...] [--rounds N]        results/ann-filters.json

Queries come in groups, each around an anchor, and each group has a filter of its own. `random` filters allow vectors
drawn at random, `near` the vectors nearest to the anchor, `far` those nearest to the anchor that is farthest away. One
part of the queries chooses the efforts, the other is timed, one query after another on one core. Filters are made
before: what that takes is told apart.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from contenders import result, script
from contenders.ground import Ground
from contenders.libraries import OURS, WIDEST, chosen
from contenders.remote import Remote, RemoteFailed
from contenders.subject import Subject, Timed
from contenders.sweep import climbed, near
from outpace.bench.ann.curve import Reading, at_level, by_round, curve, interval, ratio
from outpace.bench.ann.datasets import Ids
from outpace.bench.ann.recall import recall
from outpace.judge.cores import exclusive, kept_off, timing_cores

RESULTS = Path(__file__).parent / "results" / "ann-filters.json"
KINDS = ("random", "near", "far")
SHARES = (0.001, 0.01, 0.1, 0.5)
LEVELS = (0.90, 0.95)
ASKED, PROMISE = 0.95, 0.01  # of ours: the recall that is asked for, and how far below it an answer may stay
K, GROUPS = 10, 10
ENOUGH = 0.97
REMARKS = {
    "usearch": "its Python package has no filter: more are fetched than are wanted, and those not allowed are dropped",
    "exact": "no index: the vectors that a filter allows are copied out with it and all compared, by NumPy",
    "hnswlib": "its filter is a Python function that is called for every candidate; hnswlib-fetch does as usearch must",
}


@dataclass(frozen=True)
class Crowd:
    """The queries, by number, with the group that each belongs to; `tuning` ones choose efforts, others are timed."""

    numbers: Ids
    groups: Ids
    tuning: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Case:
    """One kind of filter at one selectivity: a mask for each group, and the true neighbours of each query."""

    kind: str
    share: float
    masks: npt.NDArray[np.bool_]
    neighbors: Ids

    def recall(self, data: Ground, crowd: Crowd, part: npt.NDArray[np.bool_], timed: Timed) -> float:
        """Of the answers that there was time for; one that the filter does not allow is wrong however near it is."""
        rows = np.flatnonzero(part)[: len(timed.ids)]
        masks = self.masks[crowd.groups[rows]]
        given = (timed.ids >= 0) & (timed.ids < masks.shape[1])
        allowed = given & np.take_along_axis(masks, np.where(given, timed.ids, 0), axis=1)
        answers = np.where(allowed, timed.ids, -1)
        return recall(answers, data.train, data.queries[crowd.numbers[rows]], self.neighbors[rows], K)


def gathered(data: Ground, anchors: Ids, per_group: int, chance: np.random.Generator) -> Crowd:
    """To each anchor the queries nearest to it; a third of every group is for tuning."""
    nearest = np.argsort(squared(data.train[anchors], data.queries), axis=1)[:, :per_group]
    groups = np.repeat(np.arange(len(anchors)), nearest.shape[1])
    tuning = np.concatenate([chance.permutation(nearest.shape[1]) % 3 == 0 for _ in anchors])
    # In no order, so that a sweep that time cuts short has answered some of every group.
    order = chance.permutation(nearest.size)
    return Crowd(nearest.reshape(-1)[order], groups[order], tuning[order])


def squared(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Squared distances of every row of the one to every row of the other."""
    right = np.asarray(right, dtype=np.float64)
    own = np.einsum("ij,ij->i", right, right)
    return np.stack([own - 2 * (right @ row) + row @ row for row in np.asarray(left, dtype=np.float64)])


def masks_of(
    kind: str, share: float, distances: npt.NDArray[Any], own: npt.NDArray[Any], chance: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """A mask for each anchor, from its distances to all vectors and to the other anchors."""
    groups, count = distances.shape
    allowed = min(max(round(share * count), 2 * K), count)  # enough to be asked for K of them
    masks = np.zeros((groups, count), dtype=np.bool_)
    for group in range(groups):
        if kind == "random":
            masks[group, chance.choice(count, allowed, replace=False)] = True
        else:
            around = group if kind == "near" else int(np.argmax(own[group]))
            masks[group, np.argpartition(distances[around], allowed - 1)[:allowed]] = True
    return masks


def cases_of(data: Ground, per_group: int, seed: int) -> tuple[Crowd, list[Case]]:
    """The queries and all filters with their truth."""
    chance = np.random.default_rng(seed)
    anchors = np.sort(chance.choice(len(data.train), GROUPS, replace=False))
    crowd = gathered(data, anchors, min(per_group, len(data.queries)), chance)
    distances, own = squared(data.train[anchors], data.train), squared(data.train[anchors], data.train[anchors])
    cases = []
    for kind in KINDS:
        for share in SHARES:
            masks = masks_of(kind, share, distances, own, chance)
            truth = np.empty((len(crowd.numbers), K), dtype=np.int64)
            for group, mask in enumerate(masks):
                own_queries = crowd.groups == group
                truth[own_queries] = data.nearest(np.flatnonzero(mask), crowd.numbers[own_queries], K)
            cases.append(Case(kind, share, masks, truth))
    return crowd, cases


class Contest:
    """One data set: every library in its process, timed case by case in one round after another."""

    def __init__(self, data: Ground, given: argparse.Namespace) -> None:
        self.data, self.given = data, given
        self.core = timing_cores(1)
        self.crowd, self.cases = cases_of(data, given.queries // GROUPS * 3 // 2, given.seed)
        self.libraries: dict[str, Remote] = {}
        self.about: dict[str, Any] = {}
        self.making: dict[tuple[int, str], list[float]] = defaultdict(list)
        self.counted: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.readings: dict[tuple[int, str], list[Reading]] = defaultdict(list)
        self.disturbed: list[bool] = []

    def measured(self, name: str, at: int, effort: float, *, tuning: bool) -> tuple[float, float]:
        """Recall and queries per second at an effort, with the filters of this case."""
        case = self.cases[at]
        part = self.crowd.tuning if tuning else ~self.crowd.tuning
        asked = (effort, self.crowd.numbers[part], self.crowd.groups[part].tolist(), K, self.given.seconds)
        with exclusive(self.core):
            timed: Timed = self.libraries[name].ask("sweep", *asked)
        if not tuning:
            self.disturbed.append(timed.clock.disturbed)
            self.counted[at, name].append(len(timed.ids))
        return case.recall(self.data, self.crowd, part, timed), timed.qps

    def attempt(self, name: str, step: Callable[[], None]) -> None:
        """One step of a library; one that fails is out, and the result says why."""
        try:
            step()
        except RemoteFailed as fault:
            if name == OURS:
                raise
            print(f"{name} is out: {fault}", flush=True)
            self.about[name] = {"missing": str(fault)}
            self.libraries.pop(name, None)

    def start(self, name: str, stack: contextlib.ExitStack) -> None:
        """Build a library's index."""
        print(f"{self.data.name}: building {name}", flush=True)
        remote = stack.enter_context(Remote(Subject, name, self.data.source, cores=os.sched_getaffinity(0)))
        built = remote.ask("build", len(self.data.train), self.given.threads_build)
        remote.ask("pin", self.core)
        self.libraries[name] = remote
        self.about[name] = {**remote.ask("describe"), "build_seconds": round(built.seconds, 1)}

    def tuned(self, at: int, name: str) -> tuple[float, ...]:
        """The efforts to time in a case; of ours, the promised one too."""
        case = self.cases[at]
        self.libraries[name].ask("allow", list(case.masks))
        readings = climbed(
            lambda effort: self.measured(name, at, effort, tuning=True),
            self.libraries[name].ask("efforts"),
            enough=ENOUGH,
            slowest=self.given.slowest,
        )
        print(f"{case.kind} {case.share:g} {name}: recall {max(each.recall for each in readings):.3f}", flush=True)
        return tuple(sorted({*near(readings, LEVELS), *((ASKED,) if name == OURS else ())}))

    def sweep(self, name: str, at: int, efforts: Sequence[float], number: int) -> None:
        """One case of a round."""
        self.making[at, name].append(1e3 * self.libraries[name].ask("allow", list(self.cases[at].masks)))
        for effort in efforts:
            found = self.measured(name, at, effort, tuning=False)
            self.readings[at, name].append(Reading("", effort, number, *found))

    def run(self) -> dict[str, Any]:
        """All rounds, and what they tell."""
        efforts: dict[tuple[int, str], tuple[float, ...]] = {}
        chance = random.Random(self.given.seed)
        with contextlib.ExitStack() as stack:
            for name in self.given.libraries:
                self.attempt(name, partial(self.start, name, stack))
            stack.enter_context(kept_off(self.core))
            for at in range(len(self.cases)):
                for name in list(self.libraries):
                    self.attempt(name, lambda at=at, name=name: efforts.update({(at, name): self.tuned(at, name)}))
            for number in range(self.given.rounds):
                print(f"{self.data.name}: round {number + 1} of {self.given.rounds}", flush=True)
                for at in range(len(self.cases)):
                    for name in chance.sample(sorted(self.libraries), len(self.libraries)):
                        order = chance.sample(efforts[at, name], len(efforts[at, name]))
                        self.attempt(name, partial(self.sweep, name, at, order, number))
        return self.told()

    def told(self) -> dict[str, Any]:
        """The data set's part of the result file."""
        return {
            **self.data.facts(),
            "timed_queries": int((~self.crowd.tuning).sum()),
            "libraries": self.about,
            "disturbed": round(float(np.mean(self.disturbed)), 3),
            "cases": [
                case_told(case, {name: self.readings[at, name] for name in self.libraries})
                | {
                    "making_a_filter_ms": {name: result.spread(self.making[at, name]) for name in self.libraries},
                    "fewest_queries": {name: min(self.counted[at, name]) for name in self.libraries},
                }
                for at, case in enumerate(self.cases)
            ],
        }


def case_told(case: Case, readings: dict[str, list[Reading]]) -> dict[str, Any]:
    """Speeds at the levels, ours against each, and whether the promise is kept."""
    promised = float(np.median([each.recall for each in readings[OURS] if each.effort == ASKED]))
    levels = {}
    for level in LEVELS:
        speeds = {
            name: by_round(each, lambda strands, at=level: at_level(strands, at)) for name, each in readings.items()
        }
        levels[f"{level:g}"] = {
            "qps": {name: result.told(interval(list(each.values()))) for name, each in speeds.items()},
            "ratio": {name: result.told(ratio(speeds[OURS], each)) for name, each in speeds.items() if name != OURS},
        }
    return {
        "filter": case.kind,
        "share": case.share,
        "allowed": int(case.masks[0].sum()),
        "promise": {"asked": ASKED, "recall": round(promised, 4), "kept": promised >= ASKED - PROMISE},
        "levels": levels,
        "highest_recall": {name: round(max(each.recall for each in found), 4) for name, found in readings.items()},
        "points": {
            name: [
                [point.effort, round(point.recall, 4), round(point.qps, 1)]
                for strand in curve(each).strands.values()
                for point in strand
            ]
            for name, each in readings.items()
        },
    }


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = script.arguments(__doc__, RESULTS, rounds=7)
    parser.add_argument("--libraries", nargs="+", metavar="NAME", help="default: all that are installed")
    parser.add_argument("--queries", type=int, default=400, help="timed in every case")
    parser.add_argument("--seconds", type=float, default=2.0, help="at most, for one case at one effort")
    parser.add_argument("--slowest", type=float, default=0.1, help="seconds per query beyond which efforts end")
    given = parser.parse_args(arguments)
    given.libraries = chosen(given.libraries)
    return given


def main() -> int:
    given = options()
    rules = {"k": K, "rounds": given.rounds, "slowest_s": given.slowest, "widest": WIDEST, "remarks": REMARKS}
    return script.run(__file__, given, rules, lambda *each: Contest(*each).run())


if __name__ == "__main__":
    sys.exit(main())
