"""Arrays: what an index takes for vectors, queries and ids, and what it says of the rest."""

from typing import Any

import numpy as np
import pytest
from ann_facts import Rows, centres, clustered

from outpace.ann import Index

VECTORS = clustered(2, 400, centres(1, 10, 12))


@pytest.fixture(scope="module")
def index() -> Index:
    return Index.build(VECTORS, engine="graph")


class ArrayLike:
    def __init__(self, array: Rows) -> None:
        self.array = array


class WithArray(ArrayLike):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Rows:
        return self.array if dtype is None else self.array.astype(dtype)


class WithInterface(ArrayLike):
    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.array.__array_interface__


class WithDLPack(ArrayLike):
    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class ElsewhereDLPack(ArrayLike):
    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("it lies on device 2")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def columns(array: Rows) -> Rows:
    table = np.empty(len(array), dtype=object)
    table[:] = list(array)
    return table


WAYS: dict[str, Any] = {
    "float64": lambda a: a.astype(np.float64),
    "longdouble": lambda a: a.astype(np.longdouble),
    "other byte order": lambda a: a.astype(">f4"),
    "Fortran order": np.asfortranarray,
    "every other row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a: a[::-1].copy()[::-1],
    "read only": lambda a: np.frombuffer(a.tobytes(), dtype=a.dtype).reshape(a.shape),
    "lists": lambda a: a.tolist(),
    "tuples": lambda a: tuple(map(tuple, a.tolist())),
    "list of arrays": list,
    "column of arrays": columns,
    "__array__": WithArray,
    "__array_interface__": WithInterface,
    "__dlpack__": WithDLPack,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_numbers_give_the_same_answers_however_they_are_held(index: Index, way: str) -> None:
    ids, distances = index.search(VECTORS, 5, effort=50)
    given = WAYS[way](VECTORS)
    np.testing.assert_array_equal(index.search(given, 5, effort=50)[0], ids)
    built = Index.build(given)
    np.testing.assert_array_equal(built.search(given, 5, effort=50)[1], distances)
    assert built.add(WAYS[way](VECTORS[:2] + 1)).tolist() == [400, 401]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64", "bool", "float16", "uint64"])
def test_whole_numbers_and_halves_are_taken_as_they_are(dtype: str) -> None:
    vectors = np.random.default_rng(3).integers(0, 2, (300, 20)).astype(dtype)
    _, distances = Index.build(vectors).search(vectors[:9], 1, recall=0.99)
    assert (distances == 0).all()


def test_queries_of_another_kind_than_the_vectors_are_compared_as_numbers() -> None:
    stored = np.random.default_rng(4).integers(0, 255, (300, 6)).astype(np.uint8)
    index = Index.build(stored)
    assert index.stats()["exact"] == "uint8"
    query = stored[5].astype(np.float32) + np.float32(0.25)
    ids, distances = index.search(query, 1)
    assert ids[0] == 5 and distances[0] == pytest.approx(6 * 0.25**2, rel=1e-3)
    assert index.search(np.full(6, -1000.5), 1)[1][0] > 5e6


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "NaN": (np.float32([[1, np.nan]]), ValueError, "0 holds NaN at position 1"),
    "infinity": (np.float32([[1, 2], [np.inf, 0]]), ValueError, "1 holds infinity at position 0"),
    "half infinity": (np.float16([[1, np.inf]]), ValueError, "holds infinity"),
    "too large for float32": (np.array([[1e300, 0]]), ValueError, "holds infinity"),
    "too long": (np.float32([[1e20, 0]]), ValueError, "longer than 1e15|half precision"),
    "no coordinates": (np.empty((3, 0), dtype=np.float32), ValueError, "(no|0) coordinates"),
    "three dimensions": (np.ones((2, 2, 2)), ValueError, "3 dimensions"),
    "a number": (np.float32(3), ValueError, "0 dimensions"),
    "too wide": (np.ones((1, 4097), dtype=np.float32), ValueError, "4097 coordinates"),
    "complex": (np.ones((2, 2), dtype=complex), TypeError, "complex128"),
    "strings": (np.array([["a", "b"]]), TypeError, "float32, float16, int8 or uint8"),
    "dates": (np.array([["2020-01-01"]], dtype="datetime64[D]"), TypeError, "datetime64"),
    "objects": (np.array([[object(), 1]]), TypeError, "object"),
    "ragged lists": ([[1, 2], [3]], TypeError, "different lengths"),
    "ragged columns": (columns([np.ones(2), np.ones(3)]), TypeError, "object"),  # type: ignore[arg-type]
    "nothing": (None, TypeError, "numbers"),
    "another device": (ElsewhereDLPack(np.ones((2, 2))), TypeError, "move them there first"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("where", ["build", "search", "add", "calibrate"])
def test_what_cannot_be_stored_or_compared_is_refused_with_what_is_wrong(name: str, where: str) -> None:
    bad, error, says = BAD[name]
    index = Index.build(np.float32([[1, 2], [3, 4], [5, 6]]))
    with pytest.raises(error, match=says):
        Index.build(bad) if where == "build" else getattr(index, where)(bad)
    assert len(index) == 3


@pytest.mark.parametrize("where", ["search", "add", "calibrate", "exact"])
def test_another_number_of_coordinates_is_refused(index: Index, where: str) -> None:
    for wrong in (np.ones(11), np.ones((3, 13))):
        with pytest.raises(ValueError, match=r"1[13] coordinates, and the index 12"):
            getattr(index, where)(wrong)


def test_zero_vectors_have_no_direction_and_are_at_home_elsewhere() -> None:
    vectors = np.float32([[0, 0], [1, 0], [0, 2]])
    with pytest.raises(ValueError, match="vector 0 is all zeros"):
        Index.build(vectors, metric="cosine")
    index = Index.build(vectors[1:], metric="cosine")
    with pytest.raises(ValueError, match="all zeros"):
        index.search(np.zeros(2), 1)
    with pytest.raises(ValueError, match="all zeros"):
        index.add(np.zeros(2))
    with pytest.raises(ValueError, match="all zeros"):
        Index.build(np.zeros((2, 2), dtype=np.uint8), metric="cosine")
    assert Index.build(vectors).search(np.zeros(2), 1)[0].tolist() == [0]
    assert Index.build(vectors, metric="ip").search(np.zeros(2), 3)[1].tolist() == [0, 0, 0]


def test_an_index_of_nothing_cannot_be_built_and_nothing_can_be_added(index: Index) -> None:
    for nothing in ([], np.empty((0, 4), dtype=np.float32)):
        with pytest.raises(ValueError, match=r"empty|no coordinates"):
            Index.build(nothing)
    before = len(index)
    assert index.add(np.empty((0, 12), dtype=np.float32)).tolist() == []
    index.remove([])
    assert len(index) == before
    with pytest.raises(ValueError, match="queries are empty"):
        index.calibrate(np.empty((0, 12), dtype=np.float32))


def test_ids_may_be_any_64_bit_numbers_but_minus_one() -> None:
    ids = [-(2**63), -2, 0, 7, 2**32, 2**63 - 1]
    vectors = np.eye(6, dtype=np.float32)
    index = Index.build(vectors, ids=ids)
    assert index.search(vectors, 1)[0][:, 0].tolist() == ids
    assert all(name in index for name in ids)
    assert 5 not in index and 2**63 not in index and -(2**70) not in index
    index.remove(ids[:2])
    assert sorted(index.ids.tolist()) == ids[2:]
    with pytest.raises(ValueError, match="stands for no answer"):
        Index.build(vectors, ids=[-1, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("ids", "error", "says"),
    [
        ([1, 2, 2], ValueError, "twice"),
        ([1, 2], ValueError, "one id for each of 3"),
        ([[1, 2, 3]], ValueError, r"shape \(1, 3\)"),
        ([1.0, 2.0, 3.0], TypeError, "whole numbers"),
        ([True, False, True], TypeError, "whole numbers"),
        (np.array([1, 2, 2**63], dtype=np.uint64), ValueError, "signed 64 bits"),
        (["a", "b", "c"], TypeError, "whole numbers"),
    ],
)
def test_what_are_no_ids_is_refused(ids: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        Index.build(np.eye(3, dtype=np.float32), ids=ids)


def test_an_id_is_asked_for_as_a_whole_number(index: Index) -> None:
    assert np.int32(3) in index
    with pytest.raises(TypeError):
        assert 3.5 in index  # type: ignore[operator]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"metric": "hamming"}, "l2, ip, cosine"),
        ({"engine": "tree"}, "auto, graph or partitions"),
        ({"profile": "huge"}, "fast or compact"),
        ({"precision": "double"}, "auto, half or full"),
        ({"profile": "compact", "engine": "graph"}, "no room for a graph"),
        ({"reduced": 497}, r"reduced=497; choose 0 .* to 496"),
        ({"reduced": -1}, "reduced=-1"),
        ({"scan_bits": 3}, "scan_bits=3; choose .* 1, 2 or 4"),
        ({"scan_bits": 8}, "scan_bits=8"),
        ({"candidates": 0}, "candidates=0; choose 1 or more"),
        ({"lists": -1}, "lists=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"threads": 0}, "threads=0 is below 1"),
    ],
)
def test_options_that_do_not_exist_are_refused_with_those_that_do(wrong: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Index.build(VECTORS, **wrong)


def test_precision_is_half_where_that_keeps_the_neighbours_and_full_elsewhere() -> None:
    assert Index.build(VECTORS).stats()["exact"] == "float16"
    assert Index.build(VECTORS, precision="full").stats()["exact"] == "float32"
    assert Index.build(VECTORS + 3000).stats()["exact"] == "float32"
    assert Index.build(VECTORS * 1e6).stats()["exact"] == "float32"
    assert Index.build(VECTORS * 1e-9).stats()["exact"] == "float32"
    wide = np.random.default_rng(5).standard_normal((400, 12), dtype=np.float32)
    assert Index.build(wide * 1e6, metric="cosine").stats()["exact"] == "float16"
    bytes_ = np.random.default_rng(5).integers(1, 255, (300, 2)).astype(np.uint8)
    assert Index.build(bytes_).stats()["exact"] == "uint8"
    assert Index.build(bytes_, metric="cosine").stats()["exact"] == "float32"


def test_an_index_says_what_it_is(index: Index) -> None:
    assert repr(index) == f"Index({len(index)} vectors of 12, metric='l2', engines=['partitions', 'graph'])"
    memory = index.stats()["memory"]
    assert memory["total"] == sum(size for part, size in memory.items() if part != "total")
    assert memory["vectors"] >= 400 * 24


@pytest.mark.parametrize("vectors", [VECTORS * 1e-8, 1000 + VECTORS * 0.1], ids=["tiny", "far off"])
def test_half_precision_that_loses_neighbours_warns_where_it_was_asked_for(vectors: Any) -> None:
    for how in ({"profile": "compact"}, {"precision": "half"}):
        with pytest.warns(UserWarning, match=r"half precision loses \d+.\d% of the neighbours.*subtract their mean"):
            Index.build(vectors, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"k": 3.0}, TypeError, "k=3.0 is no whole number"),
        ({"k": 2**63}, ValueError, f"k={2**63} is above {2**63 - 1}"),
        ({"effort": 100.0}, TypeError, "effort=100.0 is no whole number"),
        ({"effort": 2**31}, ValueError, "effort=2147483648 is above 2147483647"),
        ({"depth": "much"}, TypeError, "depth='much' is no whole number"),
        ({"recall": "high"}, TypeError, "recall='high' is no number"),
        ({"engine": None}, TypeError, "engine=None is unknown; choose auto, graph, partitions"),
        ({"threads": 1.5}, TypeError, "threads=1.5 is no whole number"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named(index: Index, wrong: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        index.search(VECTORS[0], **wrong)


def test_a_search_with_threads_of_none_uses_every_core(index: Index) -> None:
    np.testing.assert_array_equal(
        index.search(VECTORS, 3, threads=None, where=[1, 2, 3])[0], index.search(VECTORS, 3, where=[1, 2, 3])[0]
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"seed": 2**64}, "seed="), ({"lists": 2**32}, "lists="), ({"lists": 3.5}, "lists=3.5 is no whole number")],
)
def test_numbers_beyond_all_bounds_are_named_at_the_build(wrong: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        Index.build(VECTORS, **wrong)


def test_places_without_an_answer_are_no_ids(index: Index) -> None:
    with pytest.raises(ValueError, match="leave such places of a result out"):
        index.remove([-1])
    with pytest.raises(ValueError, match="signed 64 bits"):
        index.add(VECTORS[:1], ids=np.array([2**63 + 5], dtype=">u8"))
