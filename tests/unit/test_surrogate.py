"""The surrogate: it finds the best of small spaces soon, and no history upsets it."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.policies import surrogate
from outpace.policies.surrogate import MOST, Place, believe

OPTIONS = (4, 3, 3, 2)
SPACE = list(itertools.product(*map(range, OPTIONS)))
EARNED = st.one_of(st.none(), st.floats(-10, 10))
HISTORY = st.lists(st.tuples(st.sampled_from(SPACE), EARNED), max_size=12)


def search(values: dict[Place, float | None], seed: int, trials: int) -> list[Place]:
    """The places that are tried in turn, from the first of the space on."""
    rng = random.Random(seed)
    seen: list[tuple[Place, float | None]] = [(SPACE[0], 0.0)]
    for _ in range(trials):
        rest = [each for each in SPACE if each not in {place for place, _ in seen}]
        chosen = rest[rng.choice(believe(seen).promising(rest))]
        seen.append((chosen, values[chosen]))
    return [place for place, _ in seen]


@pytest.mark.parametrize("seed", range(8))
def test_the_best_of_an_additive_space_is_found_soon(seed: int) -> None:
    rng = random.Random(f"additive {seed}")
    effects = [[rng.gauss(0, 0.3) for _ in range(count)] for count in OPTIONS]
    values: dict[Place, float | None] = {
        place: sum(effect[option] - effect[0] for effect, option in zip(effects, place, strict=True)) for place in SPACE
    }
    best = max(SPACE, key=lambda place: values[place] or 0.0)
    # Of 71 places that random choice would find it among in 36 trials on average.
    assert best in search(values, seed, 24)


def test_options_under_which_everything_fails_are_left_alone() -> None:
    values: dict[Place, float | None] = {
        place: None if place[0] == 2 else 0.1 * place[1] + 0.05 * place[3] for place in SPACE
    }
    tried = search(values, 1, 30)
    assert sum(place[0] == 2 for place in tried) < sum(place[0] == 1 for place in tried)
    assert values[tried[-1]] is not None


@settings(deadline=None, max_examples=60)
@given(history=HISTORY, still_open=st.lists(st.sampled_from(SPACE), max_size=4))
def test_no_history_upsets_the_numbers(history: list[tuple[Place, float | None]], still_open: list[Place]) -> None:
    belief = believe([(SPACE[0], 0.0), *history]).supposing(still_open)
    means, spreads = belief.expected(SPACE)
    assert np.isfinite(means).all()
    assert belief.means(SPACE) == pytest.approx(means, abs=1e-6)
    assert (spreads > 0).all()
    assert np.isfinite(spreads).all()
    assert belief.weights.sum() == pytest.approx(1)
    assert set(belief.promising(SPACE)) <= set(range(len(SPACE)))


@pytest.mark.parametrize("earned", [0.0, -9.0, 9.0, None])
def test_equal_values_and_a_place_measured_again_and_again_are_taken(earned: float | None) -> None:
    belief = believe([(SPACE[0], 0.0)] + [(SPACE[5], earned)] * 50)
    assert all(np.isfinite(each).all() for each in belief.expected(SPACE))


def test_one_observation_says_nothing_but_that_others_may_be_better() -> None:
    belief = believe([(SPACE[0], 0.0)])
    means, spreads = belief.expected(SPACE)
    assert np.abs(means).max() < 1e-9
    assert spreads[0] < spreads[1:].min()
    assert 0 not in belief.promising(SPACE)


def test_what_was_seen_is_expected_again_and_what_lies_near_is_drawn_to_it() -> None:
    belief = believe([((0, 0, 0, 0), 0.0), ((1, 0, 0, 0), 0.5), ((0, 1, 0, 0), 0.0), ((0, 0, 1, 0), 0.01)])
    means, spreads = belief.expected([(1, 0, 0, 0), (1, 1, 0, 0), (0, 1, 1, 0)])
    assert means[0] == pytest.approx(0.5, abs=0.05)
    assert means[1] > means[2] + 0.1
    assert spreads[0] < spreads[1]


def test_what_is_slow_beyond_measure_does_not_hide_what_is_fast() -> None:
    fair = [((0, 0, 0, 0), 0.0), ((0, 1, 0, 0), 0.2), ((0, 0, 1, 0), 0.1)]
    with_slow = believe([*fair, ((3, 0, 0, 0), -6.9)])
    with_failed = believe([*fair, ((3, 0, 0, 0), None)])
    for belief in (with_slow, with_failed):
        means, _ = belief.expected([(0, 1, 1, 0), (3, 1, 1, 0)])
        assert means[0] > means[1]
        assert means[0] == pytest.approx(0.2, abs=0.15)


def test_supposing_keeps_open_places_from_being_chosen_twice_over() -> None:
    belief = believe([((0, 0, 0, 0), 0.0), ((1, 0, 0, 0), 0.5)])
    still_open = SPACE[belief.promising(SPACE)[0]]
    supposed = belief.supposing([still_open])
    _, before = belief.expected([still_open])
    _, after = supposed.expected([still_open])
    assert after[0] < before[0] / 2
    assert SPACE.index(still_open) not in supposed.promising(SPACE)
    assert belief.supposing([]) is belief


def test_the_same_history_gives_the_same_belief_in_a_fresh_process() -> None:
    history: list[tuple[Place, float | None]] = [(place, 0.01 * at) for at, place in enumerate(SPACE[:20])]
    first = believe(history)
    surrogate._guesses.cache_clear()
    again = believe(history)
    assert all((one == other).all() for one, other in zip(first.expected(SPACE), again.expected(SPACE), strict=True))
    assert first.promising(SPACE) == again.promising(SPACE)


def test_the_work_does_not_grow_with_a_long_history_and_the_best_is_kept() -> None:
    rng = random.Random(5)
    history = [(tuple(rng.randrange(9) for _ in range(6)), rng.uniform(-1, 0.5)) for _ in range(1000)]
    history[123] = ((0, 1, 2, 3, 4, 5), 0.9)
    belief = believe(history)
    assert MOST / 2 < len(belief.places) <= MOST
    assert belief.best == 0.9
    assert [0, 1, 2, 3, 4, 5] in belief.places.tolist()
    assert list(history[-1][0]) in belief.places.tolist()
