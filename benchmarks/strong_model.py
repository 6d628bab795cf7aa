"""What a strong model adds over `moves`, and what scored exemplars add over none.

    python benchmarks/strong_model.py        writes results/strong-model.json (about 10 minutes)

The runs themselves are in `runs/strong-model.sqlite.xz`, one compact archive: for each of three tasks, three arms of
ten trials each, all with seed 1. In the arms `buckets` and `none` every reply came through the policy `agent` from a
fresh agent that saw the prompt alone; prompts, replies, sources, verdicts and samples are all in the archive. The arms
differ in `--exemplars` and in nothing else. The third arm is `moves`. To look inside, unpack it as `archive.sqlite`
into a folder and name that folder to `outpace show` or `outpace report`.

An arm's winner is its best candidate. Winners are not compared by what their own runs measured, at other times and
beside other load: this script judges them again, here, head to head, one directly against the other, in interleaved
rounds of fresh processes with fresh inputs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import lzma
import statistics
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from outpace import machine
from outpace.archive import Archive
from outpace.domains.program import ProgramDomain
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import SpeedUp
from outpace.task.candidate import Candidate
from outpace.task.file import load_task

HERE = Path(__file__).parent
ARCHIVE = HERE.parent / "runs" / "strong-model.sqlite.xz"
TASKS = ("csv-sum", "matmul", "word-count")
ARMS = ("buckets", "none", "moves")
ROUNDS = 3


def unpacked(folder: Path) -> Path:
    """The archive, out of its compressed form."""
    path = folder / "archive.sqlite"
    path.write_bytes(lzma.decompress(ARCHIVE.read_bytes()))
    return path


def arms_of(archive: Archive, task: str) -> dict[str, tuple[Candidate, dict[str, Any]]]:
    """Each arm's winner, and what its run tells."""
    found = {}
    for arm in ARMS:
        run = archive.run(f"{task}-{arm}")
        best = archive.best(run)
        if best is None:
            raise SystemExit(f"the run {task}-{arm} has no correct candidate")
        story = {
            "policy": run.policy,
            "exemplars": run.settings.get("exemplars"),
            "trials": archive.count(run),
            "outcomes": archive.outcome_counts(run),
            "best_at_trial": archive.trial(best.trial).number,
            "best_so_far": climb(archive, run.name),
        }
        found[arm] = (archive.candidate(best.hash), story)
    return found


def climb(archive: Archive, name: str) -> list[float]:
    """The best ratio after each trial, by the confirmation where there is one."""
    best, curve = 1.0, []
    for trial in archive.trials(archive.run(name)):
        verdict = trial.confirmation or trial.verdict
        if verdict is not None and verdict.speed_up is not None:
            best = max(best, verdict.speed_up.ratio)
        curve.append(round(best, 3))
    return curve


def together(found: list[SpeedUp]) -> dict[str, Any]:
    """Several verdicts on the same pair as one: the median ratio, and an interval that covers all of theirs."""
    return {
        "ratio": round(statistics.median(each.ratio for each in found), 3),
        "low": round(min(each.low for each in found), 3),
        "high": round(max(each.high for each in found), 3),
        "wins": sum(each.win for each in found),
        "rounds": len(found),
    }


def compared(task: str, winners: dict[str, Candidate], kind: JailKind) -> dict[str, Any]:
    """The winners against the reference and against each other."""
    pairs = [("buckets", "none"), ("none", "buckets"), ("buckets", "moves"), ("none", "moves")]
    against: dict[str, list[SpeedUp]] = {f"{a} over {b}": [] for a, b in pairs}
    alone: dict[str, list[SpeedUp]] = {arm: [] for arm in ARMS}
    with tempfile.TemporaryDirectory() as workspace:
        domain = ProgramDomain(load_task(HERE.parent / "examples" / task))
        with Judge(domain, jail=kind, workspace=Path(workspace)) as judge:
            for _ in range(ROUNDS):
                for arm in ARMS:
                    keep(alone[arm], judge.judge(winners[arm]).speed_up)
                for a, b in pairs:
                    keep(against[f"{a} over {b}"], judge.compare(winners[a], winners[b]).speed_up)
    return {
        "over_reference": {arm: together(each) for arm, each in alone.items() if each},
        "head_to_head": {name: together(each) for name, each in against.items() if each},
    }


def keep(found: list[SpeedUp], speed_up: SpeedUp | None) -> None:
    """A verdict without a speed-up (too noisy) leaves a round out; the count of rounds shows it."""
    if speed_up is not None:
        found.append(speed_up)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    kind = best_jail()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, Archive.open(unpacked(Path(folder))) as archive:
        found = {task: arms_of(archive, task) for task in TASKS}
    for task, arms in found.items():
        results[task] = {"arms": {arm: story for arm, (_, story) in arms.items()}}
        results[task] |= compared(task, {arm: winner for arm, (winner, _) in arms.items()}, kind)
        print(task, json.dumps(results[task]["head_to_head"]), flush=True)
    outcome = {
        "command": "python benchmarks/strong_model.py",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": asdict(machine.describe()),
        "jail": kind,
        "results": results,
    }
    (HERE / "results" / "strong-model.json").write_text(json.dumps(outcome, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
