"""Curves: hand-made cases whose figures can be worked out on paper."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.bench.ann.curve import (
    Point,
    Reading,
    area,
    at_level,
    by_round,
    compare,
    curve,
    figures,
    fitted,
    front,
    geometric_mean,
    interval,
    ratio,
    rising,
)


def strand(*points: tuple[float, float], name: str = "a", number: int = 0) -> list[Reading]:
    """Readings of one strand at efforts 1, 2, ..., each (recall, qps)."""
    return [Reading(name, effort, number, recall, qps) for effort, (recall, qps) in enumerate(points, 1)]


def test_between_two_settings_the_logarithm_of_the_speed_is_straight() -> None:
    assert at_level(curve(strand((0.8, 10_000), (1.0, 100))), 0.9) == pytest.approx(1000)


def test_a_library_whose_cheapest_setting_is_above_a_level_enters_with_it() -> None:
    only = curve(strand((0.96, 5000)))
    assert (at_level(only, 0.90), at_level(only, 0.95)) == pytest.approx((5000, 5000))


def test_a_level_that_no_setting_reaches_has_no_speed() -> None:
    assert at_level(curve(strand((0.8, 900), (0.94, 300))), 0.95) is None


def test_a_level_that_a_setting_meets_exactly_has_its_speed() -> None:
    assert at_level(curve(strand((0.8, 900), (0.95, 300))), 0.95) == pytest.approx(300)


def test_readings_without_a_number_are_left_out() -> None:
    sound = strand((0.8, 10_000), (1.0, 100))
    broken = [
        Reading("a", 1.5, 0, math.nan, 50),
        Reading("a", 1.6, 0, 0.99, math.nan),
        Reading("a", 1.7, 0, 0.99, math.inf),
        Reading("a", 1.8, 0, 0.99, 0.0),
    ]
    assert curve(sound + broken) == curve(sound)
    assert curve(broken).strands == {}


def test_speed_that_rises_with_effort_is_noise_and_is_averaged_out() -> None:
    points = fitted([Point(1, 0.8, 100), Point(2, 0.9, 400), Point(3, 0.95, 50)])
    assert [round(point.qps) for point in points] == [200, 200, 50]


def test_where_recall_stops_rising_the_cheapest_setting_counts() -> None:
    points = fitted([Point(1, 0.8, 100), Point(2, 0.9, 50), Point(3, 0.9, 20), Point(4, 0.9, 10)])
    assert points == (Point(1, 0.8, pytest.approx(100)), Point(2, 0.9, pytest.approx(50)))


def test_a_setting_that_does_not_work_at_all_does_not_pull_down_the_others() -> None:
    sound = [(0.8, 10_000.0), (0.999, 100.0)]
    assert curve(strand(*sound, (0.001, 90_000))) == curve(strand(*sound))


def test_strands_are_curves_of_their_own_and_the_faster_one_counts() -> None:
    shallow = strand((0.80, 30_000), (0.96, 15_000), name="depth 10")
    deep = strand((0.94, 20_000), (0.99, 1000), name="depth 100")
    expected = at_level(curve(shallow), 0.95)
    assert expected is not None
    # Joining .94 of one strand to .96 of the other would claim a speed that neither has.
    assert at_level(curve(shallow + deep), 0.95) == pytest.approx(expected)
    assert at_level(curve(shallow + deep), 0.98) == at_level(curve(deep), 0.98)


def guided(name: str, *points: tuple[float, float, float]) -> list[Reading]:
    """Readings of one strand, each (recall, qps, recall on the queries that settings were chosen on)."""
    return [Reading(name, effort, 0, recall, qps, known) for effort, (recall, qps, known) in enumerate(points, 1)]


def test_luck_on_the_queries_that_decide_does_not_choose_the_strand() -> None:
    steady = guided("steady", (0.90, 1000, 0.90), (0.99, 500, 0.99))
    lucky = guided("lucky", (0.91, 900, 0.89), (0.99, 800, 0.96), (0.999, 100, 0.99))
    assert at_level(curve(steady + lucky), 0.99) == pytest.approx(500)
    assert at_level(curve(strand((0.90, 1000), (0.99, 500)) + lucky), 0.99) == pytest.approx(800), "none to guide it"


def test_where_the_chosen_strand_misses_the_level_the_next_one_is_used() -> None:
    first = guided("first", (0.98, 900, 0.99))
    second = guided("second", (0.99, 300, 0.99))
    third = guided("third", (0.999, 400, 0.98))
    assert at_level(curve(first + second + third), 0.99) == pytest.approx(300)
    assert at_level(curve(first + third), 0.99) == pytest.approx(400)
    assert at_level(curve(first), 0.99) is None


def test_every_round_uses_the_strand_that_all_rounds_together_choose() -> None:
    readings = [
        Reading(name, 1, number, 0.95, qps[number], 0.95)
        for name, qps in {"a": (100, 100, 100), "b": (90, 150, 90)}.items()
        for number in range(3)
    ]
    assert by_round(readings, figures([0.9])["0.9"]) == pytest.approx({0: 100, 1: 100, 2: 100})


def test_the_front_has_no_setting_that_another_one_beats() -> None:
    strands = curve(strand((0.8, 100), (0.9, 50)) + strand((0.85, 40), (0.95, 30), name="b"))
    assert [(point.recall, round(point.qps)) for point in front(strands)] == [(0.8, 100), (0.9, 50), (0.95, 30)]


def test_the_area_of_a_level_line_is_its_speed_and_needs_the_whole_range() -> None:
    assert area(curve(strand((0.96, 5000)))) == pytest.approx(5000)
    assert area(curve(strand((0.85, 1000), (0.95, 10)))) == pytest.approx(100)
    assert area(curve(strand((0.85, 1000), (0.94, 10)))) is None


@pytest.mark.parametrize(("count", "low", "high"), [(6, 1, 6), (8, 1, 8), (9, 2, 8), (20, 6, 15)])
def test_an_interval_holds_the_median_with_the_confidence_that_binomials_give(count: int, low: int, high: int) -> None:
    found = interval([float(value) for value in range(1, count + 1)])
    assert found is not None
    assert (found.low, found.high) == (low, high)
    assert found.sure >= 0.95


def test_too_few_rounds_say_how_sure_they_are() -> None:
    four = interval([1.0, 2.0, 3.0, 4.0])
    assert four is not None
    assert (four.low, four.middle, four.high, four.sure) == (1.0, 2.5, 4.0, 0.875)
    one = interval([3.0])
    assert one is not None
    assert one.sure == 0
    assert interval([]) is None


def test_ratios_are_taken_round_by_round_so_that_shared_noise_cancels() -> None:
    theirs = {number: 100.0 * 3**number for number in range(6)}
    ours = {number: 2 * speed for number, speed in theirs.items()}
    found = ratio(ours, theirs)
    assert found is not None
    assert (found.low, found.middle, found.high) == pytest.approx((2, 2, 2))


def test_rounds_that_only_one_side_has_do_not_count() -> None:
    assert ratio({0: 1.0}, {1: 1.0}) is None


def test_a_cell_names_the_best_peer_over_all_rounds() -> None:
    figure = figures([0.9])["0.9"]
    ours = [each for number in range(6) for each in strand((0.95, 300), number=number)]
    slow = [each for number in range(6) for each in strand((0.95, 100), number=number)]
    # Luckier than the other in one round, and slower in all the rest.
    lucky = [each for number in range(6) for each in strand((0.95, 900 if number == 0 else 50), number=number)]
    cell = compare("0.9", figure, ours, {"slow": slow, "lucky": lucky})
    assert cell.best_peer == "slow"
    assert cell.ratio is not None
    assert cell.ratio.middle == pytest.approx(3)


def test_a_cell_that_no_peer_reaches_is_told_and_not_averaged() -> None:
    figure = figures([0.99])["0.99"]
    unreached = compare("0.99", figure, strand((0.999, 100)), {"peer": strand((0.9, 900))})
    lost = compare("0.99", figure, strand((0.9, 100)), {"peer": strand((0.999, 900))})
    nobody = compare("0.99", figure, strand((0.9, 100)), {"peer": strand((0.9, 900))})
    won = compare("0.99", figure, strand((0.999, 200)), {"peer": strand((0.999, 100))})
    assert unreached.verdict == "no peer reaches it"
    assert lost.verdict == "ours does not reach it"
    assert nobody.verdict == "no library reaches it"
    assert geometric_mean([unreached, lost, nobody, won]) == pytest.approx(2)
    assert geometric_mean([unreached]) is None


def test_rounds_that_cannot_tell_a_figure_are_left_out_of_its_interval() -> None:
    readings = strand((0.95, 100), number=0) + strand((0.85, 100), number=1)
    assert by_round(readings, figures([0.9])["0.9"]) == pytest.approx({0: 100})


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_a_monotone_fit_rises_and_keeps_the_mean(values: list[float]) -> None:
    made = rising(values)
    assert all(first <= second + 1e-6 for first, second in pairwise(made))
    assert sum(made) == pytest.approx(sum(values), abs=1e-3)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(1, 1e6)), min_size=1, max_size=20))
def test_a_higher_level_is_never_faster(points: list[tuple[float, float]]) -> None:
    made = curve(strand(*points))
    speeds = [at_level(made, level / 20) for level in range(21)]
    reached = [speed for speed in speeds if speed is not None]
    assert all(speed is None for speed in speeds[len(reached) :])
    assert all(first >= second * (1 - 1e-9) for first, second in pairwise(reached))
