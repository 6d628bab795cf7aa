"""Questions: the inputs of one call, or of a declared bundle of them, as the bytes that a worker is asked with.

The feeder copies a question into the shared input region only when the answer to the last one has left the worker.
Three layouts, one for each kind of entry; all are records as `native/launcher/message.hpp` has them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.errors import TaskError
from outpace.judge import arguments, unmarshal, wire
from outpace.judge.abi import C_TYPES, Parameter, Signature
from outpace.judge.alignment import LINE, shift
from outpace.judge.blank import POISON, Blank
from outpace.judge.blocks import laid_down
from outpace.judge.extent import excess, extent
from outpace.task import Output

_RECORD = struct.Struct("<IIQ")
_SLOT = struct.Struct("<IIQ")
_PART = struct.Struct("<IIQQQQQQ")
_USED = struct.Struct("<QQQ")
_RANGE = struct.Struct("<QQ")
_IMMEDIATE, _INPUT, _OUTPUT, _RESULT = range(4)
_STDIN, _FILE, _ARGUMENT, _STDOUT, _OUTPUT_FILE, _EXIT, _USAGE = range(1, 8)
_TOO_LONG, _MISSING, _WITH_HOLES, _WITH_NAMES = (2**64 - number for number in range(1, 5))


_BYTE = np.dtype(np.uint8)


class BadAnswer(Exception):
    """What came back is not an answer; the text says why."""


@dataclass(frozen=True)
class Question:
    """What is copied to the start of the input region, and how its answer is read."""

    count: int
    data: bytes
    records: int  # bytes of the records, which stand first
    # What the output region starts with: chance, so that an answer that was never written is not the last question's,
    # and the arrays that are worked on in place. Streams carry their own lengths, so their first bytes suffice.
    blank: bytes
    # None: as many as the worker says.
    answer_bytes: int | None
    # The answers in it; with the reference's answers, no more is read than these warrant.
    read: Callable[[memoryview, Sequence[Any] | None], list[Any]]
    # For commands: CPU time, wall time and run delay of the processes it started, which the launcher alone can know.
    usage: Callable[[memoryview], tuple[int, int, int]] | None = None
    setup: bool = False
    # The bytes of its largest array, among arguments and outputs.
    largest: int = 0


def function_question(
    signature: Signature,
    inputs: Sequence[Mapping[str, Any]],
    *,
    align: int = 0,
    setup: bool = False,
    known_blank: bool = False,
) -> Question:
    """Calls of a C function: one record of slots for each, then the arrays they point to, at multiples of `align`."""
    slots = len(signature.parameters) + 1
    record_bytes = _RECORD.size + slots * _SLOT.size
    arena = _Arena(record_bytes * len(inputs), align)
    outputs = Blank(align, known=known_blank)
    records: list[bytes] = []
    readers: list[list[tuple[str, int, str, tuple[int, ...]]]] = []
    for values in inputs:
        _same_names(signature, values)
        row = [_RECORD.pack(slots, 0, record_bytes)]
        placed = _placed(signature, values, arena, outputs)
        reads: list[tuple[str, int, str, tuple[int, ...]]] = []
        for parameter in signature.parameters:
            row.append(_slot(parameter, values[parameter.name], placed, outputs, reads))
        at = outputs.reserve(8, "the result")
        row.append(_SLOT.pack(_RESULT, 0, at))
        if signature.returns != "void":
            reads.append(("return", at, signature.returns, ()))
        records.append(b"".join(row))
        readers.append(reads)

    def read(region: memoryview, expected: Sequence[Any] | None = None) -> list[Any]:
        overrun = outputs.overrun(region)
        if overrun:
            raise BadAnswer(f"a call wrote {overrun}")
        return [
            _read_call(region, reads, outputs, {} if expected is None else expected[number])
            for number, reads in enumerate(readers)
        ]

    return Question(
        count=len(inputs),
        data=b"".join(records) + arena.data(),
        records=record_bytes * len(inputs),
        blank=outputs.content,
        answer_bytes=outputs.used,
        read=read,
        setup=setup,
        largest=max(arena.largest, outputs.largest),
    )


def _read_call(
    region: memoryview,
    reads: list[tuple[str, int, str, tuple[int, ...]]],
    outputs: Blank,
    expected: Mapping[str, Any],
) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for name, at, kind, shape in reads:
        if name == "return":
            answer[name] = _scalar(region, at, kind)
        else:
            # A copy: the region is used again while the answer is still being compared.
            answer[name] = np.frombuffer(region, dtype=kind, count=_count(shape), offset=at).reshape(shape).copy()
            outputs.mark_unwritten(answer[name], at, expected.get(name))
    return answer


def _scalar(region: memoryview, at: int, c_type: str) -> Any:
    if np.dtype(C_TYPES[c_type]) == np.bool_ and region[at] > 1:
        raise BadAnswer(f"the result is a bool of {region[at]}, which is neither 0 nor 1")
    return np.frombuffer(region, dtype=C_TYPES[c_type], count=1, offset=at)[0].item()


def _same_names(signature: Signature, values: Mapping[str, Any]) -> None:
    wanted = [parameter.name for parameter in signature.parameters]
    if sorted(values) != sorted(wanted):
        raise TaskError(f"make_input gives {sorted(values)}, but {signature.name} takes {sorted(wanted)}")


def _slot(
    parameter: Parameter,
    value: Any,
    placed: Mapping[str, _Placed],
    outputs: Blank,
    reads: list[tuple[str, int, str, tuple[int, ...]]],
) -> bytes:
    if not parameter.pointer:
        return _SLOT.pack(_IMMEDIATE, 0, _bits(parameter, value))
    if isinstance(value, Output):
        if not parameter.output:
            raise TaskError(f"'{parameter.name}' is const: it cannot be an Output")
        dtype = _fitting(parameter, np.dtype(value.dtype))
        at = outputs.reserve(dtype.itemsize * _count(value.shape), f"'{parameter.name}'", dtype)
        reads.append((parameter.name, at, dtype.str, value.shape))
        return _SLOT.pack(_OUTPUT, 0, at)
    there = placed[parameter.name]
    if parameter.output:
        reads.append((parameter.name, there.at, there.array.dtype.str, there.array.shape))
    return _SLOT.pack(there.slot, 0, there.at)


@dataclass(frozen=True)
class _Placed:
    """An array argument, and where its pointer points to."""

    array: np.ndarray[Any, Any]
    slot: int
    at: int


def _placed(signature: Signature, values: Mapping[str, Any], arena: _Arena, outputs: Blank) -> dict[str, _Placed]:
    """Lay down the arrays of a call; what shares memory with one that may be written to is written to as well."""
    given = [
        (each, _array(each, values[each.name]))
        for each in signature.parameters
        if each.pointer and not isinstance(values[each.name], Output)
    ]
    blocks, lies = laid_down([array for _, array in given])
    found: dict[str, _Placed] = {}
    for number, block in enumerate(blocks):
        members = [(*each, lie.offset) for each, lie in zip(given, lies, strict=True) if lie.block == number]
        written = [parameter.name for parameter, _, _ in members if parameter.output]
        dtype = members[0][1].dtype
        # The judge copies it, not the worker: what a worker does before the calls must cost nothing worth stealing.
        at = outputs.place(block, dtype, f"'{written[0]}'") if written else arena.add(block, dtype)
        for parameter, array, offset in members:
            found[parameter.name] = _Placed(array, _OUTPUT if written else _INPUT, at + offset)
    for parameter, array in given:
        if not array.size:
            nothing, name = (b"", array.dtype), f"'{parameter.name}'"
            at = outputs.place(*nothing, name) if parameter.output else arena.add(*nothing)
            found[parameter.name] = _Placed(array, _OUTPUT if parameter.output else _INPUT, at)
    return found


def _array(parameter: Parameter, value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, bytearray)):
        if parameter.dtype.itemsize != 1:
            raise TaskError(f"'{parameter.name}' is a {parameter.c_type}*: it takes an array, not bytes")
        return np.frombuffer(bytes(value), dtype=np.uint8)
    array = np.ascontiguousarray(value)
    _fitting(parameter, array.dtype)
    return array


def _fitting(parameter: Parameter, dtype: np.dtype[Any]) -> np.dtype[Any]:
    same = dtype == parameter.dtype or (parameter.c_type in ("char", "void") and dtype.itemsize == 1)
    if not same:
        raise TaskError(f"'{parameter.name}' is a {parameter.c_type}*, but the input has an array of {dtype}")
    return dtype


def _bits(parameter: Parameter, value: Any) -> int:
    dtype = parameter.dtype
    try:
        raw = np.array(value, dtype=dtype).tobytes() if dtype.kind == "f" else int(value)
    except (TypeError, ValueError, OverflowError):
        raise TaskError(f"'{parameter.name}' is a {parameter.c_type}, but the input has {value!r}") from None
    if isinstance(raw, bytes):
        return int.from_bytes(raw.ljust(8, b"\0"), "little")
    bits = 8 * dtype.itemsize
    low, high = {"b": (0, 1), "u": (0, 2**bits - 1), "i": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)}[dtype.kind]
    if not low <= raw <= high:
        raise TaskError(f"'{parameter.name}' is a {parameter.c_type}: {raw} does not fit")
    return raw % 2**64


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for axis in shape:
        count *= axis
    return count


class _Arena:
    """Input arrays one after another, none of which shares a cache line with another.

    Bytes end with a NUL, as texts do. Behind that, and behind numbers at once, stands chance: whoever reads past the
    end must not find zeros there, with which a sum or a search would be right all the same.
    """

    def __init__(self, start: int, align: int = LINE) -> None:
        self._parts: list[bytes] = []
        self._at = start
        self._align = align
        self.largest = 0
        self._pad(b"")

    def add(self, data: bytes, dtype: np.dtype[Any] = _BYTE) -> int:
        before = os.urandom(shift(dtype, self._align))
        offset = self._at + len(before)
        self.largest = max(self.largest, len(data))
        self._parts += before, data
        self._at = offset + len(data)
        self._pad(b"\0" if dtype.itemsize == 1 else b"")
        return offset

    def _pad(self, end: bytes) -> None:
        padding = end + os.urandom(LINE + -(self._at + len(end)) % LINE)
        self._parts.append(padding)
        self._at += len(padding)

    def data(self) -> bytes:
        return b"".join(self._parts)


def python_question(inputs: Sequence[Mapping[str, Any]], *, setup: bool = False) -> Question:
    """Calls of a Python function: the keyword arguments of each on the wire; answers come the same way."""
    try:
        data = b"".join(arguments.pack(dict(values)) for values in inputs)
    except wire.WireError as error:
        raise TaskError(f"make_input gives what cannot be sent: {error}") from None

    def read(region: memoryview, expected: Sequence[Any] | None = None) -> list[Any]:
        return _read_wire(region, len(inputs), expected)

    largest = max((_largest(values) for values in inputs), default=0)
    return Question(len(inputs), data, len(data), bytes([POISON]) * 8, None, read, setup=setup, largest=largest)


def _largest(value: Any) -> int:
    """The bytes of the largest array; whatever else there is, the worker makes and frees itself."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Mapping):
        return max(map(_largest, value.values()), default=0)
    # Of a long list the first few tell.
    return max(map(_largest, value[:16]), default=0) if isinstance(value, (list, tuple)) else 0


def _read_wire(region: memoryview, count: int, expected: Sequence[Any] | None) -> list[Any]:
    answers, at = [], 0
    region, fetched = _parted(region)
    for number in range(count):
        if at + 8 > len(region):
            raise BadAnswer(f"answer {number} lies outside the output region")
        (size,) = struct.unpack_from("<Q", region, at)
        if size > len(region) - at - 8:
            raise BadAnswer(f"answer {number} claims {size} bytes, more than the output region holds")
        try:
            like = None if expected is None else extent(expected[number])
            # A copy, because arrays in it may outlive the rest; but of no more than an answer could be.
            too_long = like is not None and excess(f"answer {number}", size, like.bytes)
            if too_long:
                raise BadAnswer(too_long)
            value, arrays = unmarshal.read_with_places(bytes(region[at + 8 : at + 8 + size]), like)
            answers.append(value)
            fetched -= {(at + 8 + begin, length) for begin, length in arrays}
        except wire.WireError as error:
            raise BadAnswer(f"answer {number} is not in the fixed format: {error}") from None
        at += 8 + size + -size % 8
    if fetched:
        # Were any part fetched, a candidate could leave it to us to put its answer together.
        begin, length = min(fetched)
        raise BadAnswer(f"{length} bytes at {begin} were left to be fetched, and are no whole array of an answer")
    return answers


def _parted(region: memoryview) -> tuple[memoryview, set[tuple[int, int]]]:
    """An answer and which parts of it were fetched from elsewhere; the feeder lists them behind it."""
    (count,) = struct.unpack_from("<Q", region, len(region) - 8)
    end = len(region) - 8 - count * _RANGE.size
    return region[:end], set(_RANGE.iter_unpack(region[end : len(region) - 8]))


def command_question(given: Mapping[str, Any], outputs: Sequence[str], output_bytes: int) -> Question:
    """A run of a command: standard input, files and arguments in; exit status, standard output and files out."""
    unknown = set(given) - {"stdin", "files", "args"}
    if unknown:
        raise TaskError(f"make_input gives {sorted(unknown)}; a command takes 'stdin', 'files' and 'args'")
    files, arguments = given.get("files", {}), given.get("args", [])
    count = ("stdin" in given) + len(files) + len(arguments) + 3 + len(outputs)
    records = _RECORD.size + count * _PART.size
    arena = _Arena(records)
    room = output_bytes // (1 + len(outputs)) - LINE
    row = [_RECORD.pack(count, 0, records)]
    if "stdin" in given:
        row.append(_data_part(_STDIN, given["stdin"], "", arena))
    row += [_data_part(_FILE, content, name, arena) for name, content in files.items()]
    row += [_data_part(_ARGUMENT, argument, "", arena) for argument in arguments]
    row += [_PART.pack(_EXIT, 0, 0, 0, 0, 8, 0, 0), _PART.pack(_USAGE, 0, 0, 0, 0, 24, 0, 0)]
    row.append(_PART.pack(_STDOUT, 0, 0, 0, 0, room, 0, 0))
    for name in outputs:
        name_at = arena.add(name.encode())
        row.append(_PART.pack(_OUTPUT_FILE, 0, 0, 0, 0, room, name_at, len(name.encode())))

    def usage(region: memoryview) -> tuple[int, int, int]:
        cpu, wall, delay = _USED.unpack_from(region, 8)
        return cpu, wall, delay

    def read(region: memoryview, expected: Sequence[Any] | None = None) -> list[Any]:
        return [_read_command(region, ("", *outputs), room, None if expected is None else expected[0])]

    return Question(
        count=1,
        data=b"".join(row) + arena.data(),
        records=records,
        blank=bytes([POISON]) * 8,
        answer_bytes=None,
        read=read,
        usage=usage,
    )


def _data_part(kind: int, content: Any, name: str, arena: _Arena) -> bytes:
    raw = content.encode() if isinstance(content, str) else bytes(content)
    offset = arena.add(raw)
    name_at = arena.add(name.encode()) if name else 0
    return _PART.pack(kind, 0o644, offset, len(raw), 0, 0, name_at, len(name.encode()))


def _read_command(
    region: memoryview, names: Sequence[str], room: int, expected: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The results one after another: exit status, usage, then each stream behind its length."""
    streams: dict[str, bytes] = {}
    at = 8 + _USED.size
    for name in names:
        (size,) = struct.unpack_from("<Q", region, at)
        label = f"output file {name}" if name else "standard output"
        at += 8
        if size == _MISSING:
            raise BadAnswer(f"the command left no {label}")
        if size == _WITH_HOLES:
            raise BadAnswer(f"{label} has holes: bytes that were jumped over or made room for, but never written")
        if size == _WITH_NAMES:
            raise BadAnswer(f"{label} has other names, or is a file that the command was given under another name")
        if size == _TOO_LONG or size > len(region) - at:
            raise BadAnswer(f"{label} is longer than the {room} bytes allowed")
        if expected is not None:
            reference = expected["files"][name] if name else expected["stdout"]
            too_long = excess(label, size, len(reference))
            if too_long:
                raise BadAnswer(too_long)
        streams[name] = bytes(region[at : at + size])
        at += size + -size % 8
    (status,) = struct.unpack_from("<q", region)
    return {"stdout": streams.pop(""), "exit": status, "files": streams}
