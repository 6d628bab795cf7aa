"""Builds: how long `outpace.ann` takes to build an index and what it holds in memory, beside hnswlib at equal threads.

    python benchmarks/ann_build.py [--data NAME ...] [--rounds N]        results/ann-build.json

In each round every library builds an index of the same float32 vectors, in random order and in a process of its own.
A build of ours measures recall too, and that is in its time. Memory is what the process holds more than before.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contenders import result, script
from contenders.ground import Ground, Source
from contenders.libraries import COMPACT, HNSWLIB, OURS, PROFILES
from contenders.remote import Remote, RemoteFailed
from contenders.subject import Built, Subject
from outpace.bench.ann.curve import ratio
from outpace.judge.cores import exclusive

RESULTS = Path(__file__).parent / "results" / "ann-build.json"
RAW = 4  # bytes of a dimension of a float32 vector
# What a profile may hold: `fast` at most this times hnswlib's memory from so many dimensions on, `compact` less than
# this times the vectors'.
FAST_BAR, FAST_DIMENSIONS = 1.5, 64
COMPACT_BAR, COMPACT_DIMENSIONS = 1.0, 24


@dataclass
class Builds:
    """One library's builds, by round."""

    about: dict[str, str] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    bytes: dict[int, int] = field(default_factory=dict)


def one(name: str, source: Source, threads: int, cores: tuple[int, ...]) -> tuple[Built, dict[str, str]]:
    """Build once, in a process that ends with it."""
    with Remote(Subject, name, source, cores=cores) as remote, exclusive(cores):
        return remote.ask("build", source.rows, threads), remote.ask("describe")


def contest(data: Ground, given: argparse.Namespace) -> dict[str, Any]:
    """All rounds of one data set; a library that fails once is out, and the result says why."""
    found: dict[str, Builds] = defaultdict(Builds)
    missing: dict[str, str] = {}
    cores = tuple(sorted(os.sched_getaffinity(0)))[: given.threads_build]
    chance = random.Random(given.seed)
    for number in range(given.rounds):
        names = [name for name in (*PROFILES, HNSWLIB) if name not in missing]
        for name in chance.sample(names, len(names)):
            print(f"{data.name}: round {number + 1} of {given.rounds}, {name}", flush=True)
            try:
                built, about = one(name, data.source, given.threads_build, cores)
            except RemoteFailed as fault:
                if name in PROFILES:
                    raise
                missing[name] = str(fault)
                found.pop(name, None)
                continue
            found[name].about = about
            found[name].seconds[number], found[name].bytes[number] = built.seconds, built.index_bytes
    return data.facts() | {"missing": missing, "libraries": told(found, *data.train.shape)}


def told(found: Mapping[str, Builds], count: int, dimension: int) -> dict[str, Any]:
    """Every library's builds, and ours against hnswlib's and against the vectors themselves."""
    theirs = found.get(HNSWLIB)
    rows: dict[str, Any] = {}
    for name, each in found.items():
        held = max(each.bytes.values())
        rows[name] = each.about | {
            "seconds": result.spread(list(each.seconds.values())),
            "bytes": held,
            "times_vectors": round(held / (RAW * count * dimension), 3),
            "kept": {},
        }
        if theirs is not None:
            rows[name]["times_hnswlib"] = round(held / min(theirs.bytes.values()), 3)
        if theirs is not None and name in PROFILES:
            faster = ratio(theirs.seconds, each.seconds)
            rows[name]["faster"] = result.told(faster)
            rows[name]["kept"]["time"] = faster is not None and faster.middle >= 1
        if name == COMPACT and dimension >= COMPACT_DIMENSIONS:
            rows[name]["kept"]["memory"] = rows[name]["times_vectors"] < COMPACT_BAR
        if name == OURS and theirs is not None and dimension >= FAST_DIMENSIONS:
            rows[name]["kept"]["memory"] = rows[name]["times_hnswlib"] <= FAST_BAR
    return rows


def main() -> int:
    given = script.arguments(__doc__, RESULTS, rounds=6).parse_args()
    return script.run(__file__, given, {"threads": given.threads_build, "rounds": given.rounds}, contest)


if __name__ == "__main__":
    sys.exit(main())
