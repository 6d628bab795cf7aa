"""Spots: the numbers of an answer that are off by more than its tolerance, which only the reference's movement excuses.

An element that cancels to nearly nothing may be further off than a tolerance allows and still be right. How far the
reference moves there, when its inputs move by a rounding step, tells. Nothing but these numbers is kept of an answer
and of the variants', and no more of them than says enough: however large an answer is, and however wrong, to look into
it takes little memory and little time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from outpace.judge.nudge import NUDGES

# How many times its own movement an element may be off. A sum of n numbers in another order errs by up to the root of n
# times as much as a rounding step of each of them moves it: some twenty times were seen for sums of 40,000 that cancel.
# 64 steps are still more than a hundred times finer than the next coarser type.
MOVEMENTS = 64
# The largest of some movements in quarters of them: of errors like those of a sum it is about six times what a quarter
# of them stays below.
QUARTILES = 6
# How often the reference is asked anew before an answer counts as wrong: an element that hardly moved was mostly luck.
ROUNDS = 12
# Of more numbers of one array half are the furthest off, and half are drawn by chance: what is wrong in one element of
# a thousand is met.
MOST = 1 << 14
# Outputs that are told apart.
OUTPUTS = 16
_SINGLE_STEP = float(np.finfo(np.float32).eps)

Numbers = npt.NDArray[np.float64]
Values = npt.NDArray[Any]
# What leads to a part of an answer: a key, or an index and how long that list is.
Step = str | tuple[int, int]
Form = Literal["array", "list", "number"]


@dataclass
class Leaf:
    """The numbers in doubt of one array, list or number, which `where` names."""

    path: tuple[Any, ...]
    where: str
    form: Form
    part: str  # "real" or "imag" of complex numbers
    expected: Values
    got: Values
    # What may be off without any excuse, and which are off by more.
    allowed: Numbers
    bad: npt.NDArray[np.bool_]
    told: Callable[[float], str]
    rows: list[Numbers] = field(default_factory=list)

    def __post_init__(self) -> None:
        whole = self.expected
        self.shape, self.type, self.count = whole.shape, whole.dtype, int(self.bad.sum())
        with np.errstate(all="ignore"):
            self.single = whole.dtype == np.float64 and bool((whole.astype(np.float32) == whole).all())
            finite = np.abs(whole.astype(np.float64))
            self.scale = float(finite[np.isfinite(finite)].max(initial=0.0))
            self.places = self._drawn(np.flatnonzero(self.bad))
            self.expected, self.got = (each.reshape(-1)[self.places] for each in (whole, self.got))
            self.allowed = np.broadcast_to(self.allowed, whole.shape).reshape(-1)[self.places]
            self.right, self.found = self.expected.astype(np.float64), self.got.astype(np.float64)
            self.error = np.abs(self.found - self.right)

    def _drawn(self, places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        if len(places) <= MOST:
            return places
        right, got = (each.reshape(-1)[places].astype(np.float64) for each in (self.expected, self.got))
        beyond = np.abs(got - right) / (np.broadcast_to(self.allowed, self.shape).reshape(-1)[places] + 1e-300)
        furthest = np.argpartition(np.nan_to_num(beyond, nan=np.inf), -MOST // 2)[-MOST // 2 :]
        # Anew each time: which elements were looked at must not be known beforehand.
        others = np.random.default_rng().choice(len(places), MOST // 2, replace=False)
        return places[np.union1d(furthest, others)]

    def of(self, answer: Any) -> Numbers | None:
        """The same numbers of another answer; None where that has another form."""
        for step in self.path:
            if isinstance(step, tuple):
                at, length = step
                if not isinstance(answer, list) or len(answer) != length:
                    return None
                answer = answer[at]
            elif isinstance(answer, dict) and step in answer:
                answer = answer[step]
            else:
                return None
        if not self._has_form(answer):
            return None
        whole = np.asarray(answer)
        if self.part:
            whole = getattr(whole, self.part)
        if whole.shape != self.shape or whole.dtype != self.type:
            return None
        return np.asarray(whole.reshape(-1)[self.places].astype(np.float64))

    def _has_form(self, answer: Any) -> bool:
        if self.form == "list":
            return isinstance(answer, list) and set(map(type, answer)) == {float}
        return isinstance(answer, np.ndarray if self.form == "array" else (float, complex, np.inexact))

    def see(self, answer: Any) -> None:
        """Take note of the reference's answer to another variant."""
        with np.errstate(all="ignore"):
            row = self.of(answer)
            if row is not None:
                self.single = self.single and bool((row.astype(np.float32) == row).all())
                # What became infinite, or ceased to be a number, tells nothing.
                self.rows.append(np.where(np.isfinite(row), row, self.right))

    def same(self, answer: Any) -> bool:
        """Whether another answer to the same input has the same numbers here."""
        row = self.of(answer)
        if row is None:
            return False
        with np.errstate(all="ignore"):
            alike = (row == self.right) | (np.isnan(row) & np.isnan(self.right))
            return bool((alike | (np.abs(row - self.right) <= self.allowed)).all())

    def reason(self, step: float) -> str:
        """Which of them is wrong, if one is; `step` is that of the inputs."""
        with np.errstate(all="ignore"):
            error, allowed = self.error, self.allowed
            if self.rows:
                stack = np.stack(self.rows)
                share = self._share(step)
                movement, jumps = _movement(self.right, stack)
                allowed = allowed + MOVEMENTS * share * movement
                nearest = np.minimum(error, np.abs(stack - self.found).min(axis=0))
                error = nearest if share == 1 else np.where(jumps, nearest, error)
            bad = ~(np.isfinite(self.right) & np.isfinite(error) & (error <= allowed))
        if not bad.any():
            return ""
        first = int(np.argmax(bad))
        index = [int(at) for at in np.unravel_index(int(self.places[first]), self.shape)] if self.shape else ""
        count = int(bad.sum()) if len(self.places) == self.count else self.count
        many = f"{count} of {np.prod(self.shape, dtype=int)} elements differ, " if self.shape else ""
        return (
            f"{self.where}{index} is {self.got[first].item()!r} where {self.expected[first].item()!r} is expected "
            f"({many}{self.told(float(allowed[first]))})"
        )

    def _share(self, step: float) -> float:
        """How much of the movement counts: all, unless the inputs moved by a coarser step than the answers have."""
        # A C function's float arrives as a double that a float32 can hold.
        own = _SINGLE_STEP if self.single else float(np.finfo(self.type).eps)
        return min(1.0, own / step) if step else 1.0

    @property
    def hopeless(self) -> bool:
        """Whether no movement could excuse it: what is not finite, or overflows."""
        return not bool((np.isfinite(self.right) & np.isfinite(self.error)).all())

    @property
    def distance(self) -> float:
        """The largest error, relative to the largest number there."""
        worst = float(self.error.max(initial=0.0))
        return worst / self.scale if self.scale and np.isfinite(worst) else worst

    @property
    def nbytes(self) -> int:
        return 6 * self.right.nbytes


@dataclass
class Spots:
    """All numbers of an answer that are in doubt; `step` is the coarsest rounding step of its input."""

    leaves: Sequence[Leaf]
    step: float = 0.0

    def see(self, answer: Any) -> None:
        """Take note of the reference's answer to another variant of the input."""
        for leaf in self.leaves:
            leaf.see(answer)

    def same(self, answer: Any) -> bool:
        """Whether the reference answers the same here when it is asked the same again."""
        return all(leaf.same(answer) for leaf in self.leaves)

    def reason(self) -> str:
        """Which number is wrong, as far as is known now; "" where all are excused."""
        return next((reason for leaf in self.leaves if (reason := leaf.reason(self.step))), "")

    @property
    def hopeless(self) -> bool:
        """Whether no movement could excuse them all."""
        return any(leaf.hopeless for leaf in self.leaves)

    @functools.cached_property
    def distances(self) -> dict[str, float]:
        """How far off the furthest is of each output, of so many at most; more is further."""
        found: dict[str, float] = {}
        for leaf in self.leaves:
            name = leaf.path[0] if leaf.path and isinstance(leaf.path[0], str) else ""
            name = name if name in found or len(found) < OUTPUTS else ""
            found[name] = max(found.get(name, 0.0), leaf.distance)
        return found

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        return sum(leaf.nbytes for leaf in self.leaves)


def excused_by(ask: Callable[[], Sequence[Any]]) -> Callable[[Spots], str]:
    """Ask the reference for answers to variants until they excuse what is in doubt, or often enough."""

    def excuse(spots: Spots) -> str:
        reason = spots.reason()
        for _ in range(ROUNDS):
            for answer in ask():
                spots.see(answer)
            reason = spots.reason()
            if not reason:
                break
        return reason

    return excuse


def _movement(right: Numbers, stack: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """How far each element moves, and whether it jumps: as far as it does in most variants.

    Where the reference jumps, as rounding does at a half, it stays in some variants and jumps in others. An answer may
    then be what it is on either side, but not off by many jumps. An element that cancels moves by so few steps of the
    larger numbers it was made of that it often stays too; but it moves to both sides, and a jump to one. Of few
    variants nobody can tell: then the least movement counts.
    """
    distances = np.abs(stack - right)
    if len(stack) < NUDGES:
        return distances.min(axis=0), np.zeros(right.shape, bool)
    usual = np.percentile(distances, 25, axis=0)
    sides = np.sign(stack - right)
    step = np.where(distances > 0, distances, np.inf).min(axis=0)
    steps = (usual == 0) & (sides > 0).any(axis=0) & (sides < 0).any(axis=0) & np.isfinite(step)
    movement = np.where(steps, step, np.minimum(distances.max(axis=0), QUARTILES * usual))
    return np.asarray(movement, float), (usual == 0) & ~steps & np.isfinite(step)
