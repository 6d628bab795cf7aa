"""Of a candidate's answer no more is read than the reference's allows: values, levels, bytes and digits."""

import contextlib
import marshal
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.judge import unmarshal, wire
from outpace.judge.extent import MORE_BYTES, MORE_DIGITS, MORE_LEVELS, MORE_VALUES, Extent, excess, extent, most_bytes

arrays = st.builds(
    lambda shape, kind: np.zeros(shape, kind),
    st.lists(st.integers(0, 4), max_size=3).map(tuple),
    st.sampled_from(["f2", "f8", "u1", "b1", "c16"]),
)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | arrays
answers = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=30,
) | st.lists(st.floats(), max_size=40) | st.lists(st.integers(-(2**40), 2**40), max_size=40)  # fmt: skip


def sent(value: object) -> bytes:
    """What a worker sends back for this value."""
    region = bytearray(1 << 20)
    return bytes(region[8 : wire.pack_into(value, memoryview(region), 8)])


def forged(body: bytes) -> bytes:
    padded = body + bytes(-(len(body) + 16) % 64)
    return struct.pack("<QQ", len(body), len(padded) + 16) + padded


def depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def ints(value: Any) -> list[int]:
    if isinstance(value, (dict, list)):
        return [each for item in (value.values() if isinstance(value, dict) else value) for each in ints(item)]
    return [value] if type(value) is int else []


@given(answers)
def test_an_extent_is_what_is_sent_to_the_byte_and_to_the_value(value: Any) -> None:
    found, data = extent(value), sent(value)
    assert found.bytes == len(data)
    reader = unmarshal._Reader(data, 16, 16 + struct.unpack_from("<Q", data)[0], None)
    before = reader.left
    reader.value(0)
    assert found.values == before - reader.left
    assert found.depth == depth(value)
    assert found.digits == max((-(-each.bit_length() // 15) for each in ints(value)), default=0)


@given(answers)
def test_an_answer_like_the_references_is_read(value: Any) -> None:
    np.testing.assert_equal(unmarshal.read(sent(value), extent(value)), value)


@given(answers, st.binary(max_size=300), st.data())
def test_nothing_is_read_that_is_larger_than_allowed(like: Any, body: bytes, data: st.DataObject) -> None:
    other = data.draw(answers)
    most = extent(like).allowed()
    for message in (sent(other), forged(body)):
        with contextlib.suppress(wire.WireError):
            found = extent(unmarshal.read(message, extent(like)))
            assert found.values <= most.values and found.bytes <= most.bytes and found.depth <= most.depth + 1
            assert found.digits <= max(most.digits, 3)


def test_what_is_allowed_follows_from_the_reference() -> None:
    assert Extent(10, 3, 100, 7).allowed() == Extent(
        20 + MORE_VALUES, 3 + MORE_LEVELS, 200 + MORE_BYTES, 14 + MORE_DIGITS
    )


def refusal(value: object, like: object, body: bytes | None = None) -> str:
    with pytest.raises(wire.WireError) as refused:
        unmarshal.read(sent(value) if body is None else forged(body), extent(like))
    return str(refused.value)


def test_too_many_values_are_refused_with_both_counts() -> None:
    most = extent([1, 2]).allowed().values
    for many in ([None] * 2000, [1] * 2000, [1.5] * 2000, [[]] * 2000, {str(at): None for at in range(1000)}):
        reason = refusal(many, [1, 2])
        assert f"at most {most}" in reason and "the reference's answer has 5" in reason
    fits = [None] * (most - 3)
    assert unmarshal.read(sent(fits), extent([1, 2])) == fits
    assert "values" in refusal([*fits, None], [1, 2])


def test_a_list_that_announces_too_much_is_not_begun() -> None:
    body = b"[" + struct.pack("<i", 60_000) + b"N" * 60_000
    assert "60001 values or more" in refusal(None, None, body)


def test_many_empty_arrays_are_refused() -> None:
    body = marshal.dumps((None, [((), "<f8", (0,))] * 1000), 2)
    assert "values" in refusal(None, np.zeros(3), body)
    assert unmarshal.read(sent([np.zeros(0)] * 1000), extent([np.zeros(1)] * 1000))[999].shape == (0,)


def test_deeper_nesting_is_refused_with_both_depths() -> None:
    def nested(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    for levels in (2, 5, 20):
        allowed = nested(levels + MORE_LEVELS)
        assert unmarshal.read(sent(allowed), extent(nested(levels))) == allowed
        assert f"the reference's answer has {levels}" in refusal(nested(levels + MORE_LEVELS + 1), nested(levels))
    assert "nested deeper" in refusal(None, 1, b"[\x01\x00\x00\x00" * 5000 + b"N")


def test_more_bytes_are_refused_before_anything_is_read() -> None:
    like = np.zeros(1000)
    most = extent(like).allowed().bytes
    assert f"at most {most}" in refusal(np.zeros(20_000), like) and f"{extent(like).bytes};" in refusal(
        "x" * most, like
    )
    assert unmarshal.read(sent(np.zeros(2000)), extent(like)).shape == (2000,)
    # Not even the header, which may say anything.
    with pytest.raises(wire.WireError, match="at most"):
        unmarshal.read(b"\xff" * (most + 1), extent(like))


def test_longer_ints_are_refused() -> None:
    assert unmarshal.read(sent(1 << 900), extent(5)) == 1 << 900
    assert "bits; at most" in refusal(1 << 1200, 5)
    assert unmarshal.read(sent(1 << 1200), extent(1 << 800)) == 1 << 1200


def test_long_keys_on_the_way_to_arrays_count_as_often_as_they_are_sent() -> None:
    answer = {"k" * 2000: [np.zeros(1) for _ in range(200)]}
    assert extent(answer).bytes == len(sent(answer))
    assert len(unmarshal.read(sent(answer), extent(answer))["k" * 2000]) == 200


def test_streams_have_the_same_bound_on_their_bytes() -> None:
    assert excess("standard output", most_bytes(100), 100) == ""
    reason = excess("standard output", most_bytes(100) + 1, 100)
    assert (
        reason
        == f"standard output has {most_bytes(100) + 1} bytes where the reference's has 100; at most 65736 are read"
    )
    assert excess("output file a", 0, 0) == ""


def test_an_answer_of_a_c_function_is_measured_too() -> None:
    found = extent({"return": np.int64(5), "flag": np.bool_(True), "x": np.zeros((2, 3))})
    assert found.depth == 1 and found.digits == 1 and found.values > 5
