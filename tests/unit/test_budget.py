"""Budgets and estimates: pure functions of what is allowed, spent and known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from archive_facts import ok
from hypothesis import given
from hypothesis import strategies as st

from outpace.archive.records import Asked, Trial
from outpace.budget import Budget, Spent, exhausted, left
from outpace.cost import Cost
from outpace.estimate import TRIALS, Pace, Prices, expect, most_tokens, pace, tokens
from outpace.judge.verdict import Outcome, Verdict
from outpace.task.candidate import Candidate

REFERENCE = Candidate({"a.c": "x" * 3500})
SPENT = Spent(3, 2.0, Cost(tokens_in=70, tokens_out=30, money=0.5, failed_calls=1))


# Budgets


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(trials=3), "3 trials"),
        (Budget(minutes=2.0), "2 minutes"),
        (Budget(tokens=100), "100 of 100 tokens"),
        (Budget(money=0.5), "0.50 of 0.50"),
    ],
)
def test_a_limit_that_is_reached_stops_the_run_and_says_so(budget: Budget, words: str) -> None:
    assert words in exhausted(budget, SPENT)


@pytest.mark.parametrize("budget", [Budget(), Budget(4, 2.1, 101, 0.51)])
def test_a_run_goes_on_while_no_limit_is_reached(budget: Budget) -> None:
    assert exhausted(budget, SPENT) == ""


def test_only_limits_that_were_set_have_something_left_and_never_less_than_nothing() -> None:
    assert left(Budget(), SPENT) == {}
    assert left(Budget(10, 5.0, 1000, 2.0), SPENT) == {"trials": 7, "minutes": 3.0, "tokens": 900, "money": 1.5}
    assert set(left(Budget(1, 1.0, 1, 0.1), SPENT).values()) == {0}


@given(st.integers(0, 20), st.integers(0, 10**6), st.integers(0, 20), st.integers(0, 10**6))
def test_a_run_stops_exactly_when_nothing_is_left(trials: int, limit: int, done: int, used: int) -> None:
    budget, spent = Budget(trials=trials, tokens=limit), Spent(done, 0.0, Cost(tokens_in=used))
    assert bool(exhausted(budget, spent)) == (0 in left(budget, spent).values())


# Tokens and money


@given(st.text())
def test_no_text_is_more_tokens_than_are_reserved_for_it(text: str) -> None:
    assert 0 <= tokens(text) <= len(text.encode("utf-8", "surrogatepass")) < most_tokens(text)


def test_text_that_cannot_be_encoded_is_counted_too() -> None:
    assert tokens("\udcff") == 1


def test_prices_are_for_a_million_tokens() -> None:
    assert Prices(2.0, 8.0).money(1_000_000, 500_000) == pytest.approx(6.0)
    assert Prices().money(10**9, 10**9) == 0


# What earlier trials took


def trial(verdict: Verdict | None, cost: Cost, **more: object) -> Trial:
    made = Trial(
        1, 1, 1, "judged", Asked(1, "p", (), None), None, "r", "", "", None, verdict, None, None, cost, 0.0, 1.0
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def test_without_trials_nothing_is_known() -> None:
    assert pace([]) == Pace()
    assert pace([trial(None, Cost(5, 5, calls=1))]) == Pace()


def test_averages_are_per_trial_with_confirmations_and_failed_calls() -> None:
    timed = replace(ok(2.0), seconds=3.0)
    found = pace(
        [
            trial(timed, Cost(100, 10, 0.0, 4.0, 3, 2), confirmation=replace(timed, seconds=5.0)),
            trial(Verdict(Outcome.UNUSABLE, "no", seconds=0.0), Cost(300, 30, 0.0, 2.0, 1)),
            # A verdict that was reused took no time, and a trial without a call no tokens.
            trial(timed, Cost(), duplicate_of=1),
        ]
    )
    assert found == Pace(judging=4.0, reply=3.0, tokens_in=200.0, tokens_out=20.0, trials=3)


# Estimates


def test_an_estimate_counts_the_prompt_with_examples_and_the_code_as_reply() -> None:
    found = expect("p" * 7000, REFERENCE, 2, Budget(trials=5), Pace(judging=10.0), Prices(1.0, 10.0), 4000)
    assert found.prompt_tokens == (7000 + 2 * 3500) / 3.5
    assert found.reply_tokens == 3500 / 3.5 + 700
    assert found.tokens == 5 * (4000 + 1700) and found.money == pytest.approx(5 * (4000 + 17_000) / 1e6)
    assert found.minutes == pytest.approx(5 * (10 + 1700 / 50) / 60)
    assert found.reserved_tokens == 14_000 + 256 + 4000


def test_what_earlier_trials_took_counts_more_than_lengths() -> None:
    known = Pace(judging=6.0, reply=24.0, tokens_in=2000.5, tokens_out=500.0, trials=9)
    found = expect("p", REFERENCE, 2, Budget(trials=4), known, Prices(), 4000)
    assert (found.prompt_tokens, found.reply_tokens, found.minutes) == (2001, 500, 2.0)


def test_a_reply_is_not_expected_to_be_longer_than_it_may_be() -> None:
    assert expect("p", REFERENCE, 0, Budget(), Pace(judging=1.0), Prices(), 100).reply_tokens == 100


@pytest.mark.parametrize(
    ("budget", "trials"),
    [
        (Budget(), TRIALS),
        (Budget(trials=0), 0),
        (Budget(trials=7, tokens=10**9), 7),
        # 18,256 must be left before a call of 5,700.
        (Budget(tokens=18_255), 0),
        (Budget(tokens=18_256), 1),
        (Budget(tokens=18_256 + 5700), 2),
        # A trial of 44 s is begun while there is time left.
        (Budget(minutes=44 / 60 * 2.5), 3),
        (Budget(money=1.0), TRIALS),
    ],
)
def test_the_tightest_limit_says_how_many_trials_there_will_be(budget: Budget, trials: int) -> None:
    assert expect("p" * 7000, REFERENCE, 2, budget, Pace(judging=10.0), Prices(), 4000).trials == trials


def test_money_says_how_many_trials_there_will_be() -> None:
    prices = Prices(1.0, 1.0)
    for money, trials in ((0.018255, 0), (0.0183, 1), (0.024, 2)):
        found = expect("p" * 7000, REFERENCE, 2, Budget(money=money), Pace(judging=1.0), prices, 4000)
        assert found.trials == trials
