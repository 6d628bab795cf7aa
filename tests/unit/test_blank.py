"""An output starts as chance that nothing computes with, and what nobody wrote to reads the same in every answer."""

from __future__ import annotations

import numpy as np
import pytest

from outpace.judge.alignment import shift
from outpace.judge.blank import POISON, Blank

KINDS = ["f2", "f4", "f8", "c8", "c16"]


def filled(dtype: str, count: int) -> tuple[Blank, np.ndarray, int]:
    """A blank with one output, that output as it stands before any call, and where it begins."""
    blank = Blank()
    at = blank.reserve(np.dtype(dtype).itemsize * count, "'x'", np.dtype(dtype))
    return blank, np.frombuffer(blank.content, dtype, count, at).copy(), at


@pytest.mark.parametrize("dtype", KINDS)
def test_floating_numbers_start_as_what_spoils_sums_and_one_of_three_kinds(dtype: str) -> None:
    kinds = set()
    for _ in range(100):
        _, numbers, _ = filled(dtype, 50)
        real = numbers.view(numbers.real.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            assert not (real + real.dtype.type(1) == 1).any()
        assert not np.isinf(real).any()
        kinds.add("none" if np.isnan(real).all() else "huge" if (real > 1e4).all() else "negative")
        assert np.isnan(real).all() or (np.abs(real) > np.finfo(real.dtype).max / 4).all()
    assert kinds == {"none", "huge", "negative"}


@pytest.mark.parametrize("dtype", [*KINDS, "i1", "u2", "i4", "i8", "?"])
@pytest.mark.parametrize("count", [0, 1, 5, 64, 5000])
def test_what_nobody_wrote_to_reads_as_poison(dtype: str, count: int) -> None:
    blank, answer, at = filled(dtype, count)
    blank.mark_unwritten(answer, at)
    # Of a few bytes that look untouched nobody can say that they are.
    few = np.dtype(dtype).kind not in "fc" and answer.nbytes < 8
    assert few or answer.tobytes() == bytes([POISON]) * answer.nbytes


def test_a_byte_that_was_written_is_never_taken_for_one_that_was_not() -> None:
    for _ in range(2000):
        blank, answer, at = filled("u1", 1)
        answer[:] = 7
        blank.mark_unwritten(answer, at)
        assert answer[0] == 7


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8", "u1", "i4"])
def test_what_was_written_stays(dtype: str) -> None:
    blank, answer, at = filled(dtype, 4000)
    written = np.random.default_rng(1).integers(0, 100, 2000).astype(dtype)
    answer[:2000] = written
    blank.mark_unwritten(answer, at)
    np.testing.assert_array_equal(answer[:2000], written)
    assert answer[2000:].tobytes() == bytes([POISON]) * answer[2000:].nbytes


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8", "u1", "i4"])
def test_what_a_candidate_leaves_alone_where_something_belongs_stays_chance(dtype: str) -> None:
    blank, answer, at = filled(dtype, 4000)
    left = answer.copy()
    reference = answer.copy()
    reference[:3000] = 0
    blank.mark_unwritten(reference, at)
    blank.mark_unwritten(answer, at, reference)
    assert answer[:3000].tobytes() == left[:3000].tobytes(), "not poison, which is next to 0"
    assert answer[3000:].tobytes() == bytes([POISON]) * answer[3000:].nbytes


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8", "u1", "i4", "u2", "?"])
@pytest.mark.parametrize("count", [1, 2, 5, 2999])
def test_where_the_reference_left_the_output_alone_a_candidate_may_write_anything(dtype: str, count: int) -> None:
    blank, reference, at = filled(dtype, 4000)
    candidate = reference.copy()
    reference[:count] = candidate[:count] = 1
    candidate[count:3500] = 0
    blank.mark_unwritten(reference, at)
    blank.mark_unwritten(candidate, at, reference)
    assert candidate.tobytes() == reference.tobytes()


def test_what_the_reference_wrote_is_checked_to_the_last_element_whatever_its_value() -> None:
    blank, reference, at = filled("u1", 4000)
    candidate = reference.copy()
    reference[:2000], candidate[:2000] = POISON, 7
    before = np.frombuffer(blank.content, "u1", 2000, at)
    blank.mark_unwritten(reference, at)
    blank.mark_unwritten(candidate, at, reference)
    assert (candidate[:2000] != reference[:2000]).sum() >= 2000 - (before == POISON).sum() > 1900


def test_an_output_that_is_written_whole_is_checked_whole() -> None:
    blank, reference, at = filled("u1", 4000)
    reference[:], candidate = POISON, np.full(4000, 7, np.uint8)
    blank.mark_unwritten(reference, at)
    blank.mark_unwritten(candidate, at, reference)
    # One byte in 256 is what stood there before, by a chance that nobody knows beforehand.
    assert (candidate == 7).mean() > 0.97 and (reference == POISON).all()


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("left", [1, 2, 3, 5, 7])
def test_where_the_reference_wrote_nothing_a_candidate_may(dtype: str, left: int) -> None:
    blank, reference, at = filled(dtype, 63)
    reference[:-left] = 1
    candidate = reference.copy()
    candidate[-left] = 9
    blank.mark_unwritten(reference, at)
    blank.mark_unwritten(candidate, at, reference)
    np.testing.assert_array_equal(candidate, reference)


def test_two_questions_never_start_alike() -> None:
    assert filled("f8", 8)[1].tobytes() != filled("f8", 8)[1].tobytes()
    assert filled("i4", 8)[1].tobytes() != filled("i4", 8)[1].tobytes()


def test_arrays_to_work_on_in_place_are_nobodys_blank() -> None:
    blank, given = Blank(), np.arange(9.0)
    at = blank.place(given.tobytes(), given.dtype, "'x'")
    answer = np.frombuffer(blank.content, "f8", 9, at).copy()
    blank.mark_unwritten(answer, at)
    np.testing.assert_array_equal(answer, given)


def test_a_known_blank_reads_as_poison_to_the_last_byte() -> None:
    blank = Blank(known=True)
    at = blank.reserve(100, "'x'", np.dtype("u1"))
    answer = np.frombuffer(blank.content, "u1", 100, at).copy()
    answer[:53] = 7
    blank.mark_unwritten(answer, at)
    assert (answer[:53] == 7).all() and (answer[53:] == POISON).all()


@pytest.mark.parametrize(
    ("dtype", "align", "unit"), [("u1", 0, 1), ("f8", 0, 8), ("c16", 0, 8), ("f4", 16, 16), ("i2", 64, 64)]
)
def test_arrays_begin_wherever_their_elements_or_the_task_let_them(dtype: str, align: int, unit: int) -> None:
    places = set()
    for _ in range(4000):
        at = Blank(align).reserve(80, "'x'", np.dtype(dtype))
        places.add(at % 64)
    assert places == set(range(0, 64, unit))


def test_what_is_written_before_the_start_of_an_output_is_noticed_too() -> None:
    shifted = False
    while not shifted:
        blank = Blank()
        blank.reserve(80, "'x'", np.dtype("u1"))
        at = blank.reserve(80, "'y'", np.dtype("u1"))
        shifted = at % 64 > 0
    region = bytearray(blank.content)
    assert not blank.overrun(memoryview(region))
    region[at - 1] ^= 1
    assert blank.overrun(memoryview(region)) == "before the start of 'y'"


@pytest.mark.parametrize(("dtype", "align"), [("u1", 0), ("f4", 0), ("f8", 0), ("f4", 4), ("c16", 0)])
def test_most_arrays_begin_where_memory_from_malloc_does_and_no_better(dtype: str, align: int) -> None:
    places = [shift(np.dtype(dtype), align) for _ in range(4000)]
    usual = [each for each in places if each % 16 == 0]
    assert 0.85 < len(usual) / len(places) < 0.97
    assert min(np.bincount(usual)[::16]) > 0.2 * len(usual), "a quarter on a cache line"


def test_a_promise_is_kept_by_every_array() -> None:
    for align in (16, 32, 64):
        assert {shift(np.dtype("f4"), align) for _ in range(2000)} == set(range(0, 64, align))
