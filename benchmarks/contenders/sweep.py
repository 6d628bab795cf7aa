"""A sweep: efforts are raised until recall is enough, and those around the levels are worth timing again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from outpace.bench.ann.curve import Reading
from outpace.bench.ann.peers.base import Configuration
from outpace.bench.ann.plan import narrowed


def climbed(
    measure: Callable[[float], tuple[float, float]], efforts: Iterable[float], *, enough: float, slowest: float
) -> list[Reading]:
    """Recall and speed at rising efforts, until recall was enough twice or a query takes longer than `slowest`."""
    readings: list[Reading] = []
    reached = 0
    for effort in efforts:
        recall, qps = measure(effort)
        readings.append(Reading("", effort, 0, recall, qps))
        reached += recall >= enough
        if reached == 2 or qps * slowest < 1:
            break
    return readings


def near(readings: Sequence[Reading], levels: Sequence[float]) -> tuple[float, ...]:
    """The efforts around the levels, chosen as `outpace bench ann` chooses its settings, and the highest one.

    Other queries may need more effort for the same recall, and a level must not count as not reached for that.
    """
    whole = Configuration("", {}, tuple({"effort": each.effort} for each in readings))
    kept = narrowed((whole,), readings, levels)
    return tuple(sorted({*(float(effort["effort"]) for each in kept for effort in each.efforts), readings[-1].effort}))
