"""Builds: each index is built once within the budget, kept on disk, and found again."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from outpace.bench.ann import memory
from outpace.bench.ann.datasets import Dataset
from outpace.bench.ann.log import BuildRow
from outpace.bench.ann.messages import Build, Built, Ready
from outpace.bench.ann.peers.base import Configuration
from outpace.bench.ann.process import PeerFailed, PeerProcess

# Importing a library and reading the vectors are not part of any budget, but must end some time.
_READING = 600.0


@dataclass(frozen=True)
class Entry:
    """A peer's version with one of its configurations."""

    peer: str
    version: str
    configuration: Configuration


@dataclass(frozen=True)
class Builder:
    """Where indexes are kept, and what building one may take."""

    folder: Path
    logs: Path
    threads: int
    budget: float

    def index_folder(self, dataset: Dataset, entry: Entry) -> Path:
        """The folder of an index; its name changes with whatever the index depends on."""
        build = sorted(entry.configuration.build.items())
        parts = (dataset.key, entry.version, build, self.threads)
        key = hashlib.sha256(repr(parts).encode()).hexdigest()[:10]
        # Not the configuration's name: several may open one index, each in its own way.
        told = "-".join(f"{name}{value}" for name, value in build) or "defaults"
        return self.folder / slug(dataset.name) / slug(entry.peer) / f"{slug(told)}-{key}"

    def built(self, dataset: Dataset, data: Path, entry: Entry) -> tuple[BuildRow, bool]:
        """How the index came about, and whether it was built just now rather than found."""
        folder = self.index_folder(dataset, entry)
        found = _read(folder / "build.json")
        # One that went over a smaller budget gets another chance; one that failed would fail again.
        if found is not None and not (found.status == "over budget" and found.budget < self.budget):
            return msgspec.structs.replace(found, configuration=entry.configuration.name), False
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        row = self._build(dataset, data, entry, folder)
        part = folder / ".build.json"
        part.write_bytes(msgspec.json.encode(row))
        part.replace(folder / "build.json")
        return row, True

    def forget_failure(self, dataset: Dataset, entry: Entry) -> None:
        """Let a build that failed be tried again; a larger budget does that for one that took too long."""
        record = self.index_folder(dataset, entry) / "build.json"
        found = _read(record)
        if found is not None and found.status not in ("built", "over budget"):
            record.unlink()

    def _build(self, dataset: Dataset, data: Path, entry: Entry, folder: Path) -> BuildRow:
        index = folder / "index"
        index.mkdir()
        row = BuildRow(
            dataset.name,
            dataset.key,
            entry.peer,
            entry.version,
            entry.configuration.name,
            dict(entry.configuration.build),
            self.threads,
            self.budget,
            "built",
        )
        log = self.logs / f"build-{slug(dataset.name)}-{slug(entry.peer)}-{slug(entry.configuration.name)}.txt"
        asked = Build(str(data), dataset.metric, dict(entry.configuration.build), self.threads, str(index))
        begun = False
        try:
            with PeerProcess(entry.peer, threads=self.threads, log=log) as process:
                ready = process.ask(asked, _READING)
                begun = isinstance(ready, Ready)
                reply = process.wait(self.budget)
        except PeerFailed as fault:
            shutil.rmtree(index, ignore_errors=True)
            if fault.status == "late" and begun:
                reason = f"not built within {self.budget:g} s with {self.threads} threads"
                return msgspec.structs.replace(row, status="over budget", reason=reason)
            return msgspec.structs.replace(row, status=fault.status, reason=fault.reason)
        if not isinstance(reply, Built):
            return msgspec.structs.replace(row, status="failed", reason=f"answered with {type(reply).__name__}")
        return msgspec.structs.replace(
            row, seconds=reply.seconds, peak_bytes=reply.peak_bytes, stored_bytes=memory.stored(index)
        )


def slug(name: str) -> str:
    """A name as that of a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "unnamed"


def _read(path: Path) -> BuildRow | None:
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=BuildRow)
    return None
