"""The wire carries plain values there and back, and nothing else."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.judge import wire

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(plain)
def test_plain_values_come_back_as_they_were(value: object) -> None:
    assert wire.decode(wire.encode(value)) == value


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_arrays_come_back_as_they_were(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    back = wire.decode(wire.encode(array))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert np.array_equal(back, array)


def test_a_strided_array_is_sent_by_value() -> None:
    array = np.arange(12).reshape(3, 4)[:, ::2]
    assert np.array_equal(wire.decode(wire.encode(array)), array)


def test_lazy_objects_and_subclasses_are_refused() -> None:
    class Lazy(int):
        pass

    class Late(np.ndarray):
        pass

    for value in (Lazy(3), np.zeros(3).view(Late), np.array([object()]), object(), {1: 2}, {3, 4}):
        with pytest.raises(wire.WireError):
            wire.encode(value)


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    with contextlib.suppress(wire.WireError):
        wire.decode(data)


@given(plain, st.data())
def test_a_cut_value_is_refused(value: object, data: st.DataObject) -> None:
    whole = wire.encode(value)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(wire.WireError):
        wire.decode(whole[:cut])


def test_a_forged_length_allocates_nothing() -> None:
    for tag in (b"L", b"M", b"S", b"B", b"I"):
        with pytest.raises(wire.WireError):
            wire.decode(tag + (2**63).to_bytes(8, "little"))
    with pytest.raises(wire.WireError):
        wire.decode(b"A\x02f8\x02" + (2**40).to_bytes(8, "little") * 2)


def test_nesting_has_a_limit_on_both_sides() -> None:
    value: list[object] = []
    for _ in range(wire.DEPTH_LIMIT + 2):
        value = [value]
    with pytest.raises(wire.WireError):
        wire.encode(value)
    with pytest.raises(wire.WireError):
        wire.decode((b"L" + (1).to_bytes(8, "little")) * 5000 + b"N")


def test_what_can_be_encoded_can_be_decoded_however_deep() -> None:
    value: dict[str, object] = {}
    for _ in range(wire.DEPTH_LIMIT - 1):
        value = {"inner": value}
    assert wire.decode(wire.encode(value)) == value


def test_trailing_bytes_are_refused() -> None:
    with pytest.raises(wire.WireError):
        wire.decode(wire.encode(1) + b"N")
