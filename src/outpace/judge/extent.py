"""Extents: how much there is of the reference's answer, and so how much of a candidate's is read at all.

A candidate may send whatever its output region holds. What is many times larger than the right answer is wrong, and
reading it would cost the judge minutes and gigabytes: its bounds follow from the reference's answer to the same input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.judge.wire import ALIGN, HEADER

# A right answer may be longer than the reference's, but not many times as long. The constants are for short ones.
TIMES = 2
MORE_VALUES, MORE_LEVELS, MORE_BYTES, MORE_DIGITS = 1000, 2, 64 << 10, 64
# Bits of a digit of an int on the wire.
DIGIT_BITS = 15


@dataclass(frozen=True)
class Extent:
    """An answer as it is sent: its values, how deep they are nested, its bytes, and the digits of its longest int.

    An array is one value beside its description, however large it is.
    """

    values: int
    depth: int
    bytes: int
    digits: int

    def allowed(self) -> Extent:
        """The largest answer that is read where the reference's has this extent."""
        return Extent(
            TIMES * self.values + MORE_VALUES,
            self.depth + MORE_LEVELS,
            most_bytes(self.bytes),
            TIMES * self.digits + MORE_DIGITS,
        )


def most_bytes(size: int) -> int:
    """How many bytes are read where the reference's answer, stream or file has this many."""
    return TIMES * size + MORE_BYTES


def excess(what: str, size: int, reference: int) -> str:
    """Why a stream or file of this many bytes is not read, where the reference's has so many; or ""."""
    if size <= most_bytes(reference):
        return ""
    return f"{what} has {size} bytes where the reference's has {reference}; at most {most_bytes(reference)} are read"


def extent(answer: Any) -> Extent:
    """How much there is of an answer, to the byte; arrays cost nothing to measure."""
    tally = _Tally()
    depth = tally.add(answer, _Path(0, 0))
    first = HEADER.size + tally.body
    return Extent(tally.values, depth, first + -first % ALIGN + tally.arrays, tally.digits)


@dataclass(frozen=True)
class _Path:
    """How many steps lead to a value, and their bytes; an array's description repeats them."""

    steps: int
    bytes: int

    def then(self, size: int) -> _Path:
        return _Path(self.steps + 1, self.bytes + size)


class _Tally:
    def __init__(self) -> None:
        # The pair of the value and the list of its arrays.
        self.values, self.body, self.arrays, self.digits = 2, 10, 0, 0

    def add(self, value: Any, path: _Path) -> int:
        """Count a value; returns its depth."""
        if isinstance(value, np.ndarray):
            self._array(value, path)
            return 0
        self.values += 1
        if isinstance(value, dict):
            self.body += 2
            depths = []
            for key, item in value.items():
                size = _text_bytes(key)
                self.values += 1
                self.body += size
                depths.append(self.add(item, path.then(size)))
            return 1 + max(depths, default=0)
        if isinstance(value, (list, tuple)):
            self.body += 5
            return 1 + self._items(value, path.then(5))
        self.body += self._scalar(value)
        return 0

    def _items(self, items: Sequence[Any], path: _Path) -> int:
        kinds = set(map(type, items))
        # Long lists of numbers are the commonest answers by far, and take a second a million one by one.
        if kinds == {float}:
            self.values += len(items)
            self.body += 9 * len(items)
            return 0
        if kinds == {int} and _short(low := min(items)) and _short(high := max(items)):
            self.values += len(items)
            self.body += 5 * len(items)
            self.digits = max(self.digits, _digits(low), _digits(high))
            return 0
        return max([self.add(item, path) for item in items], default=0)

    def _scalar(self, value: Any) -> int:
        if value is None or isinstance(value, (bool, np.bool_)):
            return 1
        if isinstance(value, (int, np.integer)):
            number = int(value)
            self.digits = max(self.digits, _digits(number))
            return 5 if _short(number) else 5 + 2 * _digits(number)
        if isinstance(value, str):
            return _text_bytes(value)
        return 5 + len(value) if isinstance(value, bytes) else 9

    def _array(self, array: np.ndarray[Any, Any], path: _Path) -> None:
        # Where it stood: None. Then its path, its type and its shape, and far behind them its elements.
        self.values += 5 + path.steps + array.ndim
        self.body += 1 + 5 + 5 + path.bytes + 5 + len(array.dtype.str) + 5 + 5 * array.ndim
        self.arrays += array.nbytes + -array.nbytes % ALIGN


def _text_bytes(text: str) -> int:
    return 5 + (len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")))


def _short(number: int) -> bool:
    return -(2**31) <= number < 2**31


def _digits(number: int) -> int:
    return -(-number.bit_length() // DIGIT_BITS)
