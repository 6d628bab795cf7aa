"""A task, an examiner and a policy for the tests of runs: what a source is worth stands in its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from outpace import answer
from outpace.archive import Archive
from outpace.budget import Budget
from outpace.cost import Cost
from outpace.judge.verdict import Outcome, SpeedUp, Verdict
from outpace.machine import Machine
from outpace.policies.base import Exhausted, Lesson, Prompt, Reply
from outpace.run import Run, Settings
from outpace.task import Build, Entry, Task
from outpace.task.candidate import Candidate

TASK = Task(
    name="sum",
    description="Adds numbers.",
    folder=Path("sum"),
    editable=("sum.c",),
    files={"sum.c": b"int sum;\n", "judge.py": b"SECRET = 1\n", "task.toml": b"name = 'sum'\n"},
    entry=Entry("c", "int sum(int n)"),
    build=Build("cc", ("sum.c",), ("-O2",)),
)
UNLIMITED = Budget()
HERE = Machine("a CPU", "x86_64", 2, ("avx2",), "unknown", "6.1", "cc 12", "3.11", 4096)
ANALYSIS = "The loop adds one number at a time, each add waiting for the last."
PRICE = Cost(tokens_in=100, tokens_out=10, money=0.5, seconds=1.0, calls=1)


class Stop(BaseException):
    """A kill: nothing may catch it."""


def source(text: str) -> Candidate:
    """The candidate of this text."""
    return Candidate({"sum.c": text}, ("-O2",))


def code(ratio: float, serial: int = 0) -> str:
    """A source that is judged this much faster; serial numbers tell equally fast ones apart."""
    return f"int fast_{round(ratio * 100)}_{serial};\n"


def said(text: str, analysis: str = ANALYSIS) -> str:
    """The reply that proposes this text."""
    return answer.render(source(text), None, analysis, "Fewer steps.")


def ok(ratio: float) -> Verdict:
    """Right, and this much faster."""
    return Verdict(Outcome.OK, "", SpeedUp(ratio, ratio * 0.98, ratio * 1.02, ratio > 1.03, 8), (), 0.5)


def failed(outcome: Outcome) -> Verdict:
    """A verdict without a speed-up."""
    return Verdict(outcome, f"it is {outcome}")


def worth(text: str) -> Verdict:
    """What `code` says, or the outcome whose name stands in the text."""
    if found := re.search(r"fast_(\d+)", text):
        return ok(int(found[1]) / 100)
    return failed(next(each for each in Outcome if each in text))


class Judging:
    """An examiner that reads the verdict off the source; `later` holds what judging a text again finds."""

    def __init__(
        self, later: Mapping[str, Sequence[Verdict]] | None = None, before: Callable[[], None] = lambda: None
    ) -> None:
        self.judged: list[str] = []
        self._later = later or {}
        self._before = before

    def judge(self, candidate: Candidate) -> Verdict:
        self._before()
        text = candidate.files["sum.c"]
        times = self.judged.count(text)
        self.judged.append(text)
        later = self._later.get(text, ())
        return worth(text) if times == 0 or not later else later[min(times, len(later)) - 1]

    def confirm(self, candidate: Candidate) -> Verdict:
        return self.judge(candidate)


class Scripted:
    """A policy that gives the replies it was made with, trial by trial, and remembers what it said and learnt."""

    name = "scripted"

    def __init__(self, replies: Iterable[str], before: Callable[[], None] = lambda: None) -> None:
        self._replies = list(replies)
        self._before = before
        self.asked: list[Prompt] = []
        self.proposed: set[int] = set()
        self.learnt: list[list[tuple[int, str, float | None, float | None]]] = []

    def propose(self, prompt: Prompt) -> Reply:
        self._before()
        if prompt.trial > len(self._replies):
            raise Exhausted("nothing is left to say")
        self.asked.append(prompt)
        self.proposed.add(prompt.trial)
        return Reply(self._replies[prompt.trial - 1], PRICE)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        self._before()
        self.learnt.append([_kept(each) for each in lessons])

    def save(self) -> bytes:
        return json.dumps([sorted(self.proposed), self.learnt]).encode()

    def restore(self, state: bytes) -> None:
        proposed, learnt = json.loads(state)
        self.proposed = set(proposed)
        self.learnt = [[(trial, text, earned, gain) for trial, text, earned, gain in group] for group in learnt]


def _kept(lesson: Lesson) -> tuple[int, str, float | None, float | None]:
    text = "" if lesson.candidate is None else lesson.candidate.files["sum.c"]
    return lesson.trial, text, lesson.reward, None if lesson.advantage is None else round(lesson.advantage, 9)


def begin(
    archive: Archive,
    policy: Scripted,
    examiner: Judging,
    *,
    name: str = "first",
    budget: Budget = UNLIMITED,
    **more: Any,
) -> Run:
    """A run of TASK; `more` are settings, or a clock, a machine or a task in place of the usual ones."""
    usual = {"clock": more.pop("clock", lambda: 0.0), "machine": more.pop("machine", HERE)}
    task = more.pop("task", TASK)
    return Run(archive, task, examiner, policy, name=name, seed=7, settings=Settings(**more), budget=budget, **usual)


def told(run: Run, *texts: str) -> list[Verdict]:
    """Ask for a prompt and tell this reply, for each of them."""
    verdicts = []
    for text in texts:
        verdicts.append(run.tell(run.next_prompt().trial, Reply(text, PRICE)))
    return verdicts


def edited(parent: str, old: str, new: str) -> str:
    """The reply that changes one line of a parent."""
    edit = f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"
    head = f"## Performance Analysis\n{ANALYSIS}\n## Algorithm Design\nx\n## Code Implementation\n{parent}"
    return f"{head}### EDIT: sum.c\n```\n{edit}```\n"
