"""Reproduction: whether a speed-up measured here bears out one that was claimed, by their intervals."""

from __future__ import annotations

import math
from enum import StrEnum

from outpace.judge.verdict import SpeedUp

# Two honest timings of the same code differ by more than their intervals, for memory is laid out anew and another
# machine has other caches. A tenth of the smaller gain is allowed for that, at least what the judge calls noise, and no
# more than a tenth of the figure itself: of the logarithm of 50 a tenth would be half as much again.
_SHARE, _LEAST, _MOST = 0.1, math.log(1.01), math.log(1.1)
# An interval that reaches further than this from its estimate says little, so it cannot excuse a difference either.
_REACH = 0.1


class Finding(StrEnum):
    """What judging a claim again came to."""

    REPRODUCED = "reproduced"
    LARGER = "larger here"
    SMALLER = "smaller here"
    FAILED = "not reproduced"

    @property
    def holds(self) -> bool:
        """Whether the claim may be repeated for this machine."""
        return self in (Finding.REPRODUCED, Finding.LARGER)


def compared(claimed: SpeedUp, measured: SpeedUp | None) -> Finding:
    """How the measured speed-up stands to the claimed one.

    They agree if each estimate lies in the other's interval, but for the allowance. Both must, and no interval counts
    for more than `_REACH`: else a claim of 5 that reaches down to 1.02 would be borne out by any gain at all.
    """
    if measured is None or (claimed.win and not measured.win):
        return Finding.FAILED
    there, here = math.log(claimed.ratio), math.log(measured.ratio)
    if here < there:
        room = min(_reach(there, claimed.low), _reach(here, measured.high))
    else:
        room = min(_reach(there, claimed.high), _reach(here, measured.low))
    if abs(here - there) <= min(max(_SHARE * min(here, there), _LEAST), _MOST) + room:
        return Finding.REPRODUCED
    return Finding.LARGER if here > there else Finding.SMALLER


def _reach(estimate: float, end: float) -> float:
    return min(abs(math.log(end) - estimate), _REACH)
