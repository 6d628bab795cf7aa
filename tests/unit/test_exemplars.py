"""Exemplars: every rule keeps its promise, and the buckets are drawn as the stated distribution says."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.errors import HarnessError, OutpaceError
from outpace.exemplars import (
    DEFAULT,
    ISLANDS,
    MIGRATION,
    RULES,
    TAU,
    BucketRule,
    Scored,
    bucket_probabilities,
    choose,
)

WIDTH = math.log(1.1)


def scored(ratio: float, trial: int, parent: int | None = None) -> Scored:
    above = None if parent is None else f"hash-{parent}"
    return Scored(f"hash-{trial}", ratio, ratio * 0.99, ratio * 1.01, ratio > 1.01, trial, above)


def climb(*ratios: float) -> list[Scored]:
    return [scored(ratio, trial) for trial, ratio in enumerate(ratios, start=1)]


RATIOS = st.floats(1e-9, 1e9)
POPULATIONS = st.lists(RATIOS, max_size=40).map(lambda ratios: climb(*ratios))


@st.composite
def lineages(draw: st.DrawFn) -> list[Scored]:
    """Candidates whose parents may be any trial, their own children and themselves included."""
    ratios = draw(st.lists(RATIOS, max_size=80))
    parents = [draw(st.none() | st.integers(1, len(ratios) + 2)) for _ in ratios]
    return [scored(ratio, trial, parent) for trial, (ratio, parent) in enumerate(zip(ratios, parents, strict=True), 1)]


def chi_square(seen: Mapping[object, int], expected: Mapping[object, float]) -> float:
    draws = sum(seen.values())
    assert set(seen) <= set(expected)
    return sum((seen.get(each, 0) - draws * p) ** 2 / (draws * p) for each, p in expected.items())


# Four buckets of one, two, one and three candidates.
LADDER = climb(0.8, 1.0, 1.01, 1.25, 1.6, 1.61, 1.62)
# The 99.9% points of chi-square by degrees of freedom.
CRITICAL = {2: 13.82, 3: 16.27, 5: 20.52}


def bucket(each: Scored, width: float = WIDTH) -> int:
    return round(math.log(each.ratio) / width)


def test_bucket_probabilities_are_a_softmax_of_mean_log_speed_ups() -> None:
    tau = 0.25
    means = {
        bucket(LADDER[0]): math.log(0.8),
        0: (math.log(1.0) + math.log(1.01)) / 2,
        bucket(LADDER[3]): math.log(1.25),
        bucket(LADDER[4]): (math.log(1.6) + math.log(1.61) + math.log(1.62)) / 3,
    }
    overall = sum(math.log(each.ratio) for each in LADDER) / len(LADDER)
    weights = {each: math.exp((mean - overall) / tau) for each, mean in means.items()}
    stated = {each: weight / sum(weights.values()) for each, weight in weights.items()}
    assert bucket_probabilities(LADDER, tau, WIDTH) == pytest.approx(stated)


def test_buckets_are_drawn_as_often_as_stated() -> None:
    rng, rule = random.Random(7), BucketRule(tau=0.5)
    seen = Counter(bucket(rule(LADDER, rng, 1)[0]) for _ in range(4000))
    assert chi_square(seen, bucket_probabilities(LADDER, 0.5, WIDTH)) < CRITICAL[3]
    # The test has teeth: a somewhat different temperature does not pass for this one.
    assert chi_square(seen, bucket_probabilities(LADDER, 0.4, WIDTH)) > CRITICAL[3]


def test_two_buckets_are_drawn_without_replacement() -> None:
    rng, rule = random.Random(8), BucketRule(tau=0.5)
    pairs = Counter(tuple(sorted(map(bucket, rule(LADDER, rng)))) for _ in range(4000))
    first = bucket_probabilities(LADDER, 0.5, WIDTH)
    expected = {
        tuple(sorted((a, b))): first[a] * first[b] / (1 - first[a]) + first[b] * first[a] / (1 - first[b])
        for a, b in itertools.combinations(first, 2)
    }
    assert sum(expected.values()) == pytest.approx(1)
    assert chi_square(pairs, expected) < CRITICAL[5]


def test_within_a_bucket_every_candidate_is_as_likely() -> None:
    rng = random.Random(9)
    same = climb(1.0, 1.001, 1.002, 1.003)
    seen = Counter(BucketRule()(same, rng, 1)[0].hash for _ in range(4000))
    assert chi_square(seen, {each.hash: 0.25 for each in same}) < CRITICAL[3]


def test_candidates_as_fast_as_the_reference_share_a_bucket() -> None:
    assert list(bucket_probabilities(climb(0.98, 0.999, 1.0, 1.001, 1.02), 0.25, WIDTH)) == [0]


def test_one_bucket_gives_one_exemplar_rather_than_a_contrast_in_noise() -> None:
    assert len(BucketRule()(climb(1.0, 1.001, 1.002), random.Random(0), 2)) == 1


@settings(deadline=None)
@given(
    POPULATIONS,
    st.integers(0, 5),
    st.floats(1e-3, 100),
    st.floats(1e-3, 10),
    st.randoms(use_true_random=False),
)
def test_buckets_shown_together_are_distinct(
    population: list[Scored], n: int, tau: float, width: float, rng: random.Random
) -> None:
    shown = BucketRule(tau, width)(population, rng, n)
    places = [next(iter(bucket_probabilities([each], tau, width))) for each in shown]
    buckets = len(bucket_probabilities(population, tau, width))
    if len(population) < n:
        assert len(shown) == len(population)
    else:
        assert len(shown) == len(set(places)) == min(n, buckets)


@settings(deadline=None)
@given(st.lists(RATIOS, min_size=1, max_size=40), st.floats(1e-3, 100), st.floats(1e-3, 10))
def test_bucket_probabilities_are_a_distribution_at_any_scale(ratios: list[float], tau: float, width: float) -> None:
    found = list(bucket_probabilities(climb(*ratios), tau, width).values())
    assert all(0 <= each <= 1 for each in found)
    assert sum(found) == pytest.approx(1)
    assert found == sorted(found)


def test_a_cold_rule_still_finds_a_second_bucket_when_all_other_weights_vanish() -> None:
    far_apart = climb(1e-9, 1e-3, 1e9)
    shown = BucketRule(tau=1e-3)(far_apart, random.Random(0), 2)
    assert shown == (far_apart[1], far_apart[2])


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_a_temperature_or_width_that_is_not_positive_is_refused(wrong: float) -> None:
    with pytest.raises(OutpaceError, match="above 0"):
        BucketRule(tau=wrong)
    with pytest.raises(OutpaceError, match="above 0"):
        BucketRule(width=wrong)


@pytest.mark.parametrize("name", RULES)
@settings(deadline=None)
@given(
    population=lineages(),
    n=st.integers(0, 5),
    seed=st.integers(0, 2**32),
    order=st.randoms(use_true_random=False),
)
def test_every_rule_shows_distinct_known_candidates_slowest_first_whatever_their_order(
    name: str, population: list[Scored], n: int, seed: int, order: random.Random
) -> None:
    shown = RULES[name](population, random.Random(seed), n)
    assert set(shown) <= set(population)
    assert len(set(shown)) == len(shown) <= n
    assert [each.ratio for each in shown] == sorted(each.ratio for each in shown)
    shuffled = list(population)
    order.shuffle(shuffled)
    assert RULES[name](shuffled, random.Random(seed), n) == shown


@pytest.mark.parametrize("name", [name for name in RULES if name != "none"])
@settings(deadline=None)
@given(population=lineages(), more=st.integers(1, 3))
def test_fewer_candidates_than_asked_for_are_all_shown(name: str, population: list[Scored], more: int) -> None:
    shown = RULES[name](population, random.Random(0), len(population) + more)
    assert set(shown) == set(population)


@pytest.mark.parametrize("name", [name for name in RULES if name != "none"])
def test_something_is_shown_as_soon_as_there_is_something_to_show(name: str) -> None:
    for size in range(1, 60):
        assert RULES[name](LADDER[:1] + climb(*[1.0] * size)[1:], random.Random(size))


def test_top_shows_the_best_and_of_equals_the_earlier() -> None:
    population = climb(1.0, 3.0, 2.0, 3.0, 3.0)
    assert [each.trial for each in RULES["top"](population, random.Random(0))] == [4, 2]


def test_random_shows_every_pair_as_often() -> None:
    rng = random.Random(11)
    population = climb(0.001, 1.0, 1000.0, 1001.0)
    pairs = Counter(frozenset(RULES["random"](population, rng)) for _ in range(3000))
    expected = {frozenset(pair): 1 / 6 for pair in itertools.combinations(population, 2)}
    assert chi_square(pairs, expected) < CRITICAL[5]


def test_none_shows_nothing() -> None:
    assert RULES["none"](LADDER, random.Random(0)) == ()


def draws(population: Sequence[Scored], count: int = 400, n: int = 2) -> list[tuple[Scored, ...]]:
    rng = random.Random(12)
    return [RULES["islands"](population, rng, n) for _ in range(count)]


def test_founders_are_spread_over_the_islands_by_trial_number() -> None:
    founders = climb(*[1.0 + trial / 100 for trial in range(16)])
    for shown in draws(founders):
        assert len({each.trial % ISLANDS for each in shown}) == 1


def test_an_island_shows_its_own_best() -> None:
    founders = climb(*[1.0 + trial / 100 for trial in range(16)])
    assert {shown[-1].trial for shown in draws(founders)} == {13, 14, 15, 16}


def test_the_rest_of_an_island_is_drawn_by_softmax() -> None:
    line = [scored(1.0, 4), scored(1.1, 8, 4), scored(1.2, 12, 8), scored(1.3, 16, 12), scored(9.0, 20, 16)]
    weights = {each.trial: each.ratio ** (1 / TAU) for each in line[:-1]}
    seen = Counter(shown[0].trial for shown in draws(line, 4000))
    assert chi_square(seen, {each: weight / sum(weights.values()) for each, weight in weights.items()}) < CRITICAL[3]


def test_inhabited_islands_are_drawn_equally_however_crowded() -> None:
    # Fifteen on island 1, one each on islands 2 and 3, none on island 0.
    crowd = [scored(1.0 + trial / 100, trial, None if trial == 1 else 1) for trial in (1, *range(4, 18))]
    homes = Counter(
        "crowd" if shown[-1] in crowd else shown[-1].trial
        for shown in draws([*crowd, scored(1.0, 2), scored(1.0, 3)], 3000)
    )
    assert chi_square(homes, {"crowd": 1 / 3, 2: 1 / 3, 3: 1 / 3}) < CRITICAL[2]


def test_children_stay_on_their_parents_island() -> None:
    # Two lines whose trial numbers would scatter them over all four islands.
    lines = [scored(1.0, 1), scored(1.0, 2)] + [scored(1.0 + trial / 50, trial, trial - 2) for trial in range(3, 20)]
    for shown in draws(lines):
        assert len({each.trial % 2 for each in shown}) == 1


def test_the_best_of_every_period_migrates_to_all_islands() -> None:
    first_period = [scored(1.0 + trial / 1000, trial) for trial in range(1, MIGRATION)]
    champion = scored(5.0, MIGRATION)
    assert any(champion not in shown for shown in draws([*first_period, champion]))
    later = scored(1.0, MIGRATION + 1)
    assert all(champion in shown for shown in draws([*first_period, champion, later]))


def test_a_migrants_later_children_settle_on_every_island() -> None:
    champion = scored(2.0, 1)
    family = [scored(3.0 + trial / 100, trial, 1) for trial in range(MIGRATION + 1, MIGRATION + 13)]
    bests = {shown[-1].trial % ISLANDS for shown in draws([champion, *family])}
    assert bests == set(range(ISLANDS))


@pytest.mark.parametrize("ratio", [0.0, -1.0, math.inf, math.nan])
def test_a_speed_up_that_is_no_positive_number_is_a_fault_and_says_whose(ratio: float) -> None:
    with pytest.raises(HarnessError, match="trial 3"):
        RULES[DEFAULT](climb(1.0, 1.2, ratio), random.Random(0))


def test_choosing_by_name_gives_what_the_rule_shows() -> None:
    assert choose("top", LADDER, random.Random(0), 3).shown == tuple(LADDER[-3:])


def test_an_unknown_rule_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(OutpaceError, match=r"'best'.*buckets, islands, top, random, none"):
        choose("best", LADDER, random.Random(0))
