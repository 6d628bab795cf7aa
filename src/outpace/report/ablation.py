"""Ablation: which change of the winner its speed comes from, by taking back one after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from outpace.judge.statistics import EARLY_BUCKETS
from outpace.judge.verdict import Outcome, Verdict
from outpace.report.diff import parts
from outpace.task.candidate import Candidate
from outpace.task.variation import Point


class Comparer(Protocol):
    """Who times one candidate against another: a Judge."""

    def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
        """The verdict on the candidate with the baseline in the reference's place."""
        ...


@dataclass(frozen=True)
class Finding:
    """What the winner is without one of its changes."""

    number: int
    title: str
    # What became of the winner without the change; anything but ok and too_noisy means that it is needed.
    outcome: str
    reason: str = ""
    # How many times faster the winner is than without the change.
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def ablate(
    reference: Candidate,
    winner: Candidate,
    judge: Comparer,
    points: Sequence[Point] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure the winner against itself without each change in turn; the result is what the archive notes."""
    changes = parts(reference, winner, points)
    findings: list[Finding] = []
    # Without its only change the winner is the reference, and that comparison is the claim itself.
    for change in changes if len(changes) > 1 else ():
        progress(f"change {change.number} of {len(changes)}: {change.title}")
        findings.append(_measure(change.number, change.title, change.without, winner, judge))
    return {
        "candidate": winner.hash,
        "changes": len(changes),
        "findings": [dataclasses.asdict(each) for each in findings],
    }


def read_findings(noted: Mapping[str, Any] | None) -> tuple[Finding, ...]:
    """The findings that `ablate` noted."""
    return tuple(Finding(**each) for each in noted["findings"]) if noted else ()


def _measure(number: int, title: str, lessened: Candidate, winner: Candidate, judge: Comparer) -> Finding:
    # The lessened one is the candidate here: it may fail to build or be wrong, and only a candidate's failure is
    # a verdict; a baseline's is an error.
    verdict = judge.compare(lessened, winner)
    found = verdict.speed_up
    if found is None:
        return Finding(number, title, str(verdict.outcome), verdict.reason)
    if found.buckets > EARLY_BUCKETS:
        return Finding(number, title, str(Outcome.OK), "", 1 / found.ratio, 1 / found.high, 1 / found.low)
    # A clear loser is given up after buckets too few for an interval. The other way round it is a clear winner.
    again = judge.compare(winner, lessened)
    worth = again.speed_up
    if worth is None:
        return Finding(number, title, str(Outcome.TOO_NOISY), again.reason)
    return Finding(number, title, str(Outcome.OK), "", worth.ratio, worth.low, worth.high)
