"""Updates: vectors that come and go, one thread changing while others search, and recall that stays what was asked."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ann_facts import Rows, all_distances, centres, clustered, recall_of
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.ann import Index

AROUND = centres(1, 60, 48)
COUNT = 6_000
ENGINES = ["graph", "partitions"]


@pytest.fixture(scope="module")
def vectors() -> Rows:
    return clustered(2, COUNT, AROUND)


@pytest.fixture(scope="module")
def queries() -> Rows:
    return clustered(3, 500, AROUND)


def finds_itself(index: Index, vectors: Rows, ids: Rows, engine: Any) -> float:
    return float((index.search(vectors, 1, effort=100, engine=engine)[0][:, 0] == ids).mean())


@pytest.mark.parametrize("engine", ENGINES)
def test_half_removed_and_added_back_is_as_good_and_as_small_as_fresh(
    vectors: Rows, queries: Rows, engine: Any
) -> None:
    truth = all_distances(vectors, queries, "l2")
    index = Index.build(vectors, engine=engine)
    fresh = index.stats()["memory"]["total"]
    before = recall_of(truth, index.search(queries, 10, effort=60, engine=engine)[0])
    for seed in (4, 5):
        half = np.random.default_rng(seed).permutation(COUNT)[: COUNT // 2]
        index.remove(half)
        left = truth.copy()
        left[:, half] = np.inf
        assert len(index) == COUNT - len(half)
        assert recall_of(left, index.search(queries, 10, recall=0.95)[0]) >= 0.94
        index.add(vectors[half], ids=half)
    assert index.stats()["memory"]["total"] <= 1.1 * fresh
    assert recall_of(truth, index.search(queries, 10, recall=0.95)[0]) >= 0.94
    assert recall_of(truth, index.search(queries, 10, effort=60, engine=engine)[0]) >= before - 0.01
    assert finds_itself(index, vectors, np.arange(COUNT), engine) >= 0.999


@pytest.mark.parametrize("engine", ENGINES)
def test_other_vectors_in_the_place_of_half_take_no_more_memory(vectors: Rows, queries: Rows, engine: Any) -> None:
    index = Index.build(vectors, engine=engine)
    fresh = index.stats()["memory"]["total"]
    others = clustered(6, COUNT // 2, AROUND)
    index.remove(np.arange(COUNT // 2))
    index.add(others, ids=np.arange(COUNT // 2))
    both = np.concatenate([others, vectors[COUNT // 2 :]])
    assert index.stats()["memory"]["total"] <= 1.1 * fresh
    assert recall_of(all_distances(both, queries, "l2"), index.search(queries, 10, recall=0.95)[0]) >= 0.94


def test_the_recall_holds_in_an_index_that_grew_threefold(vectors: Rows, queries: Rows) -> None:
    index = Index.build(vectors[: COUNT // 3])
    for part in np.array_split(vectors[COUNT // 3 :], 5):
        index.add(part)
    truth = all_distances(vectors, queries, "l2")
    for recall in (0.9, 0.95, 0.99):
        assert recall_of(truth, index.search(queries, 10, recall=recall)[0]) >= recall - 0.01


def test_the_recall_holds_when_new_kinds_of_vectors_come(vectors: Rows, queries: Rows) -> None:
    labels = all_distances(AROUND, vectors, "l2").argmin(axis=1)
    old, new = np.flatnonzero(labels < 25), np.flatnonzero(labels >= 25)
    index = Index.build(vectors[old], ids=old)
    index.add(vectors[new], ids=new)
    truth = all_distances(vectors, queries, "l2")
    assert recall_of(truth, index.search(queries, 10, recall=0.95)[0]) >= 0.94


def test_vectors_longer_than_any_before_are_found_under_inner_product(vectors: Rows, queries: Rows) -> None:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    longer = unit[3000:] * np.random.default_rng(7).uniform(1, 4, (3000, 1)).astype(np.float32)
    index = Index.build(unit[:3000], metric="ip")
    index.add(longer)
    truth = all_distances(np.concatenate([unit[:3000], longer]), queries, "ip")
    assert recall_of(truth, index.search(queries, 10, recall=0.95)[0]) >= 0.94


@pytest.mark.parametrize("engine", ["graph", "partitions"])
def test_few_vectors_very_much_longer_than_all_others_are_found(
    vectors: Rows, queries: Rows, engine: Any, tmp_path: Path
) -> None:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    index = Index.build(unit, metric="ip", engine=engine)
    assert index.stats()["longer"] == 0
    index.add(30 * unit[:200])
    index.save(tmp_path / "an.index")
    whole = np.concatenate([unit, 30 * unit[:200]])
    truth = all_distances(whole, queries, "ip")
    for each in (index, Index.load(tmp_path / "an.index", mmap=True)):
        assert each.stats()["longer"] == 200
        assert recall_of(truth, each.search(queries, 10, recall=0.9)[0]) >= 0.99
        allowed = np.arange(COUNT + 100)
        held = np.where(np.arange(len(whole)) < COUNT + 100, truth, np.inf)
        assert recall_of(held, each.search(queries, 10, recall=0.9, where=allowed)[0]) >= 0.95
    index.remove(np.arange(COUNT, COUNT + 200))
    assert index.search(queries, 10)[0].max() < COUNT


@pytest.mark.parametrize("engine", ENGINES)
def test_a_removed_cluster_leaves_no_hole_that_swallows_searches(vectors: Rows, engine: Any) -> None:
    index = Index.build(vectors, engine=engine)
    near = np.argsort(all_distances(vectors, AROUND[:1], "l2")[0])[:400]
    index.remove(near)
    ids, _ = index.search(vectors[near[:100]], 10, effort=30, engine=engine)
    assert (ids >= 0).all() and not np.isin(ids, near).any()
    # Those that come back are tied to nodes that live, and are found again.
    index.add(vectors[near[:60]], ids=near[:60])
    assert finds_itself(index, vectors[near[:60]], near[:60], engine) == 1


def test_a_walk_into_a_hole_is_replaced_by_a_scan_that_is_as_good(vectors: Rows) -> None:
    index = Index.build(vectors, engine="graph")
    near = np.argsort(all_distances(vectors, AROUND[:1], "l2")[0])[:400]
    index.remove(near)
    truth = all_distances(vectors, vectors[near[:200]], "l2")
    truth[:, near] = np.inf
    walked, scanned = (
        recall_of(truth, index.search(vectors[near[:200]], 10, recall=0.99, engine=engine)[0])  # type: ignore[arg-type]
        for engine in ENGINES
    )
    assert walked >= scanned - 0.01


@pytest.mark.parametrize("engine", ENGINES)
def test_everything_can_be_removed_and_the_index_filled_again(vectors: Rows, queries: Rows, engine: Any) -> None:
    index = Index.build(vectors[:3000], engine=engine)
    index.remove(index.ids)
    assert len(index) == 0 and len(index.ids) == 0
    ids, distances = index.search(queries[:5], 10)
    assert (ids == -1).all() and np.isinf(distances).all()
    index.add(vectors[3000:6000], ids=np.arange(3000))
    truth = all_distances(vectors[3000:6000], queries, "l2")
    assert recall_of(truth, index.search(queries, 10, recall=0.95)[0]) >= 0.94
    assert finds_itself(index, vectors[3000:6000], np.arange(3000), engine) >= 0.999


@pytest.mark.parametrize("engine", ENGINES)
def test_an_index_can_grow_from_one_vector(vectors: Rows, queries: Rows, engine: Any) -> None:
    index = Index.build(vectors[0], engine=engine)
    assert index.search(queries[0], 3)[0].tolist() == [0, -1, -1]
    for i in range(1, 40):
        assert index.add(vectors[i]).tolist() == [i]
    index.add(vectors[40:2000])
    assert index.ids.tolist() != [] and sorted(index.ids.tolist()) == list(range(2000))
    truth = all_distances(vectors[:2000], queries, "l2")
    assert recall_of(truth, index.search(queries, 10, recall=0.95)[0]) >= 0.94


@settings(max_examples=12, deadline=None)
@given(data=st.data(), engine=st.sampled_from(ENGINES), dtype=st.sampled_from(["float32", "uint8"]))
def test_after_any_changes_the_index_holds_what_a_dictionary_would(data: Any, engine: Any, dtype: str) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**16)))

    def some(count: int) -> Rows:
        return (random.standard_normal((count, 8)) * 30 + 100).clip(0, 255).astype(dtype)

    first = some(data.draw(st.integers(1, 300)))
    index = Index.build(first, engine=engine, threads=1)
    held = dict(enumerate(first))
    for _ in range(data.draw(st.integers(1, 6))):
        if data.draw(st.booleans()) and held:
            gone = random.choice(list(held), random.integers(1, len(held) + 1), replace=False)
            index.remove(gone)
            for name in gone.tolist():
                del held[name]
        else:
            fresh = some(int(random.integers(1, 200)))
            held |= dict(zip(index.add(fresh).tolist(), fresh, strict=True))
        assert len(index) == len(held) and sorted(index.ids.tolist()) == sorted(held)
    if held:
        names, vectors = np.array(list(held)), np.array(list(held.values()))
        ids, distances = index.search(vectors, 3, effort=600, depth=600, engine=engine)
        truth = np.sort(all_distances(vectors, vectors, "l2"), axis=1)[:, :3]
        assert np.isin(ids[ids != -1], names).all()
        possible = min(3, len(held))
        np.testing.assert_allclose(distances[:, :possible], truth[:, :possible], rtol=5e-3, atol=1)
        assert (ids[:, possible:] == -1).all()


def test_searches_are_right_while_another_thread_changes_the_index(vectors: Rows) -> None:
    index = Index.build(vectors[:1000])
    wrong: list[Any] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            ids, distances = index.search(vectors[:200], 5, recall=0.9)
            if not ((ids >= 0) & (ids < COUNT)).all() or not np.isfinite(distances).all():
                wrong.append(ids)
            if (ids[:, 0] == np.arange(200)).mean() < 0.9:  # these stay in the index all the time
                wrong.append("a vector that is always there was lost")
            if 0 not in index or len(index.ids) < 500:
                wrong.append("the index lost its ids")

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            index.add(vectors[1000:1500], ids=np.arange(1000, 1500))
            index.remove(np.arange(500, 1500))
            index.add(vectors[500:1000], ids=np.arange(500, 1000))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_threads_that_add_without_ids_get_different_ones(vectors: Rows) -> None:
    index = Index.build(vectors[:100])
    given: list[int] = []

    def add(first: int) -> None:
        for i in range(first, first + 50):
            given.extend(index.add(vectors[i]).tolist())

    threads = [threading.Thread(target=add, args=(first,)) for first in (100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(index) == 250 and len(set(given)) == 150


@pytest.mark.parametrize("engine", ENGINES)
def test_a_removal_with_an_unknown_id_removes_nothing(vectors: Rows, engine: Any) -> None:
    index = Index.build(vectors[:500], engine=engine)
    with pytest.raises(KeyError, match="id 500 is not in the index; nothing was removed"):
        index.remove([1, 2, 500])
    with pytest.raises(KeyError, match="id 3 is named twice"):
        index.remove([3, 3])
    assert len(index) == 500 and 1 in index and 3 in index


def test_an_addition_with_an_id_that_is_there_adds_nothing(vectors: Rows) -> None:
    index = Index.build(vectors[:500])
    for ids, says in (([600, 499], "499 is already in the index"), ([600, 600], "600 is named twice")):
        with pytest.raises(KeyError, match=says):
            index.add(vectors[500:502], ids=ids)
        assert len(index) == 500 and 600 not in index


def test_the_id_of_a_removed_vector_is_not_given_to_another(vectors: Rows) -> None:
    index = Index.build(vectors[:500])
    index.remove([499])
    assert index.add(vectors[499]).tolist() == [500]
    assert index.add(vectors[500:502], ids=[499, 9000]).tolist() == [499, 9000]
    assert index.add(vectors[503]).tolist() == [9001]


def test_adding_after_the_highest_possible_id_asks_for_ids(vectors: Rows) -> None:
    index = Index.build(vectors[:2], ids=[5, 2**63 - 1])
    with pytest.raises(ValueError, match="give ids"):
        index.add(vectors[2])
    assert index.add(vectors[2], ids=[6]).tolist() == [6]


@pytest.mark.parametrize(
    ("stored", "added", "becomes"),
    [
        (np.uint8, np.float32([[0.5, 1, 2]]), "float32"),
        (np.uint8, np.int8([[-1, 1, 2]]), "float16"),
        (np.int8, np.float32([[200, 1, 2]]), "float32"),
        (np.uint8, np.float16([[0.5, 1, 2]]), "float16"),
        (np.uint8, np.float32([[7, 200, 2]]), "uint8"),
    ],
)
def test_an_index_of_bytes_widens_for_vectors_that_bytes_cannot_hold(stored: Any, added: Rows, becomes: str) -> None:
    index = Index.build(np.arange(30, dtype=stored).reshape(10, 3))
    before = index.exact(np.float32([[3, 4, 5], [20, 20, 20]]), 10)
    index.add(added)
    assert index.stats()["exact"] == becomes
    assert index.search(added[0], 1)[0][0] == 10
    assert index.search(added[0], 1)[1][0] == 0
    index.remove([10])
    after = index.exact(np.float32([[3, 4, 5], [20, 20, 20]]), 10)
    assert np.array_equal(before[0], after[0]) and np.array_equal(before[1], after[1])


def test_what_cannot_be_added_does_not_widen_an_index() -> None:
    index = Index.build(np.arange(30, dtype=np.uint8).reshape(10, 3))
    for wrong in (np.float32([[0.5, np.nan, 1]]), np.float32([[0.5, 1]]), np.float32([[0.5, 1e16, 1]])):
        with pytest.raises(ValueError, match=r"NaN|dimension|coordinates|longer than"):
            index.add(wrong)
    for ids, says in (([3], "already in"), ([90, 90], "id 90 is named twice")):
        with pytest.raises(KeyError, match=says):
            index.add(np.full((len(ids), 3), 0.5, dtype=np.float32), ids=ids)
    with pytest.raises(ValueError, match="ids"):
        index.add(np.float32([[0.5, 1, 2]]), ids=[90, 91])
    assert index.stats()["exact"] == "uint8"


def test_places_of_one_kind_of_vectors_serve_another_kind() -> None:
    low, high = clustered(4, 3000, centres(1, 20, 16)), clustered(5, 6000, centres(2, 20, 16) + 30)
    index = Index.build(np.concatenate([low, high[:3000]]), engine="partitions")
    places = index.stats()["places"]
    index.remove(np.arange(3000))
    index.add(high[3000:])
    assert index.stats()["places"] <= 1.1 * places
    assert (index.search(high[3000:], 1)[0][:, 0] == np.arange(6000, 9000)).mean() >= 0.95


@pytest.mark.parametrize(("low", "high", "kind"), [(0, 256, "uint8"), (-128, 128, "int8"), (-128, 256, "float16")])
def test_floats_that_are_small_whole_numbers_are_stored_as_bytes(low: int, high: int, kind: str) -> None:
    numbers = np.random.default_rng(3).integers(low, high, (400, 24)).astype(np.float32)
    numbers[0, :2] = low, high - 1
    index = Index.build(numbers)
    assert index.stats()["exact"] == kind
    assert index.search(numbers[5], 1)[1][0] == 0
    assert Index.build(numbers, precision="full").stats()["exact"] == "float32"


def test_vectors_beyond_half_precision_widen_an_index_that_stores_it(vectors: Rows) -> None:
    index = Index.build(vectors[:100], precision="half")
    index.add(vectors[100] * 1e6)
    assert index.stats()["exact"] == "float32"
    assert index.search(vectors[100] * 1e6, 1)[0][0] == 100
    with pytest.raises(ValueError, match="half precision ends"):
        Index.build(vectors[:100] * 1e6, precision="half")
    full = Index.build(vectors[:100], precision="full")
    full.add(vectors[100] * 1e6)
    assert full.search(vectors[100] * 1e6, 1)[0][0] == 100


def test_what_changed_since_recall_was_measured_is_remembered_in_the_file(vectors: Rows, tmp_path: Path) -> None:
    path = tmp_path / "an.index"
    Index.build(vectors[:3000], engine="partitions").save(path)
    seen = []
    for night in range(4):  # each adds less than a third
        index = Index.load(path)
        index.add(vectors[3000 + 500 * night : 3500 + 500 * night])
        seen.append(index.stats()["changed"])
        index.save(path)
        assert Index.load(path).stats()["changed"] == seen[-1]
    assert seen == [500, 1000, 1500, 0]  # measured again when 2,000 of 5,000 were new


def test_removals_count_as_changes_and_recall_is_measured_again(vectors: Rows, queries: Rows) -> None:
    index = Index.build(vectors, engine="partitions")
    assert index.stats()["changed"] == 0
    index.remove(np.arange(1000))
    assert index.stats()["changed"] == 1000
    index.remove(np.arange(1000, 2500))
    assert index.stats()["changed"] == 0
    truth = all_distances(vectors, queries, "l2")
    truth[:, :2500] = np.inf
    assert recall_of(truth, index.search(queries, 10, recall=0.95)[0]) >= 0.94


def test_real_queries_stay_with_an_index_and_its_file(vectors: Rows, queries: Rows, tmp_path: Path) -> None:
    index = Index.build(vectors[:3000], engine="partitions")
    index.calibrate(queries[:70])
    index.save(tmp_path / "an.index")
    for each in (index, Index.load(tmp_path / "an.index"), Index.load(tmp_path / "an.index", mmap=True)):
        assert each.stats()["calibration_queries"] == 70
        each.add(vectors[3000:])
        assert (each.stats()["calibration_queries"], each.stats()["changed"]) == (70, 0)


def test_searches_go_on_while_the_graph_is_repaired() -> None:
    vectors = clustered(7, 15_000, AROUND)
    index = Index.build(vectors, engine="graph")
    took: list[float] = []

    def remove() -> None:
        begin = time.perf_counter()
        index._handle.remove(np.arange(0, len(vectors), 4), 1)  # so many that rows are repaired around them
        took.append(time.perf_counter() - begin)

    removing = threading.Thread(target=remove)
    removing.start()
    pauses, last = [0.0], time.perf_counter()
    while removing.is_alive():
        assert index.search(vectors[1], 1, effort=20)[0][0] == 1
        pauses.append(time.perf_counter() - last)
        last += pauses[-1]
    assert max(pauses) < took[0] / 2  # under the lock that searches need it would be nearly all of it


def test_an_index_that_is_measured_answers_though_an_addition_waits(vectors: Rows) -> None:
    index = Index.build(vectors[:3000], engine="partitions")
    waiting = threading.Thread(target=index._handle.add, args=(vectors[3000:3001], np.array([3000]), 1, 1))

    def while_measuring(*_: object) -> None:
        if not waiting.ident:
            waiting.start()
            time.sleep(0.1)
        assert index.search(vectors[7], 1)[0][0] == 7 and index.exact(vectors[7], 1)[0][0] == 7
        assert len(index) == 3000 and 3000 not in index and len(index.ids) == 3000

    index._handle.calibrate(vectors[:300], True, False, 1, while_measuring)
    waiting.join()
    assert 3000 in index


def test_a_walk_keeps_its_recall_when_it_is_measured_with_stored_vectors() -> None:
    # A stored vector that stands for a query must not find its neighbours in its own row.
    chance = np.random.default_rng(3)
    vectors = chance.standard_normal((8000, 32)).astype(np.float32)
    queries = chance.standard_normal((500, 32)).astype(np.float32)
    index = Index.build(vectors, engine="graph")
    index.remove(np.arange(4000))
    assert index.stats()["changed"] == 0, "recall was measured again"
    true = index.exact(queries, 10)[0]
    for asked in (0.9, 0.95, 0.99):
        found = index.search(queries, 10, recall=asked, engine="graph")[0]
        hits = [len({*row} & {*right}) for row, right in zip(found.tolist(), true.tolist(), strict=True)]
        assert np.mean(hits) / 10 >= asked - 0.01


def test_a_loaded_index_measures_recall_again_with_old_vectors_too(tmp_path: Path) -> None:
    spread = np.random.default_rng(5)
    old = spread.standard_normal((4_000, 32)).astype(np.float32)
    alike = (spread.standard_normal((3_000, 1)) * np.ones(32) + 40).astype(np.float32)  # easy: on one line
    Index.build(old, engine="partitions").save(tmp_path / "an.index")
    index = Index.load(tmp_path / "an.index")
    index.add(alike)
    queries = spread.standard_normal((300, 32)).astype(np.float32)
    ids, _ = index.search(queries, 10, recall=0.95)
    assert recall_of(all_distances(np.concatenate([old, alike]), queries, "l2"), ids) >= 0.94


def test_of_many_real_queries_some_are_drawn_from_all_of_them(vectors: Rows) -> None:
    index = Index.build(vectors[:3000], engine="partitions")
    many = np.concatenate([np.zeros((600, vectors.shape[1]), dtype=np.float32), vectors[3000:]])
    index.calibrate(many)
    kept = index._handle.real_queries()
    assert index.stats()["calibration_queries"] == 1000
    assert len(kept) == 500 and 0 < (kept == 0).all(axis=1).sum() < 250
