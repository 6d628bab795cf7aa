"""Batches: the inputs of many calls laid out in the shared input region, and where their answers will appear.

A batch is made once by the judge and copied into the region right before each timed sample. Three layouts, one
for each kind of entry; all speak the records that `native/launcher/message.hpp` and `judge/worker.py` read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.errors import TaskError
from outpace.judge import unmarshal, wire
from outpace.judge.abi import C_TYPES, Parameter, Signature
from outpace.task import Output

# A pattern that is neither zero nor a small number, so that memory nobody wrote to never passes for an answer.
POISON = 0xA5
MAPPED_STREAM = 8 << 20
_ALIGN = 64
_RECORD = struct.Struct("<IIQ")
_SLOT = struct.Struct("<IIQ")
_PART = struct.Struct("<IIQQQQQQ")
_IMMEDIATE, _INPUT, _OUTPUT, _RESULT = range(4)
_STDIN, _FILE, _ARGUMENT, _STDOUT, _OUTPUT_FILE, _EXIT, _USAGE = range(1, 8)
_TOO_LONG, _MISSING = 2**64 - 1, 2**64 - 2


class BadAnswer(Exception):
    """What came back is not an answer; the text says why."""


@dataclass(frozen=True)
class Batch:
    """Inputs ready to be copied to the start of the input region."""

    count: int
    data: bytes
    records: int  # bytes of the records, which stand first
    output_bytes: int
    # What the output region starts with: poison, so that an answer that was never written is not the last batch's, and
    # the arrays that are worked on in place. Streams carry their own lengths, so their first bytes suffice.
    blank: bytes
    # How much of the output region to map before the calls; what streams will need is not known, so up to a limit.
    mapped: int
    read: Callable[[memoryview], list[Any]]
    # How much of the output region the answers took.
    used: Callable[[memoryview], int]
    # For commands: CPU time and run delay of the processes a sample started, which the launcher alone can know.
    usage: Callable[[memoryview], tuple[int, int]] | None = None


def function_batch(signature: Signature, inputs: Sequence[Mapping[str, Any]]) -> Batch:
    """Calls of a C function: one record of slots for each, then the arrays they point to."""
    slots = len(signature.parameters) + 1
    record_bytes = _RECORD.size + slots * _SLOT.size
    arena = _Arena(record_bytes * len(inputs))
    outputs = _Space()
    records: list[bytes] = []
    readers: list[list[tuple[str, int, str, tuple[int, ...]]]] = []
    for values in inputs:
        _same_names(signature, values)
        row = [_RECORD.pack(slots, 0, record_bytes)]
        reads: list[tuple[str, int, str, tuple[int, ...]]] = []
        for parameter in signature.parameters:
            row.append(_slot(parameter, values[parameter.name], arena, outputs, reads))
        at = outputs.reserve(8)
        row.append(_SLOT.pack(_RESULT, 0, at))
        if signature.returns != "void":
            reads.append(("return", at, signature.returns, ()))
        records.append(b"".join(row))
        readers.append(reads)

    def read(region: memoryview) -> list[Any]:
        return [_read_call(region, reads) for reads in readers]

    return Batch(
        count=len(inputs),
        data=b"".join(records) + arena.data(),
        records=record_bytes * len(inputs),
        output_bytes=outputs.used,
        blank=outputs.blank(),
        mapped=outputs.used,
        read=read,
        used=lambda _: outputs.used,
    )


def _read_call(region: memoryview, reads: list[tuple[str, int, str, tuple[int, ...]]]) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for name, at, kind, shape in reads:
        if name == "return":
            answer[name] = _scalar(region, at, kind)
        else:
            # A copy: the region is used again while the answer is still being compared.
            answer[name] = np.frombuffer(region, dtype=kind, count=_count(shape), offset=at).reshape(shape).copy()
    return answer


def _scalar(region: memoryview, at: int, c_type: str) -> Any:
    return np.frombuffer(region, dtype=C_TYPES[c_type], count=1, offset=at)[0].item()


def _same_names(signature: Signature, values: Mapping[str, Any]) -> None:
    wanted = [parameter.name for parameter in signature.parameters]
    if sorted(values) != sorted(wanted):
        raise TaskError(f"make_input gives {sorted(values)}, but {signature.name} takes {sorted(wanted)}")


def _slot(
    parameter: Parameter,
    value: Any,
    arena: _Arena,
    outputs: _Space,
    reads: list[tuple[str, int, str, tuple[int, ...]]],
) -> bytes:
    if not parameter.pointer:
        return _SLOT.pack(_IMMEDIATE, 0, _bits(parameter, value))
    if isinstance(value, Output):
        if not parameter.output:
            raise TaskError(f"'{parameter.name}' is const: it cannot be an Output")
        dtype = _fitting(parameter, np.dtype(value.dtype))
        at = outputs.reserve(dtype.itemsize * _count(value.shape))
        reads.append((parameter.name, at, dtype.str, value.shape))
        return _SLOT.pack(_OUTPUT, 0, at)
    array = _array(parameter, value)
    if not parameter.output:
        return _SLOT.pack(_INPUT, 0, arena.add(array))
    # The judge copies it, not the worker: what a worker does before the calls must cost nothing worth stealing.
    at = outputs.place(array)
    reads.append((parameter.name, at, array.dtype.str, array.shape))
    return _SLOT.pack(_OUTPUT, 0, at)


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
    """Input arrays one after another, each on its own cache line and followed by zeros (a NUL for texts)."""

    def __init__(self, start: int) -> None:
        self._parts: list[bytes] = []
        self._at = start
        self._pad(0)

    def add(self, array: np.ndarray[Any, Any]) -> int:
        offset = self._at
        self._parts.append(array.tobytes())
        self._at += array.nbytes
        self._pad(1)
        return offset

    def _pad(self, least: int) -> None:
        padding = -(self._at + least) % _ALIGN + least
        self._parts.append(bytes(padding))
        self._at += padding

    def data(self) -> bytes:
        return b"".join(self._parts)


class _Space:
    """Room in the output region, and what stands in it before the calls."""

    def __init__(self) -> None:
        self.used = 0
        self._placed: list[tuple[int, bytes]] = []

    def place(self, array: np.ndarray[Any, Any]) -> int:
        at = self.reserve(array.nbytes)
        self._placed.append((at, array.tobytes()))
        return at

    def blank(self) -> bytes:
        content = bytearray([POISON]) * self.used
        for at, data in self._placed:
            content[at : at + len(data)] = data
        return bytes(content)

    def reserve(self, size: int) -> int:
        at = self.used
        self.used += size + -size % _ALIGN
        return at


def python_batch(inputs: Sequence[Mapping[str, Any]], output_bytes: int) -> Batch:
    """Calls of a Python function: each a length and the keyword arguments on the wire; answers come the same way."""
    try:
        data = b"".join(wire.pack(dict(values)) for values in inputs)
    except wire.WireError as error:
        raise TaskError(f"make_input gives what cannot be sent: {error}") from None

    def read(region: memoryview) -> list[Any]:
        return _read_wire(region, len(inputs))

    return Batch(
        count=len(inputs),
        data=data,
        records=len(data),
        output_bytes=output_bytes,
        blank=bytes([POISON]) * 8,
        mapped=min(output_bytes, MAPPED_STREAM),
        read=read,
        used=lambda region: _wire_end(region, len(inputs)),
    )


def _wire_end(region: memoryview, count: int) -> int:
    at = 0
    for _ in range(count):
        (size,) = struct.unpack_from("<Q", region, at)
        at += 8 + size + -size % 8
    return at


def _read_wire(region: memoryview, count: int) -> list[Any]:
    answers, at = [], 0
    for number in range(count):
        if at + 8 > len(region):
            raise BadAnswer(f"answer {number} lies outside the output region")
        (size,) = struct.unpack_from("<Q", region, at)
        if size > len(region) - at - 8:
            raise BadAnswer(f"answer {number} claims {size} bytes, more than the output region holds")
        try:
            # A copy: the arrays inside must not change when the region is used again.
            answers.append(unmarshal.read(bytes(region[at + 8 : at + 8 + size])))
        except wire.WireError as error:
            raise BadAnswer(f"answer {number} is not in the fixed format: {error}") from None
        at += 8 + size + -size % 8
    return answers


def command_batch(inputs: Sequence[Mapping[str, Any]], outputs: Sequence[str], output_bytes: int) -> Batch:
    """Runs of a command: standard input, files and arguments in; standard output, files and exit status out."""
    counts = [
        2 + 1 + len(outputs) + ("stdin" in each) + len(each.get("files", {})) + len(each.get("args", []))
        for each in inputs
    ]
    arena = _Arena(sum(_RECORD.size + count * _PART.size for count in counts))
    # Every captured stream may take the whole allowance: pages nobody writes to cost nothing.
    room = (output_bytes // max(len(inputs), 1) - 2 * _ALIGN) // (1 + len(outputs)) // _ALIGN * _ALIGN
    space = _Space()
    records, readers = [], []
    for values, count in zip(inputs, counts, strict=True):
        unknown = set(values) - {"stdin", "files", "args"}
        if unknown:
            raise TaskError(f"make_input gives {sorted(unknown)}; a command takes 'stdin', 'files' and 'args'")
        row = [_RECORD.pack(count, 0, _RECORD.size + count * _PART.size)]
        if "stdin" in values:
            row.append(_data_part(_STDIN, values["stdin"], "", arena))
        row += [_data_part(_FILE, content, name, arena) for name, content in values.get("files", {}).items()]
        row += [_data_part(_ARGUMENT, argument, "", arena) for argument in values.get("args", [])]
        places = {"": space.reserve(room)}
        row.append(_PART.pack(_STDOUT, 0, 0, 0, places[""], room, 0, 0))
        for name in outputs:
            places[name] = space.reserve(room)
            name_at = arena.add(np.frombuffer(name.encode(), dtype=np.uint8))
            row.append(_PART.pack(_OUTPUT_FILE, 0, 0, 0, places[name], room, name_at, len(name.encode())))
        exit_at, usage_at = space.reserve(8), space.reserve(24)
        row.append(_PART.pack(_EXIT, 0, 0, 0, exit_at, 8, 0, 0))
        row.append(_PART.pack(_USAGE, 0, 0, 0, usage_at, 24, 0, 0))
        records.append(b"".join(row))
        readers.append((places, exit_at, usage_at))

    def read(region: memoryview) -> list[Any]:
        return [_read_command(region, places, exit_at, room) for places, exit_at, _ in readers]

    def usage(region: memoryview) -> tuple[int, int]:
        readings = [struct.unpack_from("<QQQ", region, usage_at) for _, _, usage_at in readers]
        return sum(cpu for cpu, _, _ in readings), sum(delay for _, _, delay in readings)

    head = b"".join(records)

    def used(region: memoryview) -> int:
        # Every call has the same room, so the longest stream decides how many calls there is room for.
        sizes = [struct.unpack_from("<Q", region, at)[0] for places, _, _ in readers for at in places.values()]
        return (int(max(sizes)) + 3 * _ALIGN) * len(sizes)

    return Batch(
        count=len(inputs),
        data=head + arena.data(),
        records=len(head),
        output_bytes=space.used,
        blank=bytes([POISON]) * 8,
        mapped=0,
        read=read,
        used=used,
        usage=usage,
    )


def _data_part(kind: int, content: Any, name: str, arena: _Arena) -> bytes:
    raw = content.encode() if isinstance(content, str) else bytes(content)
    offset = arena.add(np.frombuffer(raw, dtype=np.uint8))
    name_at = arena.add(np.frombuffer(name.encode(), dtype=np.uint8)) if name else 0
    return _PART.pack(kind, 0o644, offset, len(raw), 0, 0, name_at, len(name.encode()))


def _read_command(region: memoryview, places: Mapping[str, int], exit_at: int, room: int) -> dict[str, Any]:
    streams: dict[str, bytes] = {}
    for name, at in places.items():
        (size,) = struct.unpack_from("<Q", region, at)
        label = f"output file {name}" if name else "standard output"
        if size == _MISSING:
            raise BadAnswer(f"the command left no {label}")
        if size == _TOO_LONG or size > room - 8:
            raise BadAnswer(f"{label} is longer than the {room - 8} bytes allowed")
        streams[name] = bytes(region[at + 8 : at + 8 + size])
    (status,) = struct.unpack_from("<q", region, exit_at)
    return {"stdout": streams.pop(""), "exit": status, "files": streams}
