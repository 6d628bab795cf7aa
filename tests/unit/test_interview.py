"""Who is asked what, and in which order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from conftest import c_task
from outpace.domains.program import ProgramDomain
from outpace.judge.feeder import ANSWER_LIMIT, Lot
from outpace.judge.interview import LEISURE, STARTS, STARTS_MOST, Interview
from outpace.judge.verdict import Outcome, Sample, Span
from outpace.judge.worker import Failed, Heard

MAKE_INPUT = "def make_input(rng):\n    return {'x': int(rng.integers(100))}\n"


class Pair:
    """Answers every question with its own number, and notes who was asked."""

    def __init__(self, wrong: Sequence[int] = ()) -> None:
        self.asked: list[tuple[int, int]] = []
        self.rooms: list[int] = []
        self._wrong = wrong
        self._lots: list[Lot] = []

    def ask(self, side: int, lot: Lot, seconds: float, room: int = ANSWER_LIMIT) -> Heard:
        if lot not in self._lots:
            self._lots.append(lot)
        number = self._lots.index(lot)
        self.asked.append((side, number))
        self.rooms.append(room)
        value = number + (side == 1 and number in self._wrong)
        # The result comes first; behind it lies what may not be written to.
        answers = (memoryview(value.to_bytes(8, "little") + question.blank[8:]) for question in lot.questions)
        taken = Sample(lot.calls, round(1e9 * min(seconds, 1000)), 1000, 0)
        return Heard(taken, tuple(answers), 0, spent=(100,) * len(lot.questions))


def interview() -> Interview:
    domain = ProgramDomain(c_task("int f(int x) { return x; }", "int f(int x)", MAKE_INPUT))
    programs: Any = (_Program(), _Program())
    return Interview(domain, "none", programs, [0], 1)


class _Program:
    setup_seconds = 1.0
    seconds = 1.0


def lots(ask: Interview, count: int) -> list[Lot]:
    rng, _ = ask.chance()
    return [ask.lot(ask.fresh(3, rng)) for _ in range(count)]


@pytest.mark.parametrize("span", list(Span))
def test_the_candidate_answers_all_turns_of_a_block_before_the_reference_is_asked_any(span: Span) -> None:
    ask, pair = interview(), Pair()
    heard = ask.block(pair, lots(ask, 4), [1.0] * 4, span)  # type: ignore[arg-type]
    assert pair.asked == [(1, 0), (1, 1), (1, 2), (1, 3), (0, 0), (0, 1), (0, 2), (0, 3)]
    assert len(heard) == 4


def test_one_turn_is_a_block_of_its_own() -> None:
    ask, pair = interview(), Pair()
    ask.turn(pair, lots(ask, 1)[0], 1.0)  # type: ignore[arg-type]
    assert [side for side, _ in pair.asked] == [1, 0]


def test_every_turn_of_a_block_is_checked() -> None:
    for number in range(3):
        ask = interview()
        with pytest.raises(Failed) as caught:
            ask.block(Pair(wrong=[number]), lots(ask, 3), [1.0] * 3, Span.BRIEF)  # type: ignore[arg-type]
        assert caught.value.outcome is Outcome.WRONG


def test_the_answers_of_a_block_share_the_room_that_one_turn_has() -> None:
    ask, pair = interview(), Pair()
    asked = lots(ask, 3)
    ask.block(pair, asked, [1.0] * 3, Span.BRIEF)  # type: ignore[arg-type]
    each = 3 * len(asked[0].questions[0].blank)
    assert pair.rooms == [ANSWER_LIMIT - each * number for number in range(3)] * 2, "for each side anew"


def test_what_the_candidate_dawdled_is_not_missing_to_the_reference() -> None:
    ask, limits = interview(), {0: [], 1: []}  # type: ignore[var-annotated]

    class Slow(Pair):
        """A candidate that takes nearly all the time it may."""

        def ask(self, side: int, lot: Lot, seconds: float, room: int = ANSWER_LIMIT) -> Heard:
            limits[side].append(seconds)
            return super().ask(side, lot, 0.99 * seconds if side == 1 else 1e-3, room)

    pair = Slow()
    for _ in range(3):
        ask.turn(pair, lots(ask, 1)[0], 1e-4)  # type: ignore[arg-type]
    assert limits[1][0] > 10 * limits[1][2], "its patience is used up"
    assert set(limits[0]) == {math.inf}


def test_whoever_is_far_slower_than_the_reference_has_some_seconds_for_that_in_all() -> None:
    ask, limits = interview(), []  # type: ignore[var-annotated]

    class Slow(Pair):
        """A candidate that takes ninety times what the reference takes, if it may."""

        def ask(self, side: int, lot: Lot, seconds: float, room: int = ANSWER_LIMIT) -> Heard:
            if side == 1:
                limits.append(seconds)
            return super().ask(side, lot, min(0.9, seconds) if side == 1 else 0.01, room)

    pair = Slow()
    for _ in range(30):
        ask.turn(pair, lots(ask, 1)[0], 0.01)  # type: ignore[arg-type]
    taken = sum(min(0.9, limit) for limit in limits)
    most = LEISURE + ask.domain.task.limits.seconds
    assert limits[1] > 0.9, "for a while"
    assert most < taken < most + 30 * 10 * 0.01 + 0.1 < 30 * 0.9, "besides, ten times what the reference takes"


def test_where_the_reference_takes_far_longer_than_was_expected_the_candidate_may_too() -> None:
    ask, limits = interview(), []  # type: ignore[var-annotated]

    class Dear(Pair):
        """Both take forty times what the rehearsal's few inputs took."""

        def ask(self, side: int, lot: Lot, seconds: float, room: int = ANSWER_LIMIT) -> Heard:
            limits.append(seconds)
            return super().ask(side, lot, 0.4, room)

    for _ in range(200):
        ask.turn(Dear(), lots(ask, 1)[0], 0.01, Span.WHOLE)  # type: ignore[arg-type]
    assert min(limits) > 0.4


def test_starts_may_take_a_minute_together_however_long_a_life_is() -> None:
    ask = interview()
    ask.expect(1e-3, 1e9)
    assert ask._slack_before == STARTS_MOST
    ask.expect(1e-3, 1000)
    assert ask._slack_before == STARTS_MOST
    other = interview()
    other.expect(1e-3, 1000)
    assert other._slack_before == STARTS
