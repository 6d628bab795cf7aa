"""Flat: the floating numbers of an answer in a few flat arrays, whatever lists and dicts they stand in.

What is done with an answer's numbers takes as long for a thousand pairs of them as for one array of two thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Outputs that are told apart: values of a dict, or of a list of so many at most.
OUTPUTS = 16

Values = npt.NDArray[Any]
# A key, or an index; and what it was taken of.
Path = tuple["Path", Any] | None
# The type of the numbers, and whether they stand in arrays.
Kind = tuple[str, bool]


@dataclass(frozen=True)
class Chunk:
    """Numbers that stand together: an array, a list of floats, or a single one of no shape."""

    path: Path
    output: int
    values: Any
    shape: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class Part:
    """All numbers of one kind, in the order in which they stand in the answer."""

    values: Values
    chunks: list[Chunk]

    def starts(self) -> npt.NDArray[np.intp]:
        """Where each chunk begins."""
        return np.cumsum([0, *(chunk.count for chunk in self.chunks[:-1])], dtype=np.intp)

    def outputs(self) -> npt.NDArray[np.int8]:
        """Of which output each number is."""
        numbers = np.array([chunk.output for chunk in self.chunks], np.int8)
        return np.repeat(numbers, [chunk.count for chunk in self.chunks])


@dataclass(frozen=True)
class Flat:
    """An answer's numbers by kind; answers of equal `form` have equal numbers at equal places."""

    form: list[Any]
    parts: dict[Kind, Part]


def flat(value: Any) -> Flat:
    """The numbers of an answer."""
    walk = _Walk()
    walk.outputs(value)
    return Flat(walk.form, {kind: Part(_joined(kind, chunks), chunks) for kind, chunks in walk.chunks.items()})


def _joined(kind: Kind, chunks: list[Chunk]) -> Values:
    if len(chunks) == 1:
        return np.asarray(chunks[0].values, kind[0]).reshape(-1)
    if kind[1]:
        return np.concatenate([chunk.values.reshape(-1) for chunk in chunks])
    found: list[Any] = []
    for chunk in chunks:
        found.extend(chunk.values) if chunk.shape else found.append(chunk.values)
    return np.array(found, kind[0])


class _Walk:
    def __init__(self) -> None:
        self.form: list[Any] = []
        self.chunks: dict[Kind, list[Chunk]] = {}

    def outputs(self, value: Any) -> None:
        """Walk through an answer, whose values are outputs where there are few."""
        if isinstance(value, dict) and value:
            names = sorted(value)
            self.form.append(names)
            for number, name in enumerate(names):
                self.add(value[name], (None, name), number if number < OUTPUTS else 0)
        elif isinstance(value, (list, tuple)) and len(value) <= OUTPUTS and set(map(type, value)) != {float}:
            self.form.append(len(value))
            for number, item in enumerate(value):
                self.add(item, (None, number), number)
        else:
            self.add(value, None, 0)

    def add(self, value: Any, path: Path, output: int) -> None:
        """Walk through a part of an answer."""
        if isinstance(value, np.ndarray):
            self.form.append((value.dtype.str, value.shape))
            if value.dtype.kind in "fc":
                self._put((value.dtype.str, True), Chunk(path, output, value, value.shape, value.size))
        elif isinstance(value, dict):
            names = sorted(value)
            self.form.append(names)
            for name in names:
                self.add(value[name], (path, name), output)
        elif isinstance(value, (list, tuple)):
            self._list(value, path, output)
        elif isinstance(value, (float, complex, np.inexact)):
            code = np.asarray(value).dtype.str
            self.form.append(code)
            self._put((code, False), Chunk(path, output, value, (), 1))
        else:
            self.form.append(type(value).__name__)

    def _list(self, value: list[Any] | tuple[Any, ...], path: Path, output: int) -> None:
        kinds = set(map(type, value))
        self.form.append(len(value))
        if kinds == {float}:
            self.form.append("floats")
            self._put(("<f8", False), Chunk(path, output, value, (len(value),), len(value)))
        elif kinds & _WITH_NUMBERS or not kinds <= _PLAIN:
            for at, item in enumerate(value):
                self.add(item, (path, at), output)
        else:
            self.form.append(kinds)

    def _put(self, kind: Kind, chunk: Chunk) -> None:
        self.chunks.setdefault(kind, []).append(chunk)


_PLAIN = {type(None), bool, int, str, bytes}
_WITH_NUMBERS = {float, complex, list, dict, tuple}


def steps(path: Path) -> list[Any]:
    """The keys and indices that lead to a place, the first of them first."""
    found: list[Any] = []
    while path is not None:
        path, step = path
        found.append(step)
    return found[::-1]


def label(path: Path) -> str:
    """The place in words."""
    return "answer" + "".join(f"[{step!r}]" for step in steps(path))
