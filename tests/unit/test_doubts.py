"""Doubtful answers are all looked into, together, and excused by nothing but the reference's own rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from conftest import python_task
from outpace.domains.program import ProgramDomain
from outpace.errors import HarnessError
from outpace.judge.doubts import AGAIN, Doubt, Doubts
from outpace.judge.nudge import NUDGES
from outpace.judge.worker import Failed

DOMAIN = ProgramDomain(
    python_task(
        "def solve(x):\n    return sum(x)\n",
        "def make_input(rng):\n    return {'x': rng.random(3)}\n",
        "[checking]\ntolerance = 1e-12\n",
    )
)
# A sum that cancels to nothing: in another order it is something else.
CANCELS = {"x": [1e16, 1.0, -1e16]}


class Reference:
    """Answers as a sum does, and counts how often a process was started for it."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        self.asked.append(len(inputs))
        return [sum(given["x"]) for given in inputs]


def doubts(ask: Any) -> Doubts:
    return Doubts(DOMAIN, ask, np.random.default_rng(1))


def doubtful(answer: float, found: Doubts) -> Doubt:
    doubt = found.check(CANCELS, answer, sum(CANCELS["x"]))
    assert doubt is not None
    return doubt


def test_a_right_answer_is_no_doubt_and_another_form_is_refused_at_once() -> None:
    found = doubts(Reference())
    assert found.check({"x": [1.0, 2.0]}, 3.0, 3.0) is None
    with pytest.raises(Failed, match="is a str"):
        found.check({"x": [1.0, 2.0]}, "3", 3.0)


def test_the_doubts_of_a_turn_are_settled_in_one_process() -> None:
    reference = Reference()
    found = doubts(reference)
    found.settle([doubtful(2.0, found) for _ in range(20)], 1e-6, 100)
    # One of them may hardly have moved by chance, and is asked once more.
    assert reference.asked[0] == 20 * (1 + NUDGES) and len(reference.asked) < 10


def test_one_wrong_answer_among_many_doubtful_ones_is_found() -> None:
    found = doubts(Reference())
    many = [doubtful(2.0, found) for _ in range(200)]
    many.insert(77, doubtful(1e9, found))
    with pytest.raises(Failed, match=r"is 1000000000\.0 where 0\.0"):
        found.settle(many, 1e-6, 100)


def test_a_reference_that_remembers_excuses_nothing() -> None:
    calls = 0

    def ask(inputs: Sequence[Any]) -> list[Any]:
        nonlocal calls
        calls += len(inputs)
        return [sum(given["x"]) + calls + at for at, given in enumerate(inputs)]

    found = doubts(ask)
    with pytest.raises(Failed, match=r"is 2\.0 where 0\.0"):
        found.settle([doubtful(2.0, found)], 1e-6, 100)


def test_a_variant_that_breaks_the_reference_spoils_no_other() -> None:
    fragile = {"x": [1e16, 1.0, -1e16, 0.25]}

    def ask(inputs: Sequence[Any]) -> list[Any]:
        if any(len(given["x"]) == 4 and given["x"][3] != 0.25 for given in inputs):
            raise HarnessError("it fell")
        return [sum(given["x"]) for given in inputs]

    found = doubts(ask)
    found.settle([doubtful(2.0, found), doubtful(2.0, found)], 1e-6, 100)
    doubt = found.check(fragile, 2.25, sum(fragile["x"]))
    assert doubt is not None
    with pytest.raises(Failed, match=r"is 2\.25 where"):
        found.settle([doubtful(2.0, found), doubt], 1e-6, 100)


def test_whoever_wants_the_judge_busy_gets_no_more_of_it() -> None:
    reference = Reference()
    found = doubts(reference)
    for _ in range(AGAIN):
        with pytest.raises(Failed):
            found.settle([doubtful(1e9, found)], 1e-6, 100)
    assert len(reference.asked) < 3 * AGAIN


def test_of_slow_calls_some_doubts_are_drawn() -> None:
    reference = Reference()
    found = doubts(reference)
    found.settle([doubtful(2.0, found) for _ in range(50)], 0.5, 100)
    assert sum(reference.asked) < 50 * (1 + NUDGES)
