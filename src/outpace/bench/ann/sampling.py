"""Sampling: how far a figure would have moved with other queries, from drawing those there were again (Efron 1979).

Rounds cannot tell it, since each asks the same queries: of ten neighbours of a thousand queries, ten are missed at
recall 0.999, and with another thousand it would have been seven or thirteen. All libraries are drawn the same queries,
because what is hard for one is hard for the other. What a query took is known only in sum, so that each setting keeps
its speed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from outpace.bench.ann.curve import Cell, Curve, Figure, Interval, Point, Reading, curve, fitted, medians

DRAWS = 400
CONFIDENCE = 0.95
# One digit for each query, so that a line of the log stays short; no library is asked for so many neighbours.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Counts = npt.NDArray[np.int64]


def written(missed: Counts) -> str:
    """How many neighbours of each query were missed, as text; nothing where a digit cannot hold it."""
    return "".join(DIGITS[count] for count in missed) if missed.max(initial=0) < len(DIGITS) else ""


def draws(readings: Sequence[Reading], seed: int = 0) -> Counts:
    """How often each draw takes each query; none where the readings do not tell what was missed."""
    if not readings or not all(reading.missed for reading in readings):
        return np.empty((0, 0), dtype=np.int64)
    queries = max(len(reading.missed) for reading in readings)
    chance = np.random.default_rng(seed)
    return chance.multinomial(queries, np.full(queries, 1 / queries), size=DRAWS)


def drawn(readings: Sequence[Reading], taken: Counts) -> list[Curve]:
    """A library's curve as it would have been with the queries of each draw."""
    if len(taken) == 0:
        return []
    recalls = _recalls(readings, taken)
    found, guides = medians(readings), curve(readings).guides
    return [
        Curve(
            {
                name: fitted([Point(each.effort, float(recalls[name, each.effort][draw]), each.qps) for each in points])
                for name, points in found.items()
            },
            guides,
        )
        for draw in range(len(taken))
    ]


def _recalls(readings: Sequence[Reading], taken: Counts) -> dict[tuple[str, float], npt.NDArray[np.float64]]:
    settings: dict[tuple[str, float], list[str]] = defaultdict(list)
    for reading in readings:
        settings[reading.strand, reading.effort].append(reading.missed)
    k = readings[0].k
    return {
        # Rounds differ where a library answers by chance, and then each has its say, as in `medians`.
        setting: np.asarray(np.median([told[missed] for missed in each], axis=0))
        for setting, each in settings.items()
        for told in [{missed: _recall(missed, k, taken) for missed in set(each)}]
    }


def _recall(missed: str, k: int, taken: Counts) -> npt.NDArray[np.float64]:
    counts = np.array([DIGITS.index(digit) for digit in missed], dtype=np.int64)
    asked = taken[:, : len(counts)]  # a sweep that took too long was cut short
    return np.asarray(1 - asked @ counts / (k * np.maximum(asked.sum(axis=1), 1)))


def wider(cell: Cell, figure: Figure, ours: Sequence[Curve], peers: Mapping[str, Sequence[Curve]]) -> Cell:
    """The cell with an interval that covers the choice of queries too; what depends on it speaks against ours.

    Each draw has its own best peer, also one that narrowly misses the level otherwise. Where none reaches it, the
    cell's peer counts with its most thorough setting; where ours does not, the draw is lost.
    """
    if cell.ratio is None or cell.best_peer is None or not cell.ours or not cell.peer or not ours:
        return cell
    ratios = []
    for draw, mine in enumerate(ours):
        speeds = [figure(curves[draw]) for curves in peers.values()]
        fastest = max((speed for speed in speeds if speed is not None), default=None)
        other = _most_thorough(peers[cell.best_peer][draw]) if fastest is None else fastest
        ratios.append((figure(mine) or 0.0) / other)
    return replace(cell, ratio=combined(cell.ratio, cell.ours / cell.peer, ratios))


def _most_thorough(whole: Curve) -> float:
    return max((strand[-1].recall, strand[-1].qps) for strand in whole.strands.values())[1]


def combined(timing: Interval, told: float, values: Sequence[float]) -> Interval:
    """The errors of timing and of the choice of queries in one interval: independent, so their squares add up.

    `told` is the figure from all queries, `values` are those of the draws. Draws that do not lie around it widen the
    interval to their side alone; a draw of 0, in which the level was not reached, has no lower end.
    """
    if not values:
        return timing
    ordered = sorted(values)
    at = math.floor((1 - CONFIDENCE) / 2 * len(ordered))
    low, high = ordered[at], ordered[-1 - at]
    below = math.hypot(math.log(timing.middle / timing.low), max(0.0, math.log(told / low))) if low > 0 else math.inf
    above = math.hypot(math.log(timing.high / timing.middle), max(0.0, math.log(high / told)) if high > 0 else 0.0)
    ends = timing.middle * math.exp(-below), timing.middle * math.exp(above)
    return Interval(timing.middle, *ends, min(timing.sure, CONFIDENCE))
