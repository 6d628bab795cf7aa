"""Widening: each argument is as wide as the reference takes it, and only the one that is to blame is narrowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from outpace.domains.program import ProgramDomain
from outpace.errors import TaskError
from outpace.init.rehearsal import TURN, Rehearsal, Rehearsed
from outpace.init.skeleton import Source, skeletons
from outpace.init.widening import Fitted, fitted, tamer
from outpace.judge.compare import nonfinite
from outpace.task import Task


class Slow(Exception):
    """What stands for a call that takes too long."""


class Tried:
    """A rehearsal without a jail, which counts how often it was asked."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.asked = function, 0

    def rehearse(self, task: Task, calls: int = 20) -> Rehearsed:
        self.asked += 1
        domain, rng = ProgramDomain(task), np.random.default_rng(self.asked)
        try:
            for _ in range(calls):
                if odd := nonfinite(self.function(domain.make_input(rng))):
                    return Rehearsed(problem=f"the reference's own {odd}")
        except Slow:
            return Rehearsed(problem="timed_out", slow=True)
        except Exception as error:
            return Rehearsed(problem=f"the reference itself failed (crashed): line 3: {type(error).__name__}: {error}")
        return Rehearsed(1e-3, 1e-6)

    weakness = rehearse

    def turns(self, task: Task, _: float) -> tuple[list[Any], list[float]]:
        found = self.rehearse(task, 400)
        if found.problem:
            raise TaskError(found.problem)
        return [0] * TURN, [TURN * 1e-3]


def fit(parameters: str, function: Callable[..., Any], most: int = 30) -> Fitted:
    source = Source("code.py", {"code.py": f"def f({parameters}):\n    return 1\n".encode()})
    tried = Tried(function)
    found = fitted(cast(Rehearsal, tried), skeletons(source, "f", name="small")[0])
    assert not found.found.problem and tried.asked <= most
    return found


def steps(found: Fitted) -> dict[str, int]:
    assert found.skeleton.values is not None
    return {name: step for name, step in found.skeleton.values.steps.items() if step}


def test_what_takes_everything_is_rehearsed_once_and_gets_everything() -> None:
    found = fit("text: str, xs: list[int], n: int", lambda _: 1, most=3)
    assert steps(found) == {} and found.notes() == ()
    assert "0x110000" in found.skeleton.judge and "94" in found.skeleton.judge


def test_a_number_that_counts_something_is_small_and_the_others_stay_wide() -> None:
    def repeats(given: dict[str, int]) -> int:
        if given["n"] > 100_000:
            raise Slow
        return given["n"]

    found = fit("text: str, xs: list[int], n: int", repeats)
    assert steps(found) == {"n": 3}
    (note,) = found.notes()
    assert "'n' is made of small positive numbers alone" in note and "a call takes more than 0.5 s" in note


def test_a_text_in_one_alphabet_is_drawn_in_that_one_with_the_reason() -> None:
    found = fit("text: str, xs: list[int]", lambda given: len(given["text"].encode("latin-1")))
    assert steps(found) == {"text": 2} and "0x100" in found.skeleton.judge
    (note,) = found.notes()
    assert "the letters of Latin-1" in note and "UnicodeEncodeError" in note


def test_factors_that_are_too_large_together_are_narrowed_together() -> None:
    def dot(given: dict[str, list[float]]) -> float:
        return sum(x * y for x, y in zip(given["a"], given["b"], strict=False))

    found = fit("a: list[float], b: list[float], words: list[str]", dot)
    assert steps(found) == {"a": 1, "b": 1} and "1e150" in found.notes()[0]


def test_a_rare_failure_is_found_and_narrows_nothing_else() -> None:
    found = fit("xs: list[int], k: int", lambda given: 1 // given["k"])
    assert steps(found) == {"k": 1}, "0 is drawn now and then"


def test_a_kind_that_fails_at_its_narrowest_is_no_better_narrower() -> None:
    def fails(_: dict[str, list[int]]) -> None:
        raise TypeError("no numbers")

    source = Source("code.py", {"code.py": b"def f(xs: list[int]):\n    return 1\n"})
    assert "no numbers" in fitted(cast(Rehearsal, Tried(fails)), skeletons(source, "f", name="small")[0]).found.problem


def test_for_doubts_everything_is_narrowed_or_what_they_name() -> None:
    wide = fit("text: str, k: int", lambda _: 1)
    tried, doubts = cast(Rehearsal, Tried(lambda _: 1)), ("another 'k' does not change the answer",)
    all_of_them, named = tamer(tried, wide, doubts), tamer(tried, wide, doubts, "named")
    assert all_of_them is not None and set(steps(all_of_them)) == {"k", "text"}
    assert named is not None and steps(named) == {"k": 3} and "another 'k'" in named.notes()[0]
    assert tamer(tried, all_of_them, doubts) is None and tamer(tried, named, doubts, "named") is None


def test_for_doubts_the_form_alone_is_narrowed_too() -> None:
    wide = fit("a: str, b: str", lambda _: 1)
    made = tamer(cast(Rehearsal, Tried(lambda _: 1)), wide, ("only 2 of 40 elements of 'a'",), "form")
    assert made is not None and steps(made) == {} and "arranged" not in made.skeleton.judge
    assert [note.split(", because")[0] for note in made.notes()] == [
        "'a' and 'b' always have one length",
        "nothing is sorted, mirrored or repeated on purpose",
    ]
    assert "a judge would not notice enough" in made.notes()[0]


@pytest.mark.parametrize("function", [lambda xs: math.fsum(x**2 for x in xs), lambda xs: max(xs, default=0) ** 2])
def test_exponents_are_as_large_as_a_square_lets_them_be(function: Callable[..., Any]) -> None:
    found = fit("xs: list[float]", lambda given: function(given["xs"]))
    assert steps(found) == {"xs": 1} and "1e150" in found.notes()[0]
