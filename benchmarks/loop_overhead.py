"""Loop overhead: what the run itself costs per trial, and at its start, when the archive holds 10,000 trials.

    python benchmarks/loop_overhead.py                      results/loop-overhead.json, a few minutes

Judging and proposing are replaced by ones that cost nothing; sources, prompts and samples have the size of
real ones, and the archive is a file on this disk with all its syncs. Two histories: one fails all along,
the other has failures among its first trials only, so that looking for recent ones has to go far back.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from outpace import answer, exemplars, machine
from outpace.archive import Archive
from outpace.cost import Cost
from outpace.judge.verdict import Bucket, Life, Outcome, Sample, SpeedUp, Verdict
from outpace.policies.base import Lesson, Prompt, Reply
from outpace.run import Run, Settings
from outpace.scored import Scored
from outpace.task import Task
from outpace.task.candidate import Candidate
from outpace.task.file import load_task

HERE = Path(__file__).parent
TASK = HERE.parent / "examples" / "csv-sum"
BAR_MS = 50.0
# Real sources differ here and there and are alike elsewhere, which is what compression and indexes see.
SOURCE_BYTES = 3000
ANALYSIS = "The scan for field ends takes most of the time, because it looks at one byte per step. " * 8
HISTORIES: dict[str, Callable[[int], bool]] = {
    "failures all along": lambda number: number % 3 == 0,
    "failures at the start only": lambda number: number <= 2,
}


def source(task: Task, serial: int) -> Candidate:
    """A candidate of its own for each serial number."""
    chance = random.Random(serial)
    lines = [f"static const long k{serial}_{at} = {chance.getrandbits(40)};" for at in range(SOURCE_BYTES // 45)]
    return Candidate({task.editable[0]: "\n".join(lines) + "\n"}, task.build.flags)


def verdict_on(candidate: Candidate, *, failed: bool = False) -> Verdict:
    """What a judge would find, samples included; the same each time, so that a confirmation confirms."""
    chance = random.Random(candidate.hash)
    if failed:
        return Verdict(Outcome.BUILD_FAILED, "sum.c:12:5: error: 'x' undeclared\n" * 8, seconds=0.2)
    ratio = chance.lognormvariate(0.2, 0.3)

    def life() -> Life:
        opening, *turns = (
            Sample(40, chance.getrandbits(24), chance.getrandbits(24), chance.getrandbits(12)) for _ in range(3)
        )
        return Life(opening, tuple(turns))

    buckets = tuple(Bucket(life(), life(), chance.getrandbits(63)) for _ in range(16))
    return Verdict(Outcome.OK, "", SpeedUp(ratio, ratio * 0.99, ratio * 1.01, ratio > 1.02, 16), buckets, 1.3)


class FreeExaminer:
    """Gives the verdicts of a judge; its own cost is measured and taken off."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def judge(self, candidate: Candidate) -> Verdict:
        begin = time.perf_counter()
        verdict = verdict_on(candidate)
        self.seconds += time.perf_counter() - begin
        return verdict

    def confirm(self, candidate: Candidate) -> Verdict:
        return self.judge(candidate)


class FreePolicy:
    """A policy that is never asked: replies are laid out before the clock starts."""

    name = "free"

    def propose(self, prompt: Prompt) -> Reply:
        raise AssertionError(f"nobody asks for trial {prompt.trial}")

    def learn(self, lessons: Sequence[Lesson]) -> None:
        pass

    def save(self) -> bytes:
        return b"state"

    def restore(self, state: bytes) -> None:
        pass


def fill(archive: Archive, task: Task, trials: int, failed: Callable[[int], bool], here: machine.Machine) -> None:
    """A finished run of this many trials."""
    record = archive.start_run(
        "long", task, "free", Settings().stored(), 1, dataclasses.asdict(here), machine_key=here.key
    )
    parents: list[str | None] = [None]
    for number in range(1, trials + 1):
        chance = random.Random(f"parent {number}")
        candidate = source(task, number)
        parent = chance.choice(parents[-50:])
        shown = [Scored(hash_, 1.5, 1.49, 1.51, True, 1, None) for hash_ in (parent,) if hash_ is not None]
        trial = archive.ask(record, f"{task.description}\n{candidate.files[task.editable[0]]}" * 2, shown, parent)[0]
        reply = answer.render(candidate, None, ANALYSIS, "One table lookup less.")
        trial = archive.answer(trial, reply, Cost(3000, 1500, 0.01, 20.0, 1))
        verdict = verdict_on(candidate, failed=failed(number))
        settled = archive.settle(
            trial, analysis=ANALYSIS, design="One table lookup less.", candidate=candidate, verdict=verdict
        )
        archive.learn([settled], b"state")
        if verdict.outcome is Outcome.OK:
            parents.append(candidate.hash)
        if number % 1000 == 0:
            print(f"  {number} trials", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Measured:
    """Milliseconds of each part of one trial, without policy and judge; `cpu` leaves out who else runs."""

    ask: float
    tell: float
    cpu: float

    @property
    def both(self) -> float:
        return self.ask + self.tell


def one_trial(run: Run, examiner: FreeExaminer, serial: int) -> Measured:
    """What the loop does for a trial, timed."""
    examiner.seconds = 0.0
    reply = Reply(
        answer.render(source(run.task, serial), None, ANALYSIS, "One table lookup less."),
        Cost(1, 1, 0.0, 0.0, 1),
    )
    cpu = time.process_time()
    begin = time.perf_counter()
    assert not run.why_stop()
    (prompt,) = run.ask()
    asked = time.perf_counter()
    assert run.ask_again(prompt, reply) is None
    run.tell(prompt.trial, reply)
    told = time.perf_counter() - examiner.seconds
    used = time.process_time() - cpu - examiner.seconds
    return Measured((asked - begin) * 1e3, (told - asked) * 1e3, used * 1e3)


def row(history: str, rule: str, measured: Sequence[Measured]) -> dict[str, object]:
    """The figures of one rule."""
    both = sorted(each.both for each in measured)
    return {
        "history": history,
        "exemplars": rule,
        "trials": len(both),
        "ask ms (median)": round(statistics.median(each.ask for each in measured), 2),
        "tell ms (median)": round(statistics.median(each.tell for each in measured), 2),
        "both ms (median)": round(statistics.median(both), 2),
        "CPU ms (median)": round(statistics.median(each.cpu for each in measured), 2),
        "both ms (95th percentile)": round(both[int(0.95 * (len(both) - 1))], 2),
        "both ms (worst)": round(both[-1], 2),
    }


def measure(trials: int, repeats: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Rows per history and rule, and the start-up of a run per history."""
    task, here = load_task(TASK), machine.describe()
    rows: list[dict[str, object]] = []
    starts: list[dict[str, object]] = []
    for history, failed in HISTORIES.items():
        with tempfile.TemporaryDirectory(prefix="outpace-overhead-") as folder:
            path = Path(folder) / "archive.sqlite"
            print(f"filling an archive: {history}", file=sys.stderr, flush=True)
            with Archive.open(path) as archive:
                fill(archive, task, trials, failed, here)
            examiner = FreeExaminer()
            begin = time.perf_counter()
            with Archive.open(path) as archive:
                run = Run(archive, task, examiner, FreePolicy(), name="long", machine=here, seed=1)
                started = time.perf_counter()
                run.recover()
                recovered = time.perf_counter()
                starts.append(
                    {
                        "history": history,
                        "megabytes": round(path.stat().st_size / 1e6, 1),
                        "open and start ms": round((started - begin) * 1e3, 1),
                        "recover ms": round((recovered - started) * 1e3, 1),
                    }
                )
                print(starts[-1], file=sys.stderr, flush=True)
                serial = trials
                for rule in exemplars.RULES:
                    # Beside its settings nothing in a run depends on the rule, so one archive serves for all.
                    run.settings = dataclasses.replace(run.settings, exemplars=rule)
                    one_trial(run, examiner, serial := serial + 1)
                    timed = [one_trial(run, examiner, serial := serial + 1) for _ in range(repeats)]
                    rows.append(row(history, rule, timed))
                    print(rows[-1], file=sys.stderr, flush=True)
    return rows, starts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000, help="trials in the archive before anything is timed")
    parser.add_argument("--repeats", type=int, default=200, help="timed trials per rule")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "loop-overhead.json")
    options = parser.parse_args()
    rows, starts = measure(options.trials, options.repeats)
    kept = all(float(str(each["both ms (95th percentile)"])) < BAR_MS for each in rows)
    result = {
        "command": " ".join(["python benchmarks/loop_overhead.py", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
        "machine": dataclasses.asdict(machine.describe()),
        "load": dataclasses.asdict(machine.load()),
        "trials in the archive": options.trials,
        "bar ms": BAR_MS,
        "kept": kept,
        "start": starts,
        "per trial": rows,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{'kept' if kept else 'NOT kept'}: 95 of 100 trials under {BAR_MS:g} ms; see {options.out}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
