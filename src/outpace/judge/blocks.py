"""Blocks: the memory in which a call's arrays lie, laid down as their caller holds it.

Two arguments may be one array or parts of one, a picture may be turned on its side, every second element may be taken.
Code that is wrong or slow for such arguments has to be so here as well: were each laid down by itself, whole and in
order, it would be right here and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# A view that has gaps lies in as much memory as it takes, up to so many times its elements' bytes, and some more. What
# is strewn more widely is gathered.
SPARSE, SPARSE_MORE = 4, 64 << 10
# What stands in gaps is repeated after so many bytes, a prime: to draw all of it would take long.
_PERIOD = 4093


@dataclass(frozen=True)
class Lies:
    """In which block an array lies, where its first element is there, and its strides, if it is not plainly in order.

    An array without elements lies nowhere.
    """

    block: int
    offset: int
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class _Extent:
    number: int
    array: Array
    first: int
    low: int
    high: int


def laid_down(arrays: Sequence[Array]) -> tuple[list[bytes], list[Lies]]:
    """The blocks of these arrays' memory, and where in them each array lies."""
    extents = sorted((_extent(at, each) for at, each in enumerate(arrays) if each.size), key=lambda one: one.low)
    groups: list[list[_Extent]] = []
    high = 0
    for each in extents:
        if groups and each.low < high:
            groups[-1].append(each)
        else:
            groups.append([each])
            high = 0
        high = max(high, each.high)
    # In the order of the arrays, not of this process's addresses.
    groups.sort(key=lambda group: min(each.number for each in group))
    lies = [Lies(-1, 0)] * len(arrays)
    for number, group in enumerate(groups):
        low = min(each.low for each in group)
        for each in group:
            plain = each.array.flags.c_contiguous
            lies[each.number] = Lies(number, each.first - low, None if plain else each.array.strides)
    return [_content(group) for group in groups], lies


def _extent(number: int, array: Array) -> _Extent:
    found = _bounds(number, array)
    if found.high - found.low > SPARSE * array.nbytes + SPARSE_MORE:
        return _bounds(number, array.copy(order="K"))
    return found


def _bounds(number: int, array: Array) -> _Extent:
    first = low = high = int(array.__array_interface__["data"][0])
    for length, stride in zip(array.shape, array.strides, strict=True):
        low, high = min(low, low + (length - 1) * stride), max(high, high + (length - 1) * stride)
    return _Extent(number, array, first, low, high + array.itemsize)


def _content(group: Sequence[_Extent]) -> bytes:
    if len(group) == 1 and group[0].array.flags.c_contiguous:
        return group[0].array.tobytes()
    low, high = min(each.low for each in group), max(each.high for each in group)
    # What lies between is somebody else's, perhaps a later question's: chance stands in its place.
    chance = np.frombuffer(os.urandom(min(high - low, _PERIOD)), np.uint8)
    block = np.resize(chance, high - low)
    for each in group:
        array = each.array
        np.ndarray(array.shape, array.dtype, block, each.first - low, array.strides)[...] = array
    return block.tobytes()
