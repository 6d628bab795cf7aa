"""Judge overhead: what the jail costs to start, a call to make, and a trial to judge.

    python benchmarks/judge_overhead.py        writes results/judge-overhead.json

All figures are taken in rounds that interleave the jails; each is a median with the 5th and 95th percentile.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics as plain
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from judge_noise import candidate, noise_task
from outpace import machine
from outpace.domains.program import ProgramDomain
from outpace.judge.feeder import Lot
from outpace.judge.jail import Confinement, JailKind, bubblewrap_works, fallback_works, jail_command
from outpace.judge.judge import Judge
from outpace.judge.pair import Pair
from outpace.judge.verdict import PROTOCOL

HERE = Path(__file__).parent
ROUNDS, TRIALS = 40, 8


def spread(values: list[float]) -> dict[str, float]:
    """Median and the middle nine tenths."""
    return {
        "median": round(plain.median(values), 3),
        "p5": round(float(np.percentile(values, 5)), 3),
        "p95": round(float(np.percentile(values, 95)), 3),
    }


def start_ms(kind: JailKind | None) -> float:
    """Milliseconds to start and end `true`, in a jail or bare."""
    if kind is None:
        argv, environment, fds, close = ("/usr/bin/true",), {}, (), lambda: None
    else:
        command = jail_command(kind, Confinement(), ["exec", "--", "/usr/bin/true"])
        argv, environment, fds, close = command.argv, dict(command.environment), command.fds, command.close
    begin = time.perf_counter()
    subprocess.run(argv, env=environment, pass_fds=fds, check=True)
    taken = (time.perf_counter() - begin) * 1e3
    close()
    return taken


def call_us(kind: JailKind, judge: Judge, calls: int) -> tuple[float, float]:
    """Milliseconds to start a pair of workers, and microseconds of CPU time per question to an empty function."""
    folder = judge._reference_folder()
    program = judge.domain.program(kind, folder)
    rng = np.random.default_rng(1)
    inputs = [judge.domain.make_input(rng) for _ in range(calls)]
    lot = Lot([judge.domain.question([given]) for given in inputs], inputs)
    begin = time.perf_counter()
    pair = Pair(kind, {0: program, 1: program}, judge.cores, 1 << 20)
    started = (time.perf_counter() - begin) * 1e3
    try:
        return started, min(pair.ask(0, lot, 1.0).sample.cpu / 1e3 / calls for _ in range(3))
    finally:
        pair.close()


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    obstacles: dict[JailKind, str] = {"bubblewrap": bubblewrap_works(), "fallback": fallback_works()}
    jails = [kind for kind, why in obstacles.items() if not why]
    empty = noise_task(0, 0)
    result: dict[str, object] = {
        "machine": asdict(machine.describe()),
        "date": datetime.date.today().isoformat(),
        "command": "python benchmarks/judge_overhead.py",
        "protocol": PROTOCOL,
    }
    with tempfile.TemporaryDirectory(prefix="outpace-overhead-") as folder:
        Path(folder).chmod(0o755)
        starts: dict[str, list[float]] = {str(kind): [] for kind in [None, *jails]}
        pairs: dict[str, list[float]] = {kind: [] for kind in jails}
        single: dict[str, list[float]] = {kind: [] for kind in jails}
        batched: dict[str, list[float]] = {kind: [] for kind in jails}
        judges = {kind: Judge(ProgramDomain(empty), jail=kind, workspace=Path(folder)) for kind in jails}
        for _ in range(ROUNDS):
            for kind in [None, *jails]:
                starts[str(kind)].append(start_ms(kind))
            for kind in jails:
                with judges[kind]._timing():
                    started, one = call_us(kind, judges[kind], 1)
                    pairs[kind].append(started)
                    single[kind].append(one)
                    batched[kind].append(call_us(kind, judges[kind], 500)[1])
        trials: dict[str, list[float]] = {kind: [] for kind in jails}
        buckets: dict[str, list[float]] = {kind: [] for kind in jails}
        timed = {
            kind: Judge(ProgramDomain(noise_task(900_000, 0)), jail=kind, workspace=Path(folder)) for kind in jails
        }
        for number in range(TRIALS):
            for kind in jails:
                verdict = timed[kind].judge(candidate(timed[kind].domain.task, number))
                trials[kind].append(verdict.seconds)
                buckets[kind].append(float(len(verdict.buckets)))
        for judge in (*judges.values(), *timed.values()):
            judge.close()
    result |= {
        "start and end `true`, ms": {
            ("bare" if name == "None" else name): spread(values) for name, values in starts.items()
        },
        "start a pair of workers, ms": {name: spread(values) for name, values in pairs.items()},
        "one empty question alone, us of CPU time": {name: spread(values) for name, values in single.items()},
        "one empty question of 500, us of CPU time": {name: spread(values) for name, values in batched.items()},
        "a whole trial of a 1 ms task of equal speed, s": {name: spread(values) for name, values in trials.items()},
        "buckets per such trial": {name: spread(values) for name, values in buckets.items()},
    }
    (HERE / "results" / "judge-overhead.json").write_text(json.dumps(result, indent=1) + "\n")
    for name, rows in result.items():
        if isinstance(rows, dict) and name != "machine":
            for jail, values in rows.items():
                print(f"{name:50} {jail:11} {values}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
