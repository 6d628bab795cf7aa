"""Measures every candidate of five small spaces with the real judge, for simulated searches on them.

    python benchmarks/moves_table.py             # all five; a second call goes on where the first ended
    python benchmarks/moves_table.py --spaces csv-sum

Each space is an example with some points held to fewer options. Candidates are judged in a shuffled order,
some of each space in turn, so that a slow hour of the machine falls on all of them. One that was too noisy
is judged again after the others, at most twice.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import itertools
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

from outpace import machine
from outpace.domains.program import ProgramDomain
from outpace.judge.jail import best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import Outcome, Verdict
from outpace.task import Task, variation
from outpace.task.candidate import reference
from outpace.task.file import load_task

HERE = Path(__file__).parent
RESULTS = HERE / "results"
# By point, in the order of `variation.points`: how many of its options, from the first, are in the space. The
# reference's own option must be among them.
SPACES: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "blur": (2, 3, 4, 2, 2, 2, 1),
        "csv-sum": (4, 3, 3, 2, 2, 1),
        "kmeans": (4, 4, 2, 2, 2, 1),
        "matmul": (4, 4, 5, 1, 2),
        "string-search": (3, 4, 3, 2, 2, 1),
    }
)
ROUND = 10
ATTEMPTS = 3

Place = tuple[int, ...]
Cells = dict[Place, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Space:
    """One example, its points, and the places to measure in the order to measure them."""

    task: Task
    points: tuple[variation.Point, ...]
    options: tuple[int, ...]
    reference: Place
    order: tuple[Place, ...]


def make_space(task: Task, options: tuple[int, ...]) -> Space:
    """The space of a task held to its first options; exits where that leaves the reference out."""
    points = variation.points(task)
    own = variation.settings(points, reference(task))
    fits = len(points) == len(options) and all(
        setting is not None and setting < count <= len(point.options)
        for point, setting, count in zip(points, own, options, strict=True)
    )
    if not fits:
        sys.exit(
            f"{task.name} has points of {[len(each.options) for each in points]} options, set to {own}: "
            "mend its row in SPACES"
        )
    order = list(itertools.product(*map(range, options)))
    random.Random(f"moves-table {task.name}").shuffle(order)
    return Space(task, points, options, tuple(each for each in own if each is not None), tuple(order))


def cell(place: Place, verdict: Verdict, attempts: int) -> dict[str, Any]:
    """A verdict as the table keeps it."""
    row: dict[str, Any] = {"settings": list(place), "outcome": str(verdict.outcome), "attempts": attempts}
    found = verdict.speed_up
    if found is not None:
        names = {"log_ratio": found.ratio, "log_low": found.low, "log_high": found.high}
        row |= {name: round(math.log(value), 6) for name, value in names.items()}
    return row | {"seconds": round(verdict.seconds, 2)}


def pending(space: Space, cells: Cells) -> list[Place]:
    """What is left to measure: first what never was, then what was too noisy."""
    fresh = [place for place in space.order if place not in cells]
    noisy = [
        place
        for place in space.order
        if place in cells and cells[place]["outcome"] == Outcome.TOO_NOISY and cells[place]["attempts"] < ATTEMPTS
    ]
    return fresh + noisy


def path_of(space: Space) -> Path:
    """The table's file."""
    return RESULTS / f"moves-table-{space.task.name}.json"


def read_cells(space: Space) -> Cells:
    """What an earlier call measured; a table of another version of the example is refused."""
    path = path_of(space)
    if not path.exists():
        return {}
    stored = json.loads(path.read_text())
    if stored["task_hash"] != space.task.hash or stored["machine_key"] != machine.describe().key:
        sys.exit(f"{path.name} is of another version of {space.task.name} or another machine: move it away first")
    return {tuple(row["settings"]): row for row in stored["cells"]}


def write_cells(space: Space, cells: Cells, jail: str) -> None:
    """The whole table, in one step, so that a kill leaves the last one whole."""
    facts = machine.describe()
    table = {
        "task": space.task.name,
        "task_hash": space.task.hash,
        "command": "python benchmarks/moves_table.py",
        "date": datetime.date.today().isoformat(),
        "machine": dataclasses.asdict(facts),
        "machine_key": facts.key,
        "jail": jail,
        "points": [
            {"kind": each.kind, "name": each.name, "where": each.where, "options": each.options[:count]}
            for each, count in zip(space.points, space.options, strict=True)
        ],
        "reference": space.reference,
        "cells": [cells[place] for place in sorted(cells)],
    }
    part = path_of(space).with_suffix(".part")
    part.write_text(json.dumps(table, indent=1) + "\n")
    part.replace(path_of(space))


def main() -> None:
    """Measure what is left of the chosen spaces, in rounds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--spaces", nargs="+", choices=list(SPACES), default=list(SPACES))
    names = parser.parse_args().spaces
    spaces = [make_space(load_task(HERE.parent / "examples" / name), SPACES[name]) for name in names]
    tables = {space.task.name: read_cells(space) for space in spaces}
    jail = best_jail()
    RESULTS.mkdir(exist_ok=True)
    begin, done = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="outpace-table-") as folder, ExitStack() as stack:
        Path(folder).chmod(0o755)
        judges = {
            space.task.name: stack.enter_context(
                Judge(ProgramDomain(space.task), jail=jail, workspace=Path(folder) / space.task.name)
            )
            for space in spaces
        }
        while any(pending(space, tables[space.task.name]) for space in spaces):
            for space in spaces:
                name = space.task.name
                cells = tables[name]
                for place in pending(space, cells)[:ROUND]:
                    candidate = variation.apply(space.points, reference(space.task), place)
                    verdict = judges[name].judge(candidate)
                    attempts = cells[place]["attempts"] + 1 if place in cells else 1
                    cells[place] = cell(place, verdict, attempts)
                    write_cells(space, cells, jail)
                    done += 1
                    left = sum(len(pending(each, tables[each.task.name])) for each in spaces)
                    minutes = (time.monotonic() - begin) / done * left / 60
                    shown = verdict.speed_up.rounded() if verdict.speed_up else str(verdict.outcome)
                    print(f"{name} {place}: {shown}, {left} left, about {minutes:.0f} min", flush=True)


if __name__ == "__main__":
    main()
