"""The scale of speed-ups: logarithmic, with the ticks that a person would choose."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Slower than this is drawn at the edge, or one hopeless candidate would flatten all the others; so is faster.
SLOWEST, FASTEST = 0.2, 1e6
# A scale never spans less than this, in log units: noise of a thousandth should look as small as it is.
_ROOM = 0.015


def speed_scale(values: Sequence[float]) -> tuple[tuple[float, float], tuple[float, ...]]:
    """The ends of the scale and its ticks."""
    seen = [min(max(value, SLOWEST), FASTEST) for value in values if math.isfinite(value) and value > 0] or [1.0]
    low, high = min(seen), max(seen)
    room = max(math.log(high / low) * 0.08, _ROOM)
    low, high = low * math.exp(-room), high * math.exp(room)
    return (low, high), tuple(tick for tick in _round_numbers(low, high) if low <= tick <= high)


def _round_numbers(low: float, high: float) -> list[float]:
    if high / low > 4:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        digits = (1, 2, 5) if high / low < 500 else (1,)
        return [digit * 10.0**decade for decade in decades for digit in digits]
    step = next(step for step in _steps() if (high - low) / step <= 6)
    return [round(step * at, 6) for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _steps() -> list[float]:
    return [digit * 10.0**power for power in range(-4, 9) for digit in (1, 2, 5)]
