"""The plan, the data sets, recall and the log of the vector search benchmark."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from outpace.bench.ann import datasets, plan
from outpace.bench.ann.curve import Reading
from outpace.bench.ann.datasets import DataError, Shape
from outpace.bench.ann.log import Log, MissingRow
from outpace.bench.ann.peers import OWN, find, glass_, names, scann_, symphonyqg_
from outpace.bench.ann.peers.base import CONFIGURATIONS, Configuration, beams, from_source, ids_of, probes, swept
from outpace.bench.ann.recall import recall
from outpace.cli.bench import ann
from outpace.errors import OutpaceError

SHAPES = [Shape(60_000, 784, "l2"), Shape(331_479, 100, "cosine"), Shape(656_730, 26, "l2"), Shape(3500, 384, "cosine")]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [name for name in names() if name != "outpace-defaults"])
def test_every_library_has_the_same_number_of_configurations(name: str, shape: Shape) -> None:
    made = find(name).configurations(shape)
    assert len(made) == CONFIGURATIONS
    ways = {str((each.build, each.opened)) for each in made}
    assert len({each.name for each in made}) == len(ways) == CONFIGURATIONS
    for each in made:
        assert len({plan.effort_key(effort) for effort in each.efforts}) == len(each.efforts) > 5


def test_the_command_enters_all_configurations_unless_told_otherwise() -> None:
    assert inspect.signature(ann).parameters["configurations"].default == CONFIGURATIONS


def test_symphonyqg_gets_short_vectors_with_zeros_behind() -> None:
    short, long = np.ones((2, 26), dtype=np.float32), np.ones((2, 100), dtype=np.float32)
    assert symphonyqg_._padded(short).shape == (2, 48)
    assert np.array_equal(symphonyqg_._padded(short)[:, :26], short)
    assert not symphonyqg_._padded(short)[:, 26:].any()
    assert symphonyqg_._padded(long) is long
    assert find("symphonyqg").configurations(Shape(1000, 2049, "l2")) == ()


class Recorder:
    """Stands for the module of SymphonyQG or GLASS, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, int]] = []

    def set_ef(self, ef: int) -> None:
        assert ef > 0

    def optimize(self, threads: int) -> None:
        assert threads == 1

    def search(self, query: Any, k: int) -> list[int]:
        self.asked.append((np.array(query), k))
        return list(range(k))

    def batch_search(self, queries: Any, k: int, threads: int) -> Any:
        assert threads == 1
        self.asked += [(query, k) for query in queries]
        return np.tile(np.arange(k), len(queries))


def test_one_short_query_leaves_nothing_of_itself_to_the_next() -> None:
    index = Recorder()
    searcher = symphonyqg_._PaddedSearch(index)
    for value in (1.0, 2.0):
        searcher.search(np.full(20, value, dtype=np.float32), 10)
    assert [query[:20].tolist() for query, _ in index.asked] == [[1.0] * 20, [2.0] * 20]
    assert not any(query[20:].any() for query, _ in index.asked)


def test_glass_re_ranks_deeper_where_more_is_asked_for() -> None:
    inner = Recorder()
    searcher = glass_._Search(inner)
    query = np.zeros(4, dtype=np.float32)
    for effort in ({"ef": 100}, {"ef": 100, "ask": 40}):
        searcher.set(effort)
        searcher.search(query, 10)
        assert ids_of(searcher.search_many(query[None], 10), 1, 10).tolist() == [list(range(10))]
    assert [k for _, k in inner.asked] == [10, 10, 40, 40]
    refined = {each.opened["search"]: {effort.get("ask") for effort in each.efforts} for each in
               find("glass").configurations(SHAPES[2])}  # fmt: skip
    assert refined == {"SQ8": {10, 20, 40, 100}, "BF16": {None}}


def test_an_index_of_scann_is_found_where_its_folder_is_now() -> None:
    before = 'assets {\n  asset_type: AH_CENTERS\n  asset_path: "/old/place/index/ah_codebook.pb"\n}\n'
    after = scann_.found_in(Path("/new/place"), before)
    assert after == before.replace("/old/place/index/", "/new/place/")
    assert scann_.found_in(Path("/new/place"), after) == after


def test_our_defaults_are_one_configuration_without_settings() -> None:
    assert [dict(each.build) for each in find("outpace-defaults").configurations(SHAPES[0])] == [{}]


def test_re_ranking_depth_is_swept_together_with_effort() -> None:
    for name, depth in {"scann": "pre_reorder_num_neighbors", "faiss-ivfpqfs": "k_factor"}.items():
        for each in find(name).configurations(SHAPES[0]):
            first = [effort for effort in each.efforts if effort[depth] == each.efforts[0][depth]]
            last = [effort for effort in each.efforts if effort[depth] == each.efforts[-1][depth]]
            assert len(first) == len(last) > 5
            assert first[0] != last[0]


def test_ours_never_walks_narrower_than_its_depth_and_scans_all_lists_at_most() -> None:
    for each in find("outpace").configurations(SHAPES[0]):
        walks = [effort for effort in each.efforts if effort["engine"] == "graph"]
        scans = [int(effort["effort"]) for effort in each.efforts if effort["engine"] == "partitions"]
        assert all(int(effort["effort"]) >= int(effort["depth"]) for effort in walks)
        assert not scans or max(scans) == each.build["lists"]
        assert not (walks and each.build.get("engine") == "partitions")


def test_a_library_from_source_has_the_version_that_is_told_and_a_digest_of_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "built_one.py").write_text("raise SystemExit  # it is found and not imported")
    (tmp_path / "built_two.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("OUTPACE_PEER_VERSION_MADE_UP", raising=False)
    unnamed = from_source("made-up", "built_one", "built_two")
    monkeypatch.setenv("OUTPACE_PEER_VERSION_MADE_UP", "8c69018")
    named = from_source("made-up", "built_one", "built_two")
    assert (unnamed.partition("+")[0], named.partition("+")[0]) == ("unknown", "8c69018")
    assert unnamed.partition("+")[2] == named.partition("+")[2]
    (tmp_path / "built_two.py").write_text("1")
    assert from_source("made-up", "built_one", "built_two") != named
    with pytest.raises(ImportError, match="built_three"):
        from_source("made-up", "built_one", "built_three")


def test_a_sweep_from_a_generator_serves_every_strand() -> None:
    assert len(swept("a", (value for value in (1, 2, 3)), b=(1, 2))) == 6


def test_effort_grids_rise_from_the_least_to_the_most() -> None:
    for grid in (beams(), beams(1, 50), probes(1), probes(500)):
        assert list(grid) == sorted(set(grid))
    assert (beams()[0], beams()[-1], probes(500)[-1]) == (10, 1600, 500)


def test_an_unknown_peer_is_told_with_the_known_ones() -> None:
    with pytest.raises(OutpaceError, match=r"known are outpace, .*hnswlib"):
        find("hnswlibb")


@pytest.mark.parametrize("total", [2, 3, 500, 10_000])
def test_the_queries_that_decide_are_not_those_that_choose(total: int) -> None:
    choosing, deciding = plan.screening(total, 1000), plan.deciding(total, 1000)
    assert 0 == choosing.begin < choosing.end <= deciding.begin < deciding.end <= total


def test_one_query_cannot_be_halved() -> None:
    with pytest.raises(OutpaceError, match="1 queries"):
        plan.screening(1, 10)


def sweep(qps: float, name: str = "c") -> list[Reading]:
    return [Reading(name, effort, 0, 1 - 0.3 / effort, qps / effort) for effort in range(1, 40)]


def test_the_final_run_has_the_best_three_of_each_level_and_ours() -> None:
    screened = {f"peer-{speed}": sweep(speed) for speed in (100, 200, 300, 400, 500)}
    # Slow, and the only one that reaches the highest level.
    screened["thorough"] = [Reading("c", 1, 0, 0.9999, 1.0)]
    screened["outpace"] = sweep(1)
    chosen = plan.finalists(screened, (0.9, 0.999), OWN)
    assert set(chosen) == {"peer-300", "peer-400", "peer-500", "thorough", "outpace"}


def test_a_level_that_nobody_reaches_takes_those_that_come_nearest() -> None:
    screened = {"near": [Reading("c", 1, 0, 0.98, 1.0)], "far": [Reading("c", 1, 0, 0.5, 9.0)]}
    assert plan.finalists(screened, (0.99,), OWN, best=1) == ("near",)


def test_only_settings_near_the_levels_go_into_the_final_run() -> None:
    efforts = swept("ef", range(1, 40))
    fast, slow = Configuration("fast", {}, efforts), Configuration("slow", {}, efforts)
    kept = plan.narrowed([fast, slow], sweep(1000, "fast") + sweep(100, "slow"), (0.9,))
    assert [each.name for each in kept] == ["fast"]
    # Recall is 0.9 at effort 3: two settings below it, and five from it on.
    assert [effort["ef"] for effort in kept[0].efforts] == [1, 2, 3, 4, 5, 6, 7]


def test_recall_counts_ties_as_right_and_repeated_or_missing_answers_as_wrong() -> None:
    train = np.array([[0.0], [1.0], [-1.0], [5.0]], dtype=np.float32)
    queries, truth = np.zeros((1, 1), dtype=np.float32), np.array([[0, 1]])
    assert recall(np.array([[0, 2]]), train, queries, truth, 2) == 1
    assert recall(np.array([[0, 0]]), train, queries, truth, 2) == 0.5
    assert recall(np.array([[0, -1]]), train, queries, truth, 2) == 0.5
    assert recall(np.array([[3, 4000]]), train, queries, truth, 2) == 0


def test_answers_that_are_too_few_are_filled_up_and_unsigned_ones_understood() -> None:
    assert ids_of([[1], np.array([[2**64 - 1, 3]], dtype=np.uint64)], 2, 2).tolist() == [[1, -1], [-1, 3]]


def write_set(path: Path, *, distance: str = "angular", **changed: np.ndarray) -> Path:
    parts = {
        "train": np.array([[3, 4], [0, 2], [0, 0]], dtype=np.float16),
        "test": np.array([[0, 8]], dtype=np.float16),
        "neighbors": np.array([[1, 0]], dtype=np.int32),
    } | changed
    with h5py.File(path, "w") as file:
        for name, array in parts.items():
            file[name] = array
        file.attrs["distance"] = distance
    return path


def test_angular_sets_of_any_type_are_read_as_unit_float32(tmp_path: Path) -> None:
    found = datasets.load(write_set(tmp_path / "tiny.hdf5"))
    assert (found.name, found.metric, found.train.dtype) == ("tiny", "cosine", np.float32)
    assert np.allclose(found.train, [[0.6, 0.8], [0, 1], [0, 0]])


def test_bytes_are_read_as_they_are(tmp_path: Path) -> None:
    parts = {"train": np.array([[255, 0]], dtype=np.uint8), "neighbors": np.array([[0]])}
    found = datasets.load(write_set(tmp_path / "tiny.hdf5", distance="euclidean", **parts))
    assert found.train.tolist() == [[255, 0]]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"neighbors": np.array([[7]])}, "outside its 3 vectors"),
        ({"neighbors": np.array([[0], [1]])}, "do not fit together"),
        ({"test": np.array([[0, 1, 2]])}, "do not fit together"),
        ({"train": np.array([[np.nan, 1]]), "neighbors": np.array([[0]])}, "NaN or infinity"),
    ],
)
def test_a_set_that_makes_no_sense_is_refused(tmp_path: Path, changed: dict[str, np.ndarray], why: str) -> None:
    with pytest.raises(DataError, match=why):
        datasets.load(write_set(tmp_path / "tiny.hdf5", **changed))


def test_an_unknown_distance_or_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'jaccard'"):
        datasets.load(write_set(tmp_path / "tiny.hdf5", distance="jaccard"))
    (tmp_path / "text.hdf5").write_text("no HDF5")
    with pytest.raises(DataError, match="cannot be read"):
        datasets.load(tmp_path / "text.hdf5")


def test_a_name_is_looked_for_in_the_folder_and_then_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = write_set(tmp_path / "known.hdf5")
    assert datasets.locate("known", tmp_path) == kept
    monkeypatch.setattr(datasets, "SITE", tmp_path.as_uri())
    (tmp_path / "folder").mkdir()
    assert datasets.locate("known", tmp_path / "folder").read_bytes() == kept.read_bytes()
    with pytest.raises(DataError, match=r"no data set unknown .* put the file there, or give its path"):
        datasets.locate("unknown", tmp_path / "folder")
    assert [each.name for each in (tmp_path / "folder").iterdir()] == ["known.hdf5"]


def test_a_path_that_is_not_there_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a file"):
        datasets.locate(str(tmp_path / "missing.hdf5"), tmp_path)


def test_other_contents_have_another_fingerprint() -> None:
    one = np.arange(12).reshape(3, 4)
    assert datasets.fingerprint(one) == datasets.fingerprint(one.copy())
    assert datasets.fingerprint(one) != datasets.fingerprint(one + 1)


def test_a_line_that_a_kill_cut_short_is_dropped_and_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    Log(path).append(MissingRow("one", "why"))
    with path.open("ab") as file:
        file.write(b'{"type":"missing","pe')
    again = Log(path)
    assert again.rows == [MissingRow("one", "why")]
    again.append(MissingRow("two", "why"))
    assert [row.peer for row in Log(path).rows if isinstance(row, MissingRow)] == ["one", "two"]


def test_a_log_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"type":"else"}\n')
    with pytest.raises(OutpaceError, match=r"line 1 .* use a fresh --out"):
        Log(tmp_path / "log.jsonl")
