"""A task with flags to choose, and a judge whose timings follow from a table, for the tests of claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from outpace.judge import statistics
from outpace.judge.accounts import reckon
from outpace.judge.verdict import Bucket, Life, Outcome, Sample, Span, Verdict
from outpace.machine import Machine
from outpace.task import Task
from outpace.task.candidate import Candidate, reference
from outpace.task.file import make_task

SOURCE = "int sum(int n) { return n; }\n"
FASTER = "int sum(int n) { return 0 + n; }\n"
HERE = Machine("a CPU", "x86_64", 2, ("avx2",), "unknown", "6.1", "cc 12", "3.11", 4096)
GROUPS = '[["-O2", "-O3"], ["", "-march=native"]]'


def task(groups: str = GROUPS) -> Task:
    """A task that builds with -O2 and leaves these choices."""
    toml = f"""name = "sum"
editable = ["sum.c"]
[entry]
kind = "c"
function = "int sum(int n)"
[build]
flags = ["-O2"]
flag_choices = {groups}
"""
    files = {"task.toml": toml, "sum.c": SOURCE, "judge.py": "def make_input(rng):\n    return {'n': 1}\n"}
    return make_task(Path("sum"), {name: text.encode() for name, text in files.items()})


def bucket(ratio: float) -> Bucket:
    """One pair of processes that differ by this ratio."""
    time = round(1_000_000 * ratio)
    opening = Sample(0, 1_000_000, 1_000_000, 0)
    reference = Life(opening, (Sample(7, time, time, 0),))
    return Bucket(reference, Life(opening, (Sample(7, 1_000_000, 1_000_000, 0),)), 1, span=Span.WHOLE)


def confirming(ratios: Sequence[float]) -> tuple[Bucket, ...]:
    """Buckets of these ratios, and a long one in the middle of them."""
    usual = bucket(1.001 * max(ratios))
    reference, candidate = (replace(life, opening=Sample(0, 0, 0, 0)) for life in (usual.reference, usual.candidate))
    return (*map(bucket, ratios), Bucket(reference, candidate, 1, span=Span.LONG))


def of_buckets(ratios: Sequence[float]) -> Verdict:
    """The verdict that the judge's own test gives on buckets of these ratios."""
    buckets = confirming(ratios)
    decision = statistics.decide(reckon(buckets, task()).ratios, 1.01)
    assert decision.stop and decision.speed_up is not None
    return Verdict(Outcome.OK, "", decision.speed_up, buckets, 1.0)


def timed(ratio: float) -> Verdict:
    """A steady timing of this ratio, with as many buckets as the judge would take."""
    spread = [ratio * math.exp(0.002 * ((at % 5) - 2)) for at in range(32)]
    for count in (4, 8, 16, 32):
        ratios = reckon(confirming(spread[:count]), task()).ratios
        if statistics.decide(ratios, 1.01).stop:
            return of_buckets(spread[:count])
    raise AssertionError("the last look always decides")


class Table:
    """A judge that times by a function from candidates to speeds; None stands for a wrong answer."""

    jail = "none"

    def __init__(self, task: Task, speed: Callable[[Candidate], float | None]) -> None:
        self.task = task
        self.speed = speed
        self.asked: list[tuple[str, ...]] = []

    def judge(self, candidate: Candidate) -> Verdict:
        return self.compare(candidate, reference(self.task))

    def confirm(self, candidate: Candidate, baseline: Candidate | None = None) -> Verdict:
        return self.compare(candidate, baseline or reference(self.task))

    def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
        self.asked.append(candidate.flags)
        mine, theirs = self.speed(candidate), self.speed(baseline)
        assert theirs is not None, "a baseline must be right"
        return Verdict(Outcome.WRONG, "expected 3, got 4") if mine is None else timed(mine / theirs)


def together(candidate: Candidate) -> float:
    """The README's `dot`: -O3 and -march=native gain nothing apart and much together."""
    both = {"-O3", "-march=native"} <= set(candidate.flags)
    return (1.43 if both else 1.0) * (1.3 if "0 + n" in candidate.files["sum.c"] else 1.0)
