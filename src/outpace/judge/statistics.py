"""Statistics: turn the log ratios of buckets into one speed-up with its interval, or say that more are needed.

The claim is tested on the logarithm of each bucket's ratio with a one-sided Wilcoxon signed-rank test, looked at
after 8, 16 and 32 buckets. The levels of the looks add up to 0.99%, so a claim is wrong at most once in a hundred
whichever look it was made at. The interval inverts the same test: its ends are order statistics of the Walsh
averages, so a speed-up is a win exactly when its lower end is above the margin.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outpace.judge.verdict import SpeedUp

# 8 buckets allow no level below 1/256: there all of them must agree.
LOOKS = {8: 0.00391, 16: 0.003, 32: 0.003}
# At the fourth bucket only a candidate that is beyond doubt slower is given up; giving up never claims anything.
EARLY_BUCKETS, EARLY_LOSS = 4, 0.97
# At a look, a median this far below the margin will hardly turn into a win: stop and save the time.
FUTILE = 0.004
# Wider than this at the last look, and the figure says nothing: the machine is too noisy.
NOISE_LIMIT = 0.10


@dataclass(frozen=True)
class Decision:
    """What the buckets so far allow to say; `stop` is False while more are needed."""

    stop: bool
    speed_up: SpeedUp | None
    noisy: bool = False


def decide(ratios: Sequence[float], margin: float) -> Decision:
    """Whether timing can stop, and the speed-up as it stands, from the buckets' log ratios."""
    count = len(ratios)
    if count == EARLY_BUCKETS and max(ratios) < math.log(EARLY_LOSS):
        return Decision(True, _descriptive(ratios))
    if count not in LOOKS:
        return Decision(False, None)
    estimate = speed_up(ratios, margin)
    last = count == max(LOOKS)
    futile = float(np.median(ratios)) < math.log(margin) - FUTILE
    if estimate.win or futile or last:
        spread = math.log(estimate.high / estimate.low)
        return Decision(True, estimate, noisy=last and not estimate.win and not futile and spread > NOISE_LIMIT)
    return Decision(False, estimate)


def speed_up(ratios: Sequence[float], margin: float) -> SpeedUp:
    """The Hodges-Lehmann estimate and the interval that the look's own test gives."""
    count = len(ratios)
    averages = walsh_averages(ratios)
    rank = critical_rank(count, LOOKS[count])
    low, high = averages[len(averages) - rank], averages[rank - 1]
    return SpeedUp(
        ratio=math.exp(hodges_lehmann(ratios)),
        low=math.exp(low),
        high=math.exp(high),
        win=low > math.log(margin),
        buckets=count,
    )


def hodges_lehmann(ratios: Sequence[float]) -> float:
    """The estimate of their middle: the median of the averages of all pairs."""
    return float(np.median(walsh_averages(ratios)))


def _descriptive(ratios: Sequence[float]) -> SpeedUp:
    # Four buckets allow no 99% interval; their range is shown, and no win can come of it.
    return SpeedUp(math.exp(float(np.median(ratios))), math.exp(min(ratios)), math.exp(max(ratios)), False, len(ratios))


def walsh_averages(values: Sequence[float]) -> list[float]:
    """The averages of all pairs, each value with itself too, in ascending order."""
    array = np.asarray(values, dtype=float)
    first, second = np.triu_indices(len(array))
    return sorted(((array[first] + array[second]) / 2).tolist())


@functools.cache
def critical_rank(count: int, level: float) -> int:
    """The smallest signed-rank sum that happens by chance with probability at most `level`."""
    tail, total = 0, 2**count
    ways = _rank_sum_ways(count)
    for rank in range(len(ways) - 1, -1, -1):
        tail += ways[rank]
        if tail > level * total:
            return rank + 1
    return 0


def _rank_sum_ways(count: int) -> list[int]:
    """How many sign patterns of ranks 1..count give each sum of positive ranks."""
    ways = [1]
    for rank in range(1, count + 1):
        longer = ways + [0] * rank
        for total in range(len(ways)):
            longer[total + rank] += ways[total]
        ways = longer
    return ways
