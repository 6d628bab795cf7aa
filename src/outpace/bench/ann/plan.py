"""The plan: which queries tune and which decide, and what of the screening goes into the final run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from outpace.bench.ann.curve import Reading, at_level, curve
from outpace.bench.ann.log import TimeRow
from outpace.bench.ann.peers.base import Configuration, Parameters
from outpace.errors import OutpaceError

# Peers that go into the final run for each level.
BEST = 3
# A configuration goes along while it is at most this much slower than the library's best at some level: on the other
# half of the queries the order may turn.
NEAR = 0.8
# Settings below a level and above it: more than one, because the other queries' recall is a little different, and more
# above, where a library that does not reach the level on them would be missing from its cell.
BELOW, ABOVE = 2, 5
# How far in recall a strand may be from the library's highest and still count among its strongest.
STRONG = 0.002


@dataclass(frozen=True)
class Slice:
    """Queries from `begin` up to `end`, and others to warm up with."""

    begin: int
    end: int
    warm_begin: int
    warm_end: int


def screening(total: int, wanted: int) -> Slice:
    """Queries of the first half, on which settings may be chosen."""
    half = _half(total)
    return Slice(0, min(wanted, half), half, min(half + 50, total))


def deciding(total: int, wanted: int) -> Slice:
    """Queries of the second half, which no choice has seen."""
    half = _half(total)
    return Slice(half, min(half + wanted, total), 0, min(50, half))


def _half(total: int) -> int:
    if total < 2:
        raise OutpaceError(f"the data set has {total} queries: two are the least, one half to choose by, one to decide")
    return total // 2


def effort_key(effort: Parameters) -> str:
    """An effort as text, the same for the same effort."""
    return msgspec.json.encode(dict(effort)).decode()


def strand(configuration: str, effort: Parameters) -> str:
    """The strand that an effort belongs to: its configuration and all but the first of its settings."""
    others = dict(list(effort.items())[1:])
    return f"{configuration} {effort_key(others)}" if others else configuration


def reading(row: TimeRow, known: float = math.nan) -> Reading:
    """A measurement as the curves take it."""
    first = next(iter(row.effort.values()))
    recall = math.nan if row.recall is None else row.recall
    name = strand(row.configuration, row.effort)
    return Reading(name, float(first), row.round, recall, row.qps, known, row.missed, row.k)


def readings(rows: Iterable[TimeRow], chosen_on: Iterable[TimeRow] = ()) -> dict[str, list[Reading]]:
    """Measurements that succeeded, by peer, each with what its setting found where settings were chosen."""
    known = {setting(row): row.recall for row in chosen_on if row.status == "ok" and row.recall is not None}
    found: dict[str, list[Reading]] = defaultdict(list)
    for row in rows:
        if row.status == "ok":
            found[row.peer].append(reading(row, known.get(setting(row), math.nan)))
    return dict(found)


def setting(row: TimeRow) -> tuple[str, str, str, str]:
    """What was measured, whatever the queries were."""
    return row.peer, row.version, row.configuration, effort_key(row.effort)


def finalists(
    screened: Mapping[str, Sequence[Reading]], levels: Sequence[float], own: Sequence[str], best: int = BEST
) -> tuple[str, ...]:
    """Ours, and the fastest few peers of every level; where none reaches a level, those that come nearest to it."""
    chosen = {peer for peer in screened if peer in own}
    for level in levels:
        speeds = {peer: at_level(curve(each), level) for peer, each in screened.items() if peer not in own}
        reached = {peer: speed for peer, speed in speeds.items() if speed is not None}
        chosen |= set(sorted(reached, key=lambda peer: -reached[peer])[:best])
        if not reached:
            highest = {peer: max((each.recall for each in screened[peer]), default=0.0) for peer in speeds}
            chosen |= set(sorted(highest, key=lambda peer: -highest[peer])[:best])
    return tuple(peer for peer in screened if peer in chosen)


def narrowed(
    configurations: Sequence[Configuration], screened: Sequence[Reading], levels: Sequence[float]
) -> tuple[Configuration, ...]:
    """The configurations and efforts of one library that its curve near the levels is made of."""
    wanted: set[tuple[str, float]] = set()
    by_strand: dict[str, list[Reading]] = defaultdict(list)
    for each in screened:
        by_strand[each.strand].append(each)
    for level in levels:
        speeds = {name: at_level(curve(each), level) for name, each in by_strand.items()}
        top = max((speed for speed in speeds.values() if speed is not None), default=None)
        highest = max((each.recall for each in screened), default=0.0)
        for name, speed in speeds.items():
            # Where no setting reaches a level, the strongest ones go along: the other queries may be easier.
            strong = max(each.recall for each in by_strand[name]) >= highest - STRONG
            if (speed is not None and top is not None and speed >= NEAR * top) or (top is None and strong):
                wanted |= {(name, effort) for effort in _around(by_strand[name], level)}
    kept = []
    for configuration in configurations:
        efforts = tuple(
            effort
            for effort in configuration.efforts
            if (strand(configuration.name, effort), float(next(iter(effort.values())))) in wanted
        )
        if efforts:
            kept.append(replace(configuration, efforts=efforts))
    return tuple(kept)


def _around(sweep: Sequence[Reading], level: float) -> list[float]:
    ordered = sorted(sweep, key=lambda each: each.effort)
    above = next((at for at, each in enumerate(ordered) if each.recall >= level), len(ordered))
    return [each.effort for each in ordered[max(above - BELOW, 0) : above + ABOVE]]
