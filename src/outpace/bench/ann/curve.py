"""Curves: timings at many efforts become queries per second at a level of recall, ratios, and their intervals.

Along the efforts of one strand (one index, one re-ranking depth) speed can only fall and recall can only rise, so both
are fitted monotonically, and between two points the logarithm of the speed is straight. At a level a library uses the
strand that is the fastest by the recall of other queries than those that recall is reported for. A library whose
cheapest setting is above a level enters that level with it; a level that it cannot reach is None, and stays None in
every figure made of it.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

LEVELS = (0.90, 0.95, 0.99, 0.999)
AREA = (0.85, 0.95)
# A setting that finds so much less than a cheaper one does not work at all (a beam beyond a library's limit, say); it
# must not pull down the settings that do.
BROKEN = 0.02
_STEPS = 100


@dataclass(frozen=True)
class Reading:
    """One timed sweep over the queries: which strand of which library, at what effort, in which round.

    `known` is its recall for the queries that settings were chosen on. `missed` has a digit for each query
    (sampling.py), or none where that was not kept.
    """

    strand: str
    effort: float
    round: int
    recall: float
    qps: float
    known: float = math.nan
    missed: str = ""
    k: int = 10


@dataclass(frozen=True)
class Point:
    """A setting's recall and speed, and its recall for the queries that settings were chosen on."""

    effort: float
    recall: float
    qps: float
    known: float = math.nan


@dataclass(frozen=True)
class Interval:
    """A median with the range that holds the true one; `sure` is the confidence that the number of rounds allows."""

    middle: float
    low: float
    high: float
    sure: float


Strand = tuple[Point, ...]


@dataclass(frozen=True)
class Curve:
    """A library's strands by name, and its guides: the same strands with the recall of the other queries.

    The fastest of many strands on the queries that recall is reported for would be lucky as well as fast, the more so
    the more strands a library has. So the guides say which one is used; where there are none, strands guide themselves.
    """

    strands: Mapping[str, Strand]
    guides: Mapping[str, Strand]


def medians(readings: Iterable[Reading]) -> dict[str, list[Point]]:
    """Per strand, each effort's median recall and speed over the rounds; readings without a number are left out."""
    groups: dict[tuple[str, float], list[Reading]] = defaultdict(list)
    for reading in readings:
        if math.isfinite(reading.recall) and math.isfinite(reading.qps) and reading.qps > 0:
            groups[reading.strand, reading.effort].append(reading)
    strands: dict[str, list[Point]] = defaultdict(list)
    for (strand, effort), each in sorted(groups.items()):
        recall = statistics.median(reading.recall for reading in each)
        speed = statistics.median(reading.qps for reading in each)
        strands[strand].append(Point(effort, recall, speed, each[0].known))
    return dict(strands)


def fitted(points: Sequence[Point]) -> Strand:
    """A strand with its noise taken out: more effort is never faster and never finds less."""
    ordered = _sound(sorted(points, key=lambda point: point.effort))
    recalls = rising([point.recall for point in ordered])
    speeds = rising([-math.log(point.qps) for point in ordered])
    kept: list[Point] = []
    for point, recall, speed in zip(ordered, recalls, speeds, strict=True):
        # Where recall no longer rises, the cheapest setting is the one to use.
        if not kept or recall > kept[-1].recall:
            kept.append(Point(point.effort, recall, math.exp(-speed)))
    return tuple(kept)


def _sound(ordered: Sequence[Point]) -> list[Point]:
    highest, kept = 0.0, []
    for point in ordered:
        highest = max(highest, point.recall)
        if point.recall >= highest - BROKEN:
            kept.append(point)
    return kept


def rising(values: Sequence[float]) -> list[float]:
    """The closest sequence that never falls: neighbours in the wrong order are replaced by their mean."""
    pools: list[tuple[float, int]] = []
    for value in values:
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, size = pools.pop()
            total, count = total + before, count + size
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


def curve(readings: Iterable[Reading]) -> Curve:
    """A library's curve: the fitted strands of all its configurations."""
    found = medians(readings)
    strands = {name: fitted(points) for name, points in found.items()}
    if any(math.isnan(point.known) for points in found.values() for point in points):
        return Curve(strands, strands)
    guides = {name: [Point(each.effort, each.known, each.qps) for each in points] for name, points in found.items()}
    return Curve(strands, {name: fitted(points) for name, points in guides.items()})


def front(whole: Curve) -> list[Point]:
    """The settings worth using: no other one is both faster and better."""
    best: list[Point] = []
    points = [each for strand in whole.strands.values() for each in strand]
    for point in sorted(points, key=lambda p: (-p.recall, -p.qps)):
        if not best or point.qps > best[-1].qps:
            best.append(point)
    return best[::-1]


def at_level(whole: Curve, level: float) -> float | None:
    """Queries per second at this recall, or None where no setting reaches it."""
    for name in _by_promise(whole.guides, level):
        speed = _strand_at(whole.strands.get(name, ()), level)
        if speed is not None:
            return speed
    return None


def _by_promise(guides: Mapping[str, Strand], level: float) -> list[str]:
    """Strands by their speed at this level, the fastest first; behind them, by recall, those that do not reach it."""
    speeds = {name: _strand_at(strand, level) for name, strand in guides.items()}
    reaching = sorted((-speed, name) for name, speed in speeds.items() if speed is not None)
    others = sorted((-guides[name][-1].recall, name) for name, speed in speeds.items() if speed is None)
    return [name for _, name in reaching + others]


def _strand_at(strand: Strand, level: float) -> float | None:
    above = next((at for at, point in enumerate(strand) if point.recall >= level), None)
    if above is None:
        return None
    upper = strand[above]
    if above == 0 or upper.recall == level:
        return upper.qps
    lower = strand[above - 1]
    share = (level - lower.recall) / (upper.recall - lower.recall)
    return math.exp((1 - share) * math.log(lower.qps) + share * math.log(upper.qps))


def area(whole: Curve, low: float = AREA[0], high: float = AREA[1]) -> float | None:
    """The mean of log speed over a range of recall, as a speed; None where the range's end is not reached."""
    speeds = [at_level(whole, low + (high - low) * step / _STEPS) for step in range(_STEPS + 1)]
    known = [math.log(speed) for speed in speeds if speed is not None]
    if len(known) < len(speeds):
        return None
    return math.exp((sum(known) - (known[0] + known[-1]) / 2) / _STEPS)


Figure = Callable[[Curve], float | None]


def by_round(readings: Sequence[Reading], figure: Figure) -> dict[int, float]:
    """A figure computed from each round alone, with the same strands; rounds that cannot tell it are left out."""
    guides = curve(readings).guides
    rounds: dict[int, list[Reading]] = defaultdict(list)
    for reading in readings:
        rounds[reading.round].append(reading)
    told = {number: figure(Curve(curve(each).strands, guides)) for number, each in sorted(rounds.items())}
    return {number: value for number, value in told.items() if value is not None}


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """The median and the narrowest pair of order statistics that holds the true median with this confidence.

    It asks nothing of the noise but that rounds are independent. Below six rounds no pair is as sure as 95%; then the
    range of the rounds is given together with how sure it is.
    """
    if not values:
        return None
    ordered, count = sorted(values), len(values)
    rank, sure = 0, _coverage(count, 0)
    while rank + 1 < (count + 1) // 2 and _coverage(count, rank + 1) >= confidence:
        rank += 1
        sure = _coverage(count, rank)
    return Interval(statistics.median(ordered), ordered[rank], ordered[count - 1 - rank], sure)


def _coverage(count: int, rank: int) -> float:
    return max(1.0 - 2.0 * sum(math.comb(count, below) for below in range(rank + 1)) / float(2**count), 0.0)


def ratio(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Interval | None:
    """How many times faster, from the rounds that both have: noise that a round's neighbours share cancels out."""
    shared = sorted(ours.keys() & theirs.keys())
    found = interval([math.log(ours[number] / theirs[number]) for number in shared])
    if found is None:
        return None
    return Interval(math.exp(found.middle), math.exp(found.low), math.exp(found.high), found.sure)


@dataclass(frozen=True)
class Cell:
    """One level of recall on one data set: the best peer, ours, and how they compare."""

    name: str
    best_peer: str | None
    peer: float | None
    ours: float | None
    ratio: Interval | None

    @property
    def verdict(self) -> str:
        """The cell in words where there is no ratio."""
        if self.ratio is not None:
            return "compared"
        if self.peer is None:
            return "no library reaches it" if self.ours is None else "no peer reaches it"
        return "ours does not reach it" if self.ours is None else "no round has both"


def figures(levels: Sequence[float] = LEVELS) -> dict[str, Figure]:
    """What a curve is summed up by: its speed at each level, and over the area."""

    def at(level: float) -> Figure:
        return lambda whole: at_level(whole, level)

    return {f"{level:g}": at(level) for level in levels} | {f"{AREA[0]:g}-{AREA[1]:g}": area}


def compare(name: str, figure: Figure, ours: Sequence[Reading], peers: Mapping[str, Sequence[Reading]]) -> Cell:
    """A cell. The best peer is the one with the fastest curve over all rounds, and the same in every round."""
    own = figure(curve(ours))
    speeds = {peer: figure(curve(readings)) for peer, readings in peers.items()}
    reached = {peer: speed for peer, speed in speeds.items() if speed is not None}
    if not reached:
        return Cell(name, None, None, own, None)
    best = max(sorted(reached), key=lambda peer: reached[peer])
    if own is None:
        return Cell(name, best, reached[best], None, None)
    found = ratio(by_round(ours, figure), by_round(peers[best], figure))
    return Cell(name, best, reached[best], own, found)


def geometric_mean(cells: Iterable[Cell]) -> float | None:
    """Over the cells that have a ratio; the others are reported, never averaged."""
    logs = [math.log(cell.ratio.middle) for cell in cells if cell.ratio is not None]
    return math.exp(statistics.fmean(logs)) if logs else None
