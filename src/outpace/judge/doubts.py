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
from outpace.judge.blank import POISON
from outpace.judge.compare import brief, difference
from outpace.judge.drawn_doubts import Doubt, DrawnDoubts
from outpace.judge.inputs import checked
from outpace.judge.nudge import NUDGES, variants
from outpace.judge.patience import Patience
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed

# Variants that are asked about at once take no more memory than this, answers included.
BYTES = 64 << 20


class Doubts:
    """The doubts of one verdict."""

    def __init__(self, domain: Domain, ask: Callable[[Sequence[Input]], list[Any]], rng: np.random.Generator) -> None:
        """`ask` gives the reference's answers to some inputs."""
        self._domain = domain
        self._ask = ask
        self._rng = rng
        self._kept = DrawnDoubts(rng)
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

    def keep(self, doubt: Doubt, seconds: float) -> None:
        """Keep a doubt until the pair has ended; the reference takes about so long over a call.

        Edge cases are looked into always: they are there because something goes wrong at them.
        """
        self._kept.add(doubt, NUDGES * seconds, always=id(doubt.given) in self.edges)

    def settle(self) -> None:
        """Refuse those of the kept ones that the reference does not excuse."""
        for size, doubts in self._kept.taken():
            begin = time.perf_counter()
            self._settle(doubts, max(BYTES // (NUDGES * max(size, 1)), 1))
            self._kept.took(size, (time.perf_counter() - begin) / len(doubts))

    def _settle(self, doubts: Sequence[Doubt], together: int) -> None:
        # What excuses nothing at first may be luck: those are asked about again, all together. Each has its turns,
        # however many there are: were they to run out, honest answers would be refused for being many.
        seen: list[list[list[Any]]] = [[] for _ in doubts]
        waiting = list(range(len(doubts)))
        while waiting:
            moved = self._movements([doubts[at] for at in waiting], together)
            for at, answers in zip(waiting, moved, strict=True):
                seen[at].append(answers)
            waiting = [at for at in waiting if not self._decided(doubts[at], seen[at])]

    def moved(self, given: Input) -> list[Any]:
        """How the reference answers when the floating numbers of this input move by one rounding step.

        A step may take a number over a bound that the reference relies on; it then shows no movement.
        """
        with contextlib.suppress(TaskError, HarnessError):
            return self._ask(variants(given, self._rng))
        return []

    def _decided(self, doubt: Doubt, seen: Sequence[list[Any]]) -> bool:
        """Whether these answers of the reference to variants excuse a doubt; raises Failed where no more would."""
        looks = iter(seen)
        wants_more = False

        def look() -> list[Any] | None:
            nonlocal wants_more
            found = next(looks, None)
            wants_more = found is None
            return found

        _refuse(doubt.given, checked(self._domain, doubt.given, doubt.answer, doubt.expected, look, self._patience))
        return not wants_more

    def _movements(self, doubts: Sequence[Doubt], together: int) -> list[list[Any]]:
        """What the reference says to variants of each, so many asked in one process; half of them where that fails.

        The input itself is asked too. Where the answer is another one than before, the reference remembers what it was
        asked, and how its answers differ says nothing about rounding.
        """
        if len(doubts) > together:
            return [
                *self._movements(doubts[:together], together),
                *self._movements(doubts[together:], together),
            ]
        asked = [[doubt.given, *variants(doubt.given, self._rng)] for doubt in doubts]
        with contextlib.suppress(TaskError, HarnessError):
            answers = iter(self._ask(list(itertools.chain.from_iterable(asked))))
            found, rule = [], self._domain.task.checking
            for doubt in doubts:
                same, *moved = itertools.islice(answers, 1 + NUDGES)
                before = _but_unwritten(doubt.expected, same)
                found.append([] if difference(before, same, rule.tolerance, floor=rule.floor) else moved)
            return found
        # A step may take a number over a bound that the reference relies on; it then shows no movement.
        return [[]] if len(doubts) == 1 else self._movements(doubts, len(doubts) // 2)


def _but_unwritten(expected: Any, same: Any) -> Any:
    """The answer as it would read over a known blank: of small integers that nobody wrote some read as chance."""
    if not isinstance(expected, dict) or not isinstance(same, dict):
        return expected
    shown = dict(expected)
    for name, value in expected.items():
        other = same.get(name)
        if isinstance(value, np.ndarray) and isinstance(other, np.ndarray) and value.dtype.kind in "iub":
            poison = np.frombuffer(bytes([POISON]) * value.itemsize, value.dtype)[0]
            shown[name] = np.where(other == poison, poison, value) if other.shape == value.shape else value
    return shown


def _refuse(given: Input, reason: str) -> None:
    if reason:
        raise Failed(Outcome.WRONG, f"{reason}; input: {brief(dict(given), 160)}")
