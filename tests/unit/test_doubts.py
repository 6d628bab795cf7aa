"""Doubtful answers are all looked into, together, and excused by nothing but the reference's own rounding."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from conftest import python_task
from outpace.domains.program import ProgramDomain
from outpace.errors import HarnessError
from outpace.judge import doubts as judging
from outpace.judge import drawn_doubts as module
from outpace.judge.compare import disagreement
from outpace.judge.doubts import AT_ONCE, FIRST, TURNS, VAIN, Doubts
from outpace.judge.drawn_doubts import FEWEST, Doubt
from outpace.judge.spots import Spots
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


def settle(found: Doubts, doubts: Sequence[Doubt], seconds: float = 1e-6) -> None:
    for doubt in doubts:
        found.keep(doubt, seconds)
    found.settle()


def test_the_doubts_of_a_pair_are_settled_in_few_processes() -> None:
    reference = Reference()
    found = doubts(reference)
    settle(found, [doubtful(2.0, found) for _ in range(20)])
    # Some may hardly have moved by chance, and are asked once more.
    assert reference.asked[0] == FIRST * (1 + TURNS[0]) and len(reference.asked) < 10
    assert sum(reference.asked) >= 20 * (1 + TURNS[0])


def test_one_wrong_answer_among_many_doubtful_ones_is_found() -> None:
    found = doubts(Reference())
    many = [doubtful(2.0, found) for _ in range(200)]
    many.insert(77, doubtful(1e9, found))
    with pytest.raises(Failed, match=r"is 1000000000\.0 where 0\.0"):
        settle(found, many)


def test_a_reference_that_remembers_excuses_nothing() -> None:
    calls = 0

    def ask(inputs: Sequence[Any]) -> list[Any]:
        nonlocal calls
        calls += len(inputs)
        return [sum(given["x"]) + calls + at for at, given in enumerate(inputs)]

    found = doubts(ask)
    with pytest.raises(Failed, match=r"is 2\.0 where 0\.0"):
        settle(found, [doubtful(2.0, found)])


def test_a_variant_that_breaks_the_reference_spoils_no_other() -> None:
    fragile = {"x": [1e16, 1.0, -1e16, 0.25]}

    def ask(inputs: Sequence[Any]) -> list[Any]:
        if any(len(given["x"]) == 4 and given != fragile for given in inputs):
            raise HarnessError("it fell")
        return [sum(given["x"]) for given in inputs]

    found = doubts(ask)
    settle(found, [doubtful(2.0, found), doubtful(2.0, found)])
    doubt = found.check(fragile, 2.25, sum(fragile["x"]))
    assert doubt is not None
    with pytest.raises(Failed, match=r"is 2\.25 where"):
        settle(found, [doubtful(2.0, found), doubt])


def test_a_variant_that_breaks_the_reference_is_found_in_few_processes() -> None:
    asked = []

    def ask(inputs: Sequence[Any]) -> list[Any]:
        asked.append(len(inputs))
        if any(given["x"][1] == 3.0 for given in inputs):
            raise HarnessError("it fell")
        return [sum(given["x"]) for given in inputs]

    found = doubts(ask)
    fragile = found.check({"x": [1e300, 3.0, -1e300]}, 1e290, 0.0)
    assert fragile is not None
    with pytest.raises(Failed):
        settle(found, [*(doubtful(2.0, found) for _ in range(99)), fragile])
    assert len(asked) < 3 * 20


def test_a_reference_that_fails_on_every_variant_is_not_asked_for_ever() -> None:
    asked = []

    def ask(inputs: Sequence[Any]) -> list[Any]:
        asked.append(len(inputs))
        raise HarnessError("it fell")

    found = doubts(ask)
    with pytest.raises(Failed):
        settle(found, [doubtful(2.0, found) for _ in range(4000)])
    assert len(asked) <= VAIN


def test_at_the_end_of_its_range_the_reference_is_asked_about_steps_to_one_side() -> None:
    ends = {"x": [1.0, 1e16, 1.0, -1e16]}

    def ask(inputs: Sequence[Any]) -> list[Any]:
        if any(abs(given["x"][0]) > 1 for given in inputs):
            raise HarnessError("out of its range")
        return [sum(given["x"]) for given in inputs]

    found = doubts(ask)
    many = [found.check(ends, 2.0 + sum(ends["x"]), sum(ends["x"])) for _ in range(50)]
    settle(found, [each for each in many if each is not None])


def test_a_reference_that_wants_order_is_asked_about_steps_of_all_numbers_together() -> None:
    times = {"x": [1e16, 1e16, 1.0, -1e16, -1e16]}

    def ask(inputs: Sequence[Any]) -> list[Any]:
        if any(given["x"][0] != given["x"][1] for given in inputs):
            raise HarnessError("two times that are one are two")
        return [sum(given["x"]) for given in inputs]

    found = doubts(ask)
    doubt = found.check({"x": np.array(times["x"])}, 3.0, sum(times["x"]))
    assert doubt is not None
    settle(found, [doubt])


def test_when_doubts_have_taken_long_all_is_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "PATIENT", 0.0)
    reference = Reference()
    found = doubts(reference)
    settle(found, [doubtful(2.0, found) for _ in range(20)])
    assert len(reference.asked) == 2 and sum(reference.asked) == 20 * (1 + AT_ONCE)
    with pytest.raises(Failed):
        settle(found, [doubtful(1e9, found)])


def test_of_large_answers_few_are_asked_for_at_once() -> None:
    size = 1 << 20
    expected = np.ones(size)
    got = expected.copy()
    got[7] = 1 + 1e-6
    asked = []

    def ask(inputs: Sequence[Any]) -> list[Any]:
        asked.append(len(inputs))
        return [
            np.full(size, 1 + 1e-6 * (at % 3 - 1)) if at % (1 + TURNS[0]) else expected for at in range(len(inputs))
        ]

    found = doubts(ask)
    for _ in range(9):
        doubt = found.check({"x": [1.0]}, got, expected)
        assert doubt is not None
        found.keep(doubt, 1e-6)
    found.settle(100.0)
    assert max(asked) * expected.nbytes <= judging.BYTES


class Slow(Reference):
    """Takes a while over each call."""

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        time.sleep(0.002 * len(inputs))
        return super().__call__(inputs)


def test_a_slow_reference_is_asked_about_the_first_few_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "SECONDS", 0.01)
    reference = Slow()
    found = doubts(reference)
    settle(found, [doubtful(2.0, found) for _ in range(200)], 1e-3)
    assert sum(reference.asked) <= FIRST * (1 + TURNS[0] + 1 + AT_ONCE)
    with pytest.raises(Failed):
        settle(found, [doubtful(1e9, found) for _ in range(200)], 1e-3)


def test_a_pair_that_took_long_has_time_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "SECONDS", 0.0)
    asked = []
    for seconds in (0.0, 20.0):
        reference = Slow()
        found = doubts(reference)
        for _ in range(200):
            found.keep(doubtful(2.0, found), 1e-6)
        found.settle(seconds)
        asked.append(sum(reference.asked))
    assert asked[1] >= 200 * (1 + TURNS[0]) > asked[0]


def test_what_is_far_off_is_not_asked_about_again_and_again() -> None:
    reference = Reference()
    found = doubts(reference)
    with pytest.raises(Failed, match="1000000000"):
        settle(found, [doubtful(1e9, found)])
    assert len(reference.asked) == 2


def test_a_thousand_pairs_of_numbers_take_little_more_than_one_array() -> None:
    pairs = [[number, number * 0.5 + 0.1] for number in range(20_000)]
    wrong = [[number, value * (1 + 1e-8)] for number, value in pairs]
    found: list[Spots] = []
    assert disagreement(pairs, wrong, 1e-9, excuse=lambda spots: found.append(spots) or "") == ""  # type: ignore[func-returns-value]
    assert found[0].nbytes < 5_000_000
    for _ in range(8):
        found[0].see(pairs)
    assert "answer[0][1] is " in found[0].reason() and "(20000 of 20000 numbers differ" in found[0].reason()


def test_many_wrong_answers_take_no_more_processes_than_one() -> None:
    reference = Reference()
    found = doubts(reference)
    with pytest.raises(Failed):
        settle(found, [doubtful(1e9, found) for _ in range(300)])
    assert len(reference.asked) <= len(TURNS)


def test_however_many_honest_answers_are_doubtful_none_is_refused_for_that() -> None:
    class Seldom(Reference):
        """Moves by too little at first."""

        def __call__(self, inputs: Sequence[Any]) -> list[Any]:
            answers = super().__call__(inputs)
            return [0.0] * len(answers) if len(self.asked) <= 2 else answers

    reference = Seldom()
    found = doubts(reference)
    settle(found, [doubtful(2.0, found) for _ in range(400)])
    assert 2 < len(reference.asked) <= len(TURNS)


def test_of_slow_calls_some_doubts_are_drawn() -> None:
    reference = Reference()
    found = doubts(reference)
    settle(found, [doubtful(2.0, found) for _ in range(50)], 0.5)
    assert FEWEST * (1 + TURNS[0]) <= sum(reference.asked) < 50 * (1 + TURNS[0])


def test_the_answer_that_is_furthest_off_is_always_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 1e-9)
    for at in range(20):
        found = doubts(Reference())
        many = [doubtful(2.0, found) for _ in range(19)]
        many.insert(at, doubtful(1e9, found))
        with pytest.raises(Failed, match=r"is 1000000000\.0"):
            settle(found, many)


def test_of_more_doubts_than_there_is_time_for_each_may_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 1e-9)
    caught = 0
    for seed in range(400):
        found = Doubts(DOMAIN, Reference(), np.random.default_rng(seed))
        # Wrong by less than what is right and far off: the reference does not move there at all.
        plain = {"x": [1.0, 2.0, 3.0]}
        wrong = found.check(plain, 6.5, 6.0)
        assert wrong is not None
        many = [doubtful(2.0, found) for _ in range(49)]
        many.insert(seed % 50, wrong)
        with contextlib.suppress(Failed):
            settle(found, many)
            continue
        caught += 1
    # One is taken for being the furthest off; of the others so many are drawn.
    assert 0.5 * FEWEST / 49 < caught / 400 < 2 * FEWEST / 49


def test_doubts_are_drawn_by_what_the_reference_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 1e-9)
    caught, times = 0, 300
    for seed in range(times):
        found = Doubts(DOMAIN, Reference(), np.random.default_rng(seed))
        # A twentieth of all work is left out, on answers that are few and nearer to right than the others.
        plain = {"x": [1.0, 2.0, 3.0]}
        for _ in range(190):
            found.keep(doubtful(2.0, found), 0.1)
        for _ in range(2):
            wrong = found.check(plain, 6.5, 6.0)
            assert wrong is not None
            found.keep(wrong, 0.5)
            # Another of about that cost is further off.
            found.keep(doubtful(2.0, found), 0.5)
        try:
            found.settle()
        except Failed:
            caught += 1
    # Of 21 seconds one is left out, in each of so many draws.
    missed = (1 - 1 / 21) ** FEWEST
    assert 0.5 * (1 - missed) < caught / times < 2 * (1 - missed)


def test_an_edge_case_is_always_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 1e-9)
    found = doubts(Reference())
    edge = {"x": list(CANCELS["x"])}
    found.edges = {id(edge)}
    wrong = found.check(edge, 1e9, 0.0)
    assert wrong is not None
    with pytest.raises(Failed, match=r"is 1000000000\.0"):
        settle(found, [*(doubtful(2.0, found) for _ in range(50)), wrong, *(doubtful(2.0, found) for _ in range(50))])


def test_no_doubt_is_passed_over_while_there_is_time() -> None:
    reference = Reference()
    found = doubts(reference)
    for _ in range(5):
        reference.asked.clear()
        settle(found, [doubtful(2.0, found) for _ in range(50)])
        assert sum(reference.asked) >= 50 * (1 + TURNS[0])
