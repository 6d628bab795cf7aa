"""The gallery: which pictures a run gets, each with a title that says what is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from outpace.report import draw, figures
from outpace.report.ablation import read_findings
from outpace.report.draw import Chart, Look
from outpace.report.facts import Facts
from outpace.report.figures import Row, times
from outpace.report.scale import SLOWEST


@dataclass(frozen=True)
class Picture:
    """One picture, yet to be drawn in some look."""

    name: str
    title: str
    caption: str
    draw: Callable[[Look], Chart]

    def svg(self) -> str:
        """For the page: a wide and a narrow one, of which the style sheet shows the one that fits."""
        return "".join(draw.as_svg(self.draw(look), look) for look in (draw.WIDE, draw.NARROW))

    def png(self) -> bytes:
        """A file of its own."""
        return draw.as_png(self.draw(draw.PRINTED), draw.PRINTED, self.title)


def pictures(facts: Facts) -> list[Picture]:
    """Every picture that there is something to show in."""
    last = max((trial.number for trial in facts.trials), default=0)
    made = (
        _best(facts, last), _timings(facts), _ablation(facts), _verdicts(facts, last),
        _lineage(facts, last), _contrast(facts), _costs(facts, last),
    )  # fmt: skip
    return [picture for picture in made if picture is not None]


def _best(facts: Facts, last: int) -> Picture | None:
    rows = figures.best_so_far(facts.trials)
    if not rows:
        return None
    leader = next((row for row in reversed(rows) if row["leads"]), None)
    title = "No trial is proven faster than the reference"
    if leader is not None:
        title = f"The best speed-up so far is {times(leader['ratio'])}, of trial {leader['trial']}"
        title += "" if leader["confirmed"] else ", not confirmed yet"
    caption = (
        "Each dot is a candidate that answers correctly; bars are 99% intervals. Only a proven gain lifts the line. "
        "The dashed line is the reference."
    )
    drawn = figures.thinned(rows)
    if len(drawn) < len(rows):
        caption += f" Of {len(rows):,} dots {len(drawn):,} are drawn."
    if any(row["ratio"] < SLOWEST for row in rows):
        caption += f" Slower than {SLOWEST:g}× is drawn at the edge."
    return Picture("best-so-far", title, caption, partial(draw.best_so_far, drawn, last))


def _timings(facts: Facts) -> Picture | None:
    verdict = facts.confirmed
    found = None if verdict is None else verdict.speed_up
    rows = [] if verdict is None else figures.timings(verdict, facts.task)
    if found is None or not rows:
        return None
    above = sum(row["ratio"] > 1 for row in rows)
    title = f"The winner is faster in {above} of {len(rows)} timed buckets"
    caption = (
        f"Each dot is a fresh pair of processes on fresh inputs, timed against each other. "
        f"The band is the 99% interval, {found.low:.3f} to {found.high:.3f}."
    )
    return Picture("timings", title, caption, partial(draw.timings, rows, found.ratio, found.low, found.high))


def _ablation(facts: Facts) -> Picture | None:
    rows = figures.ablation(read_findings(facts.ablation))
    if not rows:
        return None
    caption = (
        "Each change was taken back alone, and the winner timed against what was left. "
        "Changes may overlap, so what they are worth need not multiply to the whole."
    )
    return Picture("ablation", _ablation_title(rows), caption, partial(draw.ablation, rows))


def _ablation_title(rows: list[Row]) -> str:
    measured = [row for row in rows if row["ratio"] is not None]
    top = max(measured, key=lambda row: float(row["ratio"]), default=None)
    if top is None or top["low"] is None or top["low"] <= 1:
        return "No single change of the winner carries the gain alone"
    return f"Change {top['number']} is worth the most: {times(top['ratio'])}"


def _verdicts(facts: Facts, last: int) -> Picture | None:
    rows, counts = figures.verdicts(facts.trials), figures.verdict_counts(facts.trials)
    if not rows:
        return None
    faster = sum(row["count"] for row in counts if row["label"] == figures.FASTER)
    title = f"{faster} of {len(rows)} trials {'was' if faster == 1 else 'were'} faster than the reference"
    drawn = figures.thinned(rows)
    caption = "One stroke for each trial, in the row of its verdict."
    if len(drawn) < len(rows):
        caption += f" Of {len(rows):,} strokes {len(drawn):,} are drawn."
    return Picture("verdicts", title, caption, partial(draw.verdicts, drawn, counts, last))


def _lineage(facts: Facts, last: int) -> Picture | None:
    winner = None if facts.winner is None else facts.winner.hash
    rows = figures.lineage(facts.trials, winner)
    if len(rows) < 2:
        return None
    steps = sum(row["winning"] for row in rows)
    title = (
        f"The winner is {steps} {'step' if steps == 1 else 'steps'} away from the reference"
        if steps
        else "What each candidate was made from"
    )
    caption = "Lines join a candidate to the one it was made from; trial 0 is the reference."
    if steps:
        caption += " The winner's line is in colour."
    if len(rows) >= figures.LINEAGE:
        caption += f" The {figures.LINEAGE} fastest are drawn."
    return Picture("lineage", title, caption, partial(draw.lineage, rows, last))


def _contrast(facts: Facts) -> Picture | None:
    rows = figures.contrast(facts.trials)
    if not rows:
        return None
    top = rows[0]
    title = (
        f"Trial {top['trial']} went {(top['gain'] - 1) * 100:.0f}% beyond the best it was shown"
        if top["gain"] > 1.01
        else "No trial went beyond the best it was shown"
    )
    caption = "The policy compares scored exemplars (rings) before it proposes a candidate (dot)."
    caption += f" The {len(rows)} largest gains." if len(rows) == figures.CONTRASTS else ""
    return Picture("contrast", title, caption, partial(draw.contrast, rows))


def _costs(facts: Facts, last: int) -> Picture | None:
    rows = figures.costs(facts.trials)
    if not rows:
        return None
    totals = {row["measure"]: row["total"] for row in rows}
    spent = ", ".join(f"{total:.3g} {name}" for name, total in totals.items())
    caption = "Added up over the trials; a duplicate is not judged again."
    if any(trial.cost.estimated_calls for trial in facts.trials):
        caption += " Some tokens are estimates, for not every reply told them."
    return Picture("costs", f"Spent: {spent}", caption, partial(draw.costs, rows, last))
