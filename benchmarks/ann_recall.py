"""Recall: whether `outpace.ann` finds what `recall=` promises, for queries that took no part in building the index.

    python benchmarks/ann_recall.py [--data NAME ...]        results/ann-recall.json

The queries are those of the data set, the true neighbours come from comparing with every vector, and a vector as near
as the last true neighbour counts as found. Nothing is timed, so this may run beside other work.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contenders import ground, result
from contenders.ground import Ground
from outpace.ann import Index
from outpace.bench.ann.datasets import Ids
from outpace.bench.ann.peers.outpace_ import OutpacePeer
from outpace.bench.ann.recall import recall

RESULTS = Path(__file__).parent / "results" / "ann-recall.json"
ASKED = (0.8, 0.9, 0.95, 0.99, 0.999)
NEIGHBOURS = (1, 10, 100)
BAR = 0.01  # how far below what was asked for a recall may be


def examined(data: Ground, profile: Any, threads: int) -> dict[str, Any]:
    """One data set and profile: recall by k and by what was asked for."""
    print(f"{data.name}: {profile}", flush=True)
    index = Index.build(data.train, metric=data.source.metric, profile=profile, threads=threads)
    count = min(max(NEIGHBOURS), len(data.train))
    truth = data.nearest(np.arange(len(data.train)), np.arange(len(data.queries)), count)
    found = {
        str(k): {f"{asked:g}": found_of(index, data, truth[:, :k], asked, threads) for asked in ASKED}
        for k in NEIGHBOURS
        if k <= count
    }
    return {"engines": index.stats()["engines"], "recall": found, "kept": kept(found)}


def found_of(index: Index, data: Ground, truth: Ids, asked: float, threads: int) -> float:
    """The recall of all queries."""
    k = truth.shape[1]
    answers = index.search(data.queries, k, recall=asked, threads=threads)[0]
    return round(recall(answers, data.train, data.queries, truth, k), 4)


def kept(found: Mapping[str, Mapping[str, float]]) -> bool:
    """Whether none is further below its promise than the bar."""
    return all(value >= float(asked) - BAR for each in found.values() for asked, value in each.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["sift-128-euclidean"], help="HDF5 files, or names of data sets")
    parser.add_argument("--rows", type=int, help="the first rows alone (default: all)")
    parser.add_argument("--threads-build", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    report = result.heading(__file__) | {"version": OutpacePeer().version(), "bar": BAR, "sets": {}}
    for name in given.data:
        data = ground.read(name, given.rows)
        profiles = {profile: examined(data, profile, given.threads_build) for profile in ("fast", "compact")}
        report["sets"][data.name] = data.facts() | {"queries": len(data.queries), "profiles": profiles}
    result.write(given.out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
