"""Sampling: how far a figure would have moved with other queries, from drawing those there were again (Efron 1979).

Rounds cannot tell it, since each asks the same queries: of ten neighbours of a thousand queries, ten are missed at
recall 0.999, and with another thousand it would have been seven or thirteen. All libraries are drawn the same queries,
because what is hard for one is hard for the other. What a query took is known only in sum, so that each setting keeps
its speed.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from outpace.bench.ann.curve import Cell, Curve, Figure, Interval, Point, Reading, fitted, medians

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
    shares = _missed_shares(readings, taken)
    strands = medians(readings)
    return [
        tuple(
            fitted([Point(point.effort, 1 - float(shares[name, point.effort][draw]), point.qps) for point in points])
            for name, points in strands.items()
        )
        for draw in range(len(taken))
    ]


def _missed_shares(readings: Sequence[Reading], taken: Counts) -> dict[tuple[str, float], npt.NDArray[np.float64]]:
    settings: dict[tuple[str, float], list[Reading]] = defaultdict(list)
    for reading in readings:
        settings[reading.strand, reading.effort].append(reading)
    shares = {}
    for setting, each in settings.items():
        found = []
        for missed, k in {(reading.missed, reading.k) for reading in each}:
            counts = np.array([DIGITS.index(digit) for digit in missed], dtype=np.int64)
            asked = taken[:, : len(counts)]  # a sweep that took too long was cut short
            found.append(asked @ counts / (k * np.maximum(asked.sum(axis=1), 1)))
        shares[setting] = np.asarray(np.median(found, axis=0))
    return shares


def wider(cell: Cell, figure: Figure, ours: Sequence[Curve], peer: Sequence[Curve]) -> Cell:
    """The cell with an interval that covers the choice of queries too.

    A draw in which the peer misses the level counts with the peer's most thorough setting, and one in which ours does
    is lost: a cell that depends on the queries speaks against ours.
    """
    if cell.ratio is None or not ours:
        return cell
    ratios = []
    for mine, theirs in zip(ours, peer, strict=True):
        own, other = figure(mine), figure(theirs)
        other = _most_thorough(theirs) if other is None else other
        ratios.append(0.0 if own is None else own / other)
    return replace(cell, ratio=combined(cell.ratio, ratios))


def _most_thorough(strands: Curve) -> float:
    return max((strand[-1].recall, strand[-1].qps) for strand in strands)[1]


def combined(timing: Interval, values: Sequence[float]) -> Interval:
    """Two independent sources of error in one interval: on the scale of logarithms their squares add up."""
    if not values:
        return timing
    ordered = sorted(values)
    at = math.floor((1 - CONFIDENCE) / 2 * len(ordered))
    low, middle, high = ordered[at], statistics.median(ordered), ordered[-1 - at]
    if low <= 0:
        return Interval(timing.middle, 0.0, timing.high, min(timing.sure, CONFIDENCE))
    below = math.hypot(math.log(timing.middle / timing.low), math.log(middle / low))
    above = math.hypot(math.log(timing.high / timing.middle), math.log(high / middle))
    return Interval(
        timing.middle,
        timing.middle * math.exp(-below),
        timing.middle * math.exp(above),
        min(timing.sure, CONFIDENCE),
    )
