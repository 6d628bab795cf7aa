"""Doubts: answers that only the reference's own movement can excuse, looked into many at a time.

An element that cancels to nearly nothing may be further off than the tolerance allows and still be right. The reference
is then asked how far it moves there when its inputs move by a rounding step. Every doubt is looked into: were some let
pass by chance, a candidate could make all of its answers a little doubtful and hide a few wrong ones among them. So the
questions of a turn's doubts go to one process together.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.domains.base import Domain, Input
from outpace.errors import HarnessError, TaskError
from outpace.judge.compare import brief, difference
from outpace.judge.inputs import checked
from outpace.judge.nudge import NUDGES, variants
from outpace.judge.patience import Patience
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed

# The doubts of one turn may take the reference this long; of calls so slow that they take longer, some are drawn by
# chance, and never fewer than so many.
SECONDS, FEWEST = 2.0, 8
# Variants that are asked about at once take no more memory than this, answers included.
BYTES = 64 << 20
# Doubts of a verdict that are looked into once more, in a process of their own, where the first look excused nothing.
# Honest ones need that seldom; whoever wants the judge busy gets no more of it.
AGAIN = 64


@dataclass(frozen=True)
class Doubt:
    """An answer that is wrong unless the reference moves a great deal at this input."""

    given: Input
    answer: Any
    expected: Any


class Doubts:
    """The doubts of one verdict."""

    def __init__(self, domain: Domain, ask: Callable[[Sequence[Input]], list[Any]], rng: np.random.Generator) -> None:
        """`ask` gives the reference's answers to some inputs."""
        self._domain = domain
        self._ask = ask
        self._rng = rng
        self._again = AGAIN
        self._patience = Patience()
        # The ids of inputs that are edge cases.
        self.edges: set[int] = set()

    def check(self, given: Input, answer: Any, expected: Any) -> Doubt | None:
        """Refuse a wrong answer; a doubtful one is returned, and has to be settled."""
        doubts: list[Doubt] = []

        def doubt() -> None:
            doubts.append(Doubt(given, answer, expected))

        _refuse(given, checked(self._domain, given, answer, expected, doubt, self._patience))
        return doubts[0] if doubts else None

    def settle(self, doubts: Sequence[Doubt], seconds: float, size: int) -> None:
        """Refuse those that the reference does not excuse; it takes so long over a call, which has so many bytes."""
        most = max(int(SECONDS / (NUDGES * seconds)), FEWEST)
        if len(doubts) > most:
            # Edge cases always: they are there because something goes wrong at them.
            drawn = set(self._rng.permutation(len(doubts))[:most].tolist())
            doubts = [doubt for at, doubt in enumerate(doubts) if at in drawn or id(doubt.given) in self.edges]
        together = max(BYTES // (NUDGES * max(size, 1)), 1)
        for begin in range(0, len(doubts), together):
            some = doubts[begin : begin + together]
            for doubt, moved in zip(some, self._movements(some), strict=True):
                self._settle(doubt, moved)

    def moved(self, given: Input) -> list[Any]:
        """How the reference answers when the floating numbers of this input move by one rounding step.

        A step may take a number over a bound that the reference relies on; it then shows no movement.
        """
        with contextlib.suppress(TaskError, HarnessError):
            return self._ask(variants(given, self._rng))
        return []

    def _settle(self, doubt: Doubt, moved: list[Any]) -> None:
        first = iter([moved])

        def look() -> list[Any]:
            found = next(first, None)
            if found is not None:
                return found
            self._again -= 1
            return self._movements([doubt])[0] if self._again >= 0 else []

        said = checked(self._domain, doubt.given, doubt.answer, doubt.expected, look, self._patience)
        _refuse(doubt.given, said)

    def _movements(self, doubts: Sequence[Doubt]) -> list[list[Any]]:
        """What the reference says to variants of each, asked in one process; one by one where that fails.

        The input itself is asked too. Where the answer is another one than before, the reference remembers what it was
        asked, and how its answers differ says nothing about rounding.
        """
        asked = [[doubt.given, *variants(doubt.given, self._rng)] for doubt in doubts]
        with contextlib.suppress(TaskError, HarnessError):
            answers = iter(self._ask(list(itertools.chain.from_iterable(asked))))
            found, rule = [], self._domain.task.checking
            for doubt in doubts:
                same, *moved = itertools.islice(answers, 1 + NUDGES)
                found.append([] if difference(doubt.expected, same, rule.tolerance, floor=rule.floor) else moved)
            return found
        # A step may take a number over a bound that the reference relies on; it then shows no movement.
        return [[]] if len(doubts) == 1 else [self._movements([each])[0] for each in doubts]


def _refuse(given: Input, reason: str) -> None:
    if reason:
        raise Failed(Outcome.WRONG, f"{reason}; input: {brief(dict(given), 160)}")
