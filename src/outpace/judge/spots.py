"""Spots: the numbers of an answer that are off by more than its tolerance, which only the reference's movement excuses.

An element that cancels to nearly nothing may be further off than a tolerance allows and still be right. How far the
reference moves there, when its inputs move by a rounding step, tells. Nothing but these numbers is kept of an answer
and of the variants', and no more of them than says enough: however large an answer is, in whatever lists and dicts its
numbers stand, and however wrong it is, to look into it takes little memory and little time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from outpace.judge.flat import Chunk, Flat, Kind, Part, Values, flat, label
from outpace.judge.nudge import NUDGES

# How many times its own movement an element may be off. A sum of n numbers in another order errs by up to the root of n
# times as much as a rounding step of each of them moves it: some twenty times were seen for sums of 40,000 that cancel.
# 64 steps are still more than a hundred times finer than the next coarser type.
MOVEMENTS = 64
# What is smaller than so many rounding steps of the largest number of an output is rounding, whatever it looks like.
ROUNDINGS = 128
# What is further off than so many times what any movement that was seen could excuse is not asked about again.
FAR = 10
# The largest of some movements in quarters of them: of errors like those of a sum it is about six times what a quarter
# of them stays below.
QUARTILES = 6
# How often the reference is asked anew before an answer counts as wrong: an element that hardly moved was mostly luck.
ROUNDS = 12
# Of more numbers of one type half are the furthest off, and half are drawn by chance: what is wrong in one element of
# a thousand is met.
MOST = 1 << 14
_SINGLE_STEP = float(np.finfo(np.float32).eps)
# About what it takes to name the place of a number.
_PLACE_BYTES = 64

Numbers = npt.NDArray[np.float64]
# An error beside the largest number of its output, so that outputs can be compared: 1 where all of that is 0. Then the
# error itself.
Distance = tuple[float, float]


class Spot:
    """The numbers in doubt of one kind; of complex ones those of one part, "real" or "imag"."""

    def __init__(
        self, kind: Kind, part: str, expected: Part, got: Values, allowed: Numbers, bad: npt.NDArray[np.bool_]
    ) -> None:
        """`allowed` is what may be off without any excuse, and `bad` are those that are off by more."""
        self._kind, self._part = kind, part
        right = _of(expected.values, part)
        self.count, self._whole = int(bad.sum()), right.size
        self.places = _drawn(np.flatnonzero(bad), right, got, allowed)
        self._chunks, self._starts = _places(expected, self.places)
        with np.errstate(all="ignore"):
            outputs, scales = expected.outputs(), np.zeros(int(np.iinfo(np.int8).max) + 1)
            sizes = np.abs(right.astype(np.float64))
            np.maximum.at(scales, outputs, np.where(np.isfinite(sizes), sizes, 0.0))
            self.outputs = outputs[self.places]
            self._scales = scales[self.outputs]
            self.type, self.expected, self.got = right.dtype, right[self.places], got[self.places]
            self.allowed = np.broadcast_to(allowed, right.shape)[self.places]
            self.right, self.found = self.expected.astype(np.float64), self.got.astype(np.float64)
            self.error = np.abs(self.found - self.right)
            # What is no larger may be the rounding of the numbers that such a one was made of.
            self._rounding = ROUNDINGS * float(np.finfo(self.type).eps) * self._scales
            # Which of them are numbers that a float32 can hold, in every answer so far.
            self.single = self.right.astype(np.float32) == self.right
        self.rows: list[Numbers] = []

    def of(self, answer: Flat) -> Numbers:
        """The same numbers of another answer of this form."""
        return np.asarray(_of(answer.parts[self._kind].values, self._part)[self.places].astype(np.float64))

    def see(self, answer: Flat) -> None:
        """Take note of the reference's answer to another variant."""
        with np.errstate(all="ignore"):
            row = self.of(answer)
            self.single &= row.astype(np.float32) == row
            # What became infinite, or ceased to be a number, tells nothing.
            self.rows.append(np.where(np.isfinite(row), row, self.right))

    def same(self, answer: Flat) -> bool:
        """Whether another answer to the same input has the same numbers here."""
        row = self.of(answer)
        with np.errstate(all="ignore"):
            alike = (row == self.right) | (np.isnan(row) & np.isnan(self.right))
            return bool((alike | (np.abs(row - self.right) <= self.allowed)).all())

    def wrong(self, step: float) -> tuple[npt.NDArray[np.bool_], Numbers]:
        """Which of them are wrong as far as is known, and what each may be off; `step` is that of the inputs."""
        with np.errstate(all="ignore"):
            error, allowed = self.error, self.allowed
            if self.rows:
                stack, share = np.stack(self.rows), self._share(step)
                movement, jumps = _movement(self.right, stack, self._rounding)
                allowed = allowed + MOVEMENTS * share * movement
                nearest = np.minimum(error, np.abs(stack - self.found).min(axis=0))
                error = np.where(jumps | (share == 1), nearest, error)
            return ~(np.isfinite(self.right) & np.isfinite(error) & (error <= allowed)), allowed

    def far(self, step: float) -> bool:
        """Whether one of them is further off than any movement of many could excuse."""
        if len(self.rows) < NUDGES:
            return False
        with np.errstate(all="ignore"):
            stack = np.stack(self.rows)
            most = np.abs(stack - self.right).max(axis=0)
            beyond = self.allowed + FAR * MOVEMENTS * self._share(step) * most
            nearest = np.minimum(self.error, np.abs(stack - self.found).min(axis=0))
            return bool(((most > 0) & (nearest > beyond)).any())

    def reason(self, told: Callable[[float], str], step: float) -> str:
        """Which of them is wrong, if one is."""
        bad, allowed = self.wrong(step)
        if not bad.any():
            return ""
        first = int(np.argmax(bad))
        place = int(self.places[first])
        at = int(np.searchsorted(self._starts, place, "right")) - 1
        chunk = self._chunks[at]
        index = [int(each) for each in np.unravel_index(place - int(self._starts[at]), chunk.shape)] or ""
        count = int(bad.sum()) if len(self.places) == self.count else self.count
        many = (
            f"{count} of {self._whole} {'elements' if chunk.shape else 'numbers'} differ, " if self._whole > 1 else ""
        )
        part = f".{self._part}" if self._part else ""
        return (
            f"{label(chunk.path)}{part}{index} is {self.got[first].item()!r} where {self.expected[first].item()!r} "
            f"is expected ({many}{told(float(allowed[first]))})"
        )

    def _share(self, step: float) -> Numbers:
        """How much of the movement counts: all, unless the inputs moved by a coarser step than the answers have."""
        # A C function's float arrives as a double that a float32 can hold.
        own = np.where(self.single & (self.type == np.float64), _SINGLE_STEP, float(np.finfo(self.type).eps))
        return np.minimum(1.0, own / step) if step else np.ones(len(own))

    @property
    def hopeless(self) -> bool:
        """Whether no movement could excuse it: what is not finite, or overflows."""
        return not bool((np.isfinite(self.right) & np.isfinite(self.error)).all())

    def distances(self) -> dict[int, Distance]:
        """By output how far off the number is that is furthest off."""
        found: dict[int, Distance] = {}
        with np.errstate(all="ignore"):
            beside = np.nan_to_num(self.error / (self.error + self._scales), nan=1.0)
        for output in np.unique(self.outputs):
            there = self.outputs == output
            found[int(output)] = float(beside[there].max()), float(self.error[there].max())
        return found

    @property
    def nbytes(self) -> int:
        return len(self.places) * (8 * 8 + (_PLACE_BYTES if len(self._chunks) > 1 else 0))


class Spots:
    """All numbers of an answer that are in doubt."""

    def __init__(self, whole: Flat, spots: Sequence[Spot], told: Callable[[float], str], step: float = 0.0) -> None:
        """`whole` is the right answer, `told` says what may be off, `step` is the input's coarsest rounding step."""
        self._form, self._spots, self._told, self._step = whole.form, spots, told, step
        # Of all its numbers, about: what another answer takes.
        self.answer_bytes = sum(part.values.nbytes for part in whole.parts.values()) + 8 * len(whole.form)

    def see(self, answer: Any) -> None:
        """Take note of the reference's answer to another variant of the input; one of another form tells nothing."""
        made = flat(answer)
        if made.form == self._form:
            for spot in self._spots:
                spot.see(made)

    def same(self, answer: Any) -> bool:
        """Whether the reference answers the same here when it is asked the same again."""
        made = flat(answer)
        return made.form == self._form and all(spot.same(made) for spot in self._spots)

    def reason(self) -> str:
        """Which number is wrong, as far as is known now; "" where all are excused."""
        return next((reason for spot in self._spots if (reason := spot.reason(self._told, self._step))), "")

    @property
    def far(self) -> bool:
        """Whether a number is so far off that to ask more would change nothing."""
        return any(spot.far(self._step) for spot in self._spots)

    @property
    def seen(self) -> int:
        """How many variants have been seen."""
        return min(len(spot.rows) for spot in self._spots)

    @property
    def hopeless(self) -> bool:
        """Whether no movement could excuse them all."""
        return any(spot.hopeless for spot in self._spots)

    @functools.cached_property
    def distances(self) -> dict[int, Distance]:
        """How far off the furthest number of each output is; more is further."""
        found: dict[int, Distance] = {}
        for spot in self._spots:
            for output, distance in spot.distances().items():
                found[output] = max(found.get(output, distance), distance)
        return found

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        return sum(spot.nbytes for spot in self._spots)


def _of(values: Values, part: str) -> Values:
    return np.asarray(getattr(values, part)) if part else values


def _drawn(places: npt.NDArray[np.intp], expected: Values, found: Values, allowed: Numbers) -> npt.NDArray[np.intp]:
    if len(places) <= MOST:
        return places
    with np.errstate(all="ignore"):
        right, got = expected[places].astype(np.float64), found[places].astype(np.float64)
        beyond = np.abs(got - right) / (np.broadcast_to(allowed, expected.shape)[places] + 1e-300)
    furthest = np.argpartition(np.nan_to_num(beyond, nan=np.inf), -MOST // 2)[-MOST // 2 :]
    # Anew each time: which elements were looked at must not be known beforehand.
    others = np.random.default_rng().choice(len(places), MOST // 2, replace=False)
    return places[np.union1d(furthest, others)]


def _places(whole: Part, places: npt.NDArray[np.intp]) -> tuple[list[Chunk], npt.NDArray[np.intp]]:
    """Where these numbers stand: their chunks, without the numbers, and where each of those begins."""
    starts = whole.starts()
    kept = np.unique(np.searchsorted(starts, places, "right") - 1)
    chunks = [whole.chunks[at] for at in kept]
    return [Chunk(each.path, each.output, None, each.shape, each.count) for each in chunks], starts[kept]


def excused_by(ask: Callable[[], Sequence[Any]]) -> Callable[[Spots], str]:
    """Ask the reference for answers to variants until they excuse what is in doubt, or often enough."""

    def excuse(spots: Spots) -> str:
        reason = spots.reason()
        for _ in range(ROUNDS):
            for answer in ask():
                spots.see(answer)
            reason = spots.reason()
            if not reason or spots.far:
                break
        return reason

    return excuse


def _movement(right: Numbers, stack: Numbers, rounding: Numbers) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """How far each element moves, and whether it jumps: as far as it does in most variants.

    Where the reference jumps, as rounding does at a half, it stays in some variants and jumps in others. An answer may
    then be what it is on either side, but not off by many jumps. An element that cancels moves by so few steps of the
    larger numbers it was made of that it often stays too; but it moves to both sides, and a jump to one, or by no more
    than `rounding`. Of few variants nobody can tell: then the least movement counts.
    """
    distances = np.abs(stack - right)
    if len(stack) < NUDGES:
        return distances.min(axis=0), np.zeros(right.shape, bool)
    usual = np.percentile(distances, 25, axis=0)
    sides = np.sign(stack - right)
    step = np.where(distances > 0, distances, np.inf).min(axis=0)
    both = (sides > 0).any(axis=0) & (sides < 0).any(axis=0)
    steps = (usual == 0) & np.isfinite(step) & (both | (step <= rounding))
    movement = np.where(steps, step, np.minimum(distances.max(axis=0), QUARTILES * usual))
    return np.asarray(movement, float), (usual == 0) & ~steps & np.isfinite(step)
