"""Judge honest: honest optimisations of many kinds must be judged ok, at the figure that a plain loop gives.

    python benchmarks/judge_honest.py                 all of it: results/judge-honest.json
    python benchmarks/judge_honest.py --jobs 4        the same, in four processes with cores of their own
    python benchmarks/judge_honest.py --only NAME     some kinds, printed only

Each folder of `honest/tasks/` is one kind. The judge confirms it, as it does with what is published; then
`honest/loops.py` times it in a loop that shares nothing with the judge, once with inputs that lie in the core's own
caches (warm) and once with inputs from another core (sent). Half of each loop runs before the judge and half after it,
because a virtual machine's core is faster in some seconds than in others. What agrees with neither loop, or is too
noisy, is measured once more, and the last measurement stands.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from copies import add_jobs, at_once, shared
from honest.kinds import Kind, kinds
from honest.loops import Loop, Took, loop_of
from outpace import machine
from outpace.domains.program import ProgramDomain
from outpace.judge.accounts import reckon
from outpace.judge.cores import exclusive, timing_cores, undisturbed
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import PROTOCOL

Row = dict[str, Any]
RESULTS = Path(__file__).parent / "results" / "judge-honest.json"
# Two figures agree when neither is more than this many times the other.
AGREE = 1.10
TIMED_AGAIN = 1
# Rounds of half a loop: so many seconds of calls, in no more time than that.
CALL_SECONDS, LOOP_SECONDS, MOST_ROUNDS = 0.25, 1.5, 2500
# The sixth lowest and the sixth highest of 20 blocks enclose the middle with 95.9%.
BLOCKS, OUTER = 20, 5
# A call that took so many times as long as is usual was interrupted.
INTERRUPTED = 3.0
VERSIONS = ("warm", "sent")
OTHER_CORE = min(os.sched_getaffinity(0))
# It matters to these where inputs lie, or whether they are new; they are timed in all modes of the loop.
DISSECTED = ("tiled-product", "accumulators-dot", "binary-search")
DISSECTION = ("again", "warm", "sent", "flushed")


@dataclass(frozen=True)
class Figure:
    """How many times faster, with an interval, and the microseconds that a call took."""

    ratio: float
    low: float
    high: float
    reference_us: float
    candidate_us: float
    # Between the two cores, for C functions whose inputs are sent. A virtual machine's cores may move apart meanwhile.
    round_trip_ns: float = 0.0


def estimate(took: Took) -> Figure:
    """The figure of a loop's rounds: ratios of sums over blocks of rounds, without the interrupted ones."""
    usual = np.median(took[:, :2], axis=0)
    kept = took[(took[:, :2] <= INTERRUPTED * usual).all(axis=1)]
    ratios = sorted(float(block[:, 0].sum() / block[:, 1].sum()) for block in np.array_split(kept, BLOCKS))
    reference, candidate = kept[:, :2].mean(axis=0) / 1e3
    return Figure(
        ratio=float(np.median(ratios)),
        low=ratios[OUTER],
        high=ratios[-1 - OUTER],
        reference_us=float(reference),
        candidate_us=float(candidate),
        round_trip_ns=float(np.median(kept[:, 2])),
    )


def agree(one: float, other: float) -> bool:
    """Whether two ratios are the same but for a tenth."""
    return abs(math.log(one / other)) <= math.log(AGREE)


def agreement(judged: Mapping[str, Any] | None, loops: Mapping[str, Mapping[str, Any]]) -> str:
    """Which of the loops the judge agrees with."""
    if judged is None:
        return "no figure"
    found = [version for version in VERSIONS if agree(judged["ratio"], loops[version]["ratio"])]
    return "both" if len(found) == len(VERSIONS) else (found or ["neither"])[0]


def rounds(kind: Kind, loop: Loop, modes: Sequence[str]) -> dict[str, Took]:
    """As many rounds of each mode as there is time for, on the core that the judge times on."""
    cores, before = timing_cores(kind.task.limits.threads), os.sched_getaffinity(0)
    with exclusive(cores), undisturbed():
        os.sched_setaffinity(0, cores)
        try:
            return {mode: _rounds(loop, mode) for mode in modes}
        finally:
            os.sched_setaffinity(0, before)


def _rounds(loop: Loop, mode: str) -> Took:
    begin = time.monotonic()
    some = loop(mode, BLOCKS)
    each = (time.monotonic() - begin) / BLOCKS
    by_calls = CALL_SECONDS * 1e9 / float(np.median(some[:, :2].sum(axis=1)))
    return loop(mode, max(int(min(by_calls, LOOP_SECONDS / each, MOST_ROUNDS)), BLOCKS))


def judged(kind: Kind, judge: Judge) -> Row:
    """The judge's word."""
    verdict = judge.confirm(kind.candidate)
    account, found = reckon(verdict.buckets, kind.task), verdict.speed_up
    figure = found and Figure(found.ratio, found.low, found.high, account.reference / 1e3, account.candidate / 1e3)
    return {
        "outcome": str(verdict.outcome),
        "reason": verdict.reason,
        "win": bool(found and found.win),
        "judge": figure and asdict(figure),
    }


def measure(kind: Kind, judge: Judge) -> Row:
    """One row: judge and loops, once more where they say nothing or do not agree."""
    with loop_of(kind, OTHER_CORE, np.random.default_rng()) as loop:
        for again in range(TIMED_AGAIN + 1):
            before = rounds(kind, loop, VERSIONS)
            word = judged(kind, judge)
            after = rounds(kind, loop, VERSIONS)
            loops = {mode: asdict(estimate(np.concatenate([before[mode], after[mode]]))) for mode in VERSIONS}
            row = {
                "kind": kind.name,
                "what": kind.task.description,
                "language": kind.language,
                **word,
                **loops,
                "agrees": agreement(word["judge"], loops),
                "again": again,
            }
            if row["agrees"] not in ("neither", "no figure"):
                break
    return row


def dissected(kind: Kind) -> dict[str, dict[str, float]]:
    """The loop's figures in all modes."""
    with loop_of(kind, OTHER_CORE, np.random.default_rng()) as loop:
        return {mode: asdict(estimate(took)) for mode, took in rounds(kind, loop, DISSECTION).items()}


def in_turn(chosen: Sequence[Kind], jail: JailKind) -> tuple[list[Row], dict[str, Row]]:
    """The rows of these kinds, and the figures of the loops of some of them in all modes."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="outpace-honest-") as folder:
        Path(folder).chmod(0o755)
        for kind in chosen:
            with Judge(ProgramDomain(kind.task), jail=jail, workspace=Path(folder)) as judge:
                rows.append(measure(kind, judge))
            print(line(rows[-1]), file=sys.stderr, flush=True)
    return rows, {kind.name: dissected(kind) for kind in chosen if kind.name in DISSECTED}


def in_copies(chosen: Sequence[Kind], jobs: int) -> tuple[list[Row], dict[str, Row]]:
    """The same from copies of this program."""
    told = [
        json.loads(words) for words in at_once([__file__, "--json"], shared([[kind.name] for kind in chosen], jobs))
    ]
    rows = {row["kind"]: row for each in told for row in each["rows"]}
    return [rows[kind.name] for kind in chosen], {
        name: part for each in told for name, part in each["dissected"].items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", default=[], help="this kind; may be repeated")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    add_jobs(parser)
    arguments = parser.parse_args()
    begin, jail = time.monotonic(), best_jail()
    chosen = kinds(arguments.only)
    rows, parts = in_turn(chosen, jail) if arguments.jobs == 1 else in_copies(chosen, arguments.jobs)
    result = {
        "machine": asdict(machine.describe()),
        "date": datetime.date.today().isoformat(),
        "command": shlex.join(["python", "benchmarks/judge_honest.py", *sys.argv[1:]]),
        "protocol": PROTOCOL,
        "jail": jail,
        "minutes": round((time.monotonic() - begin) / 60, 1),
        "agree": AGREE,
        "rows": rows,
        "dissected": parts,
    }
    if not arguments.only:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    if arguments.json:
        print(json.dumps(result))
        return 0
    for name, modes in parts.items():
        print(f"{name}: " + ", ".join(f"{mode} {told(figure)}" for mode, figure in modes.items()))
    bad = [row["kind"] for row in rows if row["outcome"] != "ok" or row["agrees"] in ("neither", "no figure")]
    print(
        f"{len(rows) - len(bad)} of {len(rows)} kinds are ok and agree with a loop"
        + "".join(f"; not {each}" for each in bad)
    )
    return 1 if bad else 0


def line(row: Mapping[str, Any]) -> str:
    figures = ", ".join(f"{name} {told(row[name])}" for name in ("judge", *VERSIONS) if row[name])
    word = f"{row['outcome']} {row['reason'][:60]}".strip()
    return f"{row['kind']:22} {word}, {figures}; agrees with {row['agrees']}, again {row['again']}"


def told(figure: Mapping[str, float]) -> str:
    return (
        f"{figure['ratio']:.2f} ({figure['low']:.2f} to {figure['high']:.2f}; "
        f"{figure['reference_us']:.1f}/{figure['candidate_us']:.1f} us)"
    )


if __name__ == "__main__":
    sys.exit(main())
