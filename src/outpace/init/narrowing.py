"""Narrowing: how far the numbers and texts of a C function may go; less would let narrow candidates win.

Small calls are made under the sanitizers, each in a process of its own. For every argument the widest range comes first
and then the next, until one crashes in no call, takes about as long as ordinary values do, and gives finite answers.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from outpace.domains.base import Input
from outpace.errors import TaskError
from outpace.init.judge_text import SIZE, room
from outpace.init.ranges import TOGETHER, Limits, limits, told
from outpace.init.rehearsal import Rehearsal
from outpace.init.sanitizers import NOT_FINITE, TOO_LONG, sentence
from outpace.init.skeleton import Skeleton
from outpace.init.widening import Fitted, fitted
from outpace.task.file import make_task

# Calls with their ladders, rungs and milliseconds, and what is said to them.
Climb = Callable[[Sequence[tuple[int, int, int, Input]]], str]

# Those of some inputs, by number, on which the same code with other rounding gives what the judge refuses.
Refused = Callable[[Sequence[Input]], Sequence[int]]

# Small sizes too, at which a place or a width may be one too many; the first that works is where most is tried.
_SIZES = (SIZE, 64, 16, 4, 1)
# Calls with one argument going far, as many with none, and those of each smaller size.
_FAR, _ORDINARY, _SMALL = 8, 2, 2
# Calls as make_input makes them, in the end: at the small size, and at that of the timed inputs.
_MADE, _MADE_AT_SIZE, _ROUNDS = 160, 24, 12
# Calls that are rounded otherwise, the largest size at which, and how large numbers may be in any case.
_ROUNDED, _STEADY_SIZE, _ORDINARY_TOP = 80, 4096, 10.0
# A number that makes a call so many times as long counts something; beneath these milliseconds nobody minds.
_LONGER, _BRISK = 20, 5
# How many times as long a call takes under the sanitizers, about.
_INSTRUMENTED = 4
# Answers of unknown length get so many times the room, for there is nothing to be learnt from their end here.
_ROOMIER = 8


@dataclass(frozen=True)
class _Rung:
    limits: Mapping[str, Limits]
    # What goes far, and how far.
    far: Mapping[str, float]


@dataclass(frozen=True)
class _Climbed:
    """How far up from the narrowest it went: the first rung without a failure, and what failed before it."""

    rung: int | None
    why: str


def narrowed(skeleton: Skeleton, climb: Climb) -> Skeleton:
    """The skeleton with each number and text going as far as the reference takes it."""
    return _Narrowing(skeleton, climb).narrowed() if skeleton.ranges else skeleton


def settled(skeleton: Skeleton, climb: Climb, seconds: float) -> Skeleton:
    """The same at its own size, where sums and products are larger, and a call takes so long on the whole."""
    if not limits(skeleton.judge):
        return skeleton
    narrowing = _Narrowing(skeleton, climb)
    narrowing.limits = limits(skeleton.judge)
    limit = int(max(_LONGER * _INSTRUMENTED * 1e3 * seconds, 10 * _BRISK))
    narrowing.settle({skeleton.size: limit}, (skeleton.size,), _MADE_AT_SIZE)
    return narrowing.made()


def steadied(skeleton: Skeleton, refused: Refused) -> Skeleton:
    """The same where rounding alone decides no answer: honest code that sums in another order would be refused."""
    given = limits(skeleton.judge)
    if not given or not any(each.kind.startswith("f") for each in skeleton.ranges.values()):
        return skeleton
    narrowing = _Narrowing(skeleton, lambda _: "")
    narrowing.limits = given
    narrowing.steady(min(skeleton.size, _STEADY_SIZE), refused)
    return narrowing.made()


def plainer(rehearsal: Rehearsal, fit: Fitted, doubts: Sequence[str]) -> Fitted | None:
    """The same with the ordinary values alone of what these doubts name, or of all; None where they are already.

    A reference may take large numbers and do nothing with them, such as a window wider than the array.
    """
    given = limits(fit.skeleton.judge)
    if not given:
        return None
    named = [name for name in given if any(f"'{name}'" in doubt for doubt in doubts)] or list(given)
    why = f"with others a judge would not notice enough ({doubts[0][:100]}...)"
    made = refitted(rehearsal, fit, _ordinary(fit.skeleton, named, why))
    return None if made.found.problem else made


def refit(rehearsal: Rehearsal, fit: Fitted) -> Fitted:
    """The same with ordinary values alone, where it does not work with others."""
    given = limits(fit.skeleton.judge)
    if not fit.found.problem or not given:
        return fit
    why = f"with others it cannot be judged ({' '.join(fit.found.problem.split())[:100]}...)"
    plain = fitted(rehearsal, _ordinary(fit.skeleton.sized(SIZE), list(given), why))
    return fit if plain.found.problem else plain


def _ordinary(skeleton: Skeleton, names: Sequence[str], why: str) -> Skeleton:
    left = {name: each for name, each in limits(skeleton.judge).items() if name not in names}
    made = skeleton.limited(left, _together(skeleton))
    return replace(made, narrowed={**skeleton.narrowed, **dict.fromkeys(names, why)})


def refitted(rehearsal: Rehearsal, fit: Fitted, skeleton: Skeleton) -> Fitted:
    """The same with this skeleton, which differs in how far its arguments go."""
    if skeleton.judge == fit.skeleton.judge:
        return fit
    found = rehearsal.rehearse(make_task(Path(skeleton.name), dict(skeleton.files)))
    return Fitted(skeleton, found, fit.narrowed, fit.plain)


def notes(skeleton: Skeleton) -> list[str]:
    """A sentence about what goes less far than its type does."""
    given, found = limits(skeleton.judge), []
    for name, values in skeleton.ranges.items():
        own, why = given.get(name), skeleton.narrowed.get(name, "")
        if own == values.widest or not why:
            continue
        if own is None:
            extent = "ordinary values alone"
        elif values.kind == "text":
            extent = f"bytes up to {own[1]}"
        else:
            zero = "" if not own[2] or own[0] > 0 else ", without zeros"
            extent = f"{told(own[0])} to {told(own[1])}{zero}"
        found.append(f"'{name}' ({extent}): {why}")
    return [f"what goes less far than its type, and why: {'; '.join(found)}"] if found else []


class _Narrowing:
    def __init__(self, skeleton: Skeleton, climb: Climb) -> None:
        self.skeleton, self.climb = skeleton, climb
        self.ranges = skeleton.ranges
        self.rng = np.random.default_rng(9)
        self.limits: dict[str, Limits] = {}
        self.together = _together(skeleton)
        self.why = dict(skeleton.narrowed)
        self.space: dict[str, Any] = {}
        roomy = skeleton.roomier(_ROOMIER) if room(skeleton.judge) else skeleton
        exec(compile(roomy.judge, "judge.py", "exec"), self.space)
        self.leaving: Callable[..., dict[str, float]] = self.space["leaving"]

    def made(self) -> Skeleton:
        """The skeleton as far as it was found out."""
        return replace(self.skeleton.limited(self.limits, self.together), narrowed=self.why)

    def narrowed(self) -> Skeleton:
        """The ranges one by one, all together, and as they will be drawn."""
        for last in (-2, -1):
            self.safe = {name: (each.above()[last:] or each.above())[0] for name, each in self.ranges.items()}
            self.sizes = self._sizes()
            if self.sizes:
                break
        if not self.sizes:
            return self.made()  # the reference fails on ordinary values: others would tell nothing
        self._above()
        self._below()
        self._at_once()
        main, *small = self.sizes
        self.settle(self.sizes, (*[main] * (3 * len(small) + 1), *small), _MADE)
        return self.made()

    def settle(self, milliseconds: Mapping[int, int], sizes: Sequence[int], count: int) -> None:
        """Narrow what fails or takes far longer in some of many calls as they will be made, of these sizes in turn."""
        for _ in range(_ROUNDS if self.limits else 0):
            going: list[dict[str, float]] = []
            calls = []
            for number in range(count):
                size = sizes[number % len(sizes)]
                self.space |= {"LIMITS": self.limits, "TOGETHER": self.together}
                going.append(self.leaving(self.rng))
                rung = _Rung(self.limits, going[-1])
                *_, made = self._pinned(rung, self._drawn(rung, size))
                calls.append((number, 0, 2 * milliseconds[size], made))
            said = _Said(self.climb(calls))
            usual = max((said.took.get(at, 0.0) for at in range(count) if not going[at]), default=0.0)
            wrong: dict[str, tuple[str, Input]] = {}
            for at, far in enumerate(going):
                slow = said.took.get(at, 0.0) > max(_LONGER * usual, _BRISK)
                if far and (why := said.failures.get(at, "" if not slow else _SLOW)):
                    wrong.setdefault(next(iter(far)) if len(far) == 1 else "", (why, calls[at][3]))
            if not wrong:
                return
            for name, (why, given) in wrong.items():
                self._step(name, why, given)

    def steady(self, size: int, refused: Refused) -> None:
        """Narrow what makes an answer so sensitive that other rounding gives another one."""
        for _ in range(_ROUNDS if self.limits else 0):
            alone = [{name: np.inf} for name in self.limits for _ in range(_ROUNDED // len(self.limits))]
            together = dict.fromkeys(self.limits, self.together) if self.together else {}
            going = [*alone, *[together] * (_ROUNDED // 8), *[{}] * (_ROUNDED // 8)]
            inputs = [self._drawn(_Rung(self.limits, far), size) for far in going]
            found = refused(inputs)
            if not found or any(not going[at] for at in found):
                return  # with ordinary values too: then it is no matter of magnitudes
            before = (dict(self.limits), self.together)
            for at in found:
                (name,) = going[at] if len(going[at]) == 1 else ("",)
                self._calm(name, inputs[at])
            if before == (self.limits, self.together):
                return

    def _calm(self, name: str, given: Input) -> None:
        """Keep magnitudes beneath those of this call; small numbers and signs are never to blame."""
        if not name:
            self._step("", _ROUNDING, given)
            return
        low, high, least = self.limits[name]
        if not isinstance(high, float):
            return
        largest = float(np.abs(np.asarray(given[self._key(name, given)], float)).max(initial=0.0))
        # Another call may have shown before that numbers as large as here are too large.
        within = largest <= max(high, -low) * (1 + 1e-6)
        tops = [each[1] for each in self.ranges[name].above() if _ORDINARY_TOP <= each[1] < largest and within]
        if tops:
            self.limits[name] = (max(low, -tops[0]), min(high, tops[0]), min(least, tops[0]))
            self.why[name] = f"beyond that {_ROUNDING}"

    def _step(self, name: str, why: str, given: Input) -> None:
        """One argument goes less far than it did in this call; or all, where they do at once."""
        if not name:
            self.together = next((each for each in TOGETHER if each < self.together), 0.0)
            return
        self.why[name] = f"beyond that {why}"
        low, high, least = self.limits.pop(name)
        if self.ranges[name].kind == "text":
            self.limits |= dict.fromkeys([name], (1, 127, 0)) if high > 127 else {}
            return
        value = np.asarray(given[self._key(name, given)], float)
        lowest, highest = float(value.min(initial=0.0)), float(value.max(initial=0.0))
        # The side that went further is taken for the one that was too far.
        if low < 0 and -lowest >= highest:
            left = [each for each in self.ranges[name].below((0, high, least)) if max(low, lowest) < each[0]]
            self.limits[name] = left[0] if left else (least, high, least)
            return
        above = [each for each in self.ranges[name].above() if bool(each[2]) >= bool(least) and each[1] < high]
        left = [each for each in above if each[1] < highest] or above
        if left:
            self.limits[name] = (low if low < 0 else left[0][0], *left[0][1:])

    # One by one

    def _sizes(self) -> dict[int, int]:
        """The sizes that ordinary values work at, and the milliseconds that a call may take there."""
        rungs = [(at, size, _Rung(self.safe, {})) for at, size in enumerate(_SIZES)]
        calls = [(at, 0, 1000, self._drawn(rung, size)) for at, size, rung in rungs for _ in range(3)]
        said = _Said(self.climb(calls))
        failed = {calls[at][0] for at in said.failures} | {at for at in range(len(_SIZES)) if not said.took}
        return {
            size: int(max(_LONGER * max(said.took.get(3 * at + each, 0.0) for each in range(3)), _BRISK))
            for at, size in enumerate(_SIZES)
            if at not in failed
        }

    def _above(self) -> None:
        ladders = {
            name: [_Rung({**self.safe, name: each}, {name: np.inf}) for each in values.above()]
            for name, values in self.ranges.items()
        }
        for name, climbed in self._climbed(ladders).items():
            if climbed.rung is not None:
                self.limits[name] = self.ranges[name].above()[climbed.rung]
            if climbed.why:
                self.why[name] = f"beyond that {climbed.why}"

    def _below(self) -> None:
        given = {name: self.ranges[name].below(each) for name, each in self.limits.items()}
        ladders = {
            name: [_Rung({**self.safe, name: each}, {name: np.inf}) for each in rungs]
            for name, rungs in given.items()
            if rungs
        }
        for name, climbed in self._climbed(ladders).items():
            if climbed.rung is not None:
                self.limits[name] = given[name][climbed.rung]
            if climbed.why:
                above = f"{self.why[name]}, and " if name in self.why else ""
                self.why[name] = f"{above}below that {climbed.why}"

    def _at_once(self) -> None:
        """How far all may go together; where even ordinary values fail then, no range is of use."""
        together = TOGETHER if len(self.limits) > 1 else TOGETHER[-1:]
        rungs = [_Rung(self.limits, dict.fromkeys(self.limits, each) if each else {}) for each in together]
        (climbed,) = self._climbed({"": rungs}).values()
        if climbed.rung is None:
            self.why = dict.fromkeys(self.ranges, f"beyond that {climbed.why}")
            self.limits = {}
        else:
            self.together = together[climbed.rung] if len(self.limits) > 1 else TOGETHER[0]

    def _climbed(self, ladders: Mapping[str, Sequence[_Rung]]) -> dict[str, _Climbed]:
        """The widest rung of each ladder on which nothing fails; the first of all alone, for it mostly does."""
        found = {name: _Climbed(0, "") for name in ladders}
        for first, last in ((0, 1), (1, 1 << 16)):
            open_ = {name: ladders[name][first:last] for name, each in found.items() if each.why or not first}
            calls = [
                (ladder, at, limit, given)
                for ladder, rungs in enumerate(open_.values())
                for at, rung in enumerate(rungs)
                for drawn, size, limit in self._each(rung)
                for given in self._pinned(rung, self._drawn(drawn, size))
            ]
            if not calls:
                continue
            said = _Said(self.climb(calls))
            failures = {calls[at][:2]: why for at, why in said.failures.items()}
            for ladder, (name, rungs) in enumerate(open_.items()):
                good = next((at for at in range(len(rungs)) if (ladder, at) not in failures), None)
                before = (len(rungs) if good is None else good) - 1
                why = failures.get((ladder, before), "") or found[name].why
                found[name] = _Climbed(None if good is None else good + first, why)
        return found

    def _each(self, rung: _Rung) -> Iterable[tuple[_Rung, int, int]]:
        plain = replace(rung, far={})
        for at, (size, limit) in enumerate(self.sizes.items()):
            yield from ((rung, size, limit) for _ in range(_SMALL if at else _FAR))
            yield from ((plain, size, limit) for _ in range(0 if at else _ORDINARY))

    def _pinned(self, rung: _Rung, given: Input) -> list[Input]:
        """The input; now and then also with what goes far at the ends of its range, and numbers at 0 and 1."""
        found = [given]
        whole = dict(given)
        for name, most in rung.far.items():
            key = self._key(name, given)
            value = given[key]
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                low, high, _ = rung.limits[name]
                # Chance hardly ever makes all of an array as large as it may be. Not all the same: what divides by
                # how much they differ takes that as little as ever.
                end = min(high, most) if self.rng.random() < 0.5 else max(low, -most)
                whole[key] = np.clip(end * self.rng.uniform(0.5, 1, value.shape), low, high).astype(value.dtype)
            elif isinstance(value, int | float) and self.rng.random() < 0.3:
                low, high, least = rung.limits[name]
                ends = (max(low, -most), min(high, most), 0, 1, -1)
                kept = {type(high)(each) for each in ends if low <= each <= high and abs(each) >= least}
                found += [{**given, key: each} for each in sorted(kept)]
        return [*found, whole] if self.rng.random() < 0.4 else found

    def _key(self, name: str, given: Input) -> str:
        # Names that mean something else in judge.py have an underscore behind them there.
        return name if name in given else name.removesuffix("_")

    def _drawn(self, rung: _Rung, size: int) -> Input:
        self.space |= {"LIMITS": rung.limits, "leaving": lambda _: rung.far}
        try:
            made: Input = self.space["make_input"](self.rng, size)
        except Exception as error:
            raise TaskError(f"make_input failed: {type(error).__name__}: {error}") from error
        return made


_SLOW = "a call takes far longer"
_ROUNDING = "rounding alone decides its answer"


class _Said:
    """A report of many calls: why some failed, and the milliseconds that the others took."""

    def __init__(self, text: str) -> None:
        self.failures: dict[int, str] = {}
        self.took: dict[int, float] = {}
        for part in text.split("outpace-call: ")[1:]:
            number, _, said = part.partition("\n")
            # What took too long was tried once more.
            status = re.findall(r"^outpace-tried: (\d+)$", said, re.MULTILINE)[-1:]
            took = re.findall(r"^outpace-took: (\d+)$", said, re.MULTILINE)[-1:]
            if took:
                self.took[int(number)] = int(took[0]) / 1e6
            if status and status[0] != "0":
                self.failures[int(number)] = _why(int(status[0]), said)


def _why(status: int, said: str) -> str:
    if status == NOT_FINITE:
        return "its answer is not finite"
    if status == TOO_LONG or status - 256 in (signal.SIGPROF, signal.SIGALRM):
        return _SLOW
    return (
        sentence(re.sub(r"^outpace-(?:tried|took).*$", "", said, flags=re.MULTILINE))
        .partition("; ")[0]
        .partition(", which C leaves")[0]
    )


def _together(skeleton: Skeleton) -> float:
    found = re.search(r"^TOGETHER = (.*)$", skeleton.judge, re.MULTILINE)
    return float(found[1]) if found else TOGETHER[0]
