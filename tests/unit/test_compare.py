"""Answers are compared strictly, and the difference is told in short."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from outpace.judge.compare import brief, disagreement, nonfinite, other_form
from outpace.judge.spots import MOST, MOVEMENTS, ROUNDS, Spots, excused_by


def difference(
    expected: Any, got: Any, tolerance: float = 0.0, *, floor: float = 0.0, moved: Sequence[Any] = (), step: float = 0.0
) -> str:
    """What is wrong when the reference gave these answers to variants of the input."""

    def excuse(spots: Spots) -> str:
        for each in moved:
            spots.see(each)
        return spots.reason()

    return disagreement(expected, got, tolerance, floor=floor, excuse=excuse, step=step)


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


def test_each_element_stands_for_itself() -> None:
    expected = np.array([1e12, 1.0, 1e-12])
    for at in range(3):
        got = expected.copy()
        got[at] *= 1 + 1e-5
        assert difference(expected, got, tolerance=1e-4) == ""
        assert f"answer[{at}]" in difference(expected, got, tolerance=1e-6)


def test_one_huge_value_does_not_let_zeros_pass() -> None:
    for huge in (1e200, 1.7e308):
        expected = np.array([huge, 1.0, 2.0])
        assert "2 of 3" in difference(expected, np.array([huge, 0.0, 0.0]), tolerance=1e-3)
    expected = np.array([60000, 1, 2], "f2")
    assert "2 of 3" in difference(expected, np.array([60000, 0, 0], "f2"), tolerance=1e-2)


@pytest.mark.parametrize(
    "form",
    [
        np.array,
        list,
        lambda values: [[each] for each in values],
        lambda values: dict(enumerate(values)),
        lambda v: v[:9],
    ],
)
def test_scalars_in_lists_and_dicts_are_compared_like_elements(form: Callable[[list[float]], Any]) -> None:
    values = [1e-6, 1.0, 1e6] * 8
    assert difference(form(values), form([value * (1 + 1e-7) for value in values]), 1e-6) == ""
    assert difference(form(values), form([0.0, *values[1:]]), 1e-6)
    assert difference(form(values), form([values[0] * (1 + 1e-5), *values[1:]]), 1e-6)


def test_complex_numbers_are_compared_by_their_distance() -> None:
    for expected, near, far in (
        (3 + 4j, 3 + 4.000001j, 3 - 4j),
        (np.complex64(3 + 4j), np.complex64(3 + 4.00001j), 0j),
    ):
        assert difference(expected, near, 1e-5) == ""
        assert difference(np.array([expected]), np.array([near]), 1e-5) == ""
        assert difference(np.array([expected]), np.array([far], np.asarray(expected).dtype), 1e-5)
        assert difference(expected, type(expected)(far), 1e-5)


LARGEST = float(np.finfo("f8").max)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (np.array([LARGEST]), np.array([-LARGEST])),
        (np.array([complex(LARGEST, LARGEST)]), np.array([0j])),
        (complex(LARGEST, LARGEST), 0j),
        (LARGEST, -LARGEST),
        (LARGEST, math.inf),
        (math.inf, LARGEST),
        (math.inf, -math.inf),
        (math.inf, math.nan),
        (1.0, math.nan),
        (np.array([np.inf, 1], "f4"), np.array([1, 1], "f4")),
        (np.array([65504], "f2"), np.array([-65504], "f2")),
        (np.array([5e-324]), np.array([0.0])),
        (np.array([1e-45], "f4"), np.array([0], "f4")),
        (5e-324, 0.0),
    ],
)
def test_nothing_overflows_into_agreement(expected: Any, got: Any) -> None:
    # Warnings are errors here, so none is given either.
    moved = [np.full_like(expected, np.inf)] if isinstance(expected, np.ndarray) else [math.inf, math.nan]
    assert difference(expected, got, 0.5)
    assert difference(expected, got, 0.5, moved=moved, step=1e-7)


def test_equal_infinities_and_two_nans_agree() -> None:
    for value in (math.inf, -math.inf, math.nan, np.array([np.inf, np.nan, 1]), [math.nan] * 20):
        assert difference(value, value, 1e-9) == ""


def test_without_a_tolerance_only_equal_numbers_agree() -> None:
    one, next_one = np.array([1.0]), np.nextafter(np.array([1.0]), 2)
    for expected, got in ((one, next_one), (1.0, float(next_one[0]))):
        assert difference(expected, expected) == ""
        assert "tolerance 0" in difference(expected, got)
        assert difference(expected, got, moved=[got])


def test_a_floor_lets_small_numbers_be_off_and_no_others() -> None:
    for form in (np.array, list):
        assert difference(form([1.0, 1e-9]), form([1.0, 0.0]), 1e-6, floor=1e-8) == ""
        assert difference(form([1.0, 1e-9]), form([1.0 + 1e-5, 1e-9]), 1e-6, floor=1e-8)
    assert difference(1e-9, 0.0, floor=1e-8) == ""
    assert "floor 1e-08" in difference(1.0, 0.0, 1e-6, floor=1e-8)


def test_an_element_may_be_off_by_some_times_what_the_reference_moves_there() -> None:
    expected = {"x": np.array([1000.0, 1e-12]), "y": [1e-12, 5]}
    moved = [{"x": np.array([1000.0, 2e-12]), "y": [3e-12, 5]}]
    room = MOVEMENTS * 1e-12
    got = {"x": np.array([1000.0, 1e-12 + 0.9 * room]), "y": [1e-12 + 1.9 * room, 5]}
    assert difference(expected, got, 1e-6)
    assert difference(expected, got, 1e-6, moved=moved) == ""
    got["x"][1] = 1e-12 + 1.1 * room
    assert "['x'][1]" in difference(expected, got, 1e-6, moved=moved)
    got["x"][:] = 1000.0 + room, 1e-12
    assert difference(expected, got, 1e-15, moved=moved), "what moves one element excuses no other"


def test_movement_counts_only_where_the_form_is_the_same() -> None:
    expected = {"x": np.array([1.0]), "y": [1.0], "z": 1.0}
    got = {"x": np.array([2.0]), "y": [2.0], "z": 2.0}
    others = [None, [], {}, {"x": np.array([9.0, 9.0]), "y": [9.0, 9.0], "z": 9}, {"x": [9.0], "y": 9.0, "z": "9"}]
    assert difference(expected, got, 1e-6, moved=others)
    assert difference(expected, got, 1e-6, moved=[*others, {"x": np.array([9.0]), "y": [9.0], "z": 9.0}]) == ""


def test_coarse_inputs_do_not_excuse_coarse_arithmetic() -> None:
    # Sums of float32 numbers in double: a step of the inputs moves them by more than double arithmetic ever does.
    step = float(np.finfo("f4").eps)
    expected, moved = np.array([1 / 3]), [np.array([1 / 3 * (1 + step)])]
    coarse = np.array([1 / 3]).astype("f4").astype("f8")
    assert difference(expected, coarse, 1e-12, moved=moved) == ""
    assert difference(expected, coarse, 1e-12, moved=moved, step=step)
    assert difference(float(expected[0]), float(coarse[0]), 1e-12, moved=[float(moved[0][0])], step=step)


def test_a_float_that_crossed_as_a_double_counts_as_a_float() -> None:
    expected, other, near = (float(np.float32(x)) for x in (1e-8, 3e-8, 2e-8))
    assert difference(expected, near, 1e-6, moved=[other], step=float(np.finfo("f4").eps)) == ""


class Asked:
    """Counts how often the reference is asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.times = answers, 0

    def __call__(self) -> tuple[Any, ...]:
        self.times += 1
        return self.answers


def test_the_reference_is_asked_only_when_its_movement_can_decide() -> None:
    expected = {"x": np.array([1.0, 1e-12]), "n": 3}
    right = {"x": np.array([1.0 + 1e-9, 1e-12]), "n": 3}
    asked = Asked(expected)
    assert disagreement(expected, right, 1e-6, excuse=excused_by(asked)) == ""
    for got in ({"x": right["x"], "n": 4}, {"x": np.zeros(3), "n": 3}, {"x": np.array([1.0, np.inf]), "n": 3}, None):
        assert disagreement(expected, got, 1e-6, excuse=excused_by(asked))
    assert disagreement(expected, {"x": np.array([1.0, 2e-12]), "n": 3}, 0.0, excuse=excused_by(asked))
    assert asked.times == 0


def test_the_reference_is_asked_again_before_an_answer_is_wrong() -> None:
    expected, got = np.array([1e-12]), np.array([2e-12])
    still = Asked(expected)
    assert disagreement(expected, got, 1e-6, excuse=excused_by(still))
    assert still.times == ROUNDS
    moving = Asked(np.array([1.5e-12]))
    assert disagreement(expected, got, 1e-6, excuse=excused_by(moving)) == ""
    assert moving.times == 1
    assert disagreement(expected, got, 1e-6) != ""


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


def test_where_the_reference_jumps_an_answer_may_be_on_either_side_and_nowhere_else() -> None:
    # A rounding step takes 5.0 down to 4.99..., whose floor is 4.
    moved = [np.array([4.0 if at % 2 else 5.0, 7.0]) for at in range(8)]
    expected = np.array([5.0, 7.0])
    for answer, right in ((5.0, True), (4.0, True), (16.0, False), (4.5, False), (3.0, False)):
        assert (difference(expected, np.array([answer, 7.0]), 1e-9, moved=moved) == "") is right


def test_of_answers_that_are_let_pass_nothing_is_asked() -> None:
    assert disagreement(np.array([1.0]), np.array([1.5]), 1e-9, excuse=lambda _: "") == ""


def test_of_a_large_answer_nothing_is_kept_but_what_is_in_doubt() -> None:
    expected = {"x": np.ones(1_000_000), "y": [{"z": [0.5] * 1000}]}
    got = {"x": expected["x"].copy(), "y": [{"z": [0.5] * 999 + [0.6]}]}
    got["x"][123_456] = 2.0
    found: list[Spots] = []
    assert disagreement(expected, got, 1e-9, excuse=lambda spots: found.append(spots) or "") == ""  # type: ignore[func-returns-value]
    assert found[0].nbytes < 1000
    for _ in range(96):
        found[0].see(expected)
    assert "answer['x'][123456] is 2.0 where 1.0 is expected (1 of 1000000 elements differ" in found[0].reason()
    moved = {"x": np.full(1_000_000, 1.5), "y": [{"z": [0.5] * 1000}]}
    assert "answer['y'][0]['z'][999] is 0.6" in difference(expected, got, 1e-9, moved=[moved])
    moved["y"] = [{"z": [0.55] * 1000}]
    assert difference(expected, got, 1e-9, moved=[moved]) == ""


def test_of_very_many_numbers_in_doubt_the_furthest_off_and_some_others_are_looked_at() -> None:
    expected, size = np.ones(400_000), 400_000
    got = expected + 1e-6
    got[777] = 9.0
    moved = [expected + by * 1e-6 for by in (1, -1, 2, -2, 1, -1, 2, -2)]
    assert f"[777] is 9.0 where 1.0 is expected ({size} of {size} elements differ" in difference(
        expected, got, 1e-9, moved=moved
    )
    # Wrong in one of five hundred, and no further off than what is excused: those where the reference does not move.
    still = np.arange(size) % 500 == 0
    got[777], moved = 1.0 + 1e-6, [np.where(still, 1.0, each) for each in moved]
    assert difference(expected, got, 1e-9, moved=moved)
    assert size > MOST


def test_of_few_variants_the_least_movement_counts() -> None:
    expected, got = np.array([5.0]), np.array([9.0])
    assert difference(expected, got, 1e-9, moved=[np.array([4.0]), np.array([5.0])])
    assert difference(expected, got, 1e-9, moved=[np.array([4.0]), np.array([6.0])]) == ""


def test_the_order_of_a_dict_counts() -> None:
    assert difference({"b": 1, "a": 2}, {"b": 1, "a": 2}) == ""
    assert "another order" in difference({"b": 1, "a": 2}, {"a": 2, "b": 1})


def test_bools_are_compared_by_their_bytes() -> None:
    right = np.array([True, False, True])
    odd = np.array([4, 0, 1], np.uint8).view(bool)
    assert difference(right, right.copy()) == ""
    assert "[0] is 4 where 1 is expected" in difference(right, odd)


@pytest.mark.parametrize(("right", "got"), [(0.0, -0.0), ([0.0] * 20, [-0.0] * 20), (np.zeros(3), -np.zeros(3))])
def test_the_sign_of_a_zero_counts_where_numbers_must_be_equal(right: Any, got: Any) -> None:
    assert "is -0.0 where 0.0 is expected" in difference(right, got)
    assert difference(right, got, 1e-9) == ""


def test_a_large_real_part_makes_no_room_for_a_wrong_imaginary_one() -> None:
    right = np.array([1e6 + 1e-3j, 2e6 - 1e-3j])
    assert difference(right, right + 1e-1, 1e-6) == ""
    assert "answer.imag[0] is 0.0 where 0.001" in difference(right, right.real.astype(complex), 1e-6)
    assert "answer.imag" in difference(complex(right[0]), complex(1e6), 1e-6)


def test_a_part_that_is_zero_by_symmetry_may_hold_a_rounding_error_of_the_whole() -> None:
    assert difference(np.array([3 + 0j]), np.array([3 + 1e-17j]), 1e-9) == ""
    assert "answer.imag" in difference(np.array([3 + 0j]), np.array([3 + 1e-12j]), 1e-9)


def test_what_moves_by_few_steps_to_both_sides_is_rounding_and_what_moves_to_one_is_a_jump() -> None:
    expected, step = np.array([0.002]), 2.0**-52
    often_still = [np.array([0.002 + by * step]) for by in (0, 0, 0, 0, 0, 1, -1, 1)]
    assert difference(expected, expected + 4 * step, 1e-15, moved=often_still) == ""
    assert difference(expected, expected + 3 * MOVEMENTS * step, 1e-15, moved=often_still)
    one_sided = [np.array([0.002 + by * step]) for by in (0, 0, 0, 0, 0, 1, 1, 1)]
    assert difference(expected, expected + step, 1e-15, moved=one_sided) == ""
    assert difference(expected, expected + 4 * step, 1e-15, moved=one_sided)


X = np.arange(6.0)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (X, X[:, None]),
        (X, X.reshape(2, 3)),
        (X, X[:5]),
        (X, np.zeros((0, 1))),
        (X, X.astype(np.float32)),
        (X, X.tolist()),
        (1.0, 1),
        (1, True),
        ([1, 2], [1]),
        ([1, 2], [1, 2.0]),
        ([[1], [2]], [[1], [2, 3]]),
        ([X], [X[:5]]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": [X]}, {"a": [X[:, None]]}),
        ("a", b"a"),
        (None, 0),
    ],
)
def test_another_form_is_told_whatever_the_values(expected: Any, got: Any) -> None:
    assert other_form(expected, got).startswith("answer")
    assert other_form(got, expected).startswith("answer")
    assert other_form(expected, expected) == ""


def test_values_are_no_form() -> None:
    one, other = {"a": [1, 2.5, "x", X, [b"y"]]}, {"a": [3, -1.0, "longer", X + 1, [b"other"]]}
    assert other_form(one, other) == ""
