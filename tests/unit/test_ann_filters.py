"""Filters: recall under any share of matches, also where they avoid the query, and filters that outlive changes."""

import threading
from typing import Any

import numpy as np
import pytest
from ann_facts import Floats, Rows, all_distances, centres, clustered, recall_of
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.ann import Filter, Index

COUNT = 20_000
AROUND = centres(1, 100, 32)


@pytest.fixture(scope="module")
def vectors() -> Rows:
    return clustered(2, COUNT, AROUND, 0.6)


@pytest.fixture(scope="module")
def queries() -> Rows:
    return clustered(3, 400, AROUND, 0.6)


@pytest.fixture(scope="module")
def truth(vectors: Rows, queries: Rows) -> Floats:
    return all_distances(vectors, queries, "l2")


@pytest.fixture(scope="module", params=["auto", "partitions"])
def index(request: pytest.FixtureRequest, vectors: Rows) -> Index:
    return Index.build(vectors, engine=request.param)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.5, 0.9])
def test_the_recall_holds_for_filters_of_any_share(index: Index, queries: Rows, truth: Floats, share: float) -> None:
    mask = np.random.default_rng(4).random(COUNT) < share
    ids, _ = index.search(queries, 10, recall=0.95, where=mask)
    assert mask[ids].all() and (ids >= 0).all()
    assert recall_of(np.where(mask, truth, np.inf), ids) >= 0.94


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.97])
def test_the_recall_holds_where_only_the_farthest_match(
    index: Index, queries: Rows, truth: Floats, share: float
) -> None:
    found = []
    for i in range(40):
        mask = truth[i] >= np.quantile(truth[i], 1 - share)
        ids, _ = index.search(queries[i], 10, recall=0.95, where=mask)
        assert (ids >= 0).all()
        found.append(recall_of(np.where(mask, truth[i], np.inf), ids))
    assert np.mean(found) >= 0.94


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5])
def test_the_recall_holds_where_only_the_nearest_match(
    index: Index, queries: Rows, truth: Floats, share: float
) -> None:
    found = []
    for i in range(60):
        mask = truth[i] <= np.quantile(truth[i], share)
        found.append(recall_of(np.where(mask, truth[i], np.inf), index.search(queries[i], 10, where=mask)[0]))
    assert np.mean(found) >= 0.93  # of sixty queries, whose mean may stray further than that of many


def test_the_recall_holds_for_whole_clusters(index: Index, queries: Rows, vectors: Rows, truth: Floats) -> None:
    labels = all_distances(AROUND, vectors, "l2").argmin(axis=1)
    for mask in (labels < 10, labels >= 50):
        ids, _ = index.search(queries, 10, recall=0.95, where=mask)
        assert recall_of(np.where(mask, truth, np.inf), ids) >= 0.94


@pytest.mark.parametrize("k", [1, 100])
def test_the_recall_holds_for_other_numbers_of_neighbours(index: Index, queries: Rows, truth: Floats, k: int) -> None:
    mask = np.random.default_rng(5).random(COUNT) < 0.3
    ids, _ = index.search(queries, k, recall=0.95, where=mask)
    assert recall_of(np.where(mask, truth, np.inf), ids) >= 0.94


def test_fewer_matches_than_asked_for_are_all_found_and_the_rest_is_padded(index: Index, queries: Rows) -> None:
    ids, distances = index.search(queries[:9], 10, where=np.array([5, 77, 4000]))
    assert [sorted(row) for row in ids[:, :3].tolist()] == [[5, 77, 4000]] * 9
    assert (ids[:, 3:] == -1).all() and np.isinf(distances[:, 3:]).all()
    assert (np.diff(distances[:, :3], axis=1) >= 0).all()


@pytest.mark.parametrize("nothing", [[], np.zeros(COUNT, dtype=bool), np.array([COUNT + 5, -7]), [True][:0]])
def test_a_filter_that_lets_nothing_through_gives_no_answers(index: Index, queries: Rows, nothing: Any) -> None:
    ids, distances = index.search(queries[:3], 10, where=nothing)
    assert (ids == -1).all() and np.isinf(distances).all()


def test_a_filter_that_lets_everything_through_changes_little(index: Index, queries: Rows, truth: Floats) -> None:
    ids, _ = index.search(queries, 10, recall=0.95, where=np.ones(COUNT, dtype=bool))
    assert recall_of(truth, ids) >= 0.94


def test_ids_mask_and_filter_object_mean_the_same(index: Index, queries: Rows) -> None:
    allowed = np.random.default_rng(6).choice(COUNT, 5000, replace=False)
    mask = np.zeros(COUNT, dtype=bool)
    mask[allowed] = True
    answers = [
        index.search(queries, 10, effort=40, where=where)[0]
        for where in (allowed, mask, Filter(mask), allowed.tolist(), np.concatenate([allowed, allowed]))
    ]
    for other in answers[1:]:
        np.testing.assert_array_equal(other, answers[0])


def test_ids_beyond_the_mask_are_not_allowed() -> None:
    index = Index.build(np.eye(4, dtype=np.float32), ids=[-5, 0, 1, 1000])
    assert sorted(index.search(np.ones(4), 4, where=[True, True])[0].tolist()) == [-1, -1, 0, 1]
    assert sorted(index.search(np.ones(4), 4, where=[-5, 1000])[0].tolist()) == [-5, -1, -1, 1000]


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**16), count=st.integers(1, 2500), share=st.floats(0, 1), metric=st.sampled_from(["l2", "ip"])
)
def test_with_all_effort_filtered_answers_are_the_true_ones(seed: int, count: int, share: float, metric: Any) -> None:
    random = np.random.default_rng(seed)
    vectors, queries = (random.standard_normal((n, 12)).astype(np.float32) for n in (count, 4))
    mask = random.random(count) < share
    ids, _ = Index.build(vectors, metric=metric, threads=1).search(queries, 5, effort=3000, depth=3000, where=mask)
    truth = np.where(mask, all_distances(vectors, queries, metric), np.inf)
    found = ids >= 0
    assert (found.sum(axis=1) == min(5, mask.sum())).all()
    assert mask[ids[found]].all()
    if mask.any():
        assert recall_of(truth, ids) == 1


def test_a_filter_follows_vectors_that_come_and_go() -> None:
    vectors = clustered(7, 3000, AROUND)
    index = Index.build(vectors)
    mask = np.zeros(6000, dtype=bool)
    mask[1000:4000] = True
    filters = [Filter(mask), Filter(np.flatnonzero(mask))]
    for where in filters:
        assert (index.search(vectors, 1, where=where)[0] >= 1000).all()
    index.remove(np.arange(1000, 3000))
    for where in filters:
        assert (index.search(vectors[:50], 10, where=where)[0] == -1).all()
    # Their places are taken by others, of which the filter allows the first half.
    index.add(vectors[1000:], ids=np.arange(3000, 5000))
    for where in filters:
        ids, _ = index.search(vectors[1000:], 1, recall=0.99, where=where)
        assert ((ids >= 3000) & (ids < 4000)).all()
        assert (ids[:1000, 0] == np.arange(3000, 4000)).mean() > 0.98


def test_a_removed_id_that_comes_back_elsewhere_is_allowed_there() -> None:
    vectors = clustered(8, 2500, AROUND)
    index = Index.build(vectors)
    where = Filter([3])
    assert index.search(vectors[3], 1, where=where)[1][0] < 1e-2
    index.remove([3])
    index.add(vectors[3] + 50, ids=[3])
    ids, distances = index.search(vectors[3], 1, where=where)
    assert ids[0] == 3 and distances[0] > 1000


def test_one_filter_serves_two_indexes() -> None:
    first = Index.build(clustered(9, 400, AROUND))
    second = Index.build(clustered(10, 2600, AROUND), ids=np.arange(2600)[::-1].copy())
    where = Filter(np.arange(2000, 2600))
    for _ in range(3):
        assert (first.search(np.ones(32), 5, where=where)[0] == -1).all()
        assert (second.search(np.ones(32), 5, where=where)[0] >= 2000).all()


def test_a_filter_is_right_in_many_threads_while_the_index_changes(vectors: Rows) -> None:
    index = Index.build(vectors[:4000])
    mask = np.zeros(COUNT, dtype=bool)
    mask[::2] = True
    where = Filter(mask)
    wrong: list[int] = []
    done = threading.Event()

    def ask(seed: int) -> None:
        asked = vectors[np.random.default_rng(seed).integers(0, 4000, 64)]
        while not done.is_set():
            ids, _ = index.search(asked, 10, where=where, threads=2)
            wrong.extend(ids[(ids < 0) | (ids % 2 == 1)].tolist())

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    try:
        for first in range(4000, 6000, 250):
            index.add(vectors[first : first + 250])
            index.remove(np.arange(first, first + 100))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("where", "error", "says"),
    [
        (np.ones((2, 2), dtype=bool), ValueError, "2 dimensions"),
        (np.array([0.5, 1.0]), TypeError, "neither a mask"),
        (np.array([2**63], dtype=np.uint64), ValueError, "signed 64 bits"),
        (["a", "b"], TypeError, "neither a mask"),
    ],
)
def test_what_is_no_filter_is_refused(index: Index, queries: Rows, where: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        index.search(queries, 10, where=where)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_bytes_may_be_a_mask_or_ids_and_are_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"mask.astype\(bool\), or ids.astype"):
        Filter(np.array([0, 1, 1], dtype=kind))
