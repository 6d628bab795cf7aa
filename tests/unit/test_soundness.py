"""Soundness: a part of an input that no answer depends on is found, and honest inputs are left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from outpace.domains.base import Input
from outpace.init.soundness import FAILED, idle_numbers, idle_parts, swallowed, truncated
from outpace.judge.compare import difference
from outpace.task import Output

Function = Callable[[dict[str, Any]], Any]


def asked(function: Function, tolerance: float = 0.0) -> Any:
    """A function as the rehearsal would ask it, and the judge's comparison."""

    def ask(inputs: Sequence[Input]) -> list[Any]:
        return [function(dict(given)) for given in inputs]

    def differs(_: Input, answer: Any, expected: Any) -> str:
        return difference(expected, answer, tolerance)

    return ask, differs


def parts(function: Function, inputs: Sequence[dict[str, Any]], tolerance: float = 0.0) -> list[str]:
    ask, differs = asked(function, tolerance)
    answered = [(given, function(dict(given))) for given in inputs]
    return idle_parts(answered, ask, differs, np.random.default_rng(3))


def numbers(function: Function, inputs: Sequence[dict[str, Any]]) -> list[str]:
    ask, differs = asked(function)
    return idle_numbers(inputs, [(given, function(dict(given))) for given in inputs], ask, differs)


def floats(count: int = 4, size: int = 65_536) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    return [{"x": rng.standard_normal(size)} for _ in range(count)]


def test_nine_elements_of_many_are_too_few() -> None:
    (found,) = parts(lambda given: {"return": float(given["x"][:9].sum())}, floats())
    assert found.startswith("none of 40 elements of 'x'") and "make_input" in found


@pytest.mark.parametrize("function", [np.sum, np.max, np.median, lambda x: float(np.count_nonzero(x > 1))])
def test_what_uses_every_element_is_left_alone(function: Callable[[Any], Any]) -> None:
    assert parts(lambda given: {"return": float(function(given["x"]))}, floats(size=501)) == []


def test_an_array_that_comes_back_as_it_was_is_not_used() -> None:
    def touches_nine(given: dict[str, Any]) -> dict[str, Any]:
        x = given["x"].copy()
        x[:9] *= 2
        return {"x": x}

    assert len(parts(touches_nine, floats())) == 1


def test_an_array_that_is_written_over_is_an_output_and_no_idle_input() -> None:
    def fills(given: dict[str, Any]) -> dict[str, Any]:
        return {"x": np.arange(given["x"].size, dtype=np.float64)}

    assert parts(fills, floats()) == []


def test_an_element_the_tolerance_hides_does_not_matter() -> None:
    inputs = [{"x": np.abs(each["x"]) + 1} for each in floats(size=60_000)]
    assert parts(lambda given: {"return": float(given["x"].sum())}, inputs, 1e-12) == []
    assert len(parts(lambda given: {"return": float(given["x"].sum())}, inputs, 1e-2)) == 1


@pytest.mark.parametrize(
    ("value", "function"),
    [
        ("the quick brown fox " * 20, lambda text: text.split()),
        (b"abcdefgh" * 40, lambda raw: sorted(raw)),
        (list(range(200)), lambda items: [each * 2 for each in items]),
        ([[1.5, 2.5]] * 50, lambda rows: [sum(row) for row in rows]),
        (["one", "two", "three"] * 30, lambda words: "".join(words)),
        ({"a": 1, "b": 2, "c": 3}, lambda counts: sum(counts.values())),
    ],
)
def test_texts_lists_and_dicts_are_changed_too(value: Any, function: Callable[[Any], Any]) -> None:
    assert parts(lambda given: function(given["value"]), [{"value": value}] * 2) == []
    assert len(parts(lambda given: len(given["value"]), [{"value": value}] * 2)) == 1


def test_a_letter_of_any_alphabet_is_changed_alone() -> None:
    inputs = [{"text": "été Привет 日本語 😀 " * 20 + "."}] * 2
    assert parts(lambda given: given["text"], inputs) == []
    (found,) = parts(lambda given: given["text"][-1:] + str(given["text"].count("é") > 30), inputs)
    assert "elements of 'text'" in found, "all other letters of the text stay what they are"


def test_a_place_in_an_array_stays_a_place() -> None:
    rng = np.random.default_rng(2)
    inputs = [{"at": rng.integers(0, 100, 500), "x": rng.standard_normal(100)} for _ in range(4)]
    assert parts(lambda given: {"return": float(given["x"][given["at"]].sum())}, inputs) == []


def test_a_reference_that_fails_on_a_changed_input_has_looked_at_it() -> None:
    answered = [({"x": [1, 2, 3, 4]}, 10)]
    assert idle_parts(answered, lambda inputs: [FAILED] * len(inputs), lambda *_: "", np.random.default_rng(0)) == []


def test_a_number_that_is_always_the_same_is_named() -> None:
    (found,) = numbers(lambda given: given["x"] + given["k"], [{"x": number, "k": 3} for number in range(8)])
    assert "'k' is always 3" in found


def test_a_number_that_nothing_depends_on_is_named() -> None:
    (found,) = numbers(lambda given: given["x"], [{"x": number, "k": number % 3} for number in range(8)])
    assert "another 'k' does not change the answer" in found


def test_a_length_is_not_swapped_for_a_longer_one() -> None:
    def careful(given: dict[str, Any]) -> float:
        assert given["n"] <= given["x"].size and given["rows"] * given["n"] == given["m"].size
        return float(given["x"][: given["n"]].sum())

    inputs = [
        {"x": np.ones(n), "n": n, "m": np.ones(n * rows), "rows": rows, "out": Output(n, "f8")}
        for n, rows in ((5, 2), (7, 3), (9, 4), (11, 5))
    ]
    assert numbers(careful, inputs) == []


def test_numbers_that_zeros_would_pass_for_are_counted() -> None:
    wild = np.concatenate([np.full(90, 1e-12), np.full(10, 1.0)])
    assert "90 of 100 numbers in 'y'" in swallowed([{"y": wild}], 1e-9, 0xA5)[0]
    assert swallowed([{"y": np.ones(100)}], 1e-9, 0xA5) == []


def test_memory_nobody_wrote_to_is_no_small_number() -> None:
    y = np.frombuffer(bytes([0xA5]) * 800, np.float64).copy()
    y[:10] = 1.0
    assert swallowed([{"y": y}], 1e-9, 0xA5) == []


def test_an_answer_that_is_longer_with_more_room_was_cut_off() -> None:
    short, poison = np.frombuffer(b"abcd", np.int8), bytes([0xA5])
    whole, more = np.frombuffer(b"abcd" + 4 * poison, np.int8), np.frombuffer(b"abcdefgh", np.int8)
    assert truncated([{"out": short, "return": 4}], [{"out": whole, "return": 4}], 0xA5) == ""
    assert truncated([{"out": short, "return": 4}], [{"out": more, "return": 4}], 0xA5) == "out"
    assert truncated([{"out": short, "return": -1}], [{"out": whole, "return": 8}], 0xA5) == "return"
