"""Reward: correct beats rejected at every stage, and noise earns no advantage."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.errors import HarnessError, OutpaceError
from outpace.judge.verdict import TELLS_NOTHING, Outcome, SpeedUp, Verdict
from outpace.reward import CLIP, FLOOR, NOISE, REFRESH, REJECTIONS, RollingScale, advantages, reward, smooth


def ok(ratio: float) -> Verdict:
    return Verdict(Outcome.OK, speed_up=SpeedUp(ratio, ratio * 0.99, ratio * 1.01, ratio > 1.01, 8))


def earned(verdict: Verdict) -> float:
    value = reward(verdict)
    assert value is not None
    return value


RATIOS = st.floats(1e-9, 1e9)
REJECTED = [each for each in Outcome if each not in (Outcome.OK, *TELLS_NOTHING)]
CORRECT = st.builds(ok, RATIOS)
VERDICTS = CORRECT | st.sampled_from(Outcome).filter(lambda each: each is not Outcome.OK).map(Verdict)
REWARDS = VERDICTS.map(reward)
SCALES = st.builds(RollingScale, st.floats(FLOOR, 21), st.floats(NOISE, 15))


def test_twice_as_fast_and_half_as_fast_weigh_the_same() -> None:
    assert earned(ok(2.0)) == pytest.approx(math.log(2))
    assert earned(ok(0.5)) == pytest.approx(-earned(ok(2.0)))
    assert earned(ok(1.0)) == 0


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_earns_something_or_is_known_to_tell_nothing(outcome: Outcome) -> None:
    verdict = ok(1.0) if outcome is Outcome.OK else Verdict(outcome)
    assert (reward(verdict) is None) == (outcome in TELLS_NOTHING)


@pytest.mark.parametrize("outcome", REJECTED)
@settings(deadline=None)
@given(ratio=RATIOS)
def test_a_correct_candidate_however_slow_earns_more_than_a_rejected_one(outcome: Outcome, ratio: float) -> None:
    assert earned(ok(ratio)) > earned(Verdict(outcome))


def test_failing_later_earns_more_and_cheating_earns_least() -> None:
    ladder = [Outcome.CHEATING, Outcome.UNUSABLE, Outcome.BUILD_FAILED, Outcome.CRASHED]
    assert all(REJECTIONS[worse] < REJECTIONS[better] for worse, better in pairwise(ladder))
    assert REJECTIONS[Outcome.WRONG] == REJECTIONS[Outcome.CRASHED] == REJECTIONS[Outcome.TIMED_OUT]
    assert min(REJECTIONS, key=lambda each: REJECTIONS[each]) is Outcome.CHEATING


@pytest.mark.parametrize("speed_up", [None, *(SpeedUp(ratio, 1, 1, False, 8) for ratio in (0, math.inf, math.nan))])
def test_an_ok_verdict_without_a_usable_speed_up_is_a_fault(speed_up: SpeedUp | None) -> None:
    with pytest.raises(HarnessError, match="judge it again"):
        reward(Verdict(Outcome.OK, speed_up=speed_up))


@settings(deadline=None)
@given(st.lists(REWARDS, max_size=30), SCALES)
def test_a_correct_candidate_beats_a_rejected_one_strictly_also_after_smoothing_and_in_advantages(
    rewards: list[float | None], scale: RollingScale
) -> None:
    smoothed = smooth(rewards, scale)
    for values in (smoothed, advantages(rewards, NOISE), advantages(smoothed, scale.noise)):
        pairs = [(raw, value) for raw, value in zip(rewards, values, strict=True) if raw is not None]
        correct = [value for raw, value in pairs if raw >= FLOOR]
        rejected = [value for raw, value in pairs if raw < FLOOR]
        if correct and rejected:
            assert min(correct) > max(rejected)


@settings(deadline=None)
@given(st.lists(REWARDS, max_size=30), SCALES)
def test_no_step_reverses_an_order(rewards: list[float | None], scale: RollingScale) -> None:
    smoothed = smooth(rewards, scale)
    for values in (smoothed, advantages(rewards, NOISE), advantages(smoothed, scale.noise)):
        known = sorted((raw, value) for raw, value in zip(rewards, values, strict=True) if raw is not None)
        assert all(lower[1] <= higher[1] for lower, higher in pairwise(known))


@settings(deadline=None)
@given(st.lists(CORRECT.map(earned), min_size=1, max_size=30), SCALES)
def test_smoothed_rewards_of_correct_candidates_stay_within_the_clip(rewards: list[float], scale: RollingScale) -> None:
    assert all(-CLIP <= each <= CLIP for each in smooth(rewards, scale) if each is not None)


def test_smoothing_standardises_what_it_does_not_clip() -> None:
    scale = RollingScale(mean=0.3, spread=0.2)
    assert smooth([0.3, 0.5, 0.2, 9.0, -5.0], scale) == pytest.approx((0.0, 1.0, -0.5, CLIP, -CLIP))


def test_rejections_keep_their_order_below_the_clip() -> None:
    smoothed = smooth([REJECTIONS[each] for each in REJECTED], RollingScale(5.0, 0.01))
    for outcome, value in zip(REJECTED, smoothed, strict=True):
        assert value == pytest.approx(REJECTIONS[outcome] - FLOOR - CLIP)
        assert value is not None and value < -CLIP


def test_the_scale_changes_only_when_a_hundred_correct_rewards_are_in() -> None:
    rewards = [each / 100 for each in range(REFRESH)]
    before = RollingScale().updated(rewards[:-1])
    assert (before.mean, before.spread) == (0.0, 1.0)
    after = before.updated(rewards[-1:])
    assert after.mean == pytest.approx(0.495)
    assert after.spread == pytest.approx(math.sqrt((REFRESH**2 - 1) / 12) / 100)
    assert after.waiting == ()
    assert after.updated([5.0] * (REFRESH - 1)).mean == after.mean
    assert after.updated([5.0] * REFRESH).mean == pytest.approx(5.0)


def test_rejections_and_noisy_verdicts_do_not_move_the_scale() -> None:
    noise = [REJECTIONS[Outcome.WRONG], None, REJECTIONS[Outcome.CHEATING]] * REFRESH
    assert RollingScale().updated(noise) == RollingScale()


@settings(deadline=None)
@given(st.integers(0, 350), st.integers(0, 350), st.randoms(use_true_random=False))
def test_the_scale_does_not_depend_on_how_rewards_are_grouped(size: int, cut: int, rng: random.Random) -> None:
    rewards = [rng.uniform(FLOOR - 1, 3) for _ in range(size)]
    assert RollingScale().updated(rewards[:cut]).updated(rewards[cut:]) == RollingScale().updated(rewards)


def test_the_scale_is_that_of_the_last_full_hundred_and_the_others_wait() -> None:
    scale = RollingScale().updated([1.0] * REFRESH + [2.0] * REFRESH + [3.0] * 7)
    assert scale == RollingScale(2.0, NOISE, (3.0,) * 7)


def test_the_slowest_correct_candidate_still_counts_as_correct() -> None:
    slowest = earned(ok(1e-9))
    assert RollingScale().updated([slowest]).waiting == (slowest,)
    assert smooth([slowest], RollingScale(slowest, 1.0)) == (0.0,)


def test_a_hundred_equal_rewards_leave_a_usable_spread() -> None:
    assert RollingScale().updated([0.7] * REFRESH).spread == NOISE


def test_advantages_are_standardised_within_the_group() -> None:
    assert advantages([1.0, 2.0, 3.0], NOISE) == pytest.approx((-math.sqrt(1.5), 0.0, math.sqrt(1.5)))


def test_differences_that_are_noise_earn_little_advantage() -> None:
    timings = [earned(ok(1.5 * (1 + wobble))) for wobble in (-0.001, 0.0005, 0.001, -0.0005)]
    assert max(abs(each) for each in advantages(timings, NOISE) if each is not None) < 0.11
    # Standardised by their own spread, the same four would be told apart as firmly as a real difference.
    assert max(abs(each) for each in advantages(timings, 1e-9) if each is not None) > 1


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8), st.sampled_from([1e-4, 1e-2, 1.0]), SCALES)
def test_smoothing_and_its_noise_floor_agree_on_what_is_noise(
    steps: list[float], size: float, scale: RollingScale
) -> None:
    rewards = [max(scale.mean + size * step, FLOOR) for step in steps]
    # Where nothing is clipped, smoothing is a change of units and may not change an advantage.
    inside = [each for each in rewards if abs(each - scale.mean) < CLIP * scale.spread]
    found = advantages(smooth(inside, scale), scale.noise)
    assert found == pytest.approx(advantages(inside, NOISE), abs=1e-6)


@settings(deadline=None)
@given(st.lists(REWARDS, max_size=20))
def test_noisy_verdicts_keep_their_place_and_count_for_nothing(rewards: list[float | None]) -> None:
    found = advantages(rewards, NOISE)
    known = [each for each in rewards if each is not None]
    assert [each is None for each in found] == [each is None for each in rewards]
    assert tuple(each for each in found if each is not None) == advantages(known, NOISE)


@settings(deadline=None)
@given(st.lists(VERDICTS.map(reward).filter(lambda each: each is not None), min_size=1, max_size=20))
def test_advantages_sum_to_nothing(rewards: list[float]) -> None:
    assert math.fsum(each for each in advantages(rewards, NOISE) if each is not None) == pytest.approx(0, abs=1e-9)


def test_a_lone_candidate_has_no_advantage() -> None:
    assert advantages([2.0], NOISE) == (0.0,)


@pytest.mark.parametrize("floor", [0.0, -0.1, math.nan])
def test_a_floor_that_is_not_positive_is_refused(floor: float) -> None:
    with pytest.raises(OutpaceError, match="above 0"):
        advantages([1.0, 1.0], floor)
