"""Comparing answers: how a candidate's answer differs from the expected one, in a sentence."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from outpace.judge.flat import Flat, Kind, Part, Path, Values, flat, label
from outpace.judge.spots import MOVEMENTS, Spot, Spots

_LARGEST = sys.float_info.max


@dataclass(frozen=True)
class _Rule:
    tolerance: float
    floor: float

    @property
    def exact(self) -> bool:
        return not (self.tolerance or self.floor)

    def told(self, allowed: float) -> str:
        floor = f", floor {self.floor:g}" if self.floor else ""
        return f"tolerance {self.tolerance:g}{floor}: {allowed:.3g} allowed"


def difference(expected: Any, got: Any, tolerance: float = 0.0, *, floor: float = 0.0) -> str:
    """Where `got` differs from `expected`, or "" when it does not.

    Each number stands for itself: it may be off by `tolerance` times its expected value, plus `floor`.
    """
    return disagreement(expected, got, tolerance, floor=floor)


def disagreement(
    expected: Any,
    got: Any,
    tolerance: float,
    *,
    floor: float = 0.0,
    excuse: Callable[[Spots], str] | None = None,
    step: float = 0.0,
) -> str:
    """Like `difference`, but numbers that are further off may be excused, where nothing else is wrong.

    `excuse` says which of them are wrong, when it has asked the reference how far it moves there. `step` is the
    relative size of the input's coarsest rounding step; where the answer's type is finer, movement counts that much
    less, or float32 inputs would excuse float32 arithmetic on doubles. Without a tolerance movement does not count.
    """
    rule = _Rule(tolerance, floor)
    reason = _difference(expected, got, rule, None)
    if reason or rule.exact or _equal(expected, got, rule):
        return reason
    right, found = flat(expected), flat(got)
    doubted = list(_doubted(right, found, rule))
    if not doubted:
        return ""
    spots = Spots(right, doubted, rule.told, step)
    if excuse is None or not tolerance or spots.hopeless:
        return spots.reason()
    return excuse(spots)


def _difference(expected: Any, got: Any, rule: _Rule, where: Path) -> str:
    """What is wrong whatever the tolerance; floating numbers are left out where there is one."""
    if isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        return _array_difference(expected, got, rule, where)
    if _kind(expected) != _kind(got):
        return (
            f"{label(where)} is a {_kind(got)} ({brief(got)}) where a {_kind(expected)} ({brief(expected)}) is expected"
        )
    if isinstance(expected, dict):
        if sorted(expected) != sorted(got):
            missing, extra = sorted(set(expected) - set(got)), sorted(set(got) - set(expected))
            return f"{label(where)} lacks keys {brief(missing)} and has extra keys {brief(extra)}"
        # Whoever goes through a dict sees its order, and sorting may be all of the work.
        for right, found in zip(expected, got, strict=True):
            if right != found:
                return f"{label(where)} has its keys in another order: {brief(found)} where {brief(right)} is expected"
        return _first(_difference(expected[key], got[key], rule, (where, key)) for key in expected)
    if isinstance(expected, list):
        if len(expected) != len(got):
            return f"{label(where)} has {len(got)} items where {len(expected)} are expected"
        return _list_difference(expected, got, rule, where)
    if isinstance(expected, (float, complex, np.inexact)):
        return _exact_difference(np.asarray(expected), np.asarray(got), where) if rule.exact else ""
    return "" if expected == got else f"{label(where)} is {brief(got)} where {brief(expected)} is expected"


def _list_difference(expected: list[Any], got: list[Any], rule: _Rule, where: Path) -> str:
    if all(set(map(type, each)) == {float} for each in (expected, got)):
        return _exact_difference(np.array(expected), np.array(got), where) if rule.exact else ""
    pairs = zip(expected, got, strict=True)
    return _first(_difference(a, b, rule, (where, at)) for at, (a, b) in enumerate(pairs))


def _equal(expected: Any, got: Any, rule: _Rule) -> bool:
    """The plain comparison of the commonest answers, for it is quick; what it refuses is looked at again."""
    return isinstance(expected, float) and bool(rule.tolerance) and _near(expected, got, rule)


def _near(expected: float, got: float, rule: _Rule) -> bool:
    """The plain comparison, for it is quick; what it refuses is looked at again."""
    return abs(got - expected) <= min(rule.tolerance * abs(expected), _LARGEST)


def _array_difference(expected: Any, got: Any, rule: _Rule, where: Path) -> str:
    if not (isinstance(expected, np.ndarray) and isinstance(got, np.ndarray) and _alike(expected, got)):
        return f"{label(where)} is {brief(got)} where {brief(expected)} is expected"
    if expected.dtype.kind in "fc":
        return _exact_difference(expected, got, where) if rule.exact else ""
    if expected.dtype.kind == "b":
        # By their bytes: a bool that is neither 0 nor 1 is equal to True here, and to neither in C.
        expected, got = expected.view(np.uint8), got.view(np.uint8)
    return _first_bad(expected, got, np.asarray(expected != got), label(where))


def _alike(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape


def _exact_difference(expected: npt.NDArray[Any], got: npt.NDArray[Any], where: Path, part: str = "") -> str:
    if expected.dtype.kind == "c":
        return _first(
            _exact_difference(of(expected), of(got), where, name) for name, of in (("real", np.real), ("imag", np.imag))
        )
    with np.errstate(all="ignore"):
        same = (got == expected) & (np.signbit(got) == np.signbit(expected))  # exactly equal: -0.0 is not 0.0
        bad = np.asarray(~(same | (np.isnan(got) & np.isnan(expected))))
    return _first_bad(expected, got, bad, f"{label(where)}.{part}" if part else label(where))


def _doubted(right: Flat, found: Flat, rule: _Rule) -> Iterator[Spot]:
    """The numbers that are further off than the rule allows."""
    for kind, whole in right.parts.items():
        expected, got = whole.values, found.parts[kind].values
        if expected.dtype.kind != "c":
            yield from _beyond(kind, "", whole, expected, got, rule, 0.0)
            continue
        # Two numbers, each for itself: a large real part must not make room for errors in a small imaginary one.
        # But a part that is 0 by symmetry never moves, and a rounding error of the whole may fall on it. No other part
        # gets that: a complex step keeps all of its result in imaginary parts of 1e-20.
        with np.errstate(all="ignore"):
            more = MOVEMENTS * float(np.finfo(expected.dtype).eps) * np.minimum(np.abs(expected), _LARGEST)
        for part in ("real", "imag"):
            own = getattr(expected, part)
            yield from _beyond(kind, part, whole, own, getattr(got, part), rule, np.where(own == 0, more, 0.0))


def _beyond(
    kind: Kind, part: str, whole: Part, expected: Values, got: Values, rule: _Rule, more: Any
) -> Iterator[Spot]:
    with np.errstate(all="ignore"):
        bad = ~((got == expected) | (np.isnan(got) & np.isnan(expected)))
        if not bad.any():
            return
        # Doubles, for a float16 has overflowed long before the bound has. What overflows even so is told below.
        right = expected.astype(np.float64)
        error = np.abs(got.astype(np.float64) - right)
        allowed = np.asarray(rule.tolerance * np.minimum(np.abs(right), _LARGEST) + rule.floor + more, float)
        bad &= ~(np.isfinite(right) & np.isfinite(error) & (error <= allowed))
    if bad.any():
        yield Spot(kind, part, whole, got, allowed, bad)


def _at_first(values: Any, bad: npt.NDArray[np.bool_]) -> Any:
    return np.broadcast_to(values, bad.shape).reshape(-1)[int(np.argmax(bad.reshape(-1)))].item()


def _first_bad(expected: npt.NDArray[Any], got: npt.NDArray[Any], bad: npt.NDArray[np.bool_], where: str) -> str:
    if not bad.any():
        return ""
    flat = int(np.argmax(bad.reshape(-1)))
    index = tuple(int(i) for i in np.unravel_index(flat, bad.shape)) if bad.ndim else ()
    many = f"{int(bad.sum())} of {bad.size} elements differ, " if bad.ndim else ""
    wrong, right = _at_first(got, bad), _at_first(expected, bad)
    return f"{where}{list(index) if index else ''} is {wrong!r} where {right!r} is expected ({many}tolerance 0)"


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
