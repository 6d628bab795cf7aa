"""Comparing answers: how a candidate's answer differs from the expected one, in a sentence."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# How many times its own movement an element may be off. Another order of summation makes errors of the size of the
# reference's own, sometimes several times that; sixteen steps are still 500 times finer than the next coarser type.
MOVEMENTS = 16
# The largest of some movements in quarters of them: of errors like those of a sum it is about six times what a quarter
# of them stays below.
QUARTILES = 6
# How often the reference is asked anew before an answer counts as wrong: an element that hardly moved was mostly luck.
ROUNDS = 12
# Lists of floats from this length on are compared as arrays, a hundred times faster than one by one.
_MANY = 16
_LARGEST = sys.float_info.max
_SINGLE_STEP = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class _Rule:
    tolerance: float
    floor: float
    step: float

    def told(self, allowed: float) -> str:
        if not (self.tolerance or self.floor):
            return "tolerance 0"
        floor = f", floor {self.floor:g}" if self.floor else ""
        return f"tolerance {self.tolerance:g}{floor}: {allowed:.3g} allowed"


def disagreement(
    expected: Any,
    got: Any,
    tolerance: float,
    *,
    floor: float = 0.0,
    moved: Callable[[], Sequence[Any] | None] | None = None,
    step: float = 0.0,
) -> str:
    """Like `difference`, but the reference is asked how far it moves only when nothing else can save the answer.

    Each call of `moved` gives the reference's answers to other variants of the input; None lets the answer pass.
    """
    reason = difference(expected, got, tolerance, floor=floor)
    # No movement mends another form, text or whole number: those differ with all the room there is.
    if not reason or moved is None or not tolerance or difference(expected, got, tolerance, floor=_LARGEST):
        return reason
    answers: list[Any] = []
    for _ in range(ROUNDS):
        found = moved()
        if found is None:
            return ""
        answers += found
        reason = difference(expected, got, tolerance, floor=floor, moved=answers, step=step)
        if not reason:
            break
    return reason


def difference(
    expected: Any,
    got: Any,
    tolerance: float = 0.0,
    *,
    floor: float = 0.0,
    moved: Sequence[Any] = (),
    step: float = 0.0,
) -> str:
    """Where `got` differs from `expected`, or "" when it does not.

    Each number stands for itself: it may be off by `tolerance` times its expected value, plus `floor`, plus `MOVEMENTS`
    times what it moves in `moved`, the reference's answers to inputs that differ by one rounding step. Elements that
    cancel to nearly nothing need that. `step` is the relative size of the coarsest such step; where the answer's type
    is finer, movement counts that much less, or float32 inputs would excuse float32 arithmetic on doubles. Without a
    tolerance movement does not count.
    """
    rule = _Rule(tolerance, floor, step)
    return _difference(expected, got, rule, moved if tolerance else (), "answer")


def _difference(expected: Any, got: Any, rule: _Rule, moved: Sequence[Any], where: str) -> str:
    if isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        return _array_difference(expected, got, rule, moved, where)
    if _kind(expected) != _kind(got):
        return f"{where} is a {_kind(got)} ({brief(got)}) where a {_kind(expected)} ({brief(expected)}) is expected"
    # Where the reference's own form changes with a rounding step, that says nothing about its numbers.
    moved = [each for each in moved if type(each) is type(expected)]
    if isinstance(expected, dict):
        if sorted(expected) != sorted(got):
            missing, extra = sorted(set(expected) - set(got)), sorted(set(got) - set(expected))
            return f"{where} lacks keys {brief(missing)} and has extra keys {brief(extra)}"
        # Whoever goes through a dict sees its order, and sorting may be all of the work.
        for right, found in zip(expected, got, strict=True):
            if right != found:
                return f"{where} has its keys in another order: {brief(found)} where {brief(right)} is expected"
        return _first(
            _difference(
                expected[key], got[key], rule, [each[key] for each in moved if key in each], f"{where}[{key!r}]"
            )
            for key in expected
        )
    if isinstance(expected, list):
        if len(expected) != len(got):
            return f"{where} has {len(got)} items where {len(expected)} are expected"
        return _list_difference(expected, got, rule, [each for each in moved if len(each) == len(expected)], where)
    if isinstance(expected, (float, complex, np.inexact)):
        if isinstance(expected, float) and rule.tolerance and _near(expected, got, rule):
            return ""
        return _inexact_difference(np.asarray(expected), np.asarray(got), rule, list(map(np.asarray, moved)), where)
    return "" if expected == got else f"{where} is {brief(got)} where {brief(expected)} is expected"


def _list_difference(expected: list[Any], got: list[Any], rule: _Rule, moved: Sequence[Any], where: str) -> str:
    if len(expected) >= _MANY and all(set(map(type, each)) == {float} for each in (expected, got)):
        same = [np.array(each) for each in moved if set(map(type, each)) == {float}]
        return _inexact_difference(np.array(expected), np.array(got), rule, same, where)
    return _first(
        _difference(a, b, rule, [each[at] for each in moved], f"{where}[{at}]")
        for at, (a, b) in enumerate(zip(expected, got, strict=True))
    )


def _near(expected: float, got: float, rule: _Rule) -> bool:
    """The plain comparison, for it is quick; what it refuses is looked at again."""
    return abs(got - expected) <= min(rule.tolerance * abs(expected), _LARGEST)


def _array_difference(expected: Any, got: Any, rule: _Rule, moved: Sequence[Any], where: str) -> str:
    if not (isinstance(expected, np.ndarray) and isinstance(got, np.ndarray)):
        return f"{where} is {brief(got)} where {brief(expected)} is expected"
    if not _alike(expected, got):
        return f"{where} is {brief(got)} where {brief(expected)} is expected"
    if expected.dtype.kind in "fc":
        same = [each for each in moved if isinstance(each, np.ndarray) and _alike(expected, each)]
        return _inexact_difference(expected, got, rule, same, where)
    if expected.dtype.kind == "b":
        # By their bytes: a bool that is neither 0 nor 1 is equal to True here, and to neither in C.
        expected, got = expected.view(np.uint8), got.view(np.uint8)
    return _first_bad(expected, got, np.asarray(expected != got), "tolerance 0", where)


def _alike(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape


def _inexact_difference(
    expected: npt.NDArray[Any],
    got: npt.NDArray[Any],
    rule: _Rule,
    moved: Sequence[npt.NDArray[Any]],
    where: str,
    more: Any = 0.0,
) -> str:
    if expected.dtype.kind == "c":
        # Two numbers, each for itself: a large real part must not make room for errors in a small imaginary one.
        # But a part that is 0 by symmetry never moves, and a rounding error of the whole may fall on it. No other part
        # gets that: a complex step keeps all of its result in imaginary parts of 1e-20.
        with np.errstate(all="ignore"):
            whole = MOVEMENTS * float(np.finfo(expected.dtype).eps) * np.minimum(np.abs(expected), _LARGEST)
        return _first(
            _inexact_difference(
                part(expected),
                part(got),
                rule,
                list(map(part, moved)),
                f"{where}.{name}",
                np.where(part(expected) == 0, whole, 0.0),
            )
            for name, part in (("real", np.real), ("imag", np.imag))
        )
    with np.errstate(all="ignore"):
        same = got == expected
        if not (rule.tolerance or rule.floor):
            same &= np.signbit(got) == np.signbit(expected)  # exactly equal: -0.0 is not 0.0
        bad = np.asarray(~(same | (np.isnan(got) & np.isnan(expected))))
        if not bad.any():
            return ""
        if not (rule.tolerance or rule.floor):
            return _first_bad(expected, got, bad, rule.told(0.0), where)
        # Doubles, for a float16 has overflowed long before the bound has. What overflows even so is told below.
        right = expected.astype(np.float64)
        error = np.abs(got.astype(np.float64) - right)
        allowed = rule.tolerance * np.minimum(np.abs(right), _LARGEST) + rule.floor + more
        if moved:
            movement = _movement(right, moved)
            allowed = allowed + MOVEMENTS * _share(expected, moved, rule.step) * movement
            error = np.minimum(error, _distances(got.astype(np.float64), moved, right).min(axis=0))
        bad &= ~(np.isfinite(right) & np.isfinite(error) & (error <= allowed))
    return _first_bad(expected, got, bad, rule.told(float(_at_first(allowed, bad))) if bad.any() else "", where)


def _distances(
    values: npt.NDArray[Any], others: Sequence[npt.NDArray[Any]], right: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """How far these are from each of the others; one that became infinite, or ceased to be a number, tells nothing."""
    rows = []
    for each in others:
        other = each.astype(right.dtype)
        rows.append(np.abs(values - np.where(np.isfinite(other), other, right)))
    return np.stack(rows)


def _movement(right: npt.NDArray[np.float64], moved: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """How far each element moves: as far as it does in most variants.

    Where the reference jumps, as rounding does at a half, it stays in some variants and jumps in others. An answer may
    then be what it is on either side, but not off by many jumps. An element that cancels moves by so few steps of the
    larger numbers it was made of that it often stays too; but it moves to both sides, and a jump to one.
    """
    distances = _distances(right, moved, right)
    usual = np.percentile(distances, 25, axis=0)
    sides = np.stack([np.sign(each.astype(right.dtype) - right) for each in moved])
    step = np.where(distances > 0, distances, np.inf).min(axis=0)
    steps = (usual == 0) & (sides > 0).any(axis=0) & (sides < 0).any(axis=0) & np.isfinite(step)
    return np.asarray(np.where(steps, step, np.minimum(distances.max(axis=0), QUARTILES * usual)), float)


def _share(expected: npt.NDArray[Any], moved: Sequence[npt.NDArray[Any]], step: float) -> float:
    """How much of the movement counts: all, unless the inputs moved by a coarser step than the answers are made in."""
    own = float(np.finfo(expected.dtype).eps)
    if expected.dtype == np.float64 and all(_is_single(each) for each in (expected, *moved)):
        # A C function's float arrives as a double that a float32 can hold.
        own = _SINGLE_STEP
    return min(1.0, own / step) if step else 1.0


def _is_single(values: npt.NDArray[Any]) -> bool:
    return bool((values.astype(np.float32) == values).all())


def _at_first(values: Any, bad: npt.NDArray[np.bool_]) -> Any:
    return np.broadcast_to(values, bad.shape).reshape(-1)[int(np.argmax(bad.reshape(-1)))].item()


def _first_bad(
    expected: npt.NDArray[Any], got: npt.NDArray[Any], bad: npt.NDArray[np.bool_], told: str, where: str
) -> str:
    if not bad.any():
        return ""
    flat = int(np.argmax(bad.reshape(-1)))
    index = tuple(int(i) for i in np.unravel_index(flat, bad.shape)) if bad.ndim else ()
    many = f"{int(bad.sum())} of {bad.size} elements differ, " if bad.ndim else ""
    wrong, right = _at_first(got, bad), _at_first(expected, bad)
    return f"{where}{list(index) if index else ''} is {wrong!r} where {right!r} is expected ({many}{told})"


def other_form(expected: Any, got: Any, where: str = "answer") -> str:
    """Where `got` is built otherwise than `expected`, in types, keys, lengths or shapes, whatever its values; or ""."""
    if isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        alike = isinstance(expected, np.ndarray) and isinstance(got, np.ndarray) and _alike(expected, got)
        return "" if alike else f"{where} is {brief(got)} where one like {brief(expected)} is expected"
    if _kind(expected) != _kind(got):
        return f"{where} is a {_kind(got)} ({brief(got)}) where a {_kind(expected)} ({brief(expected)}) is expected"
    if isinstance(expected, dict):
        if sorted(expected) != sorted(got):
            return f"{where} has the keys {brief(sorted(got))} where {brief(sorted(expected))} are expected"
        return _first(other_form(value, got[key], f"{where}[{key!r}]") for key, value in expected.items())
    if isinstance(expected, list):
        if len(expected) != len(got):
            return f"{where} has {len(got)} items where {len(expected)} are expected"
        pairs = enumerate(zip(expected, got, strict=True))
        return _first(other_form(a, b, f"{where}[{at}]") for at, (a, b) in pairs if _holds_more(a, b))
    return ""


def _holds_more(one: Any, other: Any) -> bool:
    # Of long lists of numbers one by one would take a second a million.
    return type(one) is not type(other) or isinstance(one, (list, dict, np.ndarray))


def nonfinite(value: Any, where: str = "answer") -> str:
    """Where a value holds a NaN or an infinity, or ""."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{where} is {value!r}"
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fc" or bool(np.isfinite(value).all()):
            return ""
        return f"{where} holds {int((~np.isfinite(value)).sum())} numbers that are not finite"
    if isinstance(value, dict):
        return _first(nonfinite(item, f"{where}[{key!r}]") for key, item in value.items())
    if isinstance(value, list):
        return _first(nonfinite(item, f"{where}[{at}]") for at, item in enumerate(value))
    return ""


def brief(value: Any, width: int = 80) -> str:
    """A value in short, for a reason that somebody reads; never fails and never takes long, whatever the value."""
    text = _brief(value, width)
    return text if len(text) <= width else text[: width - 3] + "..."


def _brief(value: Any, width: int) -> str:
    if isinstance(value, np.ndarray):
        shape = "x".join(map(str, value.shape)) or "scalar"
        return f"array {value.dtype} {shape} {brief(value.reshape(-1)[:6].tolist(), width // 2)}"
    if isinstance(value, dict):
        items = itertools.islice(value.items(), width // 4)
        return "{" + ", ".join(f"{_brief(key, width // 2)}: {brief(item, width // 2)}" for key, item in items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(brief(item, width // 2) for item in value[: width // 2]) + "]"
    if type(value) is int and value.bit_length() > 256:
        return f"an int of {value.bit_length()} bits"  # Python refuses to write out really long ones
    return repr(value[: width + 1] if isinstance(value, (bytes, str)) else value)


def _kind(value: Any) -> str:
    return type(value).__name__


def _first(reasons: Iterable[str]) -> str:
    return next((reason for reason in reasons if reason), "")
