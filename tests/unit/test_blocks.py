"""Arrays reach a function as their caller holds them: shared, turned on their side, or with gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from outpace.judge import abi, arguments, question, wire
from outpace.judge.blocks import SPARSE, SPARSE_MORE, laid_down

Array = npt.NDArray[Any]
BASE = np.arange(60, dtype="i4").reshape(3, 4, 5)


def back(value: dict[str, Any]) -> dict[str, Any]:
    packed = arguments.pack(value)
    found, end = wire.unpack(memoryview(packed), 0)
    assert end == len(packed) and len(packed) % 64 == 0
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "view",
    [
        BASE,
        BASE.transpose(2, 0, 1),
        np.asfortranarray(BASE),
        BASE[:, ::2, 1:],
        BASE[::-1],
        BASE[:, :, ::-2],
        np.broadcast_to(np.arange(5, dtype="i4"), (3, 5)),
        BASE[:, :, 0],
        BASE[0, 0, 0, ...],
        np.array(7.0),
        np.zeros((0, 3)),
        np.zeros((2, 0)).T,
    ],
    ids=range(12),
)
def test_an_array_arrives_with_its_elements_and_its_strides(view: Array) -> None:
    found = back({"x": view, "other": [view]})
    for each in (found["x"], found["other"][0]):
        assert np.array_equal(each, view) and each.dtype == view.dtype and each.shape == view.shape
        assert each.strides == view.strides or not view.size
        assert each.flags.c_contiguous == view.flags.c_contiguous
        assert not each.flags.writeable or not view.size


def test_the_order_of_the_memory_is_the_callers() -> None:
    picture = np.arange(12.0).reshape(3, 4).T
    assert list(back({"x": picture})["x"].ravel("K")) == list(picture.ravel("K"))


def test_what_shares_memory_shares_it_and_what_does_not_lies_apart() -> None:
    whole, own = np.arange(20.0), np.arange(20.0)
    found = back({"x": whole, "again": whole, "tail": whole[5:], "own": own})
    assert np.shares_memory(found["x"], found["again"]) and np.shares_memory(found["x"], found["tail"])
    assert not np.shares_memory(found["x"], found["own"])
    for name, value in {"x": whole, "again": whole, "tail": whole[5:], "own": own}.items():
        assert np.array_equal(found[name], value)


def test_what_lies_between_the_elements_of_a_view_is_not_sent() -> None:
    secret = np.full((1000, 2), 12345.0)
    secret[:, 0] = 1.0
    assert np.float64(12345.0).tobytes() not in arguments.pack({"x": secret[:, 0]})


def test_a_view_that_is_strewn_widely_is_gathered() -> None:
    wide = np.zeros((1000, SPARSE * SPARSE_MORE))[:, 0]
    packed = arguments.pack({"x": wide})
    assert len(packed) < 2 * wide.nbytes + 4096
    assert wire.unpack(memoryview(packed), 0)[0]["x"].flags.c_contiguous


def test_blocks_come_in_the_order_of_the_arrays() -> None:
    arrays = [np.full(3, number) for number in range(5)]
    blocks, lies = laid_down([arrays[3], arrays[0], arrays[3][1:], arrays[4]])
    assert [each.block for each in lies] == [0, 1, 0, 2] and lies[2].offset == 8
    assert blocks == [each.tobytes() for each in (arrays[3], arrays[0], arrays[4])]


SIGNATURE = abi.parse_declaration("void f(double *out, const double *x, const double *y, int64_t n)")
INPUT, OUTPUT = 1, 2


def slots(values: dict[str, Any]) -> list[tuple[int, int]]:
    made = question.function_question(SIGNATURE, [values])
    return [
        (kind, value) for kind, _, value in (question._SLOT.unpack_from(made.data, 16 + at * 16) for at in range(4))
    ]


def test_a_c_function_is_given_one_pointer_for_one_array() -> None:
    one, other = np.arange(8.0), np.arange(8.0)
    out, x, y, _ = slots({"out": other, "x": one, "y": one, "n": 8})
    assert out[0] == OUTPUT and x == y and x[0] == INPUT


def test_what_is_written_to_is_seen_through_every_pointer_to_it() -> None:
    both, other = np.arange(9.0), np.arange(8.0)
    out, x, y, _ = slots({"out": both[1:], "x": both[:-1], "y": other, "n": 8})
    assert out[0] == x[0] == OUTPUT and out[1] == x[1] + 8 and y[0] == INPUT


def test_an_array_written_to_is_read_back_from_where_it_lies() -> None:
    both = np.arange(9.0)
    made = question.function_question(SIGNATURE, [{"out": both[1:], "x": both[:-1], "y": np.zeros(0), "n": 8}])
    (answer,) = made.read(memoryview(made.blank), None)
    assert np.array_equal(answer["out"], both[1:])
