"""The summary: rows of the log become the tables that are published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from outpace.bench.ann.curve import (
    Cell,
    Curve,
    Figure,
    Interval,
    Point,
    Reading,
    by_round,
    compare,
    curve,
    figures,
    front,
    geometric_mean,
    interval,
)
from outpace.bench.ann.log import BuildRow, Log, MachineRow, MissingRow, Row, Stage, TimeRow, Track
from outpace.bench.ann.peers import OWN
from outpace.bench.ann.peers.outpace_ import DEFAULTS, OURS
from outpace.bench.ann.plan import readings
from outpace.bench.ann.sampling import combined, drawn, draws, wider


@dataclass(frozen=True)
class Speed:
    """A library's speed at one level."""

    figure: str
    qps: float | None
    spread: Interval | None


@dataclass(frozen=True)
class Screened:
    """What a library did in its screening, and whether it was timed again in the final stage."""

    configurations: int
    begin: int
    end: int
    final: bool
    speeds: list[Speed]


@dataclass(frozen=True)
class Contest:
    """One data set on one track, from the last stage that was run.

    `sampled` says whether intervals cover other queries; `calls` are the commands whose measurements are in it.
    """

    data: str
    track: Track
    stage: Stage
    rounds: int
    begin: int
    end: int
    waiting: float
    sampled: bool
    fronts: dict[str, list[Point]]
    speeds: dict[str, list[Speed]]
    cells: dict[str, list[Cell]]
    screened: dict[str, Screened]
    calls: list[str]


@dataclass(frozen=True)
class IndexLine:
    """What an index cost."""

    row: BuildRow
    memory_bytes: int | None
    load_seconds: float | None


@dataclass(frozen=True)
class Summary:
    """All that is published."""

    contests: list[Contest]
    indexes: list[IndexLine]
    failures: list[tuple[str, str, str, str, str]]
    missing: list[MissingRow]
    machines: list[MachineRow]

    def mean(self, ours: str, track: Track) -> float | None:
        """The geometric mean of the ratios at the levels; the area, which overlaps them, is left out."""
        return geometric_mean(self.level_cells(ours, track))

    def level_cells(self, ours: str, track: Track) -> list[Cell]:
        """The cells of all data sets but for the areas."""
        return [
            cell
            for contest in self.contests
            if contest.track == track
            for cell in contest.cells.get(ours, [])
            if "-" not in cell.name
        ]


def summarise(log: Log, levels: Sequence[float]) -> Summary:
    """The tables of a log."""
    rows = newest(log.times())
    told = figures(levels)
    pairs = sorted({(row.data, row.track) for row in rows})
    contests = [
        _contest(
            data, track, [r for r in rows if (r.data, r.track) == (data, track)], told, _calls(log.rows, data, track)
        )
        for data, track in pairs
    ]
    memory = {(m.data_key, m.peer, m.version, m.configuration): m for m in log.memory()}
    indexes = []
    for row in sorted(log.builds(), key=lambda each: (each.data, each.peer, each.configuration)):
        held = memory.get((row.data_key, row.peer, row.version, row.configuration))
        grown = None if held is None else held.bytes_after - held.bytes_before
        indexes.append(IndexLine(row, grown, None if held is None else held.load_seconds))
    failures = sorted(
        {(row.data, row.peer, row.configuration, row.status, row.reason) for row in rows if row.status != "ok"}
    )
    taken_part = {row.peer for row in rows}
    missing = {each.peer: each for each in log.rows if isinstance(each, MissingRow) and each.peer not in taken_part}
    machines = list(dict.fromkeys(each.cpu for each in log.rows if isinstance(each, MachineRow)))
    last = {each.cpu: each for each in log.rows if isinstance(each, MachineRow)}
    return Summary(contests, indexes, failures, list(missing.values()), [last[cpu] for cpu in machines])


def newest(rows: Sequence[TimeRow]) -> list[TimeRow]:
    """Only the newest version of each library on the newest contents of each data set."""
    keys = {row.data: row.data_key for row in rows}
    versions = {(row.data, row.peer): row.version for row in rows if row.data_key == keys[row.data]}
    return [row for row in rows if row.data_key == keys[row.data] and row.version == versions.get((row.data, row.peer))]


def of_stage(rows: Sequence[TimeRow], stage: Stage) -> list[TimeRow]:
    """The measurements of a stage: recall and speed of another slice of queries would be another curve."""
    rows = [row for row in rows if row.stage == stage]
    return [row for row in rows if (row.begin, row.end, row.k) == (rows[-1].begin, rows[-1].end, rows[-1].k)]


def _calls(rows: Sequence[Row], data: str, track: Track) -> list[str]:
    """The commands that measured this data set on this track; a run that was stopped goes on with the same words."""
    found, command = [], ""
    for row in rows:
        if isinstance(row, MachineRow):
            command = row.command
        elif isinstance(row, TimeRow) and (row.data, row.track) == (data, track):
            found.append(command)
    return [each for each in dict.fromkeys(found) if each]


def _screened(rows: Sequence[TimeRow], told: dict[str, Figure]) -> dict[str, Screened]:
    timed_again = {row.peer for row in rows if row.stage == "final"}
    found = {}
    for peer in sorted({row.peer for row in rows if row.stage == "screen"}):
        # By library: a later call may have screened some with more queries, and left the others as they were.
        own = of_stage([row for row in rows if row.peer == peer], "screen")
        line = curve(readings(own).get(peer, []))
        found[peer] = Screened(
            len({row.configuration for row in own if row.status == "ok"}),
            own[-1].begin,
            own[-1].end,
            peer in timed_again,
            [Speed(name, figure(line), None) for name, figure in told.items()],
        )
    return found


def _contest(data: str, track: Track, rows: Sequence[TimeRow], told: dict[str, Figure], calls: list[str]) -> Contest:
    stage: Stage = "final" if any(row.stage == "final" for row in rows) else "screen"
    before = _screened(rows, told)
    screened = [row for row in rows if row.stage == "screen" and stage == "final"]
    rows = of_stage(rows, stage)
    begin, end = rows[-1].begin, rows[-1].end
    found = readings(rows, screened)
    peers = {peer: each for peer, each in found.items() if peer not in OWN}
    taken = draws([each for readings_of in found.values() for each in readings_of])
    others = {peer: drawn(each, taken) for peer, each in found.items()}
    cells = {
        own: [_cell(name, figure, own, found[own], peers, others) for name, figure in told.items()]
        for own in (OURS, DEFAULTS)
        if own in found
    }
    speeds = {
        peer: [_speed(name, figure, each, others[peer]) for name, figure in told.items()]
        for peer, each in sorted(found.items())
    }
    fronts = {peer: front(curve(each)) for peer, each in sorted(found.items())}
    rounds = len({row.round for row in rows})
    timed = [row for row in rows if row.status == "ok"]
    waited = sum(row.waited for row in timed) / max(len(timed), 1)
    sampled = len(taken) > 0
    return Contest(data, track, stage, rounds, begin, end, waited, sampled, fronts, speeds, cells, before, calls)


def _cell(
    name: str,
    figure: Figure,
    own: str,
    ours: Sequence[Reading],
    peers: Mapping[str, Sequence[Reading]],
    others: Mapping[str, Sequence[Curve]],
) -> Cell:
    cell = compare(name, figure, ours, peers)
    return wider(cell, figure, others[own], {peer: others[peer] for peer in peers})


def _speed(name: str, figure: Figure, each: Sequence[Reading], others: Sequence[Curve]) -> Speed:
    timing, qps = interval(list(by_round(each, figure).values())), figure(curve(each))
    if timing is None or qps is None:
        return Speed(name, qps, None)
    return Speed(name, qps, combined(timing, qps, [figure(other) or 0.0 for other in others]))
