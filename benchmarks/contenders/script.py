"""A script: the arguments that all contests have, and the data sets one after another into a result file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contenders import ground, result
from contenders.ground import Ground

Contest = Callable[[Ground, argparse.Namespace], dict[str, Any]]


def arguments(description: str | None, out: Path, rounds: int | None) -> argparse.ArgumentParser:
    """A parser to which a script adds what is its own; without rounds where nothing is timed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", nargs="+", default=["photosift-128-euclidean"], help="HDF5 files, or names of data sets"
    )
    parser.add_argument("--rows", type=int, help="the first rows alone (default: all)")
    parser.add_argument("--threads-build", type=int, default=len(os.sched_getaffinity(0)))
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds)
        parser.add_argument("--seed", type=int, default=0, help="of the order inside the rounds")
    parser.add_argument("--out", type=Path, default=out)
    return parser


def run(script: str, given: argparse.Namespace, rules: dict[str, Any], contest: Contest) -> int:
    """Every data set that was named; the file is written when all are done."""
    report = result.heading(script) | rules | {"sets": {}}
    for name in given.data:
        data = ground.read(name, given.rows)
        report["sets"][data.name] = contest(data, given)
    result.write(given.out, report)
    return 0
