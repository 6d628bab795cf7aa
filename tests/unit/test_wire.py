"""The wire carries plain values there and back, and nothing else; answers are read without trusting them."""

import contextlib
import marshal
import struct
import sys
from array import array as typed_array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.judge import arguments, unmarshal, wire

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=40,
)


def answer(value: object) -> bytes:
    """What a worker sends back for this value."""
    region = bytearray(1 << 20)
    return bytes(region[8 : wire.pack_into(value, memoryview(region), 8)])


def forged(body: bytes) -> bytes:
    """A message with this body, its lengths in order."""
    padded = body + bytes(-(len(body) + 16) % 64)
    return struct.pack("<QQ", len(body), len(padded) + 16) + padded


@given(plain)
def test_plain_values_come_back_as_they_were(value: object) -> None:
    packed = arguments.pack(value)
    assert unmarshal.read(answer(value)) == value
    assert wire.unpack(memoryview(packed), 0) == (value, len(packed))


@given(st.lists(st.floats(allow_nan=False), min_size=16) | st.lists(st.integers(-(2**40), 2**40), min_size=16))
def test_long_lists_of_numbers_come_back_as_they_were(values: list[float]) -> None:
    back = unmarshal.read(answer(values))
    assert back == values and [type(each) for each in back] == [type(each) for each in values]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_arrays_come_back_as_they_were(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    values = {"deep": [1, {"x": array}], "top": array}
    for back in (unmarshal.read(answer(values)), wire.unpack(memoryview(arguments.pack(values)), 0)[0]):
        for found in (back["deep"][1]["x"], back["top"]):
            assert found.dtype == array.dtype and found.shape == array.shape and np.array_equal(found, array)


def test_an_array_alone_and_a_strided_one_are_sent_by_value() -> None:
    array = np.arange(12).reshape(3, 4)
    # Twice each: the second time the type is known and the short way is taken.
    for value in (array, array[:, ::2], array, array[:, ::2], array[:0], np.array(2.5)):
        for _ in range(2):
            back = unmarshal.read(answer(value))
            assert back.shape == value.shape and np.array_equal(back, value)


def test_arguments_are_views_that_cannot_be_written() -> None:
    values = wire.unpack(memoryview(arguments.pack({"a": np.arange(5), "b": np.zeros((0, 2))})), 0)[0]
    assert not values["a"].flags.writeable and values["b"].shape == (0, 2)


@given(plain)
def test_an_answer_of_plain_values_and_arrays_comes_back_as_it_was(value: object) -> None:
    values = {"plain": value, "array": np.arange(7, dtype="f4"), "none": np.zeros((0, 3)), "one": np.array(2.5)}
    back = unmarshal.read(answer(values))
    assert back["plain"] == value and back["array"].tolist() == list(range(7))
    assert back["none"].shape == (0, 3) and back["one"].shape == ()


def test_an_answer_that_does_not_fit_is_refused_before_it_is_written() -> None:
    region = bytearray(256)
    with pytest.raises(wire.WireError, match="MB allowed"):
        wire.pack_into(np.arange(100), memoryview(region), 8)
    assert region == bytearray(256)


def test_large_arrays_are_left_where_they_lie_and_small_ones_are_not() -> None:
    large, small = np.arange(1000.0), np.arange(5)
    for value in (large, {"large": large, "small": small}, {"strided": np.arange(4000.0)[::2]}):
        for _ in range(2):
            region, apart = bytearray(1 << 20), []
            end = wire.pack_into(value, memoryview(region), 8, apart)
            assert len(apart) == 1
            for offset, size, array in apart:
                region[offset : offset + size] = array.tobytes()
            np.testing.assert_equal(unmarshal.read(bytes(region[8:end])), value)


def test_several_values_follow_each_other() -> None:
    both = arguments.pack({"a": np.arange(5)}) + arguments.pack([1, 2])
    first, at = wire.unpack(memoryview(both), 0)
    assert first["a"].tolist() == [0, 1, 2, 3, 4]
    assert wire.unpack(memoryview(both), at) == ([1, 2], len(both))


def test_lazy_objects_and_subclasses_are_refused() -> None:
    class Lazy(int):
        pass

    class Late(np.ndarray):
        pass

    for value in (Lazy(3), np.zeros(3).view(Late), np.array([object()]), object(), [object()], np.array(["a"])):
        with pytest.raises(wire.WireError):
            arguments.pack(value)


@pytest.mark.parametrize(
    "value", [{1: 2}, {3, 4}, frozenset([1]), 3 + 4j, ..., compile("1", "x", "eval"), StopIteration]
)
def test_what_marshal_can_and_we_cannot_is_refused_by_the_reader(value: object) -> None:
    with pytest.raises(wire.WireError):
        unmarshal.read(forged(marshal.dumps((value, []), 2)))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for message in (data, forged(data)):
        with contextlib.suppress(wire.WireError):
            unmarshal.read(message)


@given(plain, st.data())
def test_a_changed_message_is_read_or_refused(value: object, data: st.DataObject) -> None:
    whole = bytearray(answer({"value": value, "array": np.arange(4)}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(wire.WireError):
        unmarshal.read(bytes(whole))


@given(plain, st.data())
def test_a_cut_message_is_refused(value: object, data: st.DataObject) -> None:
    whole = answer(value)
    with pytest.raises(wire.WireError):
        unmarshal.read(whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.parametrize("tag", [b"[", b"(", b"u", b"s", b"l"])
@pytest.mark.parametrize("count", [-1, 2**31 - 1, -(2**31)])
def test_a_forged_length_allocates_nothing(tag: bytes, count: int) -> None:
    with pytest.raises(wire.WireError):
        unmarshal.read(forged(tag + struct.pack("<i", count)))


@pytest.mark.parametrize("shape", [(2**40, 2**40), (0, 2**63), (-1,), (1,) * 40, (2**64,)])
def test_an_impossible_array_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(wire.WireError):
        unmarshal.read(forged(marshal.dumps((None, [((), "<f8", shape)]), 2)))


@pytest.mark.parametrize("path", [("a",), (0, 1), (5,), ("a", "b"), (None,)])
def test_an_array_in_a_place_that_is_not_there_is_refused(path: tuple[object, ...]) -> None:
    with pytest.raises(wire.WireError):
        unmarshal.read(forged(marshal.dumps(([1], [(path, "|u1", (0,))]), 2)))


def test_an_array_where_the_answer_has_something_else_is_refused() -> None:
    # The later one would take the place of the earlier, whose bytes nobody reads.
    twice = marshal.dumps(([None], [((0,), "|u1", (8,)), ((0,), "|u1", (8,))]), 2)
    for body, arrays in ((twice, 128), (marshal.dumps(([7], [((0,), "|u1", (0,))]), 2), 0)):
        message = bytearray(forged(body) + bytes(arrays))
        struct.pack_into("<QQ", message, 0, len(body), len(message))
        with pytest.raises(wire.WireError, match="something else already"):
            unmarshal.read(bytes(message))


def test_bytes_behind_the_last_array_are_refused() -> None:
    for body in (marshal.dumps((None, [((), "|u1", (8,))]), 2), marshal.dumps((1, []), 2)):
        message = bytearray(forged(body) + bytes(4096))
        struct.pack_into("<QQ", message, 0, len(body), len(message))
        with pytest.raises(wire.WireError, match="bytes behind the last array"):
            unmarshal.read(bytes(message))


def test_nesting_and_the_length_of_ints_have_limits() -> None:
    value: list[object] = []
    for _ in range(unmarshal.DEPTH_LIMIT + 2):
        value = [value]
    with pytest.raises(wire.WireError):
        unmarshal.read(answer(value))
    with pytest.raises(wire.WireError):
        unmarshal.read(forged(b"[\x01\x00\x00\x00" * 5000 + b"N"))
    with pytest.raises(wire.WireError):
        unmarshal.read(answer(1 << (15 * unmarshal.DIGIT_LIMIT + 1)))


def test_trailing_bytes_are_refused() -> None:
    with pytest.raises(wire.WireError):
        unmarshal.read(forged(marshal.dumps((1, []), 2) + b"N"))


def test_an_array_in_foreign_byte_order_is_refused() -> None:
    with pytest.raises(wire.WireError, match="native byte order"):
        answer(np.arange(3, dtype=">i4"))


@pytest.mark.parametrize(
    "value", [typed_array("H", [1, 2]), bytearray(b"ab"), memoryview(b"ab"), [b"ab", bytearray(b"ab")]]
)
def test_what_marshal_would_take_for_bytes_is_refused_even_without_numpy(
    value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "numpy")
    with pytest.raises(wire.WireError, match="cannot be sent"):
        answer(value)


def test_arguments_that_changed_places_are_not_the_same() -> None:
    one, other = np.arange(3), np.arange(3)
    assert wire.plain({"rows": [one, other]}) == wire.plain({"rows": [one, other]})
    assert wire.plain({"rows": [one, other]}) != wire.plain({"rows": [other, one]})


def test_arguments_never_lie_side_by_side() -> None:
    one, other = np.ones((4, 8)), np.ones((4, 8))
    values, _ = wire.unpack(memoryview(arguments.pack({"one": one, "other": other})), 0)
    begin, end = (values[name].__array_interface__["data"][0] for name in ("one", "other"))
    assert end >= begin + one.nbytes + 64
    assert values["one"].tolist() == values["other"].tolist() == one.tolist()


def test_an_array_with_memory_of_its_own_is_fetched_and_of_a_part_of_another_a_copy() -> None:
    own = np.ones(100_000)
    for array in (own, own[:50_000], own.reshape(100, 1000), own[::2], own.reshape(100, 1000).T):
        for answer in (array, {"x": array}):
            apart: list[tuple[int, int, np.ndarray]] = []
            wire.pack_into(answer, memoryview(bytearray(2_000_000)), 0, apart)
            ((_, size, fetched),) = apart
            assert (fetched is own) == (array is own) and fetched.flags.owndata and size == fetched.nbytes
            assert np.shares_memory(fetched, own) == (array is own) and np.array_equal(fetched, array)


def test_an_array_of_another_shape_is_its_own_while_nobody_holds_the_first() -> None:
    def fetched(array: np.ndarray) -> np.ndarray:
        apart: list[tuple[int, int, np.ndarray]] = []
        wire.pack_into(array, memoryview(bytearray(2_000_000)), 0, apart)
        ((_, _, found),) = apart
        return found

    alone = np.ones(100_000).reshape(100, 1000)
    assert fetched(alone) is alone
    held = np.ones(100_000)
    shaped = held.reshape(100, 1000)
    assert not np.shares_memory(fetched(shaped), held)
    other = np.ones(100_000).reshape(100, 1000)
    again = other.base.reshape(10, 10_000)  # type: ignore[union-attr]
    assert not np.shares_memory(fetched(other), again)


class Counted(list[int]):
    """Counts how often it is copied."""

    copies = 0

    def copy(self) -> "Counted":
        self.copies += 1
        return self


def test_what_stands_in_a_value_more_than_once_is_copied_as_often() -> None:
    once, thrice = Counted(), Counted()
    wire._copy_shared([thrice, once, thrice, thrice])
    assert (once.copies, thrice.copies) == (0, 2)


@pytest.mark.parametrize(
    ("make", "shared"),
    [
        (lambda row: [row] * 3, 2),
        (lambda row: [row[:] for _ in range(3)], 0),
        (lambda row: {"a": row, "b": [[row], row]}, 2),
        (lambda row: ([row], [row]), 1),
        (lambda row: [np.array(row)] * 4, 3),
        (lambda row: [{"x": row}] * 2, 2),
        (lambda _: [1, 1, "a", "a", None, None], 0),
        (lambda row: [tuple(row)] * 3, 2),
        (lambda _: [()] * 3, 0),
    ],
)
def test_all_that_holds_others_is_looked_at_for_that(make, shared, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[object] = []
    monkeypatch.setattr(wire, "_copy_shared", met.extend)
    value = make([1.0, 2.0])
    packed = answer(value)
    assert len(met) - len(set(map(id, met))) == shared
    monkeypatch.undo()
    assert answer(value) == packed
