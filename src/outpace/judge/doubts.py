"""Doubts: answers that only the reference's own movement can excuse, looked into many at a time.

An element that cancels to nearly nothing may be further off than the tolerance allows and still be right. The reference
is then asked how far it moves there when its inputs move by a rounding step. The doubts of a pair are kept until it has
ended, and their questions go to one process together; of more than there is time for, some are drawn
(`drawn_doubts.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from outpace.domains.base import Domain, Input
from outpace.errors import HarnessError, TaskError
from outpace.judge.compare import brief
from outpace.judge.drawn_doubts import SECONDS, Doubt, DrawnDoubts
from outpace.judge.inputs import checked
from outpace.judge.nudge import NUDGES, Way, variants
from outpace.judge.patience import Patience
from outpace.judge.spots import ROUNDS, Spots
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed

# Variants that are asked about at once take no more memory than this, answers included, unless it be those of one.
BYTES = 128 << 20
# How many variants each turn asks about: two excuse most of what is right, the others are for what is left.
TURNS = (2, NUDGES - 2, *[NUDGES] * (ROUNDS - 1))
# In one turn instead, where there is no more time: so many excuse nearly all that is right.
AT_ONCE = 2 * NUDGES
# When all doubts of a verdict together have been asked about for so many seconds, those of a pair have less time.
PATIENT, HURRIED = 30.0, 0.5
# So many are looked into first, however long that takes, and then as many as there is time for.
FIRST = 4
# A pair's doubts may be asked about so often in vain, each time with another process, because the reference fails.
VAIN = 40


class Doubts:
    """The doubts of one verdict."""

    def __init__(self, domain: Domain, ask: Callable[[Sequence[Input]], list[Any]], rng: np.random.Generator) -> None:
        """`ask` gives the reference's answers to some inputs."""
        self._domain = domain
        self._ask = ask
        self._rng = rng
        self._kept = DrawnDoubts(rng)
        self._patience = Patience()
        self._vain = 0
        # Seconds that all settling took, and when that of this pair should be over.
        self._taken = 0.0
        self._until = 0.0
        # The ids of inputs that are edge cases.
        self.edges: set[int] = set()

    def check(self, given: Input, answer: Any, expected: Any) -> Doubt | None:
        """Refuse a wrong answer; a doubtful one is returned, and has to be settled."""
        doubts: list[Doubt] = []

        def doubt(spots: Spots) -> str:
            doubts.append(Doubt(given, spots))
            return ""

        _refuse(given, checked(self._domain, given, answer, expected, doubt, self._patience))
        return doubts[0] if doubts else None

    def keep(self, doubt: Doubt, seconds: float) -> None:
        """Keep a doubt until the pair has ended; the reference took so long over this call."""
        self._kept.add(doubt, seconds, (1 + TURNS[0]) * seconds, edge=id(doubt.given) in self.edges)

    def settle(self, seconds: float = 0.0) -> None:
        """Refuse those of the kept ones that the reference does not excuse; the pair took so many seconds.

        Where there is no time for all of them, the rest are let pass: to refuse what nobody looked into would refuse
        honest answers for being many.
        """
        waiting, self._vain = self._kept.taken(), 0
        hurried = self._taken >= PATIENT
        begin = time.perf_counter()
        self._until = begin + (HURRIED if hurried else max(seconds, SECONDS))
        done, count = 0, 1 if hurried else FIRST
        while done < len(waiting) and (not done or not self._late):
            together = _fitting(waiting[done : done + count])
            self._settle(together)
            done += len(together)
            left = self._until - time.perf_counter()
            # Half of what there seems to be time for: some are asked about more often.
            count = max(int(left / ((time.perf_counter() - begin) / done) / 2), 1)
        self._taken += time.perf_counter() - begin

    @property
    def _late(self) -> bool:
        return time.perf_counter() > self._until

    def _settle(self, doubts: Sequence[Doubt]) -> None:
        # What excuses nothing at first may be luck: those are asked about again, all together.
        for number, count in enumerate(TURNS, 1):
            hurried = self._late or self._taken >= PATIENT
            asked = self._movements(doubts, AT_ONCE if hurried else count)
            left = []
            for doubt, known in zip(doubts, asked, strict=True):
                reason = doubt.spots.reason()
                enough = number == len(TURNS) or doubt.spots.far or (hurried and doubt.spots.seen >= AT_ONCE)
                if reason and (not known or enough):
                    _refuse(doubt.given, reason)
                left += [doubt] if reason else []
            doubts = left
            if not doubts:
                return

    def moved(self, given: Input) -> list[Any]:
        """How the reference answers when the floating numbers of this input move by one rounding step.

        A step may take a number over a bound that the reference relies on; it then shows no movement.
        """
        with contextlib.suppress(TaskError, HarnessError):
            return self._ask(variants(given, self._rng))
        return []

    def _movements(self, doubts: Sequence[Doubt], count: int) -> list[bool]:
        """Show each doubt the reference's answers to variants, all asked in one process, and say whose could be asked.

        A step may take a number over a bound that the reference relies on. Then all are asked with steps to one side,
        toward zero or away from it, or so that what is in order stays so, and where that fails too in two halves.
        """
        ways: tuple[Way, ...] = ("either", "inward", "outward", "in order")
        for way in ways:
            if self._vain < VAIN and self._asked(doubts, count, way):
                return [True] * len(doubts)
        if len(doubts) == 1 or self._vain >= VAIN or self._late:
            return [False] * len(doubts)
        half = len(doubts) // 2
        return [*self._movements(doubts[:half], count), *self._movements(doubts[half:], count)]

    def _asked(self, doubts: Sequence[Doubt], count: int, way: Way) -> bool:
        """The input itself is asked too. Where the answer is another one than before, the reference remembers what it
        was asked, and how its answers differ says nothing about rounding."""
        if len(doubts) == 1 and (most := max(BYTES // doubts[0].asking - 1, 1)) < count:
            # Answers so large are asked for a few at a time.
            return all(self._asked(doubts, part, way) for part in (most, count - most))
        asked = [[doubt.given, *variants(doubt.given, self._rng, count, way)] for doubt in doubts]
        try:
            answers = iter(self._ask(list(itertools.chain.from_iterable(asked))))
        except (TaskError, HarnessError):
            self._vain += 1
            return False
        for doubt in doubts:
            same, *moved = itertools.islice(answers, 1 + count)
            if doubt.spots.same(same):
                for answer in moved:
                    doubt.spots.see(answer)
        return True


def _fitting(doubts: Sequence[Doubt]) -> list[Doubt]:
    """As many of the first of these as there is memory for at once, one at least."""
    sizes = itertools.accumulate((1 + NUDGES) * each.asking for each in doubts)
    return list(doubts[: max(sum(size <= BYTES for size in sizes), 1)])


def _refuse(given: Input, reason: str) -> None:
    if reason:
        raise Failed(Outcome.WRONG, f"{reason}; input: {brief(dict(given), 160)}")
