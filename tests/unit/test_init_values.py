"""The values of a generated Python judge: as wide as Python has them, ordinary ones among them, narrower by steps."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from outpace.init.judge_text import judge_file
from outpace.init.python_inputs import PythonFunction, PythonParameter
from outpace.init.values import KINDS, TIED, Values

ALL = [(kind, step) for kind in KINDS for step in range(len(KINDS[kind]))]


def judge(kind: str, step: int) -> str:
    beside = {"words": "words", "text": "text"} if kind in TIED else {}
    parameters = tuple(PythonParameter(name, (each,)) for name, each in {**beside, "value": kind}.items())
    function = PythonFunction("f", parameters, (), False, 1, "", False, False)
    values = Values(function, {each.name: each.kinds[0] for each in parameters}, {"value": step})
    return judge_file("small", values.lines(), {"value": "value"})


def drawn(kind: str, step: int = 0, size: int = 100, calls: int = 60) -> list[Any]:
    space: dict[str, Any] = {}
    exec(compile(judge(kind, step), "judge.py", "exec"), space)
    return [space["make_input"](np.random.default_rng(seed), size)["value"] for seed in range(calls)]


@pytest.mark.parametrize(("kind", "step"), ALL)
def test_each_width_of_each_kind_makes_values_of_all_sizes(kind: str, step: int) -> None:
    for size in (1, 2, 3, 17, 256):
        made = drawn(kind, step, size, 12)
        assert size < 17 or len({str(value) for value in made}) > 1 or kind == "json"


@pytest.mark.parametrize(("kind", "step"), ALL)
def test_a_judge_stays_short_enough_to_be_read(kind: str, step: int) -> None:
    lines = judge(kind, step).splitlines()
    assert len(lines) < 110 and max(map(len, lines)) <= 120


@pytest.mark.parametrize("kind", ["ints", "matrix", "sorted", "integer", "count", "few"])
def test_whole_numbers_go_beyond_64_bits_in_a_good_share_of_the_calls_and_are_small_in_others(kind: str) -> None:
    made = [np.array(value, object).reshape(-1) for value in drawn(kind, calls=200)]
    most = [max((abs(int(each)) for each in values), default=0).bit_length() for values in made]
    assert sum(bits > 64 for bits in most) >= 4 and sum(bits > 32 for bits in most) >= 20
    assert sum(bits <= 10 for bits in most) > 60
    flat = [int(each) for values in made for each in values]
    assert min(flat) < -(1 << 32) and max(flat) > 1 << 32
    assert any(value & 1 for value in flat if abs(value) > 1 << 64), "low bits count too"


@pytest.mark.parametrize("kind", ["floats", "real matrix", "points", "array", "real"])
def test_floats_have_many_exponents_both_signs_and_all_digits(kind: str) -> None:
    made = [np.atleast_1d(np.array(value)).reshape(-1) for value in drawn(kind)]
    sizes = np.array([np.median(np.abs(values)) for values in made])
    assert sizes.max() > 1e100 and sizes.min() < 1e-100 and np.isfinite(np.concatenate(made)).all()
    assert np.count_nonzero((sizes > 1) & (sizes < 1e4)) > 15
    flat = np.concatenate(made)
    assert (flat < 0).any() and (flat > 0).any()
    assert np.mean(flat != np.round(flat, 3)) > 0.5 and np.mean(np.mod(flat, 1.0) != 0) > 0.5
    assert kind == "real" or any(np.ptp(np.log10(np.abs(values))) > 100 for values in made if values.size)


@pytest.mark.parametrize("kind", ["text", "lines", "words", "word", "texts by word", "counts", "weights", "json"])
def test_letters_take_one_to_four_bytes(kind: str) -> None:
    made = drawn(kind, size=300)
    texts = [
        value if isinstance(value, str) else "".join(map(str, value.items() if isinstance(value, dict) else value))
        for value in made
    ]
    letters = set("".join(texts))
    assert {len(letter.encode()) for letter in letters} == {1, 2, 3, 4}
    assert not any("\ud800" <= letter < "\ue000" for letter in letters)
    assert kind == "texts by word" or sum(text.isascii() for text in texts) > 15


def test_texts_have_odd_cases_and_blanks_and_words_may_be_empty_and_come_again() -> None:
    letters = set("".join(drawn("text", size=3000)))
    assert letters >= set("ßİſﬁé\n \u2003\u2028\x85\0😀") and any(each.isspace() and each > "\xff" for each in letters)
    words = drawn("words")
    assert any("" in each for each in words) and all(len(set(each)) < len(each) for each in words if len(each) > 9)
    assert not any("" in each for each in drawn("words", 1)) and max(map(len, words[0])) > 9


@pytest.mark.parametrize("kind", ["ints", "naturals", "matrix", "floats", "array", "count", "text"])
def test_each_step_is_narrower_than_the_one_before(kind: str) -> None:
    def width(step: int) -> float:
        made = drawn(kind, step)
        if kind == "text":
            return max(map(ord, "".join(made)))
        return max(abs(float(each)) for value in made for each in np.array(value, object).reshape(-1))

    # Zeros are a width of their own, before all others.
    first = sum("with_zeros" in each.made for each in KINDS[kind])
    widths = [width(step) for step in range(first, len(KINDS[kind]))]
    assert widths == sorted(widths, reverse=True) and widths[0] > 100 * widths[-1]


@pytest.mark.parametrize("step", range(len(KINDS["json"])))
def test_json_is_json(step: int) -> None:
    made = [json.loads(text) for size in (4, 100, 5000) for text in drawn("json", step, size, 20)]
    assert step == 0 or all(isinstance(value, list) for value in made)


def test_json_of_any_form_has_values_of_all_kinds_in_lists_and_objects_and_alone() -> None:
    def flat(value: Any) -> list[Any]:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [value, *(each for item in inner for each in flat(item))]

    made = [json.loads(text) for size in (1, 60, 2000) for text in drawn("json", 0, size, 30)]
    found = [each for value in made for each in flat(value)]
    assert {type(value) for value in made} >= {list, dict, int}
    assert {type(each) for each in found} == {list, dict, str, int, float, bool, type(None)}
    assert [] in found and {} in found and True in found and False in found


@pytest.mark.parametrize("kind", ["floats", "array", "points", "real matrix", "weights"])
def test_floats_are_whole_or_equal_to_each_other_in_some_calls(kind: str) -> None:
    made = [value.values() if isinstance(value, dict) else value for value in drawn(kind, calls=100)]
    rows = [np.array(list(value), float).reshape(-1) for value in made]
    assert 10 < sum(len(np.unique(row)) < 0.9 * len(row) for row in rows) < 60
    assert sum(bool((row == np.round(row)).mean() > 0.4) and float(np.abs(row).max()) < 1e6 for row in rows) > 4


@pytest.mark.parametrize("kind", ["floats", "array", "points", "real matrix", "table"])
def test_zeros_of_both_signs_are_among_floats_until_they_are_left_out(kind: str) -> None:
    first = sum("with_zeros" in each.made for each in KINDS[kind])
    assert first >= 4
    for step, expected in ((0, True), (first - 1, True), (first, False)):
        made = [np.array(value).reshape(-1) for value in drawn(kind, step, calls=100)]
        signs = {bool(np.signbit(each)) for values in made for each in values if each == 0}
        # Rounding makes zeros no more, for numbers below 1 stay as they are.
        assert (signs == {True, False}) if expected else not signs
        assert sum(bool((values == 0).any()) for values in made) < 50
