"""Search against brute force: what distances mean, what recall promises, and what answers may depend on."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from ann_facts import Rows, all_distances, centres, clustered, recall_of
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.ann import Index, _native

METRICS = ["l2", "ip", "cosine"]
# The relative error of a stored copy in half precision, with room for sums of a few thousand of them.
HALF = 4e-3

AROUND = centres(1, 80, 40)


@pytest.fixture(scope="module")
def vectors() -> Rows:
    return clustered(2, 8_000, AROUND)


@pytest.fixture(scope="module")
def queries() -> Rows:
    return clustered(3, 600, AROUND)


@pytest.fixture(scope="module")
def index(vectors: Rows) -> Index:
    return Index.build(vectors, engine="graph")


def drawn(seed: int, count: int, dimension: int, dtype: str) -> Rows:
    random = np.random.default_rng(seed)
    values = random.standard_normal((count, dimension))
    if dtype == "int8":
        return np.clip(np.rint(values * 40) + 1, -128, 127).astype(np.int8) | np.int8(1)
    if dtype == "uint8":
        return np.clip(np.rint(values * 40 + 128), 1, 255).astype(np.uint8)
    return values.astype(dtype)


@settings(max_examples=24, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    dimension=st.sampled_from([1, 2, 3, 17, 100, 129, 300]),
    metric=st.sampled_from(METRICS),
    dtype=st.sampled_from(["float32", "float16", "int8", "uint8"]),
    engine=st.sampled_from(["graph", "partitions"]),
    count=st.integers(1, 400),
    k=st.integers(1, 30),
)
def test_with_all_effort_the_answers_are_the_true_ones(
    seed: int, dimension: int, metric: Any, dtype: str, engine: Any, count: int, k: int
) -> None:
    vectors = drawn(seed, count, dimension, dtype)
    queries = drawn(seed + 1, 8, dimension, "float32" if dtype == "float16" else dtype)
    index = Index.build(vectors, metric=metric, engine=engine, threads=1)
    ids, distances = index.search(queries, k, effort=1000, depth=1000, engine=engine)
    agrees(all_distances(vectors, queries, metric), ids, distances)


def test_vectors_of_4096_coordinates_get_the_true_answers() -> None:
    vectors, queries = drawn(5, 60, 4096, "float32"), drawn(6, 5, 4096, "float32")
    index = Index.build(vectors, metric="ip", engine="graph")
    for engine in ("graph", "partitions"):
        ids, distances = index.search(queries, 10, effort=1000, depth=1000, engine=engine)
        agrees(all_distances(vectors, queries, "ip"), ids, distances)


def agrees(truth: Rows, ids: Rows, distances: Rows) -> None:
    """Sorted, each distance that of its id, each as near as the one that belongs there; the rest padded."""
    possible = min(ids.shape[1], truth.shape[1])
    assert (ids[:, possible:] == -1).all() and np.isinf(distances[:, possible:]).all()
    ids, distances = ids[:, :possible], distances[:, :possible]
    assert (ids >= 0).all()
    assert all(len(set(row)) == possible for row in ids.tolist())
    assert (np.diff(distances, axis=1) >= 0).all()
    slack = HALF * np.abs(truth).max() + 2e-7  # one minus a cosine near one is rounded to 6e-8
    np.testing.assert_allclose(distances, np.take_along_axis(truth, ids, axis=1), rtol=HALF, atol=slack)
    np.testing.assert_allclose(distances, np.sort(truth, axis=1)[:, :possible], rtol=HALF, atol=slack)


@pytest.mark.parametrize(("metric", "expected"), [("l2", 25.0), ("ip", -(3 * 6 + 4 * 8)), ("cosine", 0.0)])
def test_distances_are_squared_euclidean_minus_the_product_and_one_minus_the_cosine(
    metric: Any, expected: float
) -> None:
    index = Index.build(np.array([[3, 4]], dtype=np.float32), metric=metric)
    _, distances = index.search(np.array([6, 8], dtype=np.float32), 1)
    assert distances[0] == pytest.approx(expected, abs=1e-3)


def test_one_query_gives_rows_and_many_give_tables(index: Index, queries: Rows) -> None:
    ids, distances = index.search(queries[0], 7)
    assert ids.shape == distances.shape == (7,)
    assert ids.dtype == np.int64 and distances.dtype == np.float32
    assert index.search(queries[:5], 7)[0].shape == (5, 7)
    assert index.search(queries[:0], 7)[0].shape == (0, 7)


def test_more_neighbours_than_vectors_are_padded_with_minus_one_and_infinity() -> None:
    index = Index.build(np.eye(3, dtype=np.float32))
    ids, distances = index.search(np.eye(3, dtype=np.float32), 5)
    assert (ids[:, 3:] == -1).all() and np.isinf(distances[:, 3:]).all()
    assert [sorted(row) for row in ids[:, :3].tolist()] == [[0, 1, 2]] * 3


@pytest.mark.parametrize("engine", ["graph", "partitions"])
def test_more_neighbours_than_the_effort_brings_are_still_found(index: Index, queries: Rows, engine: Any) -> None:
    ids, _ = index.search(queries[:5], 3000, effort=1, engine=engine)
    assert (ids >= 0).all()
    assert all(len(set(row)) == 3000 for row in ids.tolist())


@pytest.mark.parametrize("recall", [0.8, 0.9, 0.95, 0.99])
def test_the_recall_that_was_asked_for_is_reached_on_other_queries(
    index: Index, vectors: Rows, queries: Rows, recall: float
) -> None:
    ids, _ = index.search(queries, 10, recall=recall)
    assert recall_of(all_distances(vectors, queries, "l2"), ids) >= recall - 0.01


@pytest.mark.parametrize("k", [1, 50, 100])
def test_the_recall_holds_for_other_numbers_of_neighbours(index: Index, vectors: Rows, queries: Rows, k: int) -> None:
    ids, _ = index.search(queries, k, recall=0.95)
    assert recall_of(all_distances(vectors, queries, "l2"), ids) >= 0.94


@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("profile", ["fast", "compact"])
def test_the_recall_holds_under_other_metrics_and_profiles(
    vectors: Rows, queries: Rows, metric: Any, profile: Any
) -> None:
    index = Index.build(vectors[:5000], metric=metric, profile=profile)
    ids, _ = index.search(queries, 10, recall=0.95)
    assert recall_of(all_distances(vectors[:5000], queries, metric), ids) >= 0.94


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("instruction_set", _native.instruction_sets())
def test_without_sketches_all_effort_still_finds_the_true_answers(
    metric: Any, dtype: str, instruction_set: str
) -> None:
    vectors, queries = drawn(4, 3_000, 30, dtype), drawn(5, 20, 30, dtype)
    index = Index.build(vectors, metric=metric, profile="compact", instruction_set=instruction_set)
    assert index.stats()["sketch_bits"] == 0
    _, distances = index.search(queries, 10, effort=index.stats()["lists"], depth=60)
    assert np.mean(distances <= index.exact(queries, 10)[1][:, -1:]) > 0.995


def test_the_recall_holds_for_sets_too_small_to_hold_any_out(vectors: Rows, queries: Rows) -> None:
    index = Index.build(vectors[:1500], engine="graph")
    ids, _ = index.search(queries, 10, recall=0.95)
    assert recall_of(all_distances(vectors[:1500], queries, "l2"), ids) >= 0.94


def test_more_effort_never_loses_much_and_finds_more_in_the_end(index: Index, vectors: Rows, queries: Rows) -> None:
    truth = all_distances(vectors, queries, "l2")
    for engine in ("graph", "partitions"):
        found = [recall_of(truth, index.search(queries, 10, effort=e, engine=engine)[0]) for e in (1, 10, 100)]
        assert all(more >= less - 0.005 for less, more in pairwise(found))
        assert found[-1] > 0.95


@pytest.mark.parametrize("engine", ["graph", "partitions"])
def test_every_stored_vector_finds_itself(index: Index, vectors: Rows, engine: Any) -> None:
    ids, _ = index.search(vectors, 1, effort=100, engine=engine)
    assert (ids[:, 0] == np.arange(len(vectors))).all()


def test_every_vector_finds_itself_though_thousands_are_equal() -> None:
    vectors = np.concatenate([np.tile(np.float32([[1, 2, 3, 4]]), (3000, 1)), clustered(4, 1000, centres(5, 9, 4))])
    for engine in ("graph", "partitions"):
        index = Index.build(vectors, engine=engine)
        _, distances = index.search(vectors[:20], 100, recall=0.95)
        assert (distances < 1e-3).all()
        ids, _ = index.search(vectors[3000:], 1, recall=0.99)
        assert (ids[:, 0] == np.arange(3000, 4000)).mean() > 0.98


def test_vectors_that_are_all_equal_are_all_at_distance_zero() -> None:
    index = Index.build(np.ones((2500, 20), dtype=np.float32))
    ids, distances = index.search(np.ones(20, dtype=np.float32), 50)
    assert len(set(ids.tolist())) == 50 and (distances == 0).all()


@pytest.mark.parametrize("factor", [1e-12, 1e-6, 1e-3, 1e3, 1e6, 1e10])
@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_neighbours_are_found_at_any_scale(vectors: Rows, queries: Rows, factor: float, metric: Any) -> None:
    scaled, asked = vectors[:3000] * np.float32(factor), queries[:100] * np.float32(factor)
    ids, distances = Index.build(scaled, metric=metric).search(asked, 10, recall=0.95)
    truth = all_distances(scaled, asked, metric)
    assert recall_of(truth, ids) >= 0.94
    np.testing.assert_allclose(distances, np.take_along_axis(truth, ids, axis=1), rtol=HALF)


@pytest.mark.parametrize("offset", [30, 300, 3000])
def test_neighbours_are_found_far_from_the_origin(vectors: Rows, queries: Rows, offset: float) -> None:
    moved, asked = vectors[:3000] + np.float32(offset), queries[:200] + np.float32(offset)
    ids, _ = Index.build(moved).search(asked, 10, recall=0.95)
    assert recall_of(all_distances(moved, asked, "l2"), ids) >= 0.94


@pytest.mark.parametrize("engine", ["graph", "partitions"])
def test_a_vector_far_from_all_others_finds_itself(vectors: Rows, engine: Any) -> None:
    far = vectors[:3000].copy()
    far[7] *= 3000
    index = Index.build(far, engine=engine)
    assert index.search(far[7], 1, recall=0.95)[0][0] == 7


@pytest.mark.parametrize("engine", ["graph", "partitions"])
def test_a_query_far_from_everything_gets_its_neighbours(index: Index, vectors: Rows, engine: Any) -> None:
    far = 1000 * np.random.default_rng(8).standard_normal((20, 40)).astype(np.float32)
    ids, _ = index.search(far, 10, effort=2000, depth=2000, engine=engine)
    assert (ids >= 0).all()
    assert recall_of(all_distances(vectors, far, "l2"), ids) > 0.9


def test_the_same_seed_makes_the_same_index_with_one_thread_and_with_three(vectors: Rows, queries: Rows) -> None:
    one, three = (Index.build(vectors[:5000], engine="graph", threads=n, seed=3) for n in (1, 3))
    for engine in ("graph", "partitions"):
        for effort in (1, 20, 100):
            mine = one.search(queries, 10, effort=effort, engine=engine)
            theirs = three.search(queries, 10, effort=effort, engine=engine)
            np.testing.assert_array_equal(mine[0], theirs[0])
            np.testing.assert_array_equal(mine[1], theirs[1])
    facts = [index.stats() for index in (one, three)]
    same = ["count", "reduced", "lists", "entries", "places", "repaired", "noise", "memory", "exact"]
    assert [facts[0][name] for name in same] == [facts[1][name] for name in same]


@pytest.mark.parametrize("how", [{"recall": 0.95}, {"effort": 30}, {"effort": 8, "engine": "partitions"}])
def test_answers_do_not_depend_on_order_repetition_batches_or_threads(
    index: Index, queries: Rows, how: dict[str, Any]
) -> None:
    ids, distances = index.search(queries, 10, **how)
    order = np.random.default_rng(9).permutation(len(queries))
    np.testing.assert_array_equal(index.search(queries[order], 10, **how)[0], ids[order])
    np.testing.assert_array_equal(index.search(queries, 10, threads=3, **how)[0], ids)
    np.testing.assert_array_equal(index.search(queries, 10, **how)[1], distances)
    for i in (0, 17, 599):
        np.testing.assert_array_equal(index.search(queries[i], 10, **how)[0], ids[i])


def test_single_searches_of_many_python_threads_are_those_of_one_and_failures_stay_their_own(
    index: Index, queries: Rows
) -> None:
    ids = index.search(queries, 10)[0]

    def ask(i: int) -> bool:
        if i % 7 == 0:  # these come back from native code by an exception
            with pytest.raises(ValueError, match="NaN"):
                index.search(np.full_like(queries[i], np.nan), 10)
        return bool((index.search(queries[i], 10)[0] == ids[i]).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(len(queries))))


def test_both_instruction_sets_give_the_same_answers(vectors: Rows, queries: Rows) -> None:
    scalar = Index.build(vectors[:3000], engine="graph", instruction_set="scalar")
    native = Index.build(vectors[:3000], engine="graph")
    truth = all_distances(vectors[:3000], queries, "l2")
    for effort in (20, 100):
        mine, theirs = (i.search(queries, 10, effort=effort, engine="graph")[0] for i in (scalar, native))
        assert abs(recall_of(truth, mine) - recall_of(truth, theirs)) < 0.01


def test_queries_other_than_the_data_are_served_after_calibration(index: Index, vectors: Rows) -> None:
    odd = clustered(10, 700, centres(11, 40, 40), 0.6)
    fresh = Index.build(vectors)
    fresh.calibrate(odd[:300])
    truth = all_distances(vectors, odd[300:], "l2")
    assert recall_of(truth, fresh.search(odd[300:], 10, recall=0.95)[0]) >= 0.94
    assert fresh.stats()["calibration_queries"] == 300
    assert index.stats()["calibration_queries"] == 400


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"k": 0}, "k=0"),
        ({"recall": 1.5}, "recall=1.5"),
        ({"recall": 0.0}, "recall=0.0"),
        ({"effort": 0}, "effort=0"),
        ({"depth": -5}, "depth=-5"),
        ({"threads": -1}, "threads=-1"),
        ({"k": 2**62}, r"k=4611686018427387904 for \d+ queries"),
        ({"k": 2**60}, r"k=1152921504606846976 for \d+ queries"),
        ({"engine": "tree"}, "engine='tree'"),
    ],
)
def test_settings_that_no_search_has_are_refused(index: Index, queries: Rows, wrong: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        index.search(queries, **({"k": 10} | wrong))


def test_too_many_exact_answers_are_refused(index: Index, queries: Rows) -> None:
    with pytest.raises(ValueError, match="more answers than memory has places for"):
        index.exact(queries, 2**62)
    with pytest.raises(ValueError, match="threads=0"):
        index.exact(queries, 10, threads=0)


def test_the_engine_that_was_named_is_used_whatever_recall_is_asked_for(vectors: Rows, queries: Rows) -> None:
    index = Index.build(vectors, engine="graph")
    before = index.stats()["counters"]
    for recall in (0.5, 0.9, 0.99):
        index.search(queries, 10, recall=recall, engine="graph")
    walked = index.stats()["counters"]
    assert walked["blocks"] == before["blocks"] and walked["hops"] > before["hops"]
    index.search(queries, 10, recall=0.9, engine="partitions")
    assert index.stats()["counters"]["hops"] == walked["hops"]


def test_a_walk_reaches_what_is_far_from_its_entries() -> None:
    vectors = np.random.default_rng(0).standard_normal((8_000, 32), dtype=np.float32)
    index = Index.build(vectors, engine="graph")
    far = vectors[:30] + 3000
    index.add(far)
    assert index.search(far, 1, effort=300, engine="graph")[0][:, 0].tolist() == list(range(8_000, 8_030))
    query = np.full(32, 2000, dtype=np.float32)
    assert index.search(query, 1, effort=1000, engine="graph")[0][0] in index.exact(query, 3)[0]


def test_progress_names_the_stages_and_can_stop_the_build(vectors: Rows) -> None:
    told: list[tuple[str, float]] = []
    Index.build(vectors[:500], progress=lambda *each: told.append(each))
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages == ["transform", "lists", "codes", "neighbours", "graph", "done", "recall"]
    assert all(0 <= done <= 1 for _, done in told)

    def stop(stage: str, _: float) -> None:
        if stage == "lists":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        Index.build(vectors[:500], progress=stop)


@pytest.mark.parametrize("length", [1e-15, 1e-22, 1e-30, 1e14])
def test_the_length_of_a_query_does_not_matter_under_cosine(length: float) -> None:
    vectors = drawn(5, 300, 20, "float32")
    index = Index.build(vectors, metric="cosine")
    query = drawn(6, 1, 20, "float32")[0]
    query /= np.linalg.norm(query)
    assert index.search(query * np.float32(length), 10)[0].tolist() == index.search(query, 10)[0].tolist()


@pytest.mark.parametrize("engine", ["graph", "partitions"])
def test_effort_alone_reaches_high_recall_where_sketches_are_rough(engine: Any) -> None:
    random = np.random.default_rng(8)
    vectors, queries = (random.standard_normal((count, 400)).astype(np.float32) for count in (4_000, 100))
    index = Index.build(vectors, engine=engine)
    truth = all_distances(vectors, queries, "l2")
    assert recall_of(truth, index.search(queries, 10, effort=2_000)[0]) > 0.95


@pytest.mark.parametrize("profile", ["fast", "compact"])
def test_the_length_of_a_query_changes_no_answer_under_inner_product(
    vectors: Rows, queries: Rows, profile: Any
) -> None:
    index = Index.build(vectors[:5000], metric="ip", profile=profile)
    ids, distances = index.search(queries, 10, recall=0.95)
    for length in (2.0**-30, 2.0**-8, 2.0**8, 2.0**30):  # powers of two, which change no digit
        longer, farther = index.search((queries * length).astype(np.float32), 10, recall=0.95)
        assert np.array_equal(ids, longer)
        assert np.allclose(farther, distances * length, rtol=1e-5)


@pytest.mark.parametrize("profile", ["fast", "compact"])
@pytest.mark.parametrize("engine", ["auto", "partitions"])
def test_the_recall_holds_for_more_neighbours_than_a_cluster_has(profile: Any, engine: Any) -> None:
    # 40 vectors in each: the nearest ten lie near, and most of the nearest hundred far off.
    around = centres(21, 200, 48)
    vectors, queries = clustered(22, 8_000, around), clustered(23, 200, around)
    index = Index.build(vectors, profile=profile, engine=engine)
    truth = all_distances(vectors, queries, "l2")
    for k in (10, 30, 100, 200):
        for asked in (0.95, 0.99):
            assert recall_of(truth, index.search(queries, k, recall=asked)[0]) >= asked - 0.01, (k, asked)
