"""The red team finds checks that let wrong numbers pass, and leaves sound ones alone."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from conftest import python_task
from outpace.domains.program import ProgramDomain
from outpace.judge.blank import POISON
from outpace.judge.nudge import variants
from outpace.judge.redteam import weaknesses, with_one_doubled, without_smaller_half

INPUTS = "def make_input(rng):\n    return {}\n"
TOLERANT = "[checking]\ntolerance = 1e-9\n"
ZEROS, DOUBLED = "0 for the smaller half", "doubles one of its numbers"


def found(
    answer: Callable[[np.random.Generator], Any],
    check: str = "",
    tables: str = TOLERANT,
    moved: Callable[[Mapping[str, Any]], list[Any]] | None = None,
) -> str:
    domain = ProgramDomain(python_task("", INPUTS + check, tables))
    answered = [({"number": at}, answer(np.random.default_rng(at))) for at in range(4)]
    return "; ".join(weaknesses(domain, answered, moved))


def test_a_comparison_of_each_number_withstands() -> None:
    assert found(lambda rng: {"x": np.exp(rng.normal(0, 9, 50)), "y": rng.normal(0, 1, 9).tolist(), "n": 5}) == ""
    assert found(lambda rng: rng.normal(0, 1, 50), tables="") == ""


def test_a_tolerance_for_the_whole_array_is_found() -> None:
    check = """
import numpy as np
def check(input, output, expected):
    scale = np.sqrt(np.mean(expected**2))
    return None if output is not None and (abs(output - expected) <= 1e-3 * scale).all() else "off"
"""
    assert ZEROS in found(lambda rng: np.exp(rng.normal(0, 9, 51)), check)
    assert found(lambda rng: rng.normal(1, 1, 51), check) == ""


def test_a_floor_above_half_of_the_numbers_is_found() -> None:
    tables = TOLERANT + "floor = 1e-3\n"
    assert ZEROS in found(lambda rng: [1e-4 * rng.random(), 2.0 + rng.random()], tables=tables)
    assert found(lambda rng: [1.0 + rng.random(), 2.0], tables=tables) == ""


def test_a_floor_above_every_number_but_the_largest_is_found() -> None:
    tables = TOLERANT + "floor = 0.1\n"
    reasons = found(lambda rng: {"x": np.array([1e-4, 2e-4, 3e-4, 5 + rng.random()])}, tables=tables)
    assert ZEROS in reasons and DOUBLED in reasons


def test_a_reference_that_a_rounding_step_turns_over_is_found() -> None:
    # The logistic map forgets its start within some sixty steps.
    def chaotic(x: np.ndarray) -> np.ndarray:
        for _ in range(200):
            x = 3.99 * x * (1 - x)
        return x

    def start(rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(0.1, 0.9, 30)

    def moved(given: Mapping[str, Any]) -> list[Any]:
        x = start(np.random.default_rng(given["number"]))
        return [chaotic(each["x"]) for each in variants({"x": x}, np.random.default_rng(9))]

    assert found(lambda rng: chaotic(start(rng))) == ""
    assert DOUBLED in found(lambda rng: chaotic(start(rng)), moved=moved)
    assert (
        found(lambda rng: start(rng) * 2, moved=lambda given: [start(np.random.default_rng(given["number"])) * 2]) == ""
    )


def test_room_that_nobody_wrote_to_is_no_part_of_the_answer() -> None:
    check = """
def check(input, output, expected):
    n = expected["return"]
    right = output is not None and output["return"] == n and (output["x"][:n] == expected["x"][:n]).all()
    return None if right else "off"
"""

    def answer(rng: np.random.Generator) -> Any:
        x = np.frombuffer(bytes([POISON]) * 800, np.float64).copy()
        x[:5] = rng.random(5)
        return {"return": 5, "x": x}

    assert found(answer, check, tables="") == ""


@pytest.mark.parametrize(
    ("answer", "zeroed"),
    [
        (np.array([[3.0, -1.0], [0.0, 2.0]]), np.array([[3.0, 0.0], [0.0, 2.0]])),
        (np.array([3, -128, 5, 0], "i1"), np.array([0, -128, 5, 0], "i1")),
        (np.array([3j, 1, 2], "c8"), np.array([3j, 0, 2], "c8")),
        ([5, -1, 2.5, 1 << 200], [5, 0, 0.0, 1 << 200]),
        ({"a": 1, "b": 2, "c": ["x", True, None, [4.0, 3.0]]}, {"a": 0, "b": 2, "c": ["x", True, None, [4.0, 0]]}),
        (7.5, 7.5),
        ("text", "text"),
        (np.array([True, False]), np.array([True, False])),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_the_smaller_half_is_zeroed_in_every_group_of_numbers(answer: Any, zeroed: Any) -> None:
    np.testing.assert_equal(without_smaller_half(answer), zeroed)


def test_one_number_of_middling_size_is_doubled_in_every_group() -> None:
    np.testing.assert_equal(with_one_doubled(np.array([[1.0, 9.0], [0.0, 3.0]])), np.array([[1.0, 9.0], [0.0, 6.0]]))
    assert with_one_doubled({"return": 2.5, "x": [1, 3, 2]}) == {"return": 5.0, "x": [1, 3, 4]}
    assert with_one_doubled(1.5) == 3.0
    assert with_one_doubled([]) == [] and with_one_doubled(None) is None


def test_a_check_that_ignores_its_answer_is_still_found() -> None:
    reasons = found(lambda rng: rng.random(5), "def check(input, output, expected):\n    return ''\n")
    assert "does nothing" in reasons and "same answer" in reasons and ZEROS in reasons


LAX = """
import numpy as np

def check(input, output, expected):
    return "" if np.all(np.abs(output - expected) <= 1e-9 * np.abs(expected)) else "off"
"""


def test_a_check_that_arrays_of_no_elements_pass_is_found_where_it_gets_them() -> None:
    def answer(rng: np.random.Generator) -> Any:
        return rng.random(5) + 1

    assert found(answer, LAX) == ""
    assert "no elements passes the check" in found(answer, LAX, tables="[checking]\nany_form = true\n")
