"""The forms of a generated Python input: lengths and shapes that differ, patterns, and what is told without them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from test_widening import Tried, fit, steps

from outpace.init.forms import Form
from outpace.init.judge_text import constant
from outpace.init.rehearsal import TURN, Rehearsal
from outpace.init.skeleton import Skeleton, Source, skeletons
from outpace.init.widening import fitted
from outpace.task import Task

WIDEST = Form("any", "any", "some")


def of(parameters: str) -> Skeleton:
    source = Source("code.py", {"code.py": f"def f({parameters}):\n    return 1\n".encode()})
    return skeletons(source, "f", name="small")[0]


def drawn(parameters: str, form: Form, calls: int = 300, size: int = 0) -> list[dict[str, Any]]:
    made = of(parameters)
    assert made.values is not None
    made = made.drawn(made.values.shaped(form))
    space: dict[str, Any] = {}
    exec(compile(made.judge, "judge.py", "exec"), space)
    sizes = [size] if size else []
    return [space["make_input"](np.random.default_rng(seed), *sizes) for seed in range(calls)]


# Lengths


def test_half_of_the_calls_have_one_length_and_others_any_two() -> None:
    made = [(len(each["a"]), len(each["b"])) for each in drawn("a: str, b: list[int]", WIDEST)]
    assert 0.4 < np.mean([a == b for a, b in made]) < 0.65
    assert (
        sum(b > a for a, b in made) > 8
        and sum(5 * b < a for a, b in made) > 20
        and min(made, key=lambda x: x[1])[1] == 0
    )
    assert max(b for _, b in made) <= 256


def test_narrower_lengths_are_never_empty_or_all_one() -> None:
    made = drawn("a: str, b: str", Form("not empty"))
    assert min(len(each["b"]) for each in made) >= 1 and len({len(each["b"]) for each in made}) > 20
    assert all(len(each["a"]) == len(each["b"]) for each in drawn("a: str, b: str", Form()))


@pytest.mark.parametrize("most", [0, 1, 2, 3, 17])
def test_edge_inputs_keep_to_their_size(most: int) -> None:
    made = drawn("a: str, b: list[int], m: list[list[int]]", WIDEST, 40, most) if most else []
    assert all(max(map(len, (each["a"], each["b"]))) <= most for each in made)
    assert all(len(each["m"]) * len(each["m"][0]) <= max(round(most**0.5) ** 2, 1) for each in made if each["m"])


def test_what_answers_any_two_lengths_is_given_them_and_nothing_is_told() -> None:
    found = fit(
        "a: list[int], b: list[int]", lambda given: sum(x < y for x, y in zip(given["a"], given["b"], strict=False))
    )
    assert "another_size(rng, size, most)" in found.skeleton.judge and found.notes() == ()


def test_one_length_is_kept_where_the_reference_wants_it_and_told_with_the_reason() -> None:
    def both(given: dict[str, list[int]]) -> int:
        return sum(x < y for x, y in zip(given["a"], given["b"], strict=True))

    found = fit("a: list[int], b: list[int]", both)
    (note,) = found.notes()
    assert note.startswith("'a' and 'b' always have one length, because otherwise the reference fails (ValueError")
    assert "another_size" not in found.skeleton.judge and "arranged" in found.skeleton.judge


def test_a_second_one_that_may_not_be_empty_has_another_length_all_the_same() -> None:
    found = fit("a: list[int], b: list[int]", lambda given: sum(given["a"]) > max(given["b"]))
    (note,) = found.notes()
    assert note.startswith("'b' is never empty where 'a' is not") and "other = another_size" in found.skeleton.judge


# Matrices


def shapes(form: Form, parameters: str = "a: list[list[int]], b: list[list[int]]") -> list[list[tuple[int, ...]]]:
    return [[np.array(value).shape for value in each.values()] for each in drawn(parameters, form, 120)]


def test_matrices_have_rows_and_columns_of_their_own_or_chained_or_alike_or_are_square() -> None:
    free, chained, alike, square = (shapes(Form(matrices=each)) for each in ("any", "chained", "alike", "square"))
    assert sum(a != b for a, b in free) > 60 and sum(a[0] != a[1] for a, _ in free) > 30
    assert all(a[1] == b[0] for a, b in chained) and sum(b[1] not in a for a, b in chained) > 20
    assert all(a == b for a, b in alike) and sum(a[0] > 2 * a[1] for a, _ in alike) > 10
    assert all(a == b and a[0] == a[1] for a, b in square) and len({a for a, _ in square}) > 3


def product(given: dict[str, Any]) -> Any:
    return [
        [sum(x * given["b"][k][j] for k, x in enumerate(row)) for j in range(len(given["b"][0]))] for row in given["a"]
    ]


def added(given: dict[str, Any]) -> Any:
    pairs = zip(given["a"], given["b"], strict=True)
    return [[x + y for x, y in zip(*rows, strict=True)] for rows in pairs]


@pytest.mark.parametrize(
    ("function", "form"),
    [
        (product, "each of 'a' and 'b' has as many rows as the one before has columns"),
        (added, "'a' and 'b' always have the same rows and columns"),
        (
            lambda given: added({"a": given["a"], "b": [*zip(*given["b"], strict=True)]}),
            "matrices are always square and of one size",
        ),
    ],
)
def test_the_widest_shapes_that_work_are_kept_and_the_rest_is_told(function: Callable[..., Any], form: str) -> None:
    found = fit("a: list[list[int]], b: list[list[int]]", function)
    (note,) = found.notes()
    assert note.startswith(f"{form}, because otherwise the reference fails (") and steps(found) == {}


def test_one_matrix_is_oblong_or_square() -> None:
    found = fit("m: list[list[int]]", lambda given: [given["m"][at][at] for at in range(len(given["m"]))])
    assert found.notes()[0].startswith("matrices are always square, because otherwise")
    assert fit("m: list[list[int]]", lambda given: len(given["m"])).notes() == ()


# Patterns


@pytest.mark.parametrize(
    "parameter", ["x: str", "x: bytes", "x: list[int]", "x: list[float]", "x: np.ndarray", "x: list[str]"]
)
def test_a_fifth_is_sorted_mirrored_or_repeated(parameter: str) -> None:
    made = [each["x"] for each in drawn(parameter, WIDEST, 1000)]
    assert len({type(each) for each in made}) == 1
    lists = [list(each) for each in made]
    assert sum(each == sorted(each) for each in lists) >= 8
    assert sum(each == sorted(each, reverse=True) for each in lists) >= 8
    assert sum(each == each[::-1] and len(set(each)) > 9 for each in lists) >= 15
    assert sum(len(set(each)) == 1 for each in lists) >= 2
    assert sum(any(each[at:] == each[:-at] for at in range(1, len(each) // 3)) for each in lists) >= 25
    untouched = [list(each["x"]) for each in drawn(parameter, Form(), 1000)]
    assert sum(each == each[::-1] and len(set(each)) > 9 for each in untouched) == 0


@pytest.mark.parametrize("kind", ["str", "bytes", "list[int]", "list[str]", "list[float]", "np.ndarray"])
def test_the_second_of_a_kind_often_has_a_long_part_of_the_first_in_it(kind: str) -> None:
    alike = moved = 0
    for each in drawn(f"a: {kind}, b: {kind}", WIDEST, 400):
        first, second = list(each["a"]), list(each["b"])
        if len(first) > 40 and len(second) > 40 and len(set(first)) > 9:
            places = [at for at in range(len(second) - 19) if second[at : at + 20] == first[at : at + 20]]
            alike += bool(places)
            runs = {tuple(first[at : at + 20]) for at in range(len(first) - 19)}
            moved += not places and any(tuple(second[at : at + 20]) in runs for at in range(len(second) - 19))
    assert alike >= 3 and moved >= 10


def test_what_has_a_form_of_its_own_is_not_arranged() -> None:
    made = of("json_text, sorted_items: list[int], m: list[list[int]], d: dict[str, int]")
    assert made.values is not None and "patterns" not in made.values.forms()
    assert "arranged" not in made.drawn(made.values.shaped(WIDEST)).judge


def test_patterns_that_the_reference_fails_on_are_left_out_and_told() -> None:
    def deep(given: dict[str, list[int]]) -> int:
        if len(given["xs"]) > 50 and sorted(given["xs"]) == given["xs"]:
            raise RecursionError("too deep")
        return 1

    found = fit("xs: list[int]", deep)
    (note,) = found.notes()
    assert note.startswith(
        "nothing is sorted, mirrored or repeated on purpose, because otherwise the reference fails (Recursion"
    )
    assert "arranged" not in found.skeleton.judge and steps(found) == {}


def test_what_fails_on_rare_patterns_is_found_for_nothing_but_patterns_is_drawn_then() -> None:
    def scaled(given: dict[str, list[int]]) -> float:
        return 1 / (max(given["xs"]) - min(given["xs"])) if len(given["xs"]) > 100 else 1.0

    (note,) = fit("xs: list[int]", scaled).notes()
    assert note.startswith("nothing is sorted") and "ZeroDivisionError" in note


# Sizes


def test_sizes_go_down_to_a_hundred_now_and_then_and_edges_stay_small() -> None:
    made = of("a: str, m: list[list[int]]").sized(16_384)
    space: dict[str, Any] = {}
    exec(compile(made.judge, "judge.py", "exec"), space)
    sizes = [space["draw_size"](np.random.default_rng(seed), 16_384) for seed in range(2000)]
    assert 0.85 < np.mean([each >= 8192 for each in sizes]) < 0.95 and 100 <= min(sizes) < 130 and max(sizes) <= 16_384
    decades = np.histogram([math.log10(each) for each in sizes if each < 8192], np.linspace(2, math.log10(8192), 5))[0]
    assert decades.min() > 25
    assert {space["draw_size"](np.random.default_rng(seed), 100) for seed in range(300)} == set(range(50, 101))
    sides = [len(space["make_input"](np.random.default_rng(seed))["m"]) for seed in range(300)]
    assert 10 <= min(sides) < 30 and sum(each >= 64 for each in sides) > 240 and constant(made.judge, "SIZE") == "16384"


# The text


@pytest.mark.parametrize(
    "parameters",
    [
        "a: str, b: str",
        "a: list[float], b: list[float]",
        "a: list[list[float]], b: list[list[float]], reverse=False",
        "words: list[str], text: str, word: str, width=70",
    ],
)
def test_a_judge_of_the_widest_form_is_short_and_quick(parameters: str) -> None:
    made = of(parameters)
    assert made.values is not None
    judge = made.drawn(made.values.shaped(WIDEST)).judge
    lines = judge.splitlines()
    assert len(lines) < 115 and max(map(len, lines)) <= 120
    space: dict[str, Any] = {}
    exec(compile(judge, "judge.py", "exec"), space)
    began = time.process_time()
    for seed in range(50):
        space["make_input"](np.random.default_rng(seed), 1024)
    assert time.process_time() - began < 1, "an input of this size takes a few milliseconds"


def test_floats_come_with_a_note_that_none_is_nan_and_others_do_not() -> None:
    for parameters, expected in (("xs: list[float]", True), ("x: float", True), ("xs: list[int], s: str", False)):
        assert any("NaN" in note for note in of(parameters).unasked) == expected
    for c_type, expected in (("float", True), ("double", True), ("int", False)):
        source = Source("code.c", {"code.c": f"int f(const {c_type} *x, int n) {{ return x[n - 1] > 1; }}".encode()})
        assert any("NaN" in note for note in skeletons(source, "f", name="small")[0].unasked) == expected


def test_patterns_that_take_far_longer_are_left_out() -> None:
    class Sorted(Tried):
        """Takes ten times as long where patterns are drawn in all calls."""

        def turns(self, task: Task, _: float) -> tuple[list[Any], list[float]]:
            slow = "PATTERNS = 1.0" in task.text("judge.py")
            return [0] * TURN, [TURN * 1e-3 * (10 if slow else 1)]

    skeleton = of("xs: list[int]")
    (note,) = fitted(cast(Rehearsal, Sorted(lambda _: 1)), skeleton).notes()
    assert note.startswith("nothing is sorted") and "calls take 10 times as long" in note
