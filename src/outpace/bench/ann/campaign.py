"""A campaign: data sets and peers go through the two stages, and a later call goes on where an earlier one ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from outpace.bench.ann import datasets, plan
from outpace.bench.ann.builds import Builder, Entry, slug
from outpace.bench.ann.curve import AREA
from outpace.bench.ann.datasets import Dataset
from outpace.bench.ann.log import Log, MachineRow, MissingRow, Row, TimeRow, Track
from outpace.bench.ann.peers import OWN, find
from outpace.bench.ann.process import PeerFailed, version
from outpace.bench.ann.rounds import Bench, Rules
from outpace.errors import OutpaceError

Stages = Literal["screen", "final", "all"]


@dataclass(frozen=True)
class Settings:
    """What the user chose."""

    peers: tuple[str, ...]
    stage: Stages
    track: Track
    rounds: int
    queries: int
    screen_queries: int
    levels: tuple[float, ...]
    configurations: int
    threads: int
    budget: float
    core: int
    out: Path
    retry: bool = False


def presence(peer: str, logs: Path) -> tuple[str | None, str]:
    """A peer's version, or None and why it cannot take part."""
    try:
        return version(peer, logs / f"version-{slug(peer)}.txt"), ""
    except PeerFailed as fault:
        return None, f"{fault.reason}; to have it: {find(peer).install}"


def run(data: Sequence[Path], settings: Settings, log: Log, here: MachineRow, tell: Callable[[str], None]) -> None:
    """Run the stages on every data set."""
    log.append(here)
    logs = settings.out / "logs"
    versions: dict[str, str] = {}
    for peer in settings.peers:
        tell(f"importing {peer}")
        found, why = presence(peer, logs)
        if found is None:
            log.append(MissingRow(peer, why))
        else:
            versions[peer] = found
    if not versions:
        raise OutpaceError(
            f"none of these can be imported: {', '.join(settings.peers)}; see `outpace bench ann --list-peers`"
        )
    builder = Builder(settings.out / "indexes", logs, settings.threads, settings.budget)
    for path in data:
        tell(f"reading {path.name}")
        bench = Bench(datasets.load(path), path.resolve(), builder, log, settings.core, tell)
        entries = _entries(bench.dataset, versions, settings.configurations, log)
        if settings.retry:
            _forget_failures(entries, bench, log)
        if settings.stage in ("screen", "all"):
            slice_ = plan.screening(len(bench.dataset.queries), settings.screen_queries)
            bench.run(entries, Rules("screen", settings.track, 1, slice_))
        if settings.stage in ("final", "all"):
            chosen = chosen_entries(entries, bench.dataset, log, settings)
            slice_ = plan.deciding(len(bench.dataset.queries), settings.queries)
            bench.run(chosen, Rules("final", settings.track, settings.rounds, slice_))


def _entries(dataset: Dataset, versions: dict[str, str], most: int, log: Log) -> list[Entry]:
    entries = []
    for peer, number in versions.items():
        configurations = find(peer).configurations(dataset.shape)
        if not configurations:
            log.append(MissingRow(peer, f"it cannot serve {dataset.name}: {dataset.shape.dimension} dimensions"))
        entries += [Entry(peer, number, each) for each in configurations[:most]]
    return entries


def _forget_failures(entries: Sequence[Entry], bench: Bench, log: Log) -> None:
    entered = {(entry.peer, entry.configuration.name) for entry in entries}

    def failed(row: Row) -> bool:
        if not isinstance(row, TimeRow) or row.status == "ok":
            return False
        return (row.peer, row.configuration) in entered and row.data_key == bench.dataset.key

    log.forget(failed)
    for entry in entries:
        bench.builder.forget_failure(bench.dataset, entry)


def chosen_entries(entries: Sequence[Entry], dataset: Dataset, log: Log, settings: Settings) -> list[Entry]:
    """What goes into the final run, from the screening's measurements alone."""
    # Not by library alone: an earlier call may have screened configurations that this one leaves out.
    entered = {(entry.peer, entry.version, entry.configuration.name) for entry in entries}

    def screened(row: TimeRow) -> bool:
        same = row.data_key == dataset.key and row.track == settings.track
        return row.stage == "screen" and same and (row.peer, row.version, row.configuration) in entered

    found = plan.readings(row for row in log.times() if screened(row))
    if not found:
        raise OutpaceError(
            f"{dataset.name} has no screening in {settings.out}: run `--stage screen` first, or `--stage all`"
        )
    near = (AREA[0], *settings.levels)
    chosen = []
    for peer in plan.finalists(found, settings.levels, OWN):
        own = [entry for entry in entries if entry.peer == peer]
        kept = plan.narrowed([entry.configuration for entry in own], found[peer], near)
        chosen += [Entry(peer, own[0].version, configuration) for configuration in kept]
    return chosen
