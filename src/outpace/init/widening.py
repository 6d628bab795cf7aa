"""Widening: the widest values that a Python reference takes; narrower ones alone would let narrow candidates win.

All is drawn as wide as it can be at first. Where that fails, the narrowest values say whether the kinds are right at
all, and then each argument by itself shows how wide it may be: one that counts something keeps no other one small.
In the end the same is asked of the form of them all, such as lengths that differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from outpace.errors import HarnessError, TaskError
from outpace.init.forms import Form
from outpace.init.rehearsal import LONG, TURN, Rehearsal, Rehearsed, fit_size
from outpace.init.skeleton import Skeleton
from outpace.judge.compare import nonfinite
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed
from outpace.task import Task
from outpace.task.file import make_task

# A call that takes longer on wide values than this many seconds counts something with them.
BRISK = 0.5
# What a reference takes it must always take: as many more inputs as this time is enough for.
_STEADY_SECONDS = 0.5
# A rare call of so many times the usual length, and too long anyway, would be most of what a figure says.
_UNUSUAL = 30
# Patterns that make calls so many times as long on the whole are too much, for a quarter of them is sorted.
_LONGER = 6


@dataclass(frozen=True)
class Fitted:
    """A skeleton whose size and values fit its reference, what a call takes, and why an argument is no wider."""

    skeleton: Skeleton
    found: Rehearsed
    narrowed: Mapping[str, str]
    # The same by matter, for those of which not the widest form works.
    plain: Mapping[str, str] = field(default_factory=dict)

    def notes(self) -> tuple[str, ...]:
        """A sentence for each argument and each form that is narrower than it might be."""
        values = self.skeleton.values
        if values is None:
            return ()
        return (
            *(
                f"'{name}' is made of {values.told(name)} alone, because with {values.at({name: 0}).told(name)} {why}"
                for name, why in self.narrowed.items()
            ),
            *(f"{values.unasked(matter)}, because otherwise {why}" for matter, why in self.plain.items()),
        )


def fitted(rehearsal: Rehearsal, skeleton: Skeleton) -> Fitted:
    """The skeleton at the size, and with the widest values of the widest form, at which its reference can be judged."""
    values = skeleton.values
    if values is not None and (ladders := values.forms()):
        everything = skeleton.drawn(values.shaped(_widest(ladders)))
        made, found = _sized(rehearsal, everything, brisk=True)
        if not found.problem and not (found := _steady(rehearsal, made, found)).problem:
            return Fitted(made, found, {})
    fit = _widened(rehearsal, skeleton)
    return fit if fit.found.problem else _formed(rehearsal, fit)


def _widened(rehearsal: Rehearsal, skeleton: Skeleton) -> Fitted:
    values = skeleton.values
    lowest = values.lowest() if values else {}
    if values is None or not lowest:
        return Fitted(*_sized(rehearsal, skeleton), {})
    wide, found = _sized(rehearsal, skeleton, brisk=True)
    if not found.problem:
        found = _steady(rehearsal, wide, found)
    if not found.problem:
        return Fitted(wide, found, {})
    narrow, base = _sized(rehearsal, skeleton.drawn(values.at(lowest)))
    if base.problem:
        return Fitted(narrow, base, {})
    return _Search(rehearsal, narrow, base, lowest).widest(_why(found))


def tamer(rehearsal: Rehearsal, fit: Fitted, doubts: Sequence[str], part: str = "all") -> Fitted | None:
    """The same with all at its narrowest, or the "named" arguments or the "form" alone; None where it is already.

    A reference may take large numbers and do nothing with them, such as a window wider than the list.
    """
    values = fit.skeleton.values
    if values is None:
        return None
    steps = {
        name: step
        for name, step in values.lowest().items()
        if values.steps.get(name, 0) < step
        and (part == "all" or (part == "named" and any(f"'{name}'" in doubt for doubt in doubts)))
    }
    ladders = {} if part == "named" else values.forms()
    matters = [each for each, ladder in ladders.items() if values.form.choice(each) != ladder[-1]]
    if not steps and not matters:
        return None
    tame = values.at(steps).shaped(values.form.but({each: ladders[each][-1] for each in matters}))
    skeleton, found = _sized(rehearsal, fit.skeleton.drawn(tame))
    why = f"a judge would not notice enough ({doubts[0][:100]}...)"
    narrowed, plain = ({**old, **dict.fromkeys(new, why)} for old, new in ((fit.narrowed, steps), (fit.plain, matters)))
    return None if found.problem else Fitted(skeleton, found, narrowed, plain)


def _widest(ladders: Mapping[str, Sequence[str]]) -> Form:
    return Form().but({matter: ladder[0] for matter, ladder in ladders.items()})


def _formed(rehearsal: Rehearsal, fit: Fitted) -> Fitted:
    """The same in the widest form that the reference takes: all that is widest, or one matter after the other."""
    values = fit.skeleton.values
    ladders = values.forms() if values else {}
    if values is None or not ladders:
        return fit

    def in_form(form: Form) -> Fitted:
        skeleton = fit.skeleton.drawn(values.shaped(form))
        found = rehearsal.rehearse(_task(skeleton, brisk=True))
        return Fitted(skeleton, found if found.problem else _steady(rehearsal, skeleton, found), fit.narrowed)

    widest = in_form(_widest(ladders))
    if not widest.found.problem:
        return widest
    form, best = Form(), fit
    why: dict[str, str] = {}
    for matter, (*wider, _) in ladders.items():
        for choice in wider:
            tried = widest if len(ladders) == 1 and choice == wider[0] else in_form(form.but({matter: choice}))
            if not tried.found.problem:
                form, best = form.but({matter: choice}), tried
                break
            why.setdefault(matter, _why(tried.found))
    return replace(best, plain=why)


class _Search:
    """How wide each argument may be, found out at the size that fits the narrowest values."""

    def __init__(self, rehearsal: Rehearsal, narrow: Skeleton, base: Rehearsed, lowest: Mapping[str, int]) -> None:
        assert narrow.values is not None
        self.rehearsal, self.narrow, self.base, self.lowest = rehearsal, narrow, base, lowest
        self.values = narrow.values
        self.steps = dict(lowest)
        self.why: dict[str, str] = {}

    def widest(self, why: str) -> Fitted:
        """The widest values with which all goes well; `why` it does not with the widest of all arguments."""
        for name, lowest in self.lowest.items():
            for step in range(lowest):
                failed = self._fails({**self.lowest, name: step})
                if not failed:
                    self.steps[name] = step
                    break
                self.why.setdefault(name, failed)
        alone = dict(self.steps)
        # Together they may still be too much for it, as large factors are.
        while self.steps != self.lowest:
            skeleton, found = _sized(self.rehearsal, self._drawn(self.steps), brisk=True)
            if not found.problem:
                found = _steady(self.rehearsal, skeleton, found)
            if not found.problem:
                skeleton, found = self._raised(alone, skeleton, found)
                return Fitted(skeleton, found, self._narrowed(why))
            why = _why(found)
            self.steps = {name: min(step + 1, self.lowest[name]) for name, step in self.steps.items()}
        return Fitted(self.narrow, self.base, self._narrowed(why))

    def _raised(self, alone: Mapping[str, int], skeleton: Skeleton, found: Rehearsed) -> tuple[Skeleton, Rehearsed]:
        """The same with each argument as wide as it may be alone, where it was another one that was too wide."""
        lowered = [name for name, step in self.steps.items() if step > alone[name]]
        for name in lowered if len(lowered) > 1 else []:
            wider = skeleton.drawn(self.values.at({**self.steps, name: alone[name]}))
            again = self.rehearsal.rehearse(_task(wider, brisk=True))
            if not again.problem and not (again := _steady(self.rehearsal, wider, again)).problem:
                self.steps[name] = alone[name]
                skeleton, found = wider, again
        return skeleton, found

    def _narrowed(self, why: str) -> dict[str, str]:
        return {name: self.why.get(name, why) for name, step in self.steps.items() if step}

    def _drawn(self, steps: Mapping[str, int]) -> Skeleton:
        return self.narrow.drawn(self.values.at(steps))

    def _fails(self, steps: Mapping[str, int]) -> str:
        found = self.rehearsal.weakness(_task(self._drawn(steps), brisk=True))
        return _why(found) if found.problem else ""


def _sized(rehearsal: Rehearsal, skeleton: Skeleton, *, brisk: bool = False) -> tuple[Skeleton, Rehearsed]:
    def rehearse(size: int) -> Rehearsed:
        found = rehearsal.rehearse(_task(skeleton.sized(size), brisk=brisk))
        # Smaller inputs make no smaller numbers.
        return replace(found, slow=False) if brisk and size == start else found

    start = skeleton.size
    size, found = fit_size(rehearse, start)
    return skeleton.sized(size), found


def _steady(rehearsal: Rehearsal, skeleton: Skeleton, found: Rehearsed) -> Rehearsed:
    """The same, or a problem where the reference fails on one of many more inputs, or takes far too long over it."""
    always = skeleton.patterned(1.0)
    found, usual = _turned(rehearsal, skeleton, found)
    if found.problem or always.judge == skeleton.judge:
        return found
    # Patterns are rare in the calls as they are made, and what a reference fails on may be rare among these.
    found, taken = _turned(rehearsal, always, found)
    if not found.problem and taken > _LONGER * usual > 0:
        return Rehearsed(problem=f"calls take {taken / usual:.0f} times as long")
    return found


def _turned(rehearsal: Rehearsal, skeleton: Skeleton, found: Rehearsed) -> tuple[Rehearsed, float]:
    """The same or a problem, and the seconds of a call."""
    try:
        answers, times = rehearsal.turns(_task(skeleton, brisk=True), _STEADY_SECONDS)
    except (TaskError, HarnessError, Failed) as error:
        return Rehearsed(problem=str(error)), 0.0
    if odd := next((reason for reason in map(nonfinite, answers) if reason), ""):
        return Rehearsed(problem=f"the reference's own {odd}"), 0.0
    longest = max(times, default=0.0) - float(np.median(times or [0.0]))
    usual = sum(times) / max(len(times) * TURN, 1)
    if longest > max(LONG, _UNUSUAL * usual):
        found = Rehearsed(problem=f"a call in {len(answers)} takes {longest / usual:.0f} times as long as others")
    return found, usual


def _why(found: Rehearsed) -> str:
    if found.slow or Outcome.TIMED_OUT in found.problem:
        return f"a call takes more than {BRISK:g} s"
    words = " ".join(found.problem.split("; ")[0].split()).replace(f"{Outcome.WRONG}: ", "the reference's own ", 1)
    inner = re.search(r"\(?crashed\)?: (?:line \d+: )?(.*)$", words)
    return f"the reference fails ({inner[1][:160]})" if inner else words[:140]


def _task(skeleton: Skeleton, *, brisk: bool) -> Task:
    task = make_task(Path(skeleton.name), dict(skeleton.files))
    return replace(task, limits=replace(task.limits, seconds=min(task.limits.seconds, BRISK))) if brisk else task
