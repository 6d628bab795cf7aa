"""Memory: a build that cannot fit is refused before it begins, and an index outlives an addition that did not."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outpace.ann import Index, index
from outpace.ann.memory import check_fits, free_bytes


def test_the_smaller_of_machine_and_container_counts(tmp_path: Path) -> None:
    meminfo, limit, used, details = (tmp_path / name for name in ("meminfo", "max", "current", "stat"))
    meminfo.write_text("MemTotal: 100 kB\nMemAvailable:     64 kB\n")
    assert free_bytes(meminfo, ((limit, used, details),)) == 64 * 1024
    limit.write_text("max\n")
    used.write_text("5\n")
    assert free_bytes(meminfo, ((limit, used, details),)) == 64 * 1024
    limit.write_text("1005\n")
    assert free_bytes(meminfo, ((limit, used, details),)) == 1000
    details.write_text("anon 3\ninactive_file 2\nactive_file 900\n")  # the cache of files gives way
    assert free_bytes(meminfo, ((limit, used, details),)) == 1002


def test_the_copy_without_the_held_out_vectors_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).standard_normal((5000, 300), dtype=np.float32)
    peak = index._native.Handle.estimate_peak(vectors, 0, 0, True, False)
    monkeypatch.setattr(index, "free_bytes", lambda: peak + vectors.nbytes // 2)
    with pytest.raises(MemoryError):
        Index.build(vectors, engine="partitions", precision="half")
    monkeypatch.setattr(index, "free_bytes", lambda: peak + vectors.nbytes)
    Index.build(vectors, engine="partitions", precision="half")


def test_where_nothing_is_told_nothing_is_known(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "none", ()) is None
    check_fits(1 << 60, None)


def test_a_build_beyond_the_memory_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "free_bytes", lambda: 1 << 20)
    with pytest.raises(MemoryError, match=r"GiB are free.*compact"):
        Index.build(np.ones((5000, 100), dtype=np.float32))


def test_the_estimate_grows_with_the_graph_and_the_vectors() -> None:
    estimate = index._native.Handle.estimate_peak
    few, many = np.ones((1000, 64), dtype=np.float32), np.ones((4000, 64), dtype=np.float32)
    assert estimate(few, 0, 0, True, False) < estimate(few, 0, 0, True, True) < estimate(many, 0, 0, True, True)


@pytest.mark.parametrize("dimension", [24, 26, 33, 48, 49, 60, 64, 65, 66, 67, 72, 81, 100, 128, 129, 300])
def test_a_compact_index_takes_less_than_the_raw_vectors(dimension: int) -> None:
    vectors = np.random.default_rng(dimension).standard_normal((20_000, dimension)).astype(np.float32)
    held = Index.build(vectors, profile="compact").stats()["memory"]["total"]
    assert held < vectors.nbytes


@pytest.mark.parametrize("vectors", [np.ones((5000, 100)), np.ones((100, 5000), dtype=np.float32).T])
def test_what_does_not_fit_is_refused_before_it_is_copied(monkeypatch: pytest.MonkeyPatch, vectors: Any) -> None:
    def copied(*_: object) -> None:
        raise AssertionError("the vectors were copied")

    monkeypatch.setattr(index, "table", copied)
    monkeypatch.setattr(index, "free_bytes", lambda: 4 * vectors.size)
    with pytest.raises(MemoryError, match="GiB are free"):
        Index.build(vectors)


SHORT_OF_MEMORY = """
    import resource, sys
    import numpy as np
    from outpace.ann import Filter, Index

    engine, path = sys.argv[1:]
    vectors = np.random.default_rng(0).standard_normal((1500, 256), dtype=np.float32)
    more = np.random.default_rng(1).standard_normal((20_000, 256), dtype=np.float32)
    index = Index.build(vectors, engine=engine, precision="full", threads=1)
    everything = Filter(np.ones(100_000, dtype=bool))
    index.search(vectors[:1], 1, where=everything)
    index.save(path)
    size = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (size + (6 << 20), resource.RLIM_INFINITY))
    try:
        index.add(more, threads=1)
        raise SystemExit("there was enough memory")
    except MemoryError as fault:
        told = str(fault)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    added = len(index) - 1500
    assert f"the first {added} of 20000 are in" in told, told
    assert 0 < added < 20_000
    found = index.search(more[:added], 1, effort=200, where=everything)[0][:, 0]
    assert (found == np.arange(1500, 1500 + added)).mean() > 0.99
    index.save(path)
    assert len(Index.load(path)) == len(index)
    assert list(index.add(more[added:], threads=1)[:1]) == [1500 + added]
    index.remove(np.arange(1500))
    found = index.search(more[::20], 1, engine="partitions", effort=2000)[0][:, 0]
    assert (found == np.arange(1500, 21_500, 20)).mean() > 0.99
"""


@pytest.mark.parametrize("engine", ["partitions", "graph"])
def test_an_index_is_sound_after_memory_ended_in_an_addition(tmp_path: Path, engine: str) -> None:
    program = textwrap.dedent(SHORT_OF_MEMORY)
    done = subprocess.run(
        [sys.executable, "-c", program, engine, str(tmp_path / "an.index")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
