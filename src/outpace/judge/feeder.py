"""The feeder: one turn of a stopped worker, question by question, by the native code in `native/feeder/`.

Nothing of a question reaches the worker before the answer to the last one has left it. The native half and the worker
take turns on one core, some microseconds for each question; in Python it would take many times as long.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from outpace.judge.jail import launcher_path
from outpace.judge.question import Question

# The first page of an output region; see Desk in native/launcher/message.hpp.
DESK_BYTES = 4096
# Answers of all turns that one side has in a row; pages that nobody writes to cost nothing.
ANSWER_LIMIT = 512 << 20
_ANY_LENGTH = 2**64 - 1
_SETUP, _CONVERTS, _UNCHANGED = 1, 16, 32
# A set-up question keeps these, and later ones begin behind them; see native/feeder/turn.hpp.
_PAGE = 4096
_QUESTION = np.dtype(
    [
        ("data", "<u8"),
        ("bytes", "<u8"),
        ("records", "<u8"),
        ("blank", "<u8"),
        ("blank_bytes", "<u8"),
        ("answer_bytes", "<u8"),
        ("count", "<u4"),
        ("flags", "<u4"),
    ]
)


class Told(IntEnum):
    """How a turn ended; the names are those of native/feeder/turn.hpp."""

    FINISHED = 0
    SPEAKS = 1
    TIMED_OUT = 2
    NO_ROOM = 3
    TOO_LONG = 4
    UNREADABLE = 5
    UNREADABLE_ANSWER = 6
    CHANGED = 7


class Asked(ctypes.Structure):
    """Who is asked, and how."""

    _fields_ = (
        ("input", ctypes.c_uint64),
        ("output", ctypes.c_uint64),
        ("input_bytes", ctypes.c_uint64),
        ("output_bytes", ctypes.c_uint64),
        ("pid", ctypes.c_int32),
        ("handle", ctypes.c_int32),
        ("socket", ctypes.c_int32),
        ("by_message", ctypes.c_uint32),
        ("replies", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("kept", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
        ("turn_limit", ctypes.c_uint64),
        ("core", ctypes.c_int64),
    )


class _Turn(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in ("wall", "cpu", "delay", "resident", "asked", "used", "faults", "converting", "calling")
    )


@dataclass(frozen=True)
class Turn:
    """What a turn came to; `cpu` is the worker's clock at its end, since it began to live."""

    told: Told
    wall: int
    cpu: int
    delay: int
    resident: int
    answers: tuple[memoryview, ...]
    # Pages of answers that the worker had never touched, so that reading them did.
    faults: int
    # Nanoseconds that converting once more took by the worker's own word, and that with the calls themselves, where it
    # was asked for that.
    converting: int
    calling: int
    # The worker's clock when each question was answered.
    clocks: tuple[int, ...] = ()


class Lot:
    """Questions made ready for the feeder; both workers of a pair are asked the same lot.

    With `converts` a Python worker says beside each answer what converting and the call itself took; only the first
    side is asked that.
    With `unchanged` it also fails where a call has changed its arguments.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        inputs: Sequence[Mapping[str, Any]],
        *,
        converts: bool = False,
        unchanged: bool = False,
    ) -> None:
        self.questions = tuple(questions)
        self.inputs = tuple(inputs)
        self.calls = sum(question.count for question in questions if not question.setup)
        # What stays in the input region when this was asked, and how much of it the questions take behind that.
        self.kept = max((_in_whole_pages(len(question.data)) for question in questions if question.setup), default=0)
        self.input_bytes = max((len(question.data) for question in questions if not question.setup), default=0)
        # Kept: the rows point into them.
        self._data = [np.frombuffer(question.data, np.uint8) for question in questions]
        self._blank = [np.frombuffer(question.blank, np.uint8) for question in questions]
        lengths = (_ANY_LENGTH if q.answer_bytes is None else q.answer_bytes for q in questions)
        flags = _CONVERTS * converts | _UNCHANGED * unchanged
        self.rows = np.array(
            [
                (
                    address(data),
                    data.size,
                    q.records,
                    address(blank),
                    blank.size,
                    length,
                    q.count,
                    flags | _SETUP * q.setup,
                )
                for q, data, blank, length in zip(questions, self._data, self._blank, lengths, strict=True)
            ],
            _QUESTION,
        )

    def room(self, output_bytes: int) -> int:
        """How many bytes the answers may take at most."""
        return sum(output_bytes if q.answer_bytes is None else q.answer_bytes for q in self.questions)


def feed(asked: Asked, lot: Lot, room: int = ANSWER_LIMIT) -> Turn:
    """Let the worker answer the lot, in so much room, then stop it again."""
    answers = np.empty(max(min(lot.room(asked.output_bytes), room), 1), np.uint8)
    lengths, clocks = (np.zeros(max(len(lot.questions), 1), np.uint64) for _ in range(2))
    turn = _Turn()
    told = _native()(
        ctypes.byref(asked),
        address(lot.rows),
        len(lot.questions),
        address(answers),
        answers.size,
        address(lengths),
        address(clocks),
        ctypes.byref(turn),
    )
    view, ends = memoryview(answers.data), np.cumsum(lengths[: turn.asked]).tolist()
    pieces = tuple(view[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
    return Turn(
        Told(told),
        turn.wall,
        turn.cpu,
        turn.delay,
        turn.resident,
        pieces,
        turn.faults,
        turn.converting,
        turn.calling,
        tuple(clocks[: turn.asked].tolist()),
    )


def _in_whole_pages(size: int) -> int:
    return size + -size % _PAGE


def address(array: npt.NDArray[Any]) -> int:
    """Where the array's first element lies."""
    return int(array.__array_interface__["data"][0])


@functools.cache
def _native() -> Any:
    library = ctypes.CDLL(str(launcher_path().with_name("outpace-feed.so")))
    function = library.outpace_feed
    number, place = ctypes.c_uint64, ctypes.c_void_p
    function.argtypes = (place, place, number, place, number, place, place, place)
    function.restype = ctypes.c_int
    return function
