"""The wire: values as bytes between the judge and a Python worker; imported on both sides of the jail.

A value is a marshalled pair (plain value, where its arrays were), then the arrays, each from a multiple of 64 bytes on.
Answers say of an array its path, type and shape; arguments (`arguments.py`) also where it begins and how its elements
lie. `pack_into` and `unpack` leave the work to the interpreter's own C code, because whatever they waste is on the
candidate's clock, and could be won by replacing them. `unpack` trusts its bytes and serves in the worker alone; the
judge reads answers with `unmarshal.py`, which does not.
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
# Arrays of at least so many bytes are fetched from where they lie, and at most so many of them; see Piece in
# native/launcher/message.hpp. Copying less costs no more than saying where it lies.
APART_FROM, APART_MOST = 4096, 160
# dtype codes an array may have: numbers and booleans, never objects (an object array would need pickle).
ARRAY_DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_SCALARS = {type(None), bool, int, float, str, bytes}
Found = list[tuple[tuple[Any, ...], Any]]
# The codes of array types that are sent as they are: looking again would be on the clock.
_codes: dict[Any, str] = {}
_last_type: Any = None  # of the last array sent alone, with its code: to look a type up takes its hash
_last_code = ""
_array_type: Any = None  # numpy.ndarray, once an array was seen: a worker whose values hold none may have no NumPy


class _Types(dict[str, Any]):
    """Array types by their code, each looked up once; the first brings NumPy in."""

    def __missing__(self, code: str) -> Any:
        global _array_type
        import numpy

        _array_type = numpy.ndarray
        self[code] = numpy.dtype(code)
        return self[code]


_types = _Types()


class WireError(ValueError):
    """The value cannot be sent, or the bytes are not a value."""


def pack_into(value: Any, region: memoryview, at: int, apart: list[Any] | None = None) -> int:
    """Pack an answer right where it is read, without a copy between; returns where it ends.

    With a list `apart`, large arrays are not packed: where each belongs and the array itself are added to the list,
    of a view a copy. It may lie over an argument, which a caller would not get for nothing.
    """
    global _last_type, _last_code
    if type(value) is _array_type and value.size and (value.dtype is _last_type or value.dtype in _codes):
        # An array alone, the commonest answer of those who care for speed. Taken with cold caches after every call, so
        # that each step saved is worth several.
        if value.dtype is not _last_type:
            _last_type, _last_code = value.dtype, _codes[value.dtype]
        body = marshal.dumps((None, [((), _last_code, value.shape)]), MARSHAL_VERSION)
        length, size = len(body), value.nbytes
        first = at + HEADER.size + length + -(HEADER.size + length) % ALIGN
        end: int = first + size + -size % ALIGN
        if end <= len(region):
            try:
                if apart is not None and size >= APART_FROM and len(apart) < APART_MOST:
                    apart.append((first, size, _own(value, apart)))
                else:
                    region[first : first + size] = memoryview(value).cast("B")
                HEADER.pack_into(region, at, length, end - at)
                region[at + HEADER.size : at + HEADER.size + length] = body
                return end
            except TypeError:
                pass  # its elements do not lie side by side
    rest, found = apart_from(value)
    body = marshalled((rest, [(path, array.dtype.str, array.shape) for path, array in found]))
    first = HEADER.size + len(body)
    first += at + -first % ALIGN
    end = first
    for _, array in found:
        end += array.nbytes + -array.nbytes % ALIGN
    if end > len(region):
        raise WireError(f"the answers take more than the {len(region) >> 20} MB allowed")
    HEADER.pack_into(region, at, len(body), end - at)
    region[at + HEADER.size : at + HEADER.size + len(body)] = body
    for _, array in found:
        size = array.nbytes
        if apart is not None and size >= APART_FROM and len(apart) < APART_MOST:
            apart.append((first, size, _own(array, apart)))
        elif size:
            # A view of bytes can be made of any shape but one without elements.
            plain = array if array.flags.c_contiguous else array.copy(order="C")
            region[first : first + size] = memoryview(plain).cast("B")
        first += size + -size % ALIGN
    return end


def _own(array: Any, apart: list[Any]) -> Any:
    """The array, or a copy of a part of another one, or of the same once more: whoever asked for it wants his own.

    Copied to memory as fresh as that of any other array: what is mapped already would be cheaper than to make one.
    """
    own = array.flags.c_contiguous and _alone(array) and not any(array is kept for _, _, kept in apart)
    return array if own else array.copy(order="C")


def _alone(array: Any) -> bool:
    """Whether the array has its elements for itself; one of another shape has, if nobody holds the first."""
    base = array.base
    if base is None:
        return bool(array.flags.owndata)
    whole = type(base) is _array_type and base.flags.owndata and base.nbytes == array.nbytes
    return whole and sys.getrefcount(base) == 3  # by the array, here, and by the asking


def apart_from(value: Any) -> tuple[Any, Found]:
    """A value without its arrays, and the arrays with their paths."""
    found: Found = []
    met: list[Any] = []
    try:
        rest = _without_arrays(value, (), found, met)
    except RecursionError:
        raise WireError("an answer nested so deeply cannot be sent") from None
    if len(set(map(id, met))) < len(met):
        _copy_shared(met)
    return rest, found


def _copy_shared(met: list[Any]) -> None:
    """Copy each list, tuple, dict and array that stands in a value once more.

    Whoever asked for many rows wants rows that can be changed one by one, and the bytes say many. To make them takes
    what it takes here, on the clock. A tuple passes for a list, and so costs what one costs.
    """
    seen = set()
    for each in met:
        if id(each) in seen:
            _ = [*each] if type(each) is tuple else each.copy()
        seen.add(id(each))


def marshalled(pair: tuple[Any, list[Any]]) -> bytes:
    try:
        return marshal.dumps(pair, MARSHAL_VERSION)
    except ValueError:
        raise WireError(
            f"this {type(pair[0]).__name__} cannot be sent; use None, bool, int, float, str, bytes, lists, dicts with "
            "str keys and NumPy arrays"
        ) from None


def plain(value: Any) -> bytes:
    """The bytes of a value with where its arrays lie, whose elements nobody can change: equal for equal arguments."""
    rest, found = apart_from(value)
    places = [(path, array.dtype.str, array.shape, array.__array_interface__["data"][0]) for path, array in found]
    return marshalled((rest, places))


def unpack(data: memoryview, offset: int) -> tuple[Any, int]:
    """The arguments at `offset` and the offset of the next ones; arrays are read-only views of the data."""
    length, size = HEADER.unpack_from(data, offset)
    at = offset + HEADER.size
    value, described = marshal.loads(data[at : at + length])
    at += length + -(HEADER.size + length) % ALIGN
    for name, code, start, shape, strides in described:
        dtype = _types[code]
        if type(name) is str:
            value[name] = _array_type(shape, dtype, data, at + start, strides)
        else:
            empty = 0 in shape
            array = _array_type(shape, dtype) if empty else _array_type(shape, dtype, data, at + start, strides)
            value = placed(value, name, array)
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


def aligned(size: int) -> int:
    return size + -size % ALIGN


def _without_arrays(value: Any, path: tuple[Any, ...], arrays: Found, met: list[Any]) -> Any:
    """The value with None for each array; arrays are added to the one list, all that holds others to the other."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind in (list, tuple):
        if value:
            met.append(value)  # of empty tuples there is only one
        if set(map(type, value)) <= _SCALARS:
            return value
        return [_without_arrays(item, (*path, at), arrays, met) for at, item in enumerate(value)]
    if kind is dict:
        met.append(value)
        if set(map(type, value.values())) <= _SCALARS:
            return value
        return {key: _without_arrays(item, (*path, key), arrays, met) for key, item in value.items()}
    # Looked at even where there is no NumPy: marshal would take an array.array for bytes.
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    if numpy is None or kind is not numpy.ndarray:
        raise WireError(
            f"a {kind.__name__} cannot be sent; use numbers, texts, bytes, lists, dicts with str keys and arrays"
        )
    arrays.append((path, _checked(value)))
    met.append(value)
    return None


def _checked(array: Any) -> Any:
    """The array, if its elements can be copied byte by byte."""
    if array.dtype in _codes:
        return array
    dtype = array.dtype
    # Those of another byte order are not the same array to a caller, and to convert them would be done for nothing.
    if dtype.str[1:] not in ARRAY_DTYPES or not dtype.isnative:
        raise WireError(f"an array of {dtype} cannot be sent; use arrays of numbers or booleans in native byte order")
    _codes[dtype] = _types[dtype.str].str
    return array
