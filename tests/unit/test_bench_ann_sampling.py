"""Sampling: intervals that know how many queries there were."""

from __future__ import annotations

import math

import numpy as np
import pytest

from outpace.bench.ann.curve import Cell, Interval, Reading, at_level, compare, curve, figures
from outpace.bench.ann.sampling import DRAWS, combined, drawn, draws, wider, written

FIGURE = figures([0.99])["0.99"]


def library(missed_by_effort: list[str], speeds: list[float], rounds: int = 6) -> list[Reading]:
    """A library whose answers are the same in every round, as is its speed."""
    return [
        Reading("a", effort, number, 1 - sum(map(int, missed)) / (10 * len(missed)), speed, missed=missed)
        for number in range(rounds)
        for effort, (missed, speed) in enumerate(zip(missed_by_effort, speeds, strict=True), 1)
    ]


def missing(share: float, queries: int, seed: int) -> str:
    """So many neighbours missed of every ten, at random."""
    return "".join(map(str, np.random.default_rng(seed).binomial(10, share, size=queries)))


def cell_of(ours: list[Reading], peer: list[Reading]) -> Cell:
    taken = draws([*ours, *peer])
    cell = compare("0.99", FIGURE, ours, {"peer": peer})
    return wider(cell, FIGURE, drawn(ours, taken), {"peer": drawn(peer, taken)})


def test_what_was_missed_is_written_in_one_digit_for_each_query() -> None:
    assert written(np.array([0, 9, 10, 35])) == "09az"
    assert written(np.array([36])) == ""
    assert written(np.array([], dtype=np.int64)) == ""


def test_draws_take_as_many_queries_as_there_are_and_the_same_each_time() -> None:
    some = library([missing(0.1, 50, 0)], [100.0])
    taken = draws(some)
    assert taken.shape == (DRAWS, 50) and (taken.sum(axis=1) == 50).all()
    np.testing.assert_array_equal(taken, draws(some))


def test_where_one_reading_does_not_tell_what_it_missed_nothing_is_drawn() -> None:
    some = library([missing(0.1, 50, 0)], [100.0])
    mixed = [*some, Reading("a", 9, 0, 0.9, 100.0)]
    assert len(draws(mixed)) == 0
    assert drawn(mixed, draws(mixed)) == []
    assert len(draws([])) == 0


def test_curves_of_draws_lie_around_the_curve_as_binomials_do() -> None:
    queries, share = 1000, 0.05
    some = library([missing(share, queries, 1)], [100.0])
    recalls = [each.strands["a"][0].recall for each in drawn(some, draws(some))]
    assert np.mean(recalls) == pytest.approx(curve(some).strands["a"][0].recall, abs=0.001)
    assert np.std(recalls) == pytest.approx(math.sqrt(share * (1 - share) / (10 * queries)), rel=0.3)


def test_a_sweep_that_was_cut_short_is_drawn_from_what_it_answered() -> None:
    some = library(["0" * 100, "1" * 10], [100.0, 50.0])
    recalls = {point.recall for each in drawn(some, draws(some)) for point in each.strands["a"]}
    assert all(math.isclose(recall, 1.0) or math.isclose(recall, 0.9) for recall in recalls)


def test_fewer_queries_make_a_wider_interval_and_rounds_cannot_narrow_it() -> None:
    widths = []
    for queries in (100, 4000):
        ours = library([missing(0.02, queries, 2), missing(0.001, queries, 3)], [400.0, 100.0])
        peer = library([missing(0.02, queries, 4), missing(0.001, queries, 5)], [200.0, 50.0])
        found = cell_of(ours, peer).ratio
        assert found is not None and found.low < found.middle < found.high
        widths.append(math.log(found.high / found.low))
    assert widths[0] > 3 * widths[1] > 0


def test_queries_that_are_hard_for_both_do_not_blur_the_comparison() -> None:
    missed = [missing(0.02, 300, 6), missing(0.001, 300, 7)]
    found = cell_of(library(missed, [400.0, 100.0]), library(missed, [200.0, 50.0])).ratio
    assert found is not None
    assert (found.low, found.middle, found.high) == pytest.approx((2, 2, 2))


def test_a_level_that_ours_reaches_by_luck_is_no_win() -> None:
    barely = ["0" * 90 + "1" * 10]
    sure = ["0" * 100]
    lucky = cell_of(library(barely, [400.0]), library(sure, [100.0])).ratio
    assert lucky is not None and lucky.low == 0 and lucky.high == pytest.approx(4)
    # The peer's luck is not held against it.
    against = cell_of(library(sure, [400.0]), library(barely, [100.0])).ratio
    assert against is not None
    assert (against.low, against.high) == pytest.approx((4, 4))


def test_errors_of_timing_and_of_queries_add_as_squares() -> None:
    timing = Interval(2.0, 2.0 * math.exp(-0.3), 2.0 * math.exp(0.3), 0.97)
    values = [math.exp(0.4 * step / 100) for step in range(-100, 101)]
    found = combined(timing, 1.0, values)
    assert found.middle == 2.0 and found.sure == 0.95
    assert math.log(found.high / 2) == pytest.approx(0.5, abs=0.02)
    assert math.log(2 / found.low) == pytest.approx(0.5, abs=0.02)
    assert combined(timing, 1.0, []) == timing


def test_draws_on_one_side_of_the_figure_widen_that_side_alone() -> None:
    timing = Interval(4.0, 4.0, 4.0, 0.97)
    assert combined(timing, 4.0, [0.5] * 300 + [4.0] * 100) == Interval(4.0, pytest.approx(0.5), 4.0, 0.95)
    assert combined(timing, 4.0, [8.0] * 400) == Interval(4.0, 4.0, pytest.approx(8.0), 0.95)
    assert combined(timing, 4.0, [0.0] * 400) == Interval(4.0, 0.0, 4.0, 0.95)


def test_a_peer_that_narrowly_misses_the_level_counts_in_the_draws_where_it_reaches_it() -> None:
    ours, slow = library(["0" * 1000], [2000.0]), library(["0" * 1000], [500.0])
    narrow = library(["0" * 898 + "1" * 102], [5000.0])
    taken = draws([*ours, *slow, *narrow])
    cell = compare("0.99", FIGURE, ours, {"slow": slow, "narrow": narrow})
    assert cell.best_peer == "slow"
    found = wider(cell, FIGURE, drawn(ours, taken), {"slow": drawn(slow, taken), "narrow": drawn(narrow, taken)}).ratio
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.4, 4))


def test_an_odd_round_has_one_say_among_many() -> None:
    usual, odd = "0" * 1000, "9" * 1000
    some = [Reading("a", 1, number, 1.0, 100.0, missed=odd if number == 3 else usual) for number in range(6)]
    assert {each.strands["a"][0].recall for each in drawn(some, draws(some))} == {1.0}


def test_a_curve_without_draws_keeps_its_interval_of_rounds() -> None:
    ours, peer = ([Reading("a", 1, number, 0.995, qps) for number in range(6)] for qps in (200.0, 100.0))
    found = cell_of(ours, peer)
    assert found.ratio is not None and found.ratio.middle == pytest.approx(2)
    assert at_level(curve(ours), 0.99) == pytest.approx(200)
