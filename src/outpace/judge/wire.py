"""The wire: values as bytes between the judge and a Python worker; imported on both sides of the jail.

A value is a marshalled pair (plain value, where its arrays were), then the arrays, each from a multiple of 64 bytes on.
`pack` and `unpack` leave the work to the interpreter's own C code, because whatever they waste is on the candidate's
clock, and could be won by replacing them. `unpack` trusts its bytes and serves in the worker alone; the judge reads
answers with `unmarshal.py`, which does not.
"""

from __future__ import annotations

import marshal
import struct
import sys
from typing import Any

# Version 2: without references and short strings, so that a reader can be small.
MARSHAL_VERSION = 2
ALIGN = 64
HEADER = struct.Struct("<QQ")
# dtype codes an array may have: numbers and booleans, never objects (an object array would need pickle).
ARRAY_DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_SCALARS = {type(None), bool, int, float, str, bytes}
_Found = list[tuple[tuple[Any, ...], str, tuple[int, ...], bytes]]


class WireError(ValueError):
    """The value cannot be sent, or the bytes are not a value."""


def pack(value: Any) -> bytes:
    """The bytes of a value, as many as a multiple of 64; only plain types and arrays, nothing lazy gets through."""
    arrays: _Found = []
    # Without NumPy there are no arrays to look for, and looking would take longer than packing.
    plain = value if "numpy" not in sys.modules else _without_arrays(value, (), arrays)
    try:
        body = marshal.dumps((plain, [(path, code, shape) for path, code, shape, _ in arrays]), MARSHAL_VERSION)
    except ValueError:
        raise WireError(
            f"this {type(value).__name__} cannot be sent; use None, bool, int, float, str, bytes, lists, dicts of str "
            "keys and NumPy arrays"
        ) from None
    size = _aligned(HEADER.size + len(body))
    parts = [b"", body, bytes(size - HEADER.size - len(body))]
    for _, _, _, raw in arrays:
        parts += (raw, bytes(-len(raw) % ALIGN))
        size = _aligned(size + len(raw))
    parts[0] = HEADER.pack(len(body), size)
    return b"".join(parts)


def unpack(data: memoryview, offset: int) -> tuple[Any, int]:
    """The value at `offset` and the offset of the next one; arrays are read-only views of the data."""
    length, size = HEADER.unpack_from(data, offset)
    at = offset + HEADER.size
    value, described = marshal.loads(data[at : at + length])
    at = _aligned(at + length)
    for path, code, shape in described:
        import numpy  # not at the top: a worker whose arguments hold no array may have no NumPy

        dtype, count = numpy.dtype(code), 1
        for axis in shape:
            count *= axis
        array = numpy.frombuffer(data, dtype, count, at).reshape(shape) if count else numpy.empty(shape, dtype)
        at = _aligned(at + count * dtype.itemsize)
        value = placed(value, path, array)
    return value, offset + size


def placed(value: Any, path: tuple[Any, ...], array: Any) -> Any:
    """The value with the array put where the path says; an empty path means that the array is all there is."""
    if not path:
        return array
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = array
    return value


def _aligned(size: int) -> int:
    return size + -size % ALIGN


def _without_arrays(value: Any, path: tuple[Any, ...], arrays: _Found) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind in (list, tuple):
        if set(map(type, value)) <= _SCALARS:
            return value
        return [_without_arrays(item, (*path, at), arrays) for at, item in enumerate(value)]
    if kind is dict:
        return {key: _without_arrays(item, (*path, key), arrays) for key, item in value.items()}
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.generic):
        return value.item()
    if kind is not numpy.ndarray or value.dtype.newbyteorder("<").str[1:] not in ARRAY_DTYPES:
        described = f"array of {value.dtype}" if kind is numpy.ndarray else kind.__name__
        raise WireError(
            f"a {described} cannot be sent; use numbers, texts, bytes, lists, dicts with str keys and arrays"
        )
    dtype = value.dtype.newbyteorder("<")
    arrays.append((path, dtype.str, value.shape, numpy.ascontiguousarray(value, dtype=dtype).tobytes()))
    return None
