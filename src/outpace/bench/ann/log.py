"""The log: every build and every measurement, one JSON line each, written before the next one starts."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from outpace.bench.ann.peers.base import Value
from outpace.errors import OutpaceError

Stage = Literal["screen", "final"]
Track = Literal["single", "batch"]
_BUSY = 0.9


class BuildRow(msgspec.Struct, frozen=True, tag="build"):
    """How building an index went."""

    data: str
    data_key: str
    peer: str
    version: str
    configuration: str
    parameters: dict[str, Value]
    threads: int
    budget: float
    status: str
    reason: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    stored_bytes: int = 0


class MemoryRow(msgspec.Struct, frozen=True, tag="memory"):
    """What a loaded index holds in memory."""

    data: str
    data_key: str
    peer: str
    version: str
    configuration: str
    load_seconds: float
    bytes_before: int
    bytes_after: int


class TimeRow(msgspec.Struct, frozen=True, tag="time"):
    """One sweep over some queries at one effort."""

    data: str
    data_key: str
    peer: str
    version: str
    configuration: str
    stage: Stage
    track: Track
    round: int
    effort: dict[str, Value]
    k: int
    begin: int
    end: int
    status: str
    reason: str = ""
    answered: int = 0
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    recall: float | None = None
    load_average: float = 0.0
    missed: str = ""

    @property
    def qps(self) -> float:
        """Queries answered in a second."""
        return self.answered / self.wall_seconds if self.wall_seconds > 0 else float("nan")

    @property
    def waited(self) -> bool:
        """Whether it waited for a core that others used: a search by itself works all the time."""
        return self.cpu_seconds < _BUSY * self.wall_seconds


class MachineRow(msgspec.Struct, frozen=True, tag="machine"):
    """Where and how the lines after it were measured."""

    cpu: str
    flags: list[str]
    cores: int
    core: int
    memory_mb: int
    governor: str
    kernel: str
    python: str
    outpace: str
    started: str
    command: str = ""


class MissingRow(msgspec.Struct, frozen=True, tag="missing"):
    """A peer that was asked for and could not take part."""

    peer: str
    reason: str


Row = BuildRow | MemoryRow | TimeRow | MachineRow | MissingRow
_ENCODE, _DECODE = msgspec.json.Encoder(), msgspec.json.Decoder(Row)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder: two would measure the same things and disturb each other's timing."""
    folder.mkdir(parents=True, exist_ok=True)
    # Not the log itself, which is replaced where rows are forgotten. A killed run leaves the file, but not its lock.
    with (folder / ".lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutpaceError(
                f"another run is writing to {folder}: wait until it ends, or name another folder with --out"
            ) from None
        yield


class Log:
    """A file that grows row by row; a line that a kill cut short is dropped when it is opened again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows: list[Row] = list(_whole_lines(path))

    def append(self, row: Row) -> None:
        """Write a row down for good."""
        with self._path.open("ab") as file:
            file.write(_ENCODE.encode(row) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(row)

    def forget(self, unwanted: Callable[[Row], bool]) -> None:
        """Write the file anew without some rows; a kill leaves the old file or the new one."""
        self.rows = [row for row in self.rows if not unwanted(row)]
        part = self._path.with_suffix(".part")
        with part.open("wb") as file:
            file.writelines(_ENCODE.encode(row) + b"\n" for row in self.rows)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)

    def times(self) -> list[TimeRow]:
        """All measurements."""
        return [row for row in self.rows if isinstance(row, TimeRow)]

    def builds(self) -> list[BuildRow]:
        """The newest row of each build."""
        found = {_build_key(row): row for row in self.rows if isinstance(row, BuildRow)}
        return list(found.values())

    def memory(self) -> list[MemoryRow]:
        """The newest row of each index that was loaded."""
        found = {_build_key(row): row for row in self.rows if isinstance(row, MemoryRow)}
        return list(found.values())


def _build_key(row: BuildRow | MemoryRow) -> tuple[str, ...]:
    return row.data, row.data_key, row.peer, row.version, row.configuration


def _whole_lines(path: Path) -> Iterable[Row]:
    if not path.is_file():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            yield _DECODE.decode(line)
        except msgspec.MsgspecError as fault:
            raise OutpaceError(
                f"line {number} of {path} is no row of this benchmark ({fault}): use a fresh --out"
            ) from None
