"""The wire: values as bytes, in a fixed format that can be decoded without trusting who wrote them.

Imported on both sides of the jail, so only the standard library is needed; NumPy is used when it is there.
Answers come back by `encode` and `decode`. A value is one tag byte and its body; lengths are unsigned 64-bit,
little-endian: N none, T true, F false, I int (length, two's complement), D float64, S str, B bytes, L list, M map (a
list of keys, a list of values), A array (dtype code, number of axes, axes, raw bytes); and three short forms for lists
of one kind, i int64, d float64, s str (lengths in characters, one text).
Arguments go in by `pack_call` and `unpack_call`, which need not distrust each other.
Both are as fast as Python allows: whatever they waste is on the candidate's clock, and could be won by replacing them.
"""

from __future__ import annotations

import marshal
import struct
import sys
from array import array
from typing import Any

DEPTH_LIMIT = 64
# dtype codes an array may have: numbers and booleans, never objects (an object array would need pickle).
ARRAY_DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_LENGTH = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")
_SHORT_FORMS = {int: b"i", float: b"d", str: b"s"}


class WireError(ValueError):
    """The value cannot be sent, or the bytes are not a value."""


def encode(value: Any) -> bytes:
    """The bytes of a value; only exact built-in types and plain arrays, so that nothing lazy gets through."""
    parts: list[bytes] = []
    _encode(value, parts, 0)
    return b"".join(parts)


def _encode(value: Any, parts: list[bytes], depth: int) -> None:
    if depth > DEPTH_LIMIT:
        raise WireError(f"nested deeper than {DEPTH_LIMIT} levels")
    kind = type(value)
    if value is None:
        parts.append(b"N")
    elif kind is bool:
        parts.append(b"T" if value else b"F")
    elif kind is int:
        body = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        parts.append(b"I" + _LENGTH.pack(len(body)) + body)
    elif kind is float:
        parts.append(b"D" + _DOUBLE.pack(value))
    elif kind is str:
        # surrogatepass: a candidate may return any str; it must round-trip, not crash the worker.
        body = value.encode("utf-8", "surrogatepass")
        parts.append(b"S" + _LENGTH.pack(len(body)) + body)
    elif kind in (bytes, bytearray):
        parts.append(b"B" + _LENGTH.pack(len(value)) + bytes(value))
    elif kind in (list, tuple):
        _encode_list(value, parts, depth)
    elif kind is dict:
        strange = set(map(type, value)) - {str}
        if strange:
            raise WireError(f"map keys must be str, not {strange.pop().__name__}")
        parts.append(b"M")
        _encode_list(list(value), parts, depth)
        _encode_list(list(value.values()), parts, depth)
    else:
        _encode_array(value, parts, depth)


def _encode_list(value: Any, parts: list[bytes], depth: int) -> None:
    kinds = set(map(type, value))
    short = _SHORT_FORMS.get(kinds.pop()) if len(kinds) == 1 else None
    if short == b"s":
        lengths = array("q", map(len, value)).tobytes()
        text = "".join(value).encode("utf-8", "surrogatepass")
        parts += (b"s", _LENGTH.pack(len(value)), _LENGTH.pack(len(text)), lengths, text)
        return
    if short is not None:
        try:
            parts += (short, _LENGTH.pack(len(value)), array("q" if short == b"i" else "d", value).tobytes())
            return
        except OverflowError:  # an int beyond 64 bits
            pass
    parts += (b"L", _LENGTH.pack(len(value)))
    for item in value:
        _encode(item, parts, depth + 1)


def _encode_array(value: Any, parts: list[bytes], depth: int) -> None:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        raise WireError(
            f"a {type(value).__name__} cannot be returned; return None, bool, int, float, str, bytes, list, "
            "dict with str keys, or a NumPy array"
        )
    if isinstance(value, numpy.generic):
        _encode(value.item(), parts, depth)
        return
    code = value.dtype.newbyteorder("<").str[1:]
    if type(value) is not numpy.ndarray or code not in ARRAY_DTYPES:
        raise WireError(f"an array of {value.dtype} ({type(value).__name__}) cannot be returned")
    body = numpy.ascontiguousarray(value, dtype="<" + code).tobytes()
    name = code.encode()
    header = bytes([len(name)]) + name + bytes([value.ndim])
    parts.append(b"A" + header + b"".join(_LENGTH.pack(axis) for axis in value.shape) + body)


def decode(data: bytes | memoryview) -> Any:
    """The value of these bytes; anything that is not exactly one value raises WireError."""
    reader = _Reader(memoryview(data))
    value = reader.value(0)
    if reader.at != len(reader.data):
        raise WireError(f"{len(reader.data) - reader.at} bytes follow the value")
    return value


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> memoryview:
        if count > len(self.data) - self.at:
            raise WireError(f"cut short: {count} bytes wanted, {len(self.data) - self.at} left")
        piece = self.data[self.at : self.at + count]
        self.at += count
        return piece

    def length(self) -> int:
        return int(_LENGTH.unpack(self.take(8))[0])

    def value(self, depth: int) -> Any:
        if depth > DEPTH_LIMIT:
            raise WireError(f"nested deeper than {DEPTH_LIMIT} levels")
        tag = bytes(self.take(1))
        if tag == b"N":
            return None
        if tag in (b"T", b"F"):
            return tag == b"T"
        if tag == b"I":
            return int.from_bytes(self.take(self.length()), "little", signed=True)
        if tag == b"D":
            return _DOUBLE.unpack(self.take(8))[0]
        if tag == b"S":
            try:
                return bytes(self.take(self.length())).decode("utf-8", "surrogatepass")
            except UnicodeDecodeError as error:
                raise WireError(f"not a text: {error}") from None
        if tag == b"B":
            return bytes(self.take(self.length()))
        if tag == b"L":
            # Every item is at least one byte, so a forged count cannot make us allocate more than was sent.
            return [self.value(depth + 1) for _ in range(self.count())]
        if tag in (b"i", b"d"):
            numbers = array("q" if tag == b"i" else "d")
            numbers.frombytes(self.take(8 * self.count()))
            return numbers.tolist()
        if tag == b"s":
            return self.texts()
        if tag == b"M":
            return self.map(depth)
        if tag == b"A":
            return self.array()
        raise WireError(f"unknown tag {tag!r}")

    def count(self) -> int:
        count = self.length()
        if count > len(self.data) - self.at:
            raise WireError(f"cut short: {count} items announced, {len(self.data) - self.at} bytes left")
        return count

    def texts(self) -> list[str]:
        count, size = self.count(), self.length()
        lengths = array("q")
        lengths.frombytes(self.take(8 * count))
        try:
            text = bytes(self.take(size)).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise WireError(f"not a text: {error}") from None
        items, at = [], 0
        for length in lengths:
            if not 0 <= length <= len(text) - at:
                raise WireError(f"a text of {length} characters where {len(text) - at} are left")
            items.append(text[at : at + length])
            at += length
        return items

    def map(self, depth: int) -> dict[str, Any]:
        keys, values = self.value(depth), self.value(depth)
        if type(keys) is not list or type(values) is not list or len(keys) != len(values):
            raise WireError("a map whose keys and values do not match")
        if not all(type(key) is str for key in keys) or len(set(keys)) != len(keys):
            raise WireError("a map with keys that are repeated or no texts")
        return dict(zip(keys, values, strict=True))

    def array(self) -> Any:
        import numpy  # not at the top: a jailed Python without NumPy must be able to import this module

        name = bytes(self.take(self.take(1)[0])).decode("ascii", "replace")
        if name not in ARRAY_DTYPES:
            raise WireError(f"unknown array type {name!r}")
        axes = [self.length() for _ in range(self.take(1)[0])]
        if len(axes) > 32:
            raise WireError(f"an array of {len(axes)} axes")
        dtype = numpy.dtype("<" + name)
        size = dtype.itemsize
        for axis in axes:
            size *= axis
        try:
            return numpy.frombuffer(self.take(size), dtype=dtype).reshape(axes)
        except (ValueError, OverflowError, MemoryError) as error:
            raise WireError(f"an array of {axes} {name}: {error}") from None


# Arguments: a marshalled map and, behind it, the arrays it holds, which are not copied on the other side.

_ALIGN = 64
_HEADER = struct.Struct("<QQ")
_SCALARS = {type(None), bool, int, float, str, bytes}


def pack_call(arguments: dict[str, Any]) -> bytes:
    """One call's arguments as a record whose length is a multiple of 64."""
    arrays: list[tuple[tuple[Any, ...], str, tuple[int, ...], Any]] = []
    plain = _without_arrays(arguments, (), arrays)
    described = [(path, code, shape) for path, code, shape, _ in arrays]
    body = marshal.dumps((plain, described), 4)
    parts = [_HEADER.pack(len(body), 0), body]
    size = _pad(parts, _HEADER.size + len(body))
    for _, _, _, raw in arrays:
        parts.append(raw)
        size = _pad(parts, size + len(raw))
    parts[0] = _HEADER.pack(len(body), size)
    return b"".join(parts)


def unpack_call(data: memoryview, offset: int) -> tuple[dict[str, Any], int]:
    """The arguments in the record at `offset`, and the offset of the next one; arrays are read-only views."""
    length, size = _HEADER.unpack_from(data, offset)
    at = offset + _HEADER.size
    arguments, described = marshal.loads(data[at : at + length])
    at += length
    at += -at % _ALIGN
    for path, code, shape in described:
        import numpy

        dtype = numpy.dtype(code)
        count = 1
        for axis in shape:
            count *= axis
        value = numpy.frombuffer(data, dtype, count, at).reshape(shape) if count else numpy.empty(shape, dtype)
        at += count * dtype.itemsize
        at += -at % _ALIGN
        holder = arguments
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = value
    return arguments, offset + size


def _pad(parts: list[bytes], size: int) -> int:
    parts.append(bytes(-size % _ALIGN))
    return size + -size % _ALIGN


def _without_arrays(
    value: Any, path: tuple[Any, ...], arrays: list[tuple[tuple[Any, ...], str, tuple[int, ...], Any]]
) -> Any:
    kind = type(value)
    if kind in _SCALARS or (kind in (list, tuple) and set(map(type, value)) <= _SCALARS):
        return list(value) if kind is tuple else value
    if kind in (list, tuple):
        return [_without_arrays(item, (*path, at), arrays) for at, item in enumerate(value)]
    if kind is dict:
        return {key: _without_arrays(item, (*path, key), arrays) for key, item in value.items()}
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    if numpy is None or kind is not numpy.ndarray or value.dtype.newbyteorder("<").str[1:] not in ARRAY_DTYPES:
        where = "".join(f"[{step!r}]" for step in path)
        raise WireError(
            f"a {kind.__name__} cannot be an argument (at {where}); use numbers, texts, bytes, lists, maps and arrays"
        )
    dtype = value.dtype.newbyteorder("<")
    arrays.append((path, dtype.str, value.shape, numpy.ascontiguousarray(value, dtype=dtype).tobytes()))
    return None
