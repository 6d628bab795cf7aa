"""A check gets the reference's movement when that decides, and a reference that cannot be asked is no wrong answer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from conftest import python_task
from outpace.domains.program import ProgramDomain
from outpace.errors import HarnessError
from outpace.judge.inputs import checked
from outpace.judge.nudge import variants
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed

INPUTS = "def make_input(rng):\n    return {}\n"
NUMBERS = np.random.default_rng(0).standard_normal(999)
# The last number takes away all that the others add up to.
GIVEN = {"x": np.append(NUMBERS, -np.cumsum(NUMBERS)[-1])}


def domain(checking: str, check: str = "") -> ProgramDomain:
    return ProgramDomain(python_task("", INPUTS + check, f"[checking]\n{checking}\n"))


def total(x: np.ndarray) -> float:
    return float(np.cumsum(x)[-1])


def moved() -> Sequence[Any]:
    return [total(**each) for each in variants(GIVEN, np.random.default_rng(1))]


def never() -> Sequence[Any]:
    raise AssertionError("the reference was asked for nothing")


def test_a_sum_in_another_order_is_right_though_all_of_it_cancels() -> None:
    expected, other = total(**GIVEN), total(GIVEN["x"][::-1])
    assert expected != other
    assert "is expected" in checked(domain("tolerance = 1e-9"), GIVEN, other, expected)
    assert checked(domain("tolerance = 1e-9"), GIVEN, other, expected, moved) == ""
    assert "is expected" in checked(domain("tolerance = 1e-9"), GIVEN, other + 1e-9, expected, moved)
    assert checked(domain("tolerance = 1e-9\nfloor = 1e-8"), GIVEN, other + 1e-9, expected, never) == ""
    assert "is expected" in checked(domain("tolerance = 0"), GIVEN, other, expected, never)


def test_a_check_of_the_tasks_own_has_the_last_word() -> None:
    own = domain("tolerance = 1e-9", "def check(input, output, expected):\n    return 'no'\n")
    assert checked(own, GIVEN, 1.0, 1.0, never) == "no"


@pytest.mark.parametrize("fault", [Failed(Outcome.CRASHED, "it died"), HarnessError("no core")])
def test_a_reference_that_cannot_be_asked_is_no_word_on_the_answer(fault: Exception) -> None:
    def fails() -> Sequence[Any]:
        raise fault

    with pytest.raises(type(fault)):
        checked(domain("tolerance = 1e-9"), GIVEN, 2.0, 1.0, fails)
