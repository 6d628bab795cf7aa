"""The blank: what stands in the output region before the calls, and what nobody has written to when they are done.

An output starts with chance, another one for every question. Were it always the same, code that forgets to clear an
output before adding to it could be right by luck: 0xA5 in all bytes is -1e-128 as a double, which no sum notices.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from outpace.judge.alignment import LINE, shift

# How memory that nobody wrote to reads in an answer, whatever stood there before the call: a reference may leave part
# of an output alone, and chance there would be no answer to compare.
POISON = 0xA5
# Chance is repeated after so many bytes, a prime: to draw all of it would take longer than many a call.
_PERIOD = 4093
# The bits of the exponent of a floating number of so many bytes.
_EXPONENT = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0000000000000}
# What integers are compared by, so that a true number is hardly ever taken for one that nobody wrote.
_WORD = 8


class Blank:
    """Room in the output region, what stands in it before the calls, and gaps that nobody may write to."""

    def __init__(self, align: int = 0, *, known: bool = False) -> None:
        """Arrays begin at multiples of `align`.

        With a known blank outputs start as poison: for the reference, where no candidate is asked the same.
        """
        self.used = 0
        # Bytes of the largest output.
        self.largest = 0
        self._align = align
        self._known = known
        self._content: bytes | None = None
        self._placed: list[tuple[int, bytes]] = []
        self._gaps: list[tuple[int, bytes, str]] = []
        self._numbers: dict[int, tuple[int, np.dtype[np.generic]]] = {}
        self._left: dict[int, _Left] = {}

    def reserve(self, size: int, name: str, dtype: np.dtype[np.generic] | None = None) -> int:
        """Room for an output; floating numbers start as what no arithmetic passes over."""
        at = self._room(size, name, shift(dtype, self._align) if dtype is not None else 0)
        if dtype is not None:
            self._numbers[at] = size, dtype
        return at

    def _room(self, size: int, name: str, shifted: int) -> int:
        begin, at = self.used, self.used + shifted
        self.largest = max(self.largest, size)
        self.used = at + size + -(at + size) % LINE + LINE
        # By chance: what is known beforehand could be put back by whoever wrote over it.
        self._gaps.append((begin, os.urandom(shifted), f"before the start of {name}"))
        self._gaps.append((at + size, os.urandom(self.used - at - size), f"past the end of {name}"))
        return at

    def place(self, data: bytes, dtype: np.dtype[np.generic], name: str) -> int:
        """Room for an array that is worked on in place."""
        at = self._room(len(data), name, shift(dtype, self._align))
        self._placed.append((at, data))
        return at

    @property
    def content(self) -> bytes:
        """All of it, drawn once."""
        if self._content is None:
            content = bytearray([POISON]) * self.used if self._known else bytearray(_chance(self.used))
            for at, (size, dtype) in self._numbers.items():
                if dtype.kind in "fc" and not self._known:
                    content[at : at + size] = _unusable(size, dtype)
            for at, data in (*self._placed, *((begin, gap) for begin, gap, _ in self._gaps)):
                content[at : at + len(data)] = data
            self._content = bytes(content)
        return self._content

    def overrun(self, region: memoryview) -> str:
        """Where a call wrote that it may not, which seems right here and breaks something where it is used."""
        return next((where for begin, gap, where in self._gaps if region[begin : begin + len(gap)] != gap), "")

    def mark_unwritten(
        self, answer: npt.NDArray[np.generic], at: int, like: npt.NDArray[np.generic] | None = None
    ) -> None:
        """Let what the reference did not write in this output read as poison, in its answer and in the candidate's.

        The candidate's is the one with the reference's beside it (`like`), which was marked before. Where nobody looks
        it may write what it likes, as code does that writes first and counts after. What it left alone where something
        belongs stays the chance that it is: poison is a number, next to 0, and would pass for it wherever a task has a
        floor.
        """
        if self._known or at not in self._numbers or not answer.size:
            return
        if like is None:
            self._mark(answer, at)
        elif at in self._left and like.shape == answer.shape:
            left = self._left[at]
            answer.reshape(-1).view(left.dtype)[left.places] = like.reshape(-1).view(left.dtype)[left.places]

    def _mark(self, answer: npt.NDArray[np.generic], at: int) -> None:
        """Poison where the reference wrote nothing, by whole words: one byte in 256 is what stood there by chance.

        Where a single element is what stood there, the candidate's may be anything: nobody can foresee which of those
        that were written are so by chance.
        """
        size, dtype = self._numbers[at]
        element = np.dtype(f"u{_real(dtype)}") if dtype.kind in "fc" else np.dtype(f"u{dtype.itemsize}")
        unit = element.itemsize if dtype.kind in "fc" else _WORD
        whole = size // unit * unit
        found = answer.reshape(-1).view(np.uint8)
        before = np.frombuffer(self.content, np.uint8, size, at)
        units = np.dtype(f"u{unit}") if unit in (1, 2, 4, 8) else np.dtype(f"V{unit}")
        same = found[:whole].view(units) == before[:whole].view(units)
        left = found.view(element) == before.view(element)
        if not left.any():
            return
        self._left[at] = _Left(element, left)
        found[:whole].reshape(-1, unit)[same] = POISON
        # The rest of an array of small integers is as the last whole word is.
        if whole < size and same.size and same[-1] and bytes(found[whole:]) == bytes(before[whole:]):
            found[whole:] = POISON


@dataclass(frozen=True)
class _Left:
    """Where a reference left its output alone: which elements are what stood there before."""

    dtype: np.dtype[np.generic]
    places: npt.NDArray[np.bool_]


def _repeated(drawn: bytes, size: int) -> bytes:
    return (drawn * -(-size // max(len(drawn), 1)))[:size]


def _chance(size: int) -> bytes:
    return _repeated(os.urandom(min(size, _PERIOD)), size)


def _unusable(size: int, dtype: np.dtype[np.generic]) -> bytes:
    """Numbers that spoil what is computed with them: no numbers, or the largest of one sign, as chance will have it.

    `fmax` passes over what is no number, and a maximum over huge negative ones; nothing passes over all three.
    """
    width = _real(dtype)
    if width not in _EXPONENT:
        return _chance(size)
    kind = os.urandom(1)[0] % 3
    bits = np.frombuffer(os.urandom(min(size, _PERIOD * width)), f"u{width}")
    exponent, sign = _EXPONENT[width], 1 << (8 * width - 1)
    lowest = exponent & -exponent
    if kind == 0:
        # Were all bits behind the exponent 0, it would be infinity.
        bits = bits & bits.dtype.type(sign | (lowest - 1)) | bits.dtype.type(exponent | 1)
    else:
        bits = bits & bits.dtype.type(lowest - 1) | bits.dtype.type(exponent - lowest | (sign if kind == 1 else 0))
    return _repeated(bits.tobytes(), size)


def _real(dtype: np.dtype[np.generic]) -> int:
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)
