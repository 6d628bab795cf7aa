"""Messages between the benchmark and a peer's process: each one its length, then MessagePack."""

from __future__ import annotations

import os
import select
import time
from typing import TypeVar

import msgspec

from outpace.bench.ann.peers.base import Value


class Build(msgspec.Struct, frozen=True, tag=True):
    """Build an index into this folder."""

    data: str
    metric: str
    parameters: dict[str, Value]
    threads: int
    folder: str


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The data is in memory: from here on the budget counts."""


class Built(msgspec.Struct, frozen=True, tag=True):
    """The index is in the folder."""

    seconds: float
    peak_bytes: int


class Load(msgspec.Struct, frozen=True, tag=True):
    """Load the index of this folder."""

    data: str
    metric: str
    parameters: dict[str, Value]
    folder: str
    core: int


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The index answers; memory before it was loaded and after it had answered some queries."""

    seconds: float
    bytes_before: int
    bytes_after: int


class Sweep(msgspec.Struct, frozen=True, tag=True):
    """Answer these queries at this effort, after some others to warm up; give up after so many seconds."""

    effort: dict[str, Value]
    k: int
    begin: int
    end: int
    warm_begin: int
    warm_end: int
    batch: bool
    seconds: float


class Swept(msgspec.Struct, frozen=True, tag=True):
    """The answers, row by row as int64, and what they took."""

    wall_seconds: float
    cpu_seconds: float
    count: int
    ids: bytes


class Version(msgspec.Struct, frozen=True, tag=True):
    """Import the library."""


class Imported(msgspec.Struct, frozen=True, tag=True):
    """Its version."""

    version: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The library raised an error."""

    reason: str


Request = Build | Load | Sweep | Version
Reply = Ready | Built | Loaded | Swept | Imported | Failed
_T = TypeVar("_T")


class Ended(Exception):
    """The other side has closed the pipe."""


class Late(Exception):
    """No message came in time."""


def send(descriptor: int, message: Request | Reply) -> None:
    """Write one message."""
    body = msgspec.msgpack.encode(message)
    rest = memoryview(len(body).to_bytes(8, "little") + body)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def receive(descriptor: int, kind: type[_T] | object, seconds: float | None = None) -> _T:
    """Read one message of this kind, waiting for so long."""
    until = None if seconds is None else time.monotonic() + seconds
    length = int.from_bytes(_exactly(descriptor, 8, until), "little")
    found: _T = msgspec.msgpack.decode(_exactly(descriptor, length, until), type=kind)
    return found


def _exactly(descriptor: int, count: int, until: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        left = None if until is None else max(until - time.monotonic(), 0)
        if not select.select([descriptor], [], [], left)[0]:
            raise Late
        part = os.read(descriptor, min(count - len(parts), 1 << 20))
        if not part:
            raise Ended
        parts += part
    return bytes(parts)
