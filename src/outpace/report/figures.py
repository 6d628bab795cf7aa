"""Figures: facts of a run become the rows that each picture is drawn from."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outpace.archive import Trial
from outpace.claims import confirmation
from outpace.judge.accounts import clock, reckon
from outpace.judge.verdict import Outcome, Sample, SpeedUp, Verdict, toward_one
from outpace.report.ablation import Finding
from outpace.report.text import brief
from outpace.task import Task

Row = dict[str, Any]

FASTER, NOT_FASTER, NOT_CONFIRMED = "faster", "not faster", "not confirmed"
_WORDS: Mapping[Outcome, str] = {
    Outcome.TOO_NOISY: "too noisy",
    Outcome.WRONG: "wrong answer",
    Outcome.CRASHED: "crashed",
    Outcome.TIMED_OUT: "timed out",
    Outcome.REFUSED: "over a limit",
    Outcome.BUILD_FAILED: "build failed",
    Outcome.UNUSABLE: "unusable reply",
    Outcome.CHEATING: "cheating",
    Outcome.UNJUDGED: "not judged",
}
# From the best to the worst, which is also the order in which pictures and counts show them.
LABELS = (FASTER, NOT_FASTER, NOT_CONFIRMED, *_WORDS.values())
CONTRASTS = 12
LINEAGE = 300
# More marks than this make a page slow and a picture black.
MARKS = 1000


def words(outcome: str) -> str:
    """An outcome as people read it."""
    return _WORDS.get(Outcome(outcome), outcome)


def times(ratio: float) -> str:
    """A speed-up as people read it, rounded toward 1."""
    return f"{toward_one(ratio):.2f}×"


def label(trial: Trial) -> str:
    """How a judged trial ended, in words; a win that its confirmation did not bear out is not called one."""
    if trial.verdict is None:
        return "open"
    if trial.verdict.outcome is not Outcome.OK:
        return words(trial.verdict.outcome)
    found = trial.verdict.speed_up
    if found is None or not found.win:
        return NOT_FASTER
    return NOT_CONFIRMED if confirmation.failed(trial) else FASTER


def score(trial: Trial) -> SpeedUp | None:
    """The confirmed speed-up where there is one, else the one that was found; None when it is not correct."""
    confirmed = trial.confirmation
    if confirmed is None or confirmed.outcome is Outcome.TOO_NOISY:
        return None if trial.verdict is None else trial.verdict.speed_up
    return confirmed.speed_up


def sentence(trial: Trial) -> str:
    """One line on a trial, for a tooltip."""
    found = score(trial)
    text = f"trial {trial.number}: {label(trial)}"
    if found is not None:
        confirmed = trial.confirmation is not None and trial.confirmation.speed_up is not None
        text += f", {times(found.ratio)} ({found.low:.3f} to {found.high:.3f})"
        return f"{text}, confirmed" if confirmed else text
    reason = trial.verdict.reason if trial.verdict else ""
    return f"{text}: {brief(reason, 80)}" if reason else text


def best_so_far(trials: Sequence[Trial]) -> list[Row]:
    """Every timed trial, and the best proven speed-up by then; the reference is what a run starts from."""
    rows: list[Row] = []
    best = 1.0
    for trial in trials:
        found = score(trial)
        if found is None:
            continue
        leads = label(trial) == FASTER and found.ratio > best
        best = found.ratio if leads else best
        rows.append(
            {
                "trial": trial.number,
                "ratio": found.ratio,
                "low": found.low,
                "high": found.high,
                "leads": leads,
                "confirmed": trial.confirmation is not None and trial.confirmation.outcome is Outcome.OK,
                "best": best,
                "text": sentence(trial),
            }
        )
    return rows


def thinned(rows: Sequence[Row], most: int = MARKS) -> list[Row]:
    """Those that lead and the last, and of the others as many as may be drawn, evenly over the run."""
    every = -(-len(rows) // most) if rows else 1
    return [row for at, row in enumerate(rows) if at % every == 0 or row.get("leads") or at == len(rows) - 1]


def verdicts(trials: Sequence[Trial]) -> list[Row]:
    """Every judged trial with how it ended."""
    return [
        {"trial": trial.number, "label": label(trial), "text": sentence(trial)}
        for trial in trials
        if trial.verdict is not None
    ]


def verdict_counts(trials: Iterable[Trial]) -> list[Row]:
    """How many trials ended in each way, those that occurred, from the best to the worst."""
    counts = Counter(label(trial) for trial in trials if trial.verdict is not None)
    return [{"label": name, "count": counts[name]} for name in LABELS if counts[name]]


def timings(verdict: Verdict, task: Task | None) -> list[Row]:
    """Each bucket's ratio, and the milliseconds per call of both sides; disturbed buckets did not count."""
    if task is None:  # a task that this version cannot read
        return []
    parallel = task.limits.parallel
    account = reckon(verdict.buckets, task)
    rows: list[Row] = []
    for number, (bucket, log) in enumerate(zip(account.buckets, account.ratios, strict=True), 1):
        reference = per_call(bucket.reference.turns, parallel=parallel)
        candidate = per_call(bucket.candidate.turns, parallel=parallel)
        text = f"bucket {number}: {times(math.exp(log))}"
        text += f", {milliseconds(candidate)} per call against {milliseconds(reference)}"
        rows.append(
            {
                "bucket": number,
                "ratio": math.exp(log),
                "reference": reference,
                "candidate": candidate,
                "text": text,
            }
        )
    return rows


def per_call(samples: Sequence[Sample], *, parallel: bool) -> float:
    """Milliseconds per call: of CPU time, or of wall time where several cores may be at work."""
    spent = sum(clock(sample, parallel=parallel) for sample in samples)
    return spent / 1e6 / max(sum(sample.calls for sample in samples), 1)


def milliseconds(value: float) -> str:
    """A short time in the unit that suits it."""
    for unit, size in (("s", 1e3), ("ms", 1.0), ("µs", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} ns"


def median_times(rows: Sequence[Row]) -> tuple[float, float] | None:
    """The medians over buckets of the reference's and the winner's milliseconds per call."""
    if not rows:
        return None
    return statistics.median(row["reference"] for row in rows), statistics.median(row["candidate"] for row in rows)


def lineage(trials: Sequence[Trial], winner: str | None, limit: int = LINEAGE) -> list[Row]:
    """Each correct candidate beside its parent; trial 0 is the reference. The winner's line is marked.

    Where there are more than `limit`, the winner's line and the fastest are kept.
    """
    first: dict[str, Trial] = {}
    for trial in trials:
        if trial.candidate is not None and score(trial) is not None:
            first.setdefault(trial.candidate, trial)
    line = _ancestry(first, winner)
    by_speed = sorted(first.values(), key=lambda trial: -_ratio(trial))
    kept = {trial.candidate for trial in by_speed[:limit]} | line
    rows: list[Row] = []
    for hash_, trial in first.items():
        if hash_ in kept:
            parent = first.get(trial.parent) if trial.parent is not None else None
            rows.append(
                {
                    "trial": trial.number,
                    "ratio": _ratio(trial),
                    "parent": 0 if parent is None else parent.number,
                    "parent_ratio": 1.0 if parent is None else _ratio(parent),
                    "winning": hash_ in line,
                    "text": sentence(trial),
                }
            )
    return rows


def _ancestry(first: Mapping[str, Trial], winner: str | None) -> set[str]:
    line: set[str] = set()
    while winner is not None and winner in first and winner not in line:
        line.add(winner)
        winner = first[winner].parent
    return line


def _ratio(trial: Trial) -> float:
    found = score(trial)
    return 1.0 if found is None else found.ratio


def costs(trials: Sequence[Trial]) -> list[Row]:
    """What had been spent after each trial, one series for each measure that was spent at all."""
    sums = [Spent()]
    for trial in trials:
        sums.append(sums[-1].after(trial))
    rows: list[Row] = []
    for name, read in _measures(sums[-1]).items():
        if read(sums[-1]) > 0:
            after = zip(trials, sums[1:], strict=True)
            rows += [{"trial": trial.number, "measure": name, "total": read(sum_)} for trial, sum_ in after]
    return rows


@dataclass(frozen=True)
class Spent:
    """Seconds, tokens and money up to some trial."""

    judging: float = 0.0
    policy: float = 0.0
    tokens: int = 0
    money: float = 0.0

    def after(self, trial: Trial) -> Spent:
        """With what this trial cost; a duplicate was given a verdict that had been paid for."""
        judged = [trial.confirmation, None if trial.duplicate_of is not None else trial.verdict]
        return Spent(
            self.judging + sum(each.seconds for each in judged if each is not None),
            self.policy + trial.cost.seconds,
            self.tokens + trial.cost.tokens_in + trial.cost.tokens_out,
            self.money + trial.cost.money,
        )


def _measures(total: Spent) -> dict[str, Callable[[Spent], float]]:
    unit, size = ("minutes", 60) if max(total.judging, total.policy) >= 180 else ("seconds", 1)
    return {
        f"{unit} of judging": lambda spent: spent.judging / size,
        f"{unit} of the policy": lambda spent: spent.policy / size,
        "tokens": lambda spent: float(spent.tokens),
        "money": lambda spent: spent.money,
    }


def contrast(trials: Sequence[Trial], limit: int = CONTRASTS) -> list[Row]:
    """Which exemplars a trial was shown, and how far it went beyond the faster; largest gains first."""
    known: dict[str, Trial] = {}
    for trial in trials:
        if trial.candidate is not None and score(trial) is not None:
            known.setdefault(trial.candidate, trial)
    rows: list[Row] = []
    for trial in trials:
        shown = sorted((known[each.hash] for each in trial.asked.shown if each.hash in known), key=_ratio)
        found = score(trial)
        if not shown or found is None:
            continue
        gain = found.ratio / _ratio(shown[-1])
        pair = " and ".join(f"trial {each.number} at {times(_ratio(each))}" for each in shown)
        rows.append(
            {
                "trial": trial.number,
                "slower": _ratio(shown[0]),
                "faster": _ratio(shown[-1]),
                "ratio": found.ratio,
                "gain": gain,
                "text": f"trial {trial.number}: {times(found.ratio)} after seeing {pair}",
            }
        )
    return sorted(rows, key=lambda row: -row["gain"])[:limit]


def ablation(findings: Sequence[Finding]) -> list[Row]:
    """What each change of the winner is worth; those that cannot be left out come without a figure."""
    rows: list[Row] = []
    for each in findings:
        note = ""
        if each.outcome == Outcome.TOO_NOISY:
            note = "too noisy to tell"
        elif each.ratio is None:
            note = f"needed: {words(each.outcome)} without it"
        rows.append(
            {
                "number": each.number,
                "ratio": each.ratio,
                "low": each.low,
                "high": each.high,
                "note": note,
            }
        )
    return rows
