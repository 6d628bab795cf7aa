"""Copies: runs a benchmark in several processes at once, each with a share of the work and with cores of its own."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """The option that asks for it."""
    most = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--jobs",
        type=int,
        choices=range(1, most + 1),
        default=1,
        metavar="N",
        help=f"so many processes at once, each on its share of the {most} cores",
    )


def shared(groups: Iterable[Sequence[str]], jobs: int) -> list[list[str]]:
    """These names in so many shares of about equal length; a group stays together."""
    ordered = sorted(groups, key=lambda names: (-len(names), list(names)))
    shares: list[list[str]] = [[] for _ in range(min(jobs, len(ordered)))]
    for names in ordered:
        min(shares, key=len).extend(names)
    return shares


def at_once(command: Sequence[str], shares: Sequence[Sequence[str]]) -> list[str]:
    """What copies of this Python command print that are told `--only` their share."""
    cores = sorted(os.sched_getaffinity(0))
    each = len(cores) // len(shares)
    copies = []
    for number, names in enumerate(shares):
        own = ",".join(map(str, cores[number * each : (number + 1) * each]))
        only = [part for name in names for part in ("--only", name)]
        copies.append(
            subprocess.Popen(["taskset", "-c", own, sys.executable, *command, *only], stdout=subprocess.PIPE, text=True)
        )
    return [copy.communicate()[0] for copy in copies]
