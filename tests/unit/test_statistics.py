"""The test that decides on a win, and its interval."""

import math
import random

from outpace.judge import statistics
from outpace.judge.statistics import LOOKS, critical_rank, decide, speed_up, walsh_averages
from outpace.judge.verdict import toward_one

MARGIN = 1.01


def noisy(ratio: float, count: int, spread: float, seed: int) -> list[float]:
    chance = random.Random(seed)
    return [math.log(ratio) + chance.gauss(0, spread) for _ in range(count)]


def test_the_levels_of_all_looks_stay_below_one_percent() -> None:
    spent = 0.0
    for count, level in LOOKS.items():
        rank = critical_rank(count, level)
        ways = statistics._rank_sum_ways(count)
        spent += sum(ways[rank:]) / 2**count
    assert spent <= 0.01


def test_the_critical_rank_of_eight_needs_every_bucket() -> None:
    assert critical_rank(8, LOOKS[8]) == 36


def test_the_rank_sum_distribution_is_the_known_one() -> None:
    # n = 3: sums 0..6 in 1, 1, 1, 2, 1, 1, 1 ways.
    assert statistics._rank_sum_ways(3) == [1, 1, 1, 2, 1, 1, 1]


def test_a_clear_gain_is_a_win_after_eight_buckets() -> None:
    ratios = noisy(1.10, 8, 0.005, 1)
    decision = decide(ratios, MARGIN)
    assert decision.stop and decision.speed_up is not None and decision.speed_up.win
    assert decision.speed_up.low > MARGIN


def test_equal_speed_stops_early_without_a_win() -> None:
    decision = decide(noisy(1.0, 8, 0.004, 2), MARGIN)
    assert decision.stop and decision.speed_up is not None and not decision.speed_up.win


def test_one_bucket_against_leaves_the_first_look_open() -> None:
    ratios = [*noisy(1.05, 7, 0.001, 3), math.log(0.99)]
    assert not decide(ratios, MARGIN).stop


def test_a_much_slower_candidate_is_given_up_after_four_buckets() -> None:
    decision = decide(noisy(0.5, 4, 0.01, 4), MARGIN)
    assert decision.stop and decision.speed_up is not None and not decision.speed_up.win


def test_wild_timings_are_refused_rather_than_scored() -> None:
    ratios = [math.log(1.02) + (0.6 if at % 2 else -0.6) for at in range(32)]
    assert decide(ratios, MARGIN).noisy


def test_the_lower_end_is_above_the_margin_exactly_when_the_test_rejects() -> None:
    for seed in range(200):
        ratios = noisy(1.015, 16, 0.01, seed)
        estimate = speed_up(ratios, MARGIN)
        positive = sum(average > math.log(MARGIN) for average in walsh_averages(ratios))
        assert estimate.win == (positive >= critical_rank(16, LOOKS[16]))


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    missed = 0
    for seed in range(2000):
        estimate = speed_up(noisy(1.2, 16, 0.02, seed), MARGIN)
        missed += not estimate.low <= 1.2 <= estimate.high
    assert missed / 2000 <= 0.012  # twice 0.3%, with room for chance


def test_false_wins_of_the_whole_sequence_stay_below_one_percent() -> None:
    wins = 0
    for seed in range(1500):
        ratios = noisy(MARGIN, 32, 0.02, seed)
        for count in LOOKS:
            decision = decide(ratios[:count], MARGIN)
            if decision.stop:
                wins += decision.speed_up is not None and decision.speed_up.win
                break
    assert wins / 1500 <= 0.015


def test_figures_are_rounded_toward_one() -> None:
    assert toward_one(1.118) == 1.11
    assert toward_one(0.992) == 1.0
    assert toward_one(0.981) == 0.99
    assert toward_one(1.0) == 1.0
