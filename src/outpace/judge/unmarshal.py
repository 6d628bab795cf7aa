"""Reading answers without trusting who wrote them: a small, strict reader of the marshal format.

The interpreter's own `marshal.loads` may crash on bytes that were made for it. This reader knows the plain types alone,
checks every length against what is left and against the reference's answer, and raises WireError for everything else.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from outpace.judge.extent import DIGIT_BITS, Extent
from outpace.judge.wire import ALIGN, ARRAY_DTYPES, HEADER, WireError, placed

DEPTH_LIMIT = 64
# An int of more digits than this is no answer; reading one takes time that grows with their square.
DIGIT_LIMIT = 10_000
# Lists at least this long are tried as numbers of one kind, a hundred times faster than one by one.
_MANY = 16
_SHORT = struct.Struct("<i")
_DOUBLE = struct.Struct("<d")
_NUMBERS = {ord("g"): (9, "<f8"), ord("i"): (5, "<i4")}


def read(data: bytes, like: Extent | None = None) -> Any:
    """The answer that `wire.pack_into` packed; anything that is not exactly one value raises WireError.

    `like` is the extent of the reference's answer to the same input: what is much larger is refused at once.
    The reference's own answers are read without.
    """
    return read_with_places(data, like)[0]


def read_with_places(data: bytes, like: Extent | None = None) -> tuple[Any, list[tuple[int, int]]]:
    """As `read`, and where in the data each of the answer's arrays lies: first byte and length."""
    if like is not None and len(data) > like.allowed().bytes:
        raise WireError(f"{len(data)} bytes{_beyond(like.bytes, like.allowed().bytes)}")
    if len(data) < HEADER.size:
        raise WireError(f"{len(data)} bytes are too few for a value")
    length, size = HEADER.unpack_from(data)
    if size != len(data) or length > size - HEADER.size:
        raise WireError(f"a value of {length} and {size} bytes in a message of {len(data)}")
    reader = _Reader(data, HEADER.size, HEADER.size + length, like)
    pair = reader.value(0)
    if reader.at != reader.end or type(pair) is not list or len(pair) != 2 or type(pair[1]) is not list:
        raise WireError("the message is not a value and the places of its arrays")
    return _with_arrays(pair[0], pair[1], data, reader.end)


def _with_arrays(value: Any, described: list[Any], data: bytes, at: int) -> tuple[Any, list[tuple[int, int]]]:
    places = []
    for each in described:
        at += -at % ALIGN
        try:
            path, code, shape = each
            if code[1:] not in ARRAY_DTYPES or code[0] not in "<|" or len(shape) > 32 or min(shape, default=0) < 0:
                raise WireError(f"an array of {code!r} and {len(shape)} axes")
            dtype = np.dtype(code)
            # Python's integers: a product of forged axes must not wrap around.
            count = 1
            for axis in shape:
                count *= int(axis)
            if count * dtype.itemsize > len(data) - at:
                raise WireError(f"an array of {count} elements in {len(data) - at} bytes")
            if _at(value, path) is not None:
                # What a later array takes the place of would be bytes that nobody reads, put there for free.
                raise WireError(f"an array where the answer has something else already ({path!r:.80})")
            value = placed(value, tuple(path), np.frombuffer(data, dtype, count, at).reshape(shape))
        except (TypeError, ValueError, KeyError, IndexError, OverflowError, MemoryError) as error:
            raise WireError(f"an array that cannot be read: {error}") from None
        places.append((at, count * dtype.itemsize))
        at += count * dtype.itemsize
    if at + -at % ALIGN != len(data):
        raise WireError(f"{len(data) - at} bytes behind the last array")
    return value, places


def _at(value: Any, path: list[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


def _beyond(reference: int, most: int) -> str:
    return f" where the reference's answer has {reference}; at most {most} are read"


class _Reader:
    def __init__(self, data: bytes, at: int, end: int, like: Extent | None) -> None:
        self.data, self.at, self.end, self.like = data, at, end, like
        # Every value is at least one byte, so that without a reference this bounds nothing.
        most = Extent(len(data), DEPTH_LIMIT, len(data), DIGIT_LIMIT) if like is None else like.allowed()
        self.left = most.values
        self.digits = min(most.digits, DIGIT_LIMIT)
        # The answer lies one level down, beside descriptions of arrays, whose paths and shapes lie four levels down.
        self.depth = min(max(most.depth + 1, 4), DEPTH_LIMIT)

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.end - self.at:
            raise WireError(f"cut short: {count} bytes wanted, {self.end - self.at} left")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        return int(_SHORT.unpack(self.take(4))[0])

    def count(self, values: int) -> None:
        self.left -= values
        if self.left < 0 and self.like is not None:
            more = self.like.allowed().values - self.left
            raise WireError(f"{more} values or more{_beyond(self.like.values, self.like.allowed().values)}")

    def value(self, depth: int) -> Any:
        if depth > self.depth:
            known = "" if self.like is None else f" where the reference's answer has {self.like.depth}"
            raise WireError(f"nested deeper than {self.depth} levels{known}")
        self.count(1)
        tag = self.take(1)
        if tag == b"g":
            return _DOUBLE.unpack(self.take(8))[0]
        if tag == b"i":
            return self.number()
        if tag in (b"u", b"t"):
            return self.text()
        if tag in (b"[", b"("):
            return self.items(depth)
        if tag == b"{":
            return self.map(depth)
        if tag == b"s":
            return self.take(self.number())
        if tag == b"l":
            return self.long()
        if tag in (b"N", b"T", b"F"):
            return {b"N": None, b"T": True, b"F": False}[tag]
        raise WireError(f"a value of a kind that is not plain ({tag!r})")

    def text(self) -> str:
        try:
            return self.take(self.number()).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise WireError(f"not a text: {error}") from None

    def long(self) -> int:
        digits = self.number()
        if abs(digits) > self.digits:
            raise WireError(f"an int of {abs(digits) * DIGIT_BITS} bits; at most {self.digits * DIGIT_BITS} are read")
        value = 0
        for digit in reversed(struct.unpack(f"<{abs(digits)}H", self.take(2 * abs(digits)))):
            value = value << DIGIT_BITS | digit
        return -value if digits < 0 else value

    def items(self, depth: int) -> list[Any]:
        count = self.number()
        # Every item is at least one byte, so a forged count cannot make us allocate more than was sent.
        if not 0 <= count <= self.end - self.at:
            raise WireError(f"cut short: {count} items announced, {self.end - self.at} bytes left")
        # Counted before they are read: a list is made no longer than it may be.
        self.count(count)
        numbers = self.numbers(count) if count >= _MANY else None
        if numbers is not None:
            return numbers
        self.left += count
        return [self.value(depth + 1) for _ in range(count)]

    def numbers(self, count: int) -> list[Any] | None:
        """The next items if all of them are floats, or all of them small ints."""
        width, kind = _NUMBERS.get(self.data[self.at], (0, ""))
        if not width or count * width > self.end - self.at:
            return None
        rows = np.frombuffer(self.data, np.uint8, count * width, self.at).reshape(count, width)
        if not bool((rows[:, 0] == self.data[self.at]).all()):
            return None
        self.at += count * width
        found: list[Any] = np.ascontiguousarray(rows[:, 1:]).view(kind).reshape(-1).tolist()
        return found

    def map(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while self.at < self.end and self.data[self.at : self.at + 1] != b"0":
            key = self.value(depth + 1)
            if type(key) is not str:
                raise WireError(f"map keys must be str, not {type(key).__name__}")
            if key in result:
                raise WireError(f"the map key {key[:40]!r} comes twice")
            result[key] = self.value(depth + 1)
        self.take(1)
        return result
