"""The vector search benchmark as a whole, with peers whose faults are known; nothing here asserts a time."""

from __future__ import annotations

import csv
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from outpace.bench.ann.log import Log, TimeRow, alone

HERE = Path(__file__).parent
QUERIES = 40


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two hundred vectors on a line in eight dimensions, and their true neighbours."""
    chance = np.random.default_rng(3)
    train = chance.normal(size=(200, 8)).astype(np.float32)
    test = chance.normal(size=(QUERIES, 8)).astype(np.float32)
    distances = np.linalg.norm(train[None] - test[:, None], axis=2)
    with h5py.File(tmp_path / "tiny.hdf5", "w") as file:
        file["train"], file["test"] = train, test
        file["neighbors"] = np.argsort(distances, axis=1)[:, :20]
        file.attrs["distance"] = "euclidean"
    return tmp_path / "tiny.hdf5"


def command(data: Path, *peers: str, more: tuple[str, ...] = ()) -> list[str]:
    code = "import sys; sys.argv[0] = 'outpace'; from outpace.cli import main; main()"
    named = [peer if ":" in peer or peer == "exact" else f"ann_peers:{peer}" for peer in peers]
    rest = ["--data", str(data), "--out", str(data.parent / "out"), "--rounds", "2", "--threads-build", "1", *more]
    return [sys.executable, "-c", code, "bench", "ann", "--peers", *named, *rest]


def environment(data: Path) -> dict[str, str]:
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "ANN_MARKS": str(data.parent / "marks")}


def bench(data: Path, *peers: str, more: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(data, *peers, more=more), env=environment(data), capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    return done


def rows(data: Path, name: str) -> list[dict[str, str]]:
    with (data.parent / "out" / name).open() as file:
        return list(csv.DictReader(file))


def measured(data: Path) -> list[TimeRow]:
    return Log(data.parent / "out" / "measurements.jsonl").times()


def test_both_stages_run_and_everything_is_written(data: Path) -> None:
    done = bench(data, "exact", "Quick", "Slow")
    assert done.returncode == 0, done.stderr
    out = data.parent / "out"
    written = {each.name for each in out.iterdir() if each.is_file()}
    tables = {"levels.csv", "points.csv", "ratios.csv", "screening.csv", "indexes.csv"}
    assert tables | {"results.md", "index.html"} <= written
    assert "tiny-single.png" in written
    page = (out / "index.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", ""), "the page must need nothing else"
    final = [row for row in measured(data) if row.stage == "final"]
    assert {row.round for row in final} == {0, 1}
    assert {(row.begin, row.end) for row in final} == {(QUERIES // 2, QUERIES)}
    for row in final:
        assert len(row.missed) == QUERIES - QUERIES // 2
        assert row.recall == pytest.approx(1 - sum(int(each, 36) for each in row.missed) / (10 * len(row.missed)))
    assert "over rounds, and over the queries that recall is counted on" in page
    assert {(row.begin, row.end) for row in measured(data) if row.stage == "screen"} == {(0, QUERIES // 2)}
    assert {row.recall for row in measured(data) if row.peer == "exact"} == {1.0}
    full = [row.recall for row in measured(data) if row.peer == "ann_peers:Quick" and row.effort["effort"] == 3]
    assert set(full) == {1.0}
    built = {row["peer"]: row for row in rows(data, "indexes.csv")}
    assert float(built["ann_peers:Quick"]["build_peak_mb"]) > float(built["ann_peers:Quick"]["file_mb"]) > 0


def test_the_batch_track_finds_the_same_neighbours(data: Path) -> None:
    assert bench(data, "Quick").returncode == 0
    assert bench(data, "Quick", more=("--track", "batch")).returncode == 0
    found = {track: {} for track in ("single", "batch")}  # type: dict[str, dict[tuple[str, int], float | None]]
    for row in measured(data):
        found[row.track][row.stage, int(row.effort["effort"])] = row.recall
    assert found["single"] == found["batch"] != {}


def test_what_was_found_is_collected_with_every_timing_and_its_own_command(data: Path) -> None:
    root = data.parent / "repository"
    for folder in ("benchmarks/results", "docs/images"):
        (root / folder).mkdir(parents=True)
    script = HERE.parents[1] / "benchmarks" / "ann_collect.py"
    for track in ("single", "batch"):
        assert bench(data, "Quick", more=("--track", track)).returncode == 0
        subprocess.run([sys.executable, script, data.parent / "out", "--root", root, "--track", track], check=True)
    for track in ("single", "batch"):
        found = json.loads((root / "benchmarks" / "results" / f"ann-bench-tiny-{track}.json").read_text())
        assert f"--track {track}" in found["command"]
        assert [contest["track"] for contest in found["contests"]] == [track]
        assert {row["track"] for row in found["levels"] + found["screening"]} == {track}
        assert [f"--track {track}" in call for call in found["contests"][0]["calls"]] == [True]
        table = lzma.decompress((root / "benchmarks" / "results" / f"ann-bench-tiny-{track}.csv.xz").read_bytes())
        timed = [row for row in measured(data) if (row.track, row.stage) == (track, "final")]
        assert len(table.decode().splitlines()) == 1 + len(timed)
        assert (root / "docs" / "images" / f"ann-bench-tiny-{track}.svg").is_file()
    kept = (root / "benchmarks" / "results" / "ann-bench-tiny-batch.json").read_bytes()
    assert bench(data, "Quick", "Slow", more=("--track", "batch")).returncode == 0
    subprocess.run(
        [sys.executable, script, data.parent / "out", "--root", root, "--track", "batch", "--part", "others"],
        check=True,
    )
    assert (root / "benchmarks" / "results" / "ann-bench-tiny-batch.json").read_bytes() == kept
    others = json.loads((root / "benchmarks" / "results" / "ann-bench-tiny-batch-others.json").read_text())
    assert "Slow" in others["command"]
    assert (root / "docs" / "images" / "ann-bench-tiny-batch-others.svg").is_file()


def test_a_second_call_builds_and_measures_nothing_again(data: Path) -> None:
    bench(data, "Quick", "Slow")
    before, marks = measured(data), (data.parent / "marks").read_text()
    assert bench(data, "Quick", "Slow").returncode == 0
    assert measured(data) == before
    assert (data.parent / "marks").read_text() == marks


def test_configurations_that_differ_in_how_they_are_opened_share_one_build(data: Path) -> None:
    done = bench(data, "exact", "TwoWays", more=("--stage", "screen"))
    assert done.returncode == 0, done.stderr
    assert (data.parent / "marks").read_text().splitlines() == ["ann_peers:TwoWays"]
    built = [row for row in rows(data, "indexes.csv") if row["peer"] == "ann_peers:TwoWays"]
    assert {row["configuration"] for row in built} == {"1/1", "1/10"}
    found = {row.configuration: row.recall for row in measured(data) if row.effort == {"effort": 3}}
    assert found["1/1"] == 1.0
    assert found["1/10"] is not None
    assert found["1/10"] < 0.5


def test_with_fewer_configurations_each_library_enters_with_its_first(data: Path) -> None:
    def entered(stage: str) -> set[str]:
        return {row.configuration for row in measured(data) if (row.peer, row.stage) == ("ann_peers:TwoWays", stage)}

    def call(*more: str) -> None:
        done = bench(data, "TwoWays", more=more)
        assert done.returncode == 0, done.stderr

    call("--stage", "screen", "--configurations", "1")
    assert entered("screen") == {"1/1"}
    call("--stage", "screen")
    assert entered("screen") == {"1/1", "1/10"}
    call("--stage", "final", "--levels", "0.1", "--configurations", "1")
    assert entered("final") == {"1/1"}, "what an earlier call screened is not entered by this one"


def test_a_library_that_does_not_go_on_is_told_with_its_screening(data: Path) -> None:
    assert bench(data, "Sleepy", "Quick", more=("--stage", "screen")).returncode == 0
    done = bench(data, "Quick", "TwoWays", "Slow", "Sleepy")
    assert done.returncode == 0, done.stderr
    told = {row["peer"].removeprefix("ann_peers:"): row["final"] for row in rows(data, "screening.csv")}
    assert told == {"Quick": "yes", "TwoWays": "yes", "Slow": "yes", "Sleepy": "no"}
    assert "ann_peers:Sleepy" not in {row.peer for row in measured(data) if row.stage == "final"}
    out = data.parent / "out"
    for text in (done.stdout, (out / "results.md").read_text(), (out / "index.html").read_text()):
        after = text.split("Screened and not timed again")[1]
        assert "ann_peers:Sleepy" in after
    found = json.loads((out / "results.json").read_text())
    calls = found["contests"][0]["calls"]
    assert [("--stage screen" in each, "TwoWays" in each) for each in calls] == [(True, False), (False, True)]
    assert f"then by `{calls[1]}`" in (out / "results.md").read_text()
    assert {row["peer"].removeprefix("ann_peers:") for row in found["screening"]} == told.keys()
    assert {row["configurations"] for row in found["screening"] if row["peer"] == "ann_peers:TwoWays"} == {"2"}


def test_a_screening_with_other_queries_changes_nothing_of_a_final_stage(data: Path) -> None:
    assert bench(data, "exact", "Quick", "TwoWays").returncode == 0
    before = (data.parent / "out" / "levels.csv").read_text()
    done = bench(data, "Sleepy", more=("--stage", "screen", "--screen-queries", "5"))
    assert done.returncode == 0, done.stderr
    assert (data.parent / "out" / "levels.csv").read_text() == before
    told = {row["peer"]: row["queries"] for row in rows(data, "screening.csv")}
    assert told == dict.fromkeys(("exact", "ann_peers:Quick", "ann_peers:TwoWays"), "0-20") | {
        "ann_peers:Sleepy": "0-5"
    }


def test_a_killed_run_goes_on_where_it_was(data: Path) -> None:
    log = data.parent / "out" / "measurements.jsonl"
    running = subprocess.Popen(
        command(data, "Quick", "Slow"), env=environment(data), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while running.poll() is None and (not log.is_file() or log.read_bytes().count(b'"type":"time"') < 3):
        time.sleep(0.01)
    running.kill()
    running.wait()
    first = measured(data)
    assert len(first) >= 3
    with log.open("ab") as file:
        file.write(b'{"type":"time","data":"ti')  # what a kill in the middle of a write leaves
    assert bench(data, "Quick", "Slow").returncode == 0
    again = measured(data)
    assert again[: len(first)] == first
    keys = [(row.peer, row.stage, row.round, row.effort["effort"]) for row in again]
    assert len(keys) == len(set(keys))
    assert {key[0] for key in keys if key[1] == "final"} == {"ann_peers:Quick", "ann_peers:Slow"}


def test_a_library_that_joins_later_is_compared_inside_rounds_of_its_own_time(data: Path) -> None:
    def final(peer: str) -> list[TimeRow]:
        return [row for row in measured(data) if row.stage == "final" and row.peer == f"ann_peers:{peer}"]

    assert bench(data, "Quick").returncode == 0
    alone_before = final("Quick")
    assert bench(data, "Quick", "Slow").returncode == 0
    together = final("Quick")
    assert {row.round for row in together} == {row.round for row in final("Slow")} == {0, 1}
    assert not any(row in alone_before for row in together)
    assert bench(data, "Quick", "Slow").returncode == 0
    assert final("Quick") == together


def test_a_peer_whose_process_dies_is_a_row_and_the_others_go_on(data: Path) -> None:
    done = bench(data, "Dying", "Quick")
    assert done.returncode == 0, done.stderr
    dead = [row for row in measured(data) if row.peer == "ann_peers:Dying"]
    assert [(row.status, "SIGSEGV" in row.reason) for row in dead] == [("crashed", True)]
    assert any(row.peer == "ann_peers:Quick" and row.stage == "final" for row in measured(data))
    assert "SIGSEGV" in done.stdout


def test_what_fails_on_one_track_is_tried_on_the_other(data: Path) -> None:
    for track in ("single", "batch"):
        assert bench(data, "Dying", "Quick", more=("--track", track)).returncode == 0
    dead = [row for row in measured(data) if row.peer == "ann_peers:Dying"]
    assert [(row.track, row.status) for row in dead] == [("single", "crashed"), ("batch", "crashed")]


def test_a_second_run_in_the_same_folder_is_refused(data: Path) -> None:
    out = data.parent / "out"
    with alone(out):
        done = bench(data, "Quick")
    assert done.returncode != 0
    assert f"another run is writing to {out}" in " ".join(done.stderr.split())
    assert not (out / "measurements.jsonl").exists()
    assert bench(data, "Quick").returncode == 0


def test_a_peer_whose_build_raises_is_told_with_its_reason(data: Path) -> None:
    done = bench(data, "Failing", "Quick", more=("--json",))
    failures = json.loads(done.stdout)["failures"]
    assert [(each["library"], each["what"]) for each in failures] == [("ann_peers:Failing", "failed")]
    assert "no room for 200 vectors" in failures[0]["why"]


def test_what_failed_is_tried_again_only_when_asked(data: Path) -> None:
    def found(*more: str) -> tuple[list[str], set[str]]:
        done = bench(data, "Mended", "Quick", more=("--json", *more))
        failures = [each["why"] for each in json.loads(done.stdout)["failures"]]
        return failures, {row.status for row in measured(data) if row.peer == "ann_peers:Mended"}

    assert found() == (["OSError: no file named may-build"], set())
    (data.parent / "may-build").touch()
    assert found() == (["OSError: no file named may-build"], set())
    assert found("--retry-failed") == (["OSError: no file named may-search"], {"failed"})
    (data.parent / "may-search").touch()
    assert found() == (["OSError: no file named may-search"], {"failed"})
    before = [row for row in measured(data) if row.peer == "ann_peers:Quick" and row.stage == "screen"]
    assert found("--retry-failed") == ([], {"ok"})
    assert [row for row in measured(data) if row.peer == "ann_peers:Quick" and row.stage == "screen"] == before


def test_a_failure_that_is_not_tried_again_is_not_forgotten(data: Path) -> None:
    for more in ((), ("--retry-failed", "--configurations", "1")):
        done = bench(data, "HalfWorking", more=("--json", "--stage", "screen", *more))
        failures = json.loads(done.stdout)["failures"]
        assert [(each["index"], each["why"]) for each in failures] == [("1/10", "OSError: a tenth is too little")]


def test_a_build_past_the_budget_is_killed_with_all_it_started_and_told(data: Path) -> None:
    assert bench(data, "Endless", "exact", more=("--build-budget", "1")).returncode == 0
    built = {row["peer"]: row for row in rows(data, "indexes.csv")}
    assert built["ann_peers:Endless"]["status"] == "over budget"
    assert built["exact"]["status"] == "built"
    for process in (data.parent / "marks").read_text().split():
        assert not alive(int(process))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_build_ends_with_the_benchmark_however_that_is_ended(data: Path, how: signal.Signals) -> None:
    running = subprocess.Popen(
        command(data, "Endless"), env=environment(data), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    marks = data.parent / "marks"
    while running.poll() is None and not (marks.is_file() and len(marks.read_text().split()) == 2):
        time.sleep(0.01)
    builder, tool = map(int, marks.read_text().split())
    running.send_signal(how)
    running.wait()
    until = time.monotonic() + 20
    while alive(builder) and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(tool, signal.SIGKILL)  # a tool that a library started is its own affair
    assert not alive(builder)


def alive(process: int) -> bool:
    """Whether it runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_peer_that_cannot_be_imported_is_listed_with_how_to_have_it(data: Path) -> None:
    done = bench(data, "Absent", "Quick", more=("--list-peers",))
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "not installed" in lines["ann_peers:Absent"]
    assert "pip install absent" in lines["ann_peers:Absent"]
    assert lines["ann_peers:Quick"].split()[1] == "1"
    alone = bench(data, "Absent")
    assert alone.returncode == 1
    assert "none of these can be imported" in alone.stderr


def test_the_final_stage_alone_asks_for_the_screening(data: Path) -> None:
    done = bench(data, "Quick", more=("--stage", "final"))
    assert done.returncode == 1
    assert "--stage screen" in done.stderr


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--queries", "0"), "--queries is 0"),
        (("--configurations", "0"), "--configurations is 0"),
        (("--levels", "1.5"), "recall lies between 0 and 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(data: Path, more: tuple[str, ...], why: str) -> None:
    done = bench(data, "Quick", more=more)
    assert (done.returncode, why in done.stderr) == (1, True)
    assert not (data.parent / "out").exists()
