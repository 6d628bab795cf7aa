"""Whatever two answers hold, comparing them ends in a word: a candidate's answer must not end the judge."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from outpace.judge.compare import brief, difference, disagreement, nonfinite
from outpace.judge.drawn_doubts import Doubt, DrawnDoubts
from outpace.judge.spots import Spots, excused_by

CASES = 1000
SCALARS = (None, True, 0, -1, 2**70, -(1 << 2000), 10**5000, 0.0, -0.0, math.nan, math.inf, 1e308, 5e-324, 1.5)
SCALARS += ("", "é😀", b"a", 1j, complex(math.nan, math.inf), complex(1e308, -1e308))
TYPES = ("?", "i1", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")


def answer(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.random()
    if kind < 0.4 or depth > 3:
        return chance.choice(SCALARS)
    if kind < 0.6:
        shape = tuple(chance.choice((0, 1, 2, 5)) for _ in range(chance.choice((0, 1, 1, 2))))
        dtype = np.dtype(chance.choice(TYPES))
        return np.frombuffer(chance.randbytes(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)
    if kind < 0.7:
        return [chance.random() * 10.0 ** chance.randrange(-300, 300) for _ in range(chance.choice((1, 20)))]
    items = [answer(chance, depth + 1) for _ in range(chance.choice((0, 1, 2, 20)))]
    return items if kind < 0.85 else dict(zip("abcdefghijklmnopqrstuvwxyz", items, strict=False))


def another(chance: random.Random, value: Any) -> Any:
    """Nearly the same, or something else."""
    if chance.random() < 0.1:
        return answer(chance, 2)
    if isinstance(value, list):
        return [another(chance, item) if chance.random() < 0.4 else item for item in value]
    if isinstance(value, dict):
        return {key: another(chance, item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.reshape(-1) if chance.random() < 0.2 else value[::-1] if value.ndim else value
    if isinstance(value, bool) or not isinstance(value, (int, float, complex)):
        return value
    return value + 1 if isinstance(value, int) else value * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_two_answers_break_a_comparison(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(CASES):
        expected = answer(chance)
        got, *moved = (another(chance, expected) for _ in range(4))
        tolerance, floor = chance.choice((0.0, 1e-9, 1e-3)), chance.choice((0.0, 1e-3))
        looks: tuple[Callable[[], object], ...] = (
            lambda: difference(expected, got, tolerance, floor=floor),  # noqa: B023
            lambda: disagreement(expected, got, tolerance, floor=floor, excuse=excused_by(lambda: moved), step=1e-7),  # noqa: B023
            lambda: (brief(got), nonfinite(got)),  # noqa: B023
            lambda: disagreement(expected, got, tolerance, floor=floor, excuse=drawn),  # noqa: B023
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # one would be printed into the middle of a run
            for look in looks:
                look()
        assert difference(expected, expected, tolerance, floor=floor) == ""


def drawn(spots: Spots) -> str:
    found = DrawnDoubts(np.random.default_rng(0))
    for _ in range(2):
        found.add(Doubt({"x": 1.0}, spots), 1e-3, 1e-3, edge=False)
    assert len(found.taken()) == 2
    return ""
