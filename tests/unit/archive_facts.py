"""Small tasks, candidates, verdicts and trials for the tests of the archive."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from outpace.archive import Archive, RunRecord, Trial
from outpace.cost import Cost
from outpace.judge.verdict import Bucket, Life, Outcome, Sample, SpeedUp, Verdict
from outpace.task import Entry, Task
from outpace.task.candidate import Candidate

TASK = Task(
    name="sum",
    description="adds numbers",
    folder=Path("/home/someone/tasks/sum"),
    editable=("sum.c",),
    files={"sum.c": b"int sum;\n", "task.toml": b"name = 'sum'\n", "data.bin": bytes(range(256))},
    entry=Entry("c"),
)
WRONG = Verdict(Outcome.WRONG, "expected 3, got 4")


def source(number: int) -> Candidate:
    return Candidate({"sum.c": f"int sum = {number};\n"}, ("-O2",))


def ok(ratio: float, *, win: bool = True, seed: int = 0) -> Verdict:
    reference = Life(Sample(3, 400, 380, 5), (Sample(8, 100, 90, 1), Sample(8, 101, 91, 0)))
    bucket = Bucket(reference, Life(Sample(3, 200, 190, 0), (Sample(8, 50, 49, 0), Sample(8, 51, 50, 2))), seed)
    return Verdict(Outcome.OK, "", SpeedUp(ratio, ratio - 0.1, ratio + 0.1, win, 1), (bucket,), 0.5)


def start(archive: Archive, name: str = "first", task: Task = TASK, **changed: Any) -> RunRecord:
    given: dict[str, Any] = {
        "policy": "moves",
        "settings": {"exemplars": 2},
        "seed": 7,
        "machine": {"cpu": "x86"},
        "machine_key": "x86-16",
    }
    return archive.start_run(name, task, **{**given, **changed})


def tried(archive: Archive, run: RunRecord, candidate: Candidate | None, verdict: Verdict, **more: Any) -> Trial:
    trial = archive.answer(archive.ask(run, "make it faster", (), None)[0], "a reply", Cost(calls=1))
    return archive.settle(trial, analysis="a", design="d", candidate=candidate, verdict=verdict, **more)


def everything(archive: Archive) -> list[Any]:
    facts: list[Any] = [*archive.runs(), *archive.trials()]
    for run in archive.runs():
        facts += [archive.task_files(run.task_hash), archive.notes(run), archive.scored(run.task_hash)]
        facts += [archive.candidate(one.hash) for one in archive.scored(run.task_hash, run)]
        facts += [
            archive.costs(run),
            archive.outcome_counts(run),
            archive.open_trials(run),
            archive.count(run),
        ]
    return facts


def integrity(path: Path) -> str:
    with closing(sqlite3.connect(path)) as database:
        return str(database.execute("PRAGMA integrity_check").fetchone()[0])
