"""A seat for a worker: stopped, and asked by the native feeder alone, without a judge."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import launcher_driver as d
import numpy as np

from outpace.judge import feeder
from outpace.judge.blank import POISON
from outpace.judge.feeder import ANSWER_LIMIT, Asked, Lot, Turn, address, feed
from outpace.judge.question import Question

SECOND = 10**9


@dataclass(frozen=True)
class Seat:
    """A stopped worker, ready for a turn."""

    worker: d.Worker
    pid: int
    handle: int

    def turn(self, questions: Sequence[Question], room: int = ANSWER_LIMIT, **changes: int) -> Turn:
        given = {
            "input": address(np.frombuffer(self.worker.inputs, np.uint8)),
            "output": self.worker.desk,
            "input_bytes": d.REGION,
            "output_bytes": d.REGION,
            "pid": self.pid,
            "handle": self.handle,
            "socket": self.worker.channel.fileno(),
            "by_message": self.worker.by_message,
            "limit": d.PATIENCE * SECOND,
            "turn_limit": 2 * d.PATIENCE * SECOND,
        }
        return feed(Asked(**(given | changes)), Lot(questions, ()), room)


@contextlib.contextmanager
def seated(worker: contextlib.AbstractContextManager[d.Worker]) -> Iterator[Seat]:
    with worker as it:
        pid = it.greet().pid
        handle = os.pidfd_open(pid)
        os.kill(pid, signal.SIGSTOP)
        d.wait_for_state(pid, "T")
        try:
            yield Seat(it, pid, handle)
        finally:
            os.close(handle)


def function(source: str, *options: str) -> contextlib.AbstractContextManager[Seat]:
    return seated(d.function(source, *options))


@contextlib.contextmanager
def on_one_core(seat: Seat) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    for pid in (0, seat.pid):
        os.sched_setaffinity(pid, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def question(
    records: bytes, *, count: int = 1, answer_bytes: int | None = 8, more: bytes = b"", **rest: Any
) -> Question:
    blank = bytes([POISON]) * (answer_bytes or 8)
    return Question(count, records + more, len(records), blank, answer_bytes, lambda region: [bytes(region)], **rest)


def number(*values: int) -> Question:
    """As many calls as there are values, whose results lie one after another."""
    records = b"".join(d.record((d.IMMEDIATE, value), (d.RESULT, 8 * at)) for at, value in enumerate(values))
    return question(records, count=len(values), answer_bytes=8 * len(values))


def numbers_of(turn: Turn) -> list[int]:
    return [value for answer in turn.answers for (value,) in struct.iter_unpack("<Q", answer)]


SQUARE = "void outpace_call(const uint64_t* s, uint64_t* r) { *r = s[0] * s[0]; }"


@contextlib.contextmanager
def python_function(source: str) -> Iterator[Seat]:
    module = d.room() / f"module{abs(hash(source))}.py"
    module.write_text(source)
    code = Path(feeder.__file__).with_name("python_worker.py")
    numbers = ["{socket}", "{input}", "{output}", str(d.REGION), str(d.REGION), "0", "0", "0"]
    mode = ["exec", "--", sys.executable, "-I", "-S", str(code), *numbers, str(module), "solve", "", "numpy"]
    mode.append(str(Path(np.__file__).parents[1]))
    with d.worker(d.PLAIN, mode, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}) as worker:
        worker.hear()  # of the launcher; the worker's own follows
        with seated(contextlib.nullcontext(worker)) as seat:
            yield seat
