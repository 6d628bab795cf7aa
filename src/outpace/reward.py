"""Reward: what each verdict earns, alone and within its group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from outpace.errors import HarnessError, OutpaceError
from outpace.judge.verdict import TELLS_NOTHING, Outcome, Verdict

# A correct candidate earns its log speed-up, so that 2x and 1/2x weigh the same, but never less than this.
# CUDA-L1 too stops telling slow candidates apart at 1000 times the reference's time.
FLOOR = math.log(1 / 1000)

# Every rejection earns less than FLOOR: no correct candidate, however slow, is worth less than a rejected
# one. Among honest failures, the further a candidate came the better, for where a whole group fails equal
# rewards would teach nothing. Built but of no use is one rung: to pay a wrong answer more than a crash is to
# pay for guessing. Cheating is far below the rest, or trying it would cost no more than an honest mistake.
_BUILT, _NOT_BUILT, _NOT_READ, _CHEATED = FLOOR - 0.5, FLOOR - 0.75, FLOOR - 1.0, FLOOR - 2.0
REJECTIONS: Mapping[Outcome, float] = MappingProxyType(
    {
        Outcome.WRONG: _BUILT,
        Outcome.CRASHED: _BUILT,
        Outcome.TIMED_OUT: _BUILT,
        # A limit may be hit while building or running; the lower rung, so that probing limits never pays.
        Outcome.REFUSED: _NOT_BUILT,
        Outcome.BUILD_FAILED: _NOT_BUILT,
        Outcome.UNUSABLE: _NOT_READ,
        Outcome.CHEATING: _CHEATED,
    }
)

# The smallest gain the judge calls a win; about twice the spread of one timed bucket.
NOISE = math.log(1.01)

CLIP = 1.5
REFRESH = 100


def reward(verdict: Verdict) -> float | None:
    """The log speed-up if correct, less than FLOOR if rejected, None if the verdict tells nothing."""
    if verdict.outcome in TELLS_NOTHING:
        return None
    if verdict.outcome is not Outcome.OK:
        return REJECTIONS[verdict.outcome]
    if verdict.speed_up is None or not 0 < verdict.speed_up.ratio < math.inf:
        raise HarnessError(f"an ok verdict has no usable speed-up ({verdict.speed_up}): judge it again")
    return max(math.log(verdict.speed_up.ratio), FLOOR)


@dataclass(frozen=True)
class RollingScale:
    """Mean and spread of the last full hundred correct rewards; until then, plain log speed-up."""

    mean: float = 0.0
    spread: float = 1.0
    waiting: tuple[float, ...] = ()

    @property
    def noise(self) -> float:
        """NOISE in the units of smoothed rewards: the floor that `advantages` of these needs."""
        return NOISE / self.spread

    def updated(self, rewards: Sequence[float | None]) -> RollingScale:
        """The scale after these rewards; how they are split into calls makes no difference."""
        # Rejections are left out: they say how often the policy fails, and would squeeze the differences in
        # speed that the scale is for.
        waiting = self.waiting + tuple(each for each in rewards if each is not None and not _rejected(each))
        full = len(waiting) - len(waiting) % REFRESH
        if full == 0:
            return replace(self, waiting=waiting)
        mean, spread = _mean_and_spread(waiting[full - REFRESH : full])
        return RollingScale(mean, max(spread, NOISE), waiting[full:])


def smooth(rewards: Sequence[float | None], scale: RollingScale) -> tuple[float | None, ...]:
    """Correct rewards standardised and clipped to +-CLIP (CUDA-L1); rejections shifted from FLOOR to -CLIP.

    Clipping makes equals of correct candidates at either end, so among these the order is kept, but not
    strictly. A rejection stays strictly below every correct candidate.
    """
    return tuple(None if each is None else _smoothed(each, scale) for each in rewards)


def advantages(rewards: Sequence[float | None], floor: float) -> tuple[float | None, ...]:
    """Each reward against its group's mean, in units of the group's spread; None stays None, not counted.

    The floor is the measured noise in the rewards' units: NOISE, or `RollingScale.noise` after `smooth`.
    Without it the noise among equally fast candidates would be blown up to advantages of +-1. The map is
    linear, so a strict order stays strict. A leave-one-out mean would only multiply all by n / (n - 1).
    """
    if not floor > 0:
        raise OutpaceError(f"the floor under the spread is {floor}: set it to the measured noise, above 0")
    known = [each for each in rewards if each is not None]
    if not known:
        return tuple(None for _ in rewards)
    mean, spread = _mean_and_spread(known)
    unit = max(spread, floor)
    return tuple(None if each is None else (each - mean) / unit for each in rewards)


def _rejected(value: float) -> bool:
    return value < FLOOR


def _smoothed(value: float, scale: RollingScale) -> float:
    if _rejected(value):
        return value - FLOOR - CLIP
    return min(max((value - scale.mean) / scale.spread, -CLIP), CLIP)


def _mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((each - mean) ** 2 for each in values) / len(values))
