"""The benchmarks of the vector index run as a user runs them, on a few thousand vectors and with ours alone."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
COUNT, QUERIES = 3000, 120


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random vectors of sixteen dimensions."""
    return made(tmp_path_factory.mktemp("data") / "tiny.hdf5", 16)


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random vectors of sixty-four dimensions, where the cheapest setting misses some neighbours at every size."""
    return made(tmp_path_factory.mktemp("data") / "hard.hdf5", 64)


def made(path: Path, dimension: int) -> Path:
    chance = np.random.default_rng(5)
    train = chance.normal(size=(COUNT, dimension)).astype(np.float32)
    test = chance.normal(size=(QUERIES, dimension)).astype(np.float32)
    distances = np.stack([((train - query) ** 2).sum(axis=1) for query in test])
    with h5py.File(path, "w") as file:
        file["train"], file["test"] = train, test
        file["neighbors"] = np.argsort(distances, axis=1)[:, :10]
        file.attrs["distance"] = "euclidean"
    return path


def run(script: str, data: Path, out: Path, *more: str) -> dict[str, Any]:
    command = [sys.executable, str(BENCHMARKS / script), "--data", str(data), "--out", str(out), *more]
    done = subprocess.run([*command, "--threads-build", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found: dict[str, Any] = json.loads(out.read_text())
    assert found["machine"]["cores"] and found["date"] and script in found["command"]
    return found


def script(name: str) -> Any:
    """A script as a module; the path is not left behind, because what lies beside it has plain names."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


def section(name: str, result: dict[str, Any]) -> str:
    """What the results page makes of it."""
    sections = {file: told for _, each in script("results_page").PAGES.values() for file, told in each.items()}
    text: str = sections[name](result)
    assert "None" not in text and "{" not in text
    return text


def test_filters_are_measured_and_shown(data: Path, tmp_path: Path) -> None:
    more = ("--libraries", "outpace", "--rounds", "2", "--queries", "40", "--seconds", "0.02")
    found = run("ann_filters.py", data, tmp_path / "filters.json", *more)
    cases = found["sets"]["tiny"]["cases"]
    assert len(cases) == 12
    assert {case["allowed"] for case in cases} == {20, 30, 300, 1500}
    assert all(0 <= case["promise"]["recall"] <= 1 for case in cases)
    assert all(case["levels"]["0.9"]["qps"]["outpace"]["middle"] > 0 for case in cases)
    assert "random | 10.0%" in section("ann-filters.json", found)
    assert "queries per second" in script("ann_pictures").filters(found)


def test_changes_are_measured_and_shown(data: Path, tmp_path: Path) -> None:
    more = ("--libraries", "outpace", "--rounds", "2", "--queries", "60", "--seconds", "0.05")
    found = run("ann_updates.py", data, tmp_path / "updates.json", *more)
    whole = found["sets"]["tiny"]
    ours = whole["libraries"]["outpace"]
    assert whole["indexed"] == COUNT - 50
    assert set(ours["microseconds"]) == {"add by 1", "remove by 1", "remove the half", "add the half back"}
    assert set(ours["asked"]) == {"fresh", "half", "changed"}
    assert set(ours["times_ours"]["add by 1"].values()) == {1.0, 0.5}
    assert "half replaced" in section("ann-updates.json", found)
    assert "remove by 1" in script("ann_pictures").updates(found)


def test_threads_are_measured_and_shown(data: Path, tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        command = [
            sys.executable,
            str(BENCHMARKS / "ann_threads.py"),
            "--data",
            str(data),
            "--out",
            str(tmp_path / "x"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode != 0 and "two threads need two cores" in done.stderr
        return
    found = run("ann_threads.py", data, tmp_path / "threads.json", "--rounds", "2", "--seconds", "0.05")
    whole = found["sets"]["tiny"]
    assert len(whole["ways"]) == 6
    assert all(0.5 < each["recall"] <= 1 for each in whole["ways"].values())
    assert "two Python threads" in section("ann-threads.json", found)


def test_promises_are_examined_and_shown(data: Path, tmp_path: Path) -> None:
    found = run("ann_recall.py", data, tmp_path / "recall.json")
    whole = found["sets"]["tiny"]
    assert set(whole["profiles"]) == {"fast", "compact"}
    assert set(whole["profiles"]["fast"]["recall"]) == {"1", "10", "100"}
    assert whole["profiles"]["fast"]["recall"]["10"]["0.999"] > 0.98
    assert whole["profiles"]["fast"]["calibrated"]["10"]["0.999"] > 0.98
    assert "recall=0.95" in section("ann-recall.json", found)


def test_builds_are_measured_and_shown(data: Path, tmp_path: Path) -> None:
    found = run("ann_build.py", data, tmp_path / "build.json", "--rounds", "2")
    whole = found["sets"]["tiny"]
    assert {"outpace", "outpace-compact"} <= set(whole["libraries"])
    assert set(whole["libraries"]) | set(whole["missing"]) == {"outpace", "outpace-compact", "hnswlib"}
    assert all(each["seconds"]["middle"] > 0 for each in whole["libraries"].values())
    assert "times the vectors" in section("ann-build.json", found)
    assert "outpace-compact" in script("ann_pictures").memory(found)


def test_growth_is_measured_and_shown(hard: Path, tmp_path: Path) -> None:
    more = ("--sizes", "500", "1000", "3000", "--libraries", "outpace-defaults", "--rounds", "1")
    folders = ("--work", str(tmp_path / "work"), "--picture", str(tmp_path / "scale.svg"))
    found = run("ann_scale.py", hard, tmp_path / "scale.json", *more, *folders)
    for level, libraries in found["levels"].items():
        ours = libraries["outpace-defaults"]
        assert list(ours["microseconds"]) == ["500", "1000", "3000"], level
        # Where the cheapest setting finds more than the level, a size is not fitted; at the highest none is so easy.
        assert {*ours["fitted_sizes"]} <= {500, 1000, 3000}, level
        assert (ours["exponent"] is None) == (ours["fitted_sizes"] == []), level
    highest = found["levels"]["0.99"]["outpace-defaults"]
    assert highest["fitted_sizes"] == [500, 1000, 3000]
    assert highest["exponent"]["sure"] == 0, "one round has no interval"
    assert (tmp_path / "scale.svg").read_text().startswith("<svg")
    assert "grows as n to the power" in section("ann-scale.json", found)
    again = run("ann_scale.py", hard, tmp_path / "again.json", *more, *folders)
    assert again["levels"] == found["levels"], "what was measured is not measured again"
