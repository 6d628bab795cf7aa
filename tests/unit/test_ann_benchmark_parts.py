"""The benchmarks of the vector index: what they choose, count and fit, in cases that can be worked out on paper."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import ann_build
import ann_filters
import ann_recall
import ann_scale
import ann_threads
import ann_updates
from contenders import result, sweep
from contenders.ground import Ground, Source
from contenders.libraries import LIBRARIES, OURS, chosen
from contenders.names import Names
from contenders.remote import Remote, RemoteFailed
from contenders.subject import Clock, Timed
from outpace.bench.ann.curve import Interval, Reading
from outpace.bench.ann.datasets import Shape
from outpace.errors import OutpaceError

BENCHMARKS = Path(sys.path.pop(0))  # its other modules have plain names, and no test may pick one up by chance

# Growth


def test_costs_that_grow_as_a_power_have_that_exponent() -> None:
    costs = {size: dict.fromkeys(range(6), 3.0 * size**0.4) for size in (1000, 3000, 20_000)}
    found = ann_scale.growth(costs, draws=50)
    assert found is not None
    assert (found.exponent, found.low, found.high) == pytest.approx((0.4, 0.4, 0.4))
    assert found.sizes == (1000, 3000, 20_000)


def test_what_all_sizes_of_a_round_share_does_not_widen_the_exponent() -> None:
    costs = {size: {number: size**0.5 * (1 + number) for number in range(6)} for size in (1000, 3000, 20_000)}
    found = ann_scale.growth(costs, draws=50)
    assert found is not None
    assert found.high - found.low < 1e-9


def test_noise_of_single_sizes_widens_the_exponent() -> None:
    chance = np.random.default_rng(1)
    costs = {
        size: {number: size**0.5 * float(chance.uniform(0.8, 1.2)) for number in range(7)}
        for size in (1000, 3000, 20_000)
    }
    found = ann_scale.growth(costs, draws=200)
    assert found is not None
    assert found.low < found.exponent < found.high


def test_a_size_that_misses_a_round_is_not_fitted_and_two_sizes_are_too_few() -> None:
    whole = {0: 1.0, 1: 1.1}
    costs = {1000: whole, 2000: whole, 4000: {0: 1.0}, 8000: whole}
    found = ann_scale.growth(costs, draws=5)
    assert found is not None and found.sizes == (1000, 2000, 8000)
    assert ann_scale.growth({1000: whole, 2000: whole}, draws=5) is None
    assert ann_scale.growth({}, draws=5) is None


# Sweeps


def curve(effort: float) -> tuple[float, float]:
    """Recall and speed of a made-up library."""
    return 1 - 1 / effort, 1000 / effort


def test_a_size_whose_cheapest_setting_is_above_the_level_is_told_and_not_fitted() -> None:
    costs = {size: {0: 2.0 * size**0.5} for size in (2000, 4000, 8000)} | {1000: {0: 500.0}}
    found = ann_scale.told(costs, above={1000})
    assert found["exponent"]["middle"] == pytest.approx(0.5)
    assert found["fitted_sizes"] == [2000, 4000, 8000]
    assert "1000" in found["microseconds"]


def test_efforts_are_raised_until_recall_was_enough_twice() -> None:
    found = sweep.climbed(curve, (2, 5, 10, 20, 40, 80), enough=0.9, slowest=1.0)
    assert [each.effort for each in found] == [2, 5, 10, 20]


def test_efforts_end_where_a_query_takes_too_long() -> None:
    found = sweep.climbed(curve, (2, 5, 10, 20, 40, 80), enough=1.0, slowest=0.015)
    assert [each.effort for each in found] == [2, 5, 10, 20]


def test_the_efforts_around_a_level_and_the_highest_are_kept_in_order() -> None:
    readings = [Reading("", effort, 0, *curve(effort)) for effort in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)]
    assert sweep.near(readings, (0.9,)) == (4, 8, 16, 32, 64, 128, 256, 1024)


def test_where_no_effort_reaches_a_level_the_highest_are_kept() -> None:
    readings = [Reading("", effort, 0, *curve(effort)) for effort in (2, 4, 8)]
    assert sweep.near(readings, (0.99,)) == (4, 8)


def test_efforts_begin_small_and_rise_for_every_library() -> None:
    shape = Shape(5000, 16, "l2")
    for name, kind in LIBRARIES.items():
        efforts = kind.efforts(None, shape)  # type: ignore[arg-type]
        assert list(efforts) == sorted(set(efforts)), name


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_without_an_index_the_nearest_of_those_allowed_are_found(metric: Any) -> None:
    vectors = np.random.default_rng(1).standard_normal((200, 6)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    library = LIBRARIES["exact"]()
    library.build(vectors, metric, 200, 1)
    mask = np.arange(200) % 3 == 0
    library.allow([mask, np.arange(200) < 4])
    order = np.argsort(((vectors - vectors[7]) ** 2).sum(axis=1))
    assert library.search_allowed(vectors[7], 5, 0).tolist() == [each for each in order.tolist() if mask[each]][:5]
    assert sorted(library.search_allowed(vectors[7], 5, 1).tolist()) == [0, 1, 2, 3]


def test_ours_must_be_among_the_libraries() -> None:
    assert chosen(None)[0] == OURS
    assert chosen(["hnswlib", OURS]) == (OURS, "hnswlib")
    assert "faiss-hnsw" not in chosen(None, without=["faiss-hnsw"])
    for wrong in (["hnswlib"], [OURS, "nobody"]):
        with pytest.raises(OutpaceError, match="--libraries"):
            chosen(wrong)


# Clocks and intervals


def test_the_smaller_clock_counts_and_a_gap_is_told() -> None:
    assert Clock(wall=2.0, cpu=1.0).seconds == 1.0
    assert Clock(wall=2.0, cpu=1.0).disturbed
    assert not Clock(wall=1.0, cpu=0.99).disturbed


def test_a_level_that_was_not_reached_has_no_interval() -> None:
    assert result.told(None) is None
    assert result.spread([]) is None
    assert result.told(Interval(1.2345678, 1, 2, 0.9)) == {"middle": 1.2346, "low": 1, "high": 2, "sure": 0.9}


# Filters


def ground(train: np.ndarray[Any, Any], queries: np.ndarray[Any, Any]) -> Ground:
    source = Source(Path("none"), "l2", len(train))
    return Ground("made here", source, train.astype(np.float32), queries.astype(np.float32))


def line(count: int) -> np.ndarray[Any, Any]:
    """Points on a line, one step apart."""
    return np.stack([np.arange(count, dtype=np.float32), np.zeros(count, dtype=np.float32)], axis=1)


def test_filters_allow_the_vectors_around_their_anchor_around_the_farthest_one_or_any() -> None:
    vectors, anchors = line(1000), np.array([100, 500, 900])
    distances = ann_filters.squared(vectors[anchors], vectors)
    own = ann_filters.squared(vectors[anchors], vectors[anchors])
    masks = {
        kind: ann_filters.masks_of(kind, 0.05, distances, own, np.random.default_rng(0)) for kind in ann_filters.KINDS
    }
    assert {mask.sum(axis=1).tolist()[0] for mask in masks.values()} == {50}
    assert abs(np.flatnonzero(masks["near"][0]).mean() - 100) <= 1
    assert abs(np.flatnonzero(masks["far"][0]).mean() - 900) <= 1
    assert abs(np.flatnonzero(masks["far"][2]).mean() - 100) <= 1
    assert np.flatnonzero(masks["random"][0]).std() > 200


def test_a_filter_allows_enough_to_ask_for_ten() -> None:
    distances = ann_filters.squared(line(100)[:1], line(100))
    assert ann_filters.masks_of("near", 0.001, distances, distances[:, :1], np.random.default_rng(0)).sum() == 20


def test_queries_go_to_the_group_of_the_nearest_anchor_and_a_third_of_each_is_for_tuning() -> None:
    data = ground(line(1000), line(1000)[::10])
    crowd = ann_filters.gathered(data, np.array([100, 900]), 9, np.random.default_rng(0))
    assert {abs(int(number) * 10 - 100) <= 50 for number in crowd.numbers[crowd.groups == 0]} == {True}
    assert {abs(int(number) * 10 - 900) <= 50 for number in crowd.numbers[crowd.groups == 1]} == {True}
    assert [int(crowd.tuning[crowd.groups == group].sum()) for group in (0, 1)] == [3, 3]


def test_an_answer_that_the_filter_forbids_is_wrong_however_near_it_is() -> None:
    data = ground(line(100), line(100)[:1])
    crowd = ann_filters.Crowd(np.array([0]), np.array([0]), np.array([False]))
    mask = np.zeros((1, 100), dtype=np.bool_)
    mask[0, 50:] = True
    case = ann_filters.Case("far", 0.5, mask, np.arange(50, 60)[None])
    part = np.array([True])

    def recall(ids: np.ndarray[Any, Any]) -> float:
        return case.recall(data, crowd, part, Timed(ids[None].astype(np.int64), 1, Clock(1, 1)))

    assert recall(np.arange(50, 60)) == 1.0
    assert recall(np.arange(10)) == 0.0
    assert recall(np.array([50, 51, 52, 53, 54, 0, 1, 2, -1, 10**15])) == 0.5


# Updates


def test_an_id_that_was_given_up_is_no_answer_any_more() -> None:
    names = Names(np.arange(5)).renamed(np.array([1, 3]))
    assert names.ids.tolist() == [0, 6, 2, 8, 4]
    assert names.rows(np.array([[6, 1, 8, 4, -1]])).tolist() == [[1, -1, 3, 4, -1]]


@given(st.integers(1, 200), st.integers(1, 50))
def test_batches_hold_every_row_once(count: int, size: int) -> None:
    parts = ann_updates.batches(np.arange(count), size)
    assert np.concatenate(parts).tolist() == list(range(count))
    assert all(len(part) == size for part in parts[:-1])


def test_batches_that_are_large_for_a_set_are_left_out() -> None:
    assert ann_updates.planned(ann_updates.CALLS, 1_000_000) == ann_updates.CALLS
    assert ann_updates.planned(ann_updates.CALLS, 3000) == {1: 50}


def test_a_cost_is_compared_inside_the_rounds() -> None:
    found = ann_updates.times([2.0, 20.0, 200.0], [1.0, 10.0, 100.0])
    assert (found.middle, found.low, found.high) == pytest.approx((2, 2, 2))


def test_work_that_one_change_in_many_pays_for_is_in_the_mean() -> None:
    readings = {state: [Reading("", ann_updates.LEVEL, 0, 0.96, 100.0)] for state in ("fresh", "half", "changed")}
    pair = ann_updates.Pair(
        changed=None,  # type: ignore[arg-type]
        fresh=None,  # type: ignore[arg-type]
        about={},
        build_seconds=1.0,
        bytes={"fresh": 10, "changed": 11},
        names=Names(np.arange(3)),
        costs={"add by 1": [1.0, 1.0, 98.0]},
        spent=ann_updates.Spent(seconds=1e-4, changes=3),
        readings=readings,
    )
    found = ann_updates.pair_told(pair, pair)
    assert found["microseconds"]["add by 1"]["middle"] == 1.0
    assert found["microseconds_mean"] == pytest.approx(33.333)


def test_recall_is_compared_at_the_setting_that_is_nearest_to_the_level() -> None:
    fresh = [Reading("", effort, 0, recall, 1.0) for effort, recall in ((10, 0.80), (20, 0.94), (30, 0.99))]
    changed = [Reading("", effort, 0, recall, 1.0) for effort, recall in ((10, 0.70), (20, 0.90), (30, 0.95))]
    assert ann_updates.same_setting(fresh, changed) == {"effort": 20, "fresh": 0.94, "changed": 0.9}


# Promises


def test_a_promise_is_broken_by_one_recall_that_is_too_low() -> None:
    assert ann_recall.kept({"1": {"0.9": 0.89}, "10": {"0.9": 0.99, "0.99": 0.981}})
    assert not ann_recall.kept({"1": {"0.9": 0.95}, "10": {"0.9": 0.99, "0.99": 0.979}})


# Builds


def test_builds_are_held_against_hnswlib_in_the_same_round_and_memory_against_the_worst_one() -> None:
    ours = ann_build.Builds({}, {0: 1.0, 1: 10.0}, {0: 5000, 1: 6000})
    compact = ann_build.Builds({}, {0: 3.0, 1: 30.0}, {0: 3900, 1: 3000})
    theirs = ann_build.Builds({}, {0: 2.0, 1: 20.0}, {0: 4100, 1: 4000})
    found = ann_build.told({"outpace": ours, "outpace-compact": compact, "hnswlib": theirs}, 10, 100)
    assert found["outpace"]["faster"]["middle"] == pytest.approx(2.0)
    assert (found["outpace"]["times_vectors"], found["outpace"]["times_hnswlib"]) == (1.5, 1.5)
    assert found["outpace"]["kept"] == {"time": True, "memory": True}
    assert found["outpace-compact"]["kept"] == {"time": False, "memory": True}
    assert found["hnswlib"]["kept"] == {}


def test_without_hnswlib_there_is_no_ratio_and_no_promise_about_it() -> None:
    found = ann_build.told({"outpace": ann_build.Builds({}, {0: 1.0}, {0: 5000})}, 10, 100)
    assert found["outpace"]["kept"] == {}
    assert "faster" not in found["outpace"]


# Threads


def test_two_threads_are_held_against_two_processes_inside_the_rounds() -> None:
    speeds = {way: {0: 100.0, 1: 10.0} for way in ann_threads.WAYS}
    speeds["single, two Python threads"] = {0: 90.0, 1: 9.0}
    found = ann_threads.told(speeds, {way: [0.96, 0.95] for way in ann_threads.WAYS})
    kept = {row["of"]: row["kept"] for row in found["ratios"] if "kept" in row}
    assert kept == {"batch, threads=2": True, "single, two Python threads": False}
    assert found["ways"]["batch, threads=2"]["recall"] == 0.95


# Processes


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new process looks for modules where this one does."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])


@pytest.mark.usefixtures("importable")
def test_what_fails_in_another_process_is_told_here_and_the_process_goes_on() -> None:
    with Remote(dict, {"one": 1}, cores=os.sched_getaffinity(0)) as remote:
        assert remote.ask("get", "one") == 1
        with pytest.raises(RemoteFailed, match="KeyError"):
            remote.ask("pop", "two")
        assert remote.ask("get", "one") == 1


@pytest.mark.usefixtures("importable")
def test_linear_algebra_over_there_has_one_thread_and_nothing_changes_here() -> None:
    before = dict(os.environ)
    with Remote(__import__, "os", cores=os.sched_getaffinity(0)) as remote:
        assert remote.ask("getenv", "OPENBLAS_NUM_THREADS") == "1"
    assert dict(os.environ) == before


@pytest.mark.usefixtures("importable")
def test_a_process_that_dies_is_told_with_its_code() -> None:
    with Remote(__import__, "os", cores=os.sched_getaffinity(0)) as remote, pytest.raises(RemoteFailed, match="code 3"):
        remote.ask("_exit", 3)
