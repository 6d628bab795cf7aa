"""Answers are compared strictly, and the difference is told in short."""

import math

import numpy as np
import pytest

from outpace.judge.compare import brief, difference, nonfinite


def test_equal_answers_do_not_differ() -> None:
    answer = {"a": [1, 2.5, "x", b"y", None, True], "b": np.arange(6).reshape(2, 3)}
    assert difference(answer, dict(answer)) == ""


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (1, 1.0),
        (1, True),
        ([1, 2], [1]),
        ({"a": 1}, {"b": 1}),
        ("a", b"a"),
        (np.zeros(3), np.zeros(4)),
        (np.zeros(3), np.zeros(3, "f4")),
        (np.zeros(3), [0.0] * 3),
    ],
)
def test_another_type_or_form_is_a_difference(expected: object, got: object) -> None:
    assert difference(expected, got, tolerance=1e-3)


def test_tolerance_is_relative() -> None:
    assert difference(1e6, 1e6 + 1, tolerance=1e-5) == ""
    assert difference(1e-6, 2e-6, tolerance=1e-5)
    assert difference(0.0, 1e-300, tolerance=1e-2)


def test_array_elements_that_cancel_get_the_arrays_own_scale() -> None:
    expected = np.array([1000.0, 1e-12])
    assert difference(expected, expected + np.array([0, 1e-6]), tolerance=1e-6) == ""
    assert difference(expected, expected + np.array([0, 1e-1]), tolerance=1e-6)


def test_zeros_never_pass_for_numbers() -> None:
    assert difference(np.full(4, 1e-9), np.zeros(4), tolerance=1e-2)


def test_the_reason_names_the_place_and_both_values() -> None:
    reason = difference({"out": np.array([[1, 2], [3, 4]])}, {"out": np.array([[1, 2], [9, 4]])})
    assert "['out'][1, 0] is 9 where 3 is expected" in reason


def test_nothing_that_is_not_finite_hides() -> None:
    assert nonfinite({"a": [1.0, {"b": np.array([1.0, math.inf])}]})
    assert nonfinite([math.nan])
    assert nonfinite({"a": [1, "nan", np.array([1, 2])]}) == ""


def test_brief_stays_brief() -> None:
    assert len(brief(list(range(10000)))) <= 80
    assert len(brief({"x": np.zeros(10**6), "y": b"z" * 10**6})) < 260
