"""The honest baseline: the unchanged reference under the best compiler flags the task allows, so nobody wins by -O3."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from outpace.judge.verdict import Outcome, Verdict
from outpace.task import Task
from outpace.task.candidate import Candidate, in_order, reference, same_sources

# Up to this many combinations every one is tried: three groups of two are 8, and each takes some seconds. Beyond it a
# search that changes one flag at a time must do, and that misses flags which gain only together.
FEW = 12

# One choice of each group of the task's flags.
Choices = tuple[str, ...]


class Comparer(Protocol):
    """Who times: a Judge."""

    def judge(self, candidate: Candidate) -> Verdict:
        """The verdict on a candidate against the task's reference."""
        ...

    def confirm(self, candidate: Candidate, baseline: Candidate | None = None) -> Verdict:
        """The verdict that may be published, against the reference or a baseline in its place."""
        ...

    def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
        """The verdict on a candidate with the baseline in the reference's place."""
        ...


@dataclass(frozen=True)
class Beside:
    """A winner beside the unchanged reference under other flags than the task's."""

    flags: tuple[str, ...]
    # What the flags are worth by themselves; None where the winner is just them, so that its own claim says it.
    alone: Verdict | None
    # The winner against the reference under these flags; None in the same case.
    over: Verdict | None


def beside_best_flags(task: Task, judge: Comparer, winner: Candidate) -> Beside | None:
    """The winner beside the reference under the best flags there are; None where the task's own are the best.

    Where the winner is not proven faster than the unchanged reference under the winner's own flags, those are what it
    stands beside: then the flags explain its gain, even if they were too small a gain to be proven by themselves.
    """
    search = _Search(task, judge)
    own, winners = search.choices(task.build.flags), search.choices(winner.flags)
    unchanged = same_sources(winner, reference(task))
    best = search.best(own, winners, proven=unchanged)
    if unchanged and best == winners:
        return None if winners == own else Beside(winner.flags, None, None)
    over = search.over(winner, best) if best != own else None
    if (over is None or _wins(over)) and winners not in (own, best) and search.works(winners):
        over_its_own = search.over(winner, winners)
        if not _wins(over_its_own):
            best, over = winners, over_its_own
    return None if over is None else search.beside(best, over)


class _Search:
    """A search for the flags that make the unchanged reference fastest.

    A rival is taken only if it is proven faster than the best so far, so the baseline is never one that noise picked.
    """

    def __init__(self, task: Task, judge: Comparer) -> None:
        self._task = task
        self._judge = judge
        # A group of which the task's own flags have none may stay out.
        self._groups = [
            group if set(task.build.flags) & set(group) or "" in group else ("", *group)
            for group in task.build.flag_choices
        ]
        self._verdicts: dict[Choices, Verdict] = {}
        # Whether the first of two was proven faster than the second.
        self._proven: dict[tuple[Choices, Choices], bool] = {}

    def choices(self, flags: Iterable[str]) -> Choices:
        """What these flags choose of each group."""
        given = set(flags)
        return tuple(next((flag for flag in group if flag and flag in given), "") for group in self._groups)

    def best(self, own: Choices, winners: Choices, *, proven: bool) -> Choices:
        """The best choices found; `proven` where a confirmation has shown that the winner's beat the task's own."""
        best = winners if proven else self._better(own, [winners])
        if math.prod(map(len, self._groups)) <= FEW:
            return self._better(best, itertools.product(*self._groups))
        ends = [self._climbed(start) for start in dict.fromkeys([own, winners]) if start == own or self.works(start)]
        return self._better(best, ends)

    def works(self, choices: Choices) -> bool:
        """Whether the reference is right under these: flags such as -ffast-math can make it wrong."""
        if choices not in self._verdicts:
            self._verdicts[choices] = self._judge.judge(self._candidate(choices))
        return self._verdicts[choices].outcome in (Outcome.OK, Outcome.TOO_NOISY)

    def over(self, winner: Candidate, choices: Choices) -> Verdict:
        """The winner timed against the reference under these."""
        return _steady(lambda: self._judge.confirm(winner, self._candidate(choices)))

    def beside(self, choices: Choices, over: Verdict) -> Beside:
        """With what these are worth by themselves, timed anew: they were chosen for being fast."""
        rival = self._candidate(choices)
        return Beside(rival.flags, _steady(lambda: self._judge.confirm(rival)), over)

    def _better(self, best: Choices, rivals: Iterable[Choices]) -> Choices:
        for rival in rivals:
            best = rival if self._beats(rival, best) else best
        return best

    def _climbed(self, best: Choices) -> Choices:
        """From these, one choice at a time until no other is better."""
        tried, before = {best}, None
        while before != best:
            before = best
            for at, group in enumerate(self._groups):
                for option in group:
                    rival = (*best[:at], option, *best[at + 1 :])
                    if rival not in tried:
                        tried.add(rival)
                        best = rival if self._beats(rival, best) else best
        return best

    def _beats(self, rival: Choices, best: Choices) -> bool:
        # Two are timed once: asked again, chance would get another chance.
        if rival == best or (best, rival) in self._proven:
            return False
        if (rival, best) in self._proven:
            return self._proven[rival, best]
        verdict = self._judge.compare(self._candidate(rival), self._candidate(best))
        self._verdicts.setdefault(rival, verdict)
        self._proven[rival, best] = _wins(verdict)
        return _wins(verdict)

    def _candidate(self, choices: Choices) -> Candidate:
        """The unchanged reference under these."""
        return Candidate(reference(self._task).files, in_order(self._task, tuple(filter(None, choices))))


def _steady(time: Callable[[], Verdict]) -> Verdict:
    """A verdict, asked for once more where the machine was too noisy for one."""
    found = time()
    return time() if found.outcome is Outcome.TOO_NOISY else found


def _wins(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.speed_up is not None and verdict.speed_up.win
