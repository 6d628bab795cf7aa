"""What a candidate does to the reference is no speed of its own."""

import math
import random
from collections.abc import Sequence

import pytest

from conftest import c_task
from outpace.judge.accounts import reckon
from outpace.judge.verdict import Bucket, Life, Sample, Span

TASK = c_task("int f(int x) { return x; }", "int f(int x)", "def make_input(rng):\n    return {'x': 1}\n")
CALLS, CALL = 100, 100_000.0


def lived(*turns: float) -> Life:
    """A worker whose calls take so long, turn by turn."""
    samples = tuple(Sample(CALLS, round(CALLS * each), round(CALLS * each), 0) for each in turns)
    return Life(Sample(10, round(10 * turns[-1]), round(10 * turns[-1]), 0), samples)


def found(reference: Sequence[Life], candidate: Sequence[Life], block: int, span: Span = Span.WHOLE) -> float:
    pairs = zip(reference, candidate, strict=True)
    ratios = sorted(reckon([Bucket(*pair, 1, span=span, block=block) for pair in pairs], TASK).ratios)
    return math.exp(ratios[len(ratios) // 2])


def near(value: float) -> object:
    return pytest.approx(value, rel=5e-3)


@pytest.mark.parametrize("block", [2, 4, 8])
def test_a_reference_that_is_slowed_down_at_the_start_of_its_blocks_is_no_gain(block: int) -> None:
    slowed = lived(*([2 * CALL] * (block // 2) + [CALL] * (block // 2)) * 4)
    plain = lived(*[CALL] * 4 * block)
    assert found([slowed] * 8, [plain] * 8, block) == near(1)
    # At a first look too.
    assert found([slowed] * 8, [plain] * 8, block, Span.BRIEF) == near(1)


def test_a_gain_stays_what_it_is_beside_that() -> None:
    slowed, faster = lived(*[1.5 * CALL, CALL] * 4), lived(*[CALL / 2] * 8)
    assert found([slowed] * 8, [faster] * 8, 2) == near(2)


def test_work_that_is_done_at_the_start_of_blocks_counts() -> None:
    plain, shifted = lived(*[CALL] * 8), lived(*[1.2 * CALL, 0.8 * CALL] * 4)
    assert found([plain] * 8, [shifted] * 8, 2) == near(1)


def test_both_sides_may_be_slow_at_the_start_of_their_blocks() -> None:
    both = lived(*[1.3 * CALL, CALL] * 4)
    assert found([both] * 8, [both] * 8, 2) == near(1)


def test_turns_that_stand_alone_have_no_second_halves() -> None:
    slowed, plain = lived(*[2 * CALL, CALL] * 4), lived(*[CALL] * 8)
    assert found([slowed] * 8, [plain] * 8, 1) == near(1.5)


def test_noise_alone_costs_honest_code_next_to_nothing() -> None:
    rng = random.Random(1)
    low = []
    for _ in range(200):
        lives = [[lived(*(rng.gauss(CALL, 0.03 * CALL) for _ in range(8))) for _ in range(8)] for _ in range(2)]
        low.append(found(*lives, 2))
    # Beside it, dear calls that are too rare for the median and waiting lower it by chance.
    assert sum(low) / len(low) > 0.99
