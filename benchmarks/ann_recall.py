"""Recall: whether `outpace.ann` finds what `recall=` promises, for queries that took no part in building the index.

    python benchmarks/ann_recall.py [--data NAME ...]        results/ann-recall.json

The queries are those of the data set, the true neighbours come from comparing with every vector, and a vector as near
as the last true neighbour counts as found. Then the index is calibrated with the first half of the queries, and the
second half is asked again. Nothing is timed, so this may run beside other work.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contenders import script
from contenders.ground import Ground
from outpace.ann.index import Index, Profile
from outpace.bench.ann.datasets import Ids
from outpace.bench.ann.peers.outpace_ import OutpacePeer
from outpace.bench.ann.recall import recall

RESULTS = Path(__file__).parent / "results" / "ann-recall.json"
ASKED = (0.8, 0.9, 0.95, 0.99, 0.999)
NEIGHBOURS = (1, 10, 100)
MEASURED = 10  # the k that a calibration measures
PROFILES: tuple[Profile, ...] = ("fast", "compact")
BAR = 0.01  # how far below what was asked for a recall may be


def examined(data: Ground, given: argparse.Namespace) -> dict[str, Any]:
    """One data set: the recall of both profiles, by k and by what was asked for."""
    count = min(max(NEIGHBOURS), len(data.train))
    truth = data.nearest(np.arange(len(data.train)), np.arange(len(data.queries)), count)
    profiles: dict[str, Any] = {}
    for profile in PROFILES:
        print(f"{data.name}: {profile}", flush=True)
        index = Index.build(data.train, metric=data.source.metric, profile=profile, threads=given.threads_build)
        found = {
            str(k): found_of(index, data, slice(None), truth[:, :k], given.threads_build)
            for k in NEIGHBOURS
            if k <= count
        }
        profiles[profile] = {"engines": index.stats()["engines"], "recall": found, "kept": kept(found)}
        first, second = slice(0, len(data.queries) // 2), slice(len(data.queries) // 2, None)
        index.calibrate(data.queries[first], threads=given.threads_build)
        real = {str(MEASURED): found_of(index, data, second, truth[second, :MEASURED], given.threads_build)}
        profiles[profile] |= {"calibrated": real, "kept_calibrated": kept(real)}
    return data.facts() | {"queries": len(data.queries), "profiles": profiles}


def found_of(index: Index, data: Ground, part: slice, truth: Ids, threads: int) -> dict[str, float]:
    """The recall of these queries, by what was asked for."""
    queries, k = data.queries[part], truth.shape[1]
    found = {}
    for asked in ASKED:
        answers = index.search(queries, k, recall=asked, threads=threads)[0]
        found[f"{asked:g}"] = round(recall(answers, data.train, queries, truth, k), 4)
    return found


def kept(found: Mapping[str, Mapping[str, float]]) -> bool:
    """Whether none is further below its promise than the bar."""
    return all(value >= float(asked) - BAR for each in found.values() for asked, value in each.items())


def main() -> int:
    given = script.arguments(__doc__, RESULTS, rounds=None).parse_args()
    return script.run(__file__, given, {"version": OutpacePeer().version(), "bar": BAR}, examined)


if __name__ == "__main__":
    sys.exit(main())
