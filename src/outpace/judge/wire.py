"""The wire: values as bytes in a fixed format that can be decoded without trusting who wrote them.

Imported on both sides of the jail, so only the standard library is needed; NumPy is used when it is there.
A value is one tag byte and its body; lengths are unsigned 64-bit, little-endian:
N none, T true, F false, I int (length, two's complement), D float64, S str, B bytes, L list, M map (str keys),
A array (dtype code, number of axes, axes, raw bytes).
"""

from __future__ import annotations

import struct
import sys
from typing import Any

DEPTH_LIMIT = 64
# dtype codes an array may have: numbers and booleans, never objects (an object array would need pickle).
ARRAY_DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_LENGTH = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")


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
        parts.append(b"L" + _LENGTH.pack(len(value)))
        for item in value:
            _encode(item, parts, depth + 1)
    elif kind is dict:
        parts.append(b"M" + _LENGTH.pack(len(value)))
        for key, item in value.items():
            if type(key) is not str:
                raise WireError(f"map keys must be str, not {type(key).__name__}")
            _encode(key, parts, depth + 1)
            _encode(item, parts, depth + 1)
    else:
        _encode_array(value, parts, depth)


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

    def map(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for _ in range(self.count()):
            key = self.value(depth + 1)
            if type(key) is not str or key in result:
                raise WireError(f"bad or repeated map key {key!r}")
            result[key] = self.value(depth + 1)
        return result

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
        return numpy.frombuffer(self.take(size), dtype=dtype).reshape(axes)
