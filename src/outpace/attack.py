"""An attack on a task: what its judge calls a win, beside the best honest code there is."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from outpace.aim import aim_of
from outpace.archive import Reading
from outpace.errors import TaskError
from outpace.judge.verdict import Outcome, SpeedUp, Verdict
from outpace.run import Run
from outpace.task import Task
from outpace.task.candidate import Candidate, reference


class Comparing(Protocol):
    """A judge that can also time a candidate against another one."""

    def judge(self, candidate: Candidate) -> Verdict: ...

    def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict: ...


@dataclass(frozen=True)
class Bound:
    """The best honest code known, where it comes from, and how fast it is beside the reference."""

    candidate: Candidate
    source: str
    ratio: float


@dataclass(frozen=True)
class Against:
    """A win timed against the bound; without a speed-up, `reason` says why there is none."""

    outcome: str
    reason: str
    speed_up: SpeedUp | None


@dataclass(frozen=True)
class Win:
    """A candidate of an attack that the judge calls a win."""

    trial: int
    candidate: str
    ratio: float
    design: str
    # None where noise did not let it be timed against the bound.
    against: Against | None

    @property
    def suspicious(self) -> bool:
        """Whether a person should look: it beats honest code, or could not be shown not to."""
        found = self.against.speed_up if self.against is not None else None
        return found is None or found.win

    @property
    def rank(self) -> tuple[bool, float]:
        """Sorts the most suspicious first: by how far it beats honest code; what is not known stands above that."""
        found = self.against.speed_up if self.against is not None else None
        return not self.suspicious, -(math.inf if found is None else found.ratio)


def known_bound(archive: Reading, task: Task, machine_key: str) -> Bound:
    """The fastest confirmed candidate of this task's honest runs on such a machine; without one, the reference."""
    found = Bound(reference(task), "the reference itself, for no honest run has a confirmed win", 1.0)
    for record in archive.runs():
        same = record.task_hash == task.hash and record.machine_key == machine_key
        # An attack has no best.
        best = archive.best(record) if same and aim_of(record.settings).claims else None
        if best is None:
            continue
        trial = archive.trial(best.trial)
        confirmed = trial.confirmation.speed_up if trial.confirmation is not None else None
        if confirmed is not None and confirmed.win and confirmed.ratio > found.ratio:
            found = Bound(archive.candidate(best.hash), f"trial {trial.number} of run {record.name}", confirmed.ratio)
    return found


def named_bound(judge: Comparing, candidate: Candidate, source: str) -> Bound:
    """The bound that the task's author names; it must be right, or it bounds nothing."""
    verdict = judge.judge(candidate)
    if verdict.speed_up is None:
        raise TaskError(
            f"the honest code in {source} is judged '{verdict.outcome}' ({verdict.reason}): "
            "name code that passes `outpace try`"
        )
    return Bound(candidate, source, verdict.speed_up.ratio)


def compare_wins(run: Run, judge: Comparing, bound: Bound, say: Callable[[str], None]) -> None:
    """Time every win against the bound that was not yet, and keep what came of it; noise is tried again later."""
    archive, known = run.archive, run.archive.notes(run.record)
    for each in run.wins():
        if (key := _key(bound, each.hash)) in known:
            continue
        say(f"timing trial {archive.trial(each.trial).number} against the honest bound")
        candidate = archive.candidate(each.hash)
        verdict = run.patiently(candidate, lambda one: judge.compare(one, bound.candidate))
        if verdict.outcome is not Outcome.TOO_NOISY:
            run.note(key, dataclasses.asdict(Against(verdict.outcome, verdict.reason, verdict.speed_up)))


def found_wins(run: Run, bound: Bound) -> list[Win]:
    """Every win of the attack, most suspicious first."""
    archive, known = run.archive, run.archive.notes(run.record)
    wins = []
    for each in run.wins():
        trial = archive.trial(each.trial)
        wins.append(Win(trial.number, each.hash, each.ratio, trial.design, _against(known.get(_key(bound, each.hash)))))
    return sorted(wins, key=lambda win: (win.rank, win.trial))


def _key(bound: Bound, candidate: str) -> str:
    # By both: better honest code found meanwhile is another question.
    return f"{candidate} against {bound.candidate.hash}"


def _against(kept: dict[str, Any] | None) -> Against | None:
    if kept is None:
        return None
    found = kept["speed_up"]
    return Against(kept["outcome"], kept["reason"], None if found is None else SpeedUp(**found))
