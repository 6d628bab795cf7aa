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
_Found = list[tuple[tuple[Any, ...], Any]]
# The codes of array types that are sent as they are, and types by their code: looking again would be on the clock.
_codes: dict[Any, str] = {}
_dtypes: dict[str, Any] = {}


class WireError(ValueError):
    """The value cannot be sent, or the bytes are not a value."""


def pack(value: Any) -> bytes:
    """The bytes of a value, as many as a multiple of 64; only plain types and arrays, nothing lazy gets through."""
    body, arrays = _parts(value)
    size = _aligned(HEADER.size + len(body))
    parts = [b"", body, bytes(size - HEADER.size - len(body))]
    for array in arrays:
        parts += (array.tobytes(), bytes(-array.nbytes % ALIGN))
        size = _aligned(size + array.nbytes)
    parts[0] = HEADER.pack(len(body), size)
    return b"".join(parts)


def pack_into(value: Any, region: memoryview, at: int) -> int:
    """Pack a value right where it is read, without a copy between; returns where it ends."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(value) is numpy.ndarray and value.flags.c_contiguous and value.dtype in _codes:
        return _pack_array_into(value, region, at)
    body, arrays = _parts(value)
    first = HEADER.size + len(body)
    first += at + -first % ALIGN
    end = first
    for array in arrays:
        end += array.nbytes + -array.nbytes % ALIGN
    if end > len(region):
        raise WireError(f"the answers take more than the {len(region) >> 20} MB allowed")
    HEADER.pack_into(region, at, len(body), end - at)
    region[at + HEADER.size : at + HEADER.size + len(body)] = body
    for array in arrays:
        size = array.nbytes
        if size:
            # A view of bytes can be made of any shape but one without elements.
            region[first : first + size] = memoryview(array).cast("B")
        first += size + -size % ALIGN
    return end


def _pack_array_into(array: Any, region: memoryview, at: int) -> int:
    """The same for an array alone: the commonest answer of those who care for speed.

    Taken step by step with cold caches after every call, so that each step saved is worth several.
    """
    body = marshal.dumps((None, [((), _codes[array.dtype], array.shape)]), MARSHAL_VERSION)
    length, size = len(body), array.nbytes
    first = at + HEADER.size + length + -(HEADER.size + length) % ALIGN
    end: int = first + size + -size % ALIGN
    if end > len(region):
        raise WireError(f"the answers take more than the {len(region) >> 20} MB allowed")
    HEADER.pack_into(region, at, length, end - at)
    region[at + HEADER.size : at + HEADER.size + length] = body
    if size:
        region[first : first + size] = memoryview(array).cast("B")
    return end


def _parts(value: Any) -> tuple[bytes, tuple[Any, ...]]:
    """The marshalled part of a value, and its arrays."""
    numpy = sys.modules.get("numpy")
    # Without NumPy there are no arrays to look for, and looking would take longer than packing.
    if numpy is None:
        return _marshalled((value, [])), ()
    found: _Found = []
    rest = _without_arrays(value, (), found)
    described = [(path, array.dtype.str, array.shape) for path, array in found]
    return _marshalled((rest, described)), tuple(array for _, array in found)


def _marshalled(pair: tuple[Any, list[Any]]) -> bytes:
    try:
        return marshal.dumps(pair, MARSHAL_VERSION)
    except ValueError:
        raise WireError(
            f"this {type(pair[0]).__name__} cannot be sent; use None, bool, int, float, str, bytes, lists, dicts with "
            "str keys and NumPy arrays"
        ) from None


def unpack(data: memoryview, offset: int) -> tuple[Any, int]:
    """The value at `offset` and the offset of the next one; arrays are read-only views of the data."""
    length, size = HEADER.unpack_from(data, offset)
    at = offset + HEADER.size
    value, described = marshal.loads(data[at : at + length])
    at = _aligned(at + length)
    if described:
        import numpy  # not at the top: a worker whose arguments hold no array may have no NumPy
    for path, code, shape in described:
        dtype = _dtypes.get(code) or _dtypes.setdefault(code, numpy.dtype(code))
        count = 1
        for axis in shape:
            count *= axis
        array = numpy.frombuffer(data, dtype, count, at).reshape(shape) if count else numpy.empty(shape, dtype)
        size_here = count * dtype.itemsize
        at += size_here + -size_here % ALIGN
        if len(path) == 1:
            value[path[0]] = array
        else:
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
    if kind is not numpy.ndarray:
        raise WireError(
            f"a {kind.__name__} cannot be sent; use numbers, texts, bytes, lists, dicts with str keys and arrays"
        )
    arrays.append((path, _sendable(value, numpy)))
    return None


def _sendable(array: Any, numpy: Any) -> Any:
    """The array as it can be copied byte by byte: itself, if it already is so."""
    if array.dtype in _codes and array.flags.c_contiguous:
        return array
    dtype = array.dtype.newbyteorder("<")
    if dtype.str[1:] not in ARRAY_DTYPES:
        raise WireError(f"an array of {array.dtype} cannot be sent; use arrays of numbers or booleans")
    _codes[dtype] = dtype.str
    # Not ascontiguousarray, which makes an axis where there is none.
    return numpy.asarray(array, dtype=dtype, order="C")
