"""Nudges: inputs moved by one rounding step, so that the reference itself shows which of its digits are noise."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

# So many variants of an input are asked about at a time. By chance an element may hardly move in one or two of them; in
# none of eight it seldom does.
NUDGES = 8


_STAYING = {type(None), bool, int, str, bytes}

# Up or down by chance; or, by chance, toward zero or not at all; or away from it or not at all; or, of an array that
# is in order, all numbers up or all down, so that it stays so and what is equal stays equal.
Way = Literal["either", "inward", "outward", "in order"]


def variants(
    given: Mapping[str, Any], rng: np.random.Generator, count: int = NUDGES, way: Way = "either"
) -> list[dict[str, Any]]:
    """The same input moved so often, each time another way: what to ask the reference for its movement."""
    return [nudged(given, rng, way) for _ in range(count)]


def nudged(value: Any, rng: np.random.Generator, way: Way = "either") -> Any:
    """The value with every floating number in it moved by one rounding step, up or down at random.

    A number at the end of what a function takes, as 1 is for an arc sine, may go one way only: inward, or outward. And
    times that never go back, with the same one twice, may go up or down together only.

    Zeros stay: they mostly mean "nothing there", and the step after a zero is no rounding error of anything. So do
    subnormal numbers, of which a step may be all, and what is not finite. No number becomes one of these.
    """
    floats: list[float] = []
    _gather(value, floats)
    # All at once, for one by one a long list would take a second.
    moved = iter(_array(np.array(floats), rng, way).tolist() if floats else ())
    return _moved(value, moved, rng, way)


def _gather(value: Any, floats: list[float]) -> None:
    if type(value) is float:
        floats.append(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            _gather(item, floats)
    elif isinstance(value, (list, tuple)):
        kinds = set(map(type, value))
        if kinds == {float}:
            floats.extend(value)
        elif not kinds <= _STAYING:
            for item in value:
                _gather(item, floats)


def _moved(value: Any, floats: Iterator[float], rng: np.random.Generator, way: Way) -> Any:
    if type(value) is float:
        return next(floats)
    if isinstance(value, np.ndarray):
        return _array(value, rng, way)
    if isinstance(value, (complex, np.inexact)):
        return type(value)(_array(np.asarray(value), rng, way)[()])
    if isinstance(value, Mapping):
        return {key: _moved(item, floats, rng, way) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        kinds = set(map(type, value))
        if kinds <= _STAYING:
            return value
        if kinds == {float}:
            return type(value)(itertools.islice(floats, len(value)))
        return type(value)([_moved(item, floats, rng, way) for item in value])
    return value


def coarsest(value: Any) -> float:
    """The largest rounding step, relative to the number, of the floating types in a value; 0 where there are none."""
    if isinstance(value, (np.ndarray, np.generic)):
        return float(np.finfo(value.dtype).eps) if value.dtype.kind in "fc" else 0.0
    if isinstance(value, (float, complex)):
        return sys.float_info.epsilon
    if isinstance(value, Mapping):
        return max(map(coarsest, value.values()), default=0.0)
    if isinstance(value, (list, tuple)):
        return max(map(coarsest, value), default=0.0)
    return 0.0


def _array(array: npt.NDArray[Any], rng: np.random.Generator, way: Way) -> npt.NDArray[Any]:
    if array.dtype.kind == "c":
        moved = array.copy()
        moved.real, moved.imag = _array(array.real, rng, way), _array(array.imag, rng, way)
        return moved
    if array.dtype.kind != "f":
        return array
    infinity = array.dtype.type(math.inf)
    together = way == "in order" and _in_order(array)
    drawn = rng.integers(0, 2, () if together else array.shape, dtype=np.uint8).astype(bool)
    drawn = np.broadcast_to(drawn, array.shape)
    up = drawn if way in ("either", "in order") else (array < 0) == (way == "inward")
    # Overflow and underflow are what is looked for here, not a fault.
    with np.errstate(all="ignore"):
        first = np.nextafter(array, np.where(up, infinity, -infinity))
        other = np.nextafter(array, np.where(up, -infinity, infinity))
        moved = np.where(_normal(first), first, other)
        goes = _normal(array) & (drawn | (way in ("either", "in order")))
        kept: npt.NDArray[Any] = np.where(goes, moved, array).astype(array.dtype, copy=False)
    return kept


def _in_order(array: npt.NDArray[Any]) -> bool:
    steps = array.reshape(-1)
    return array.size > 1 and bool((steps[1:] >= steps[:-1]).all() or (steps[1:] <= steps[:-1]).all())


def _normal(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.isfinite(array) & (np.abs(array) >= np.finfo(array.dtype).smallest_normal), bool)
