"""A build that cannot fit is refused before it begins."""

from pathlib import Path

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


@pytest.mark.parametrize("dimension", [24, 26, 48, 60, 64, 100, 128, 300])
def test_a_compact_index_takes_less_than_the_raw_vectors(dimension: int) -> None:
    vectors = np.random.default_rng(dimension).standard_normal((20_000, dimension)).astype(np.float32)
    held = Index.build(vectors, profile="compact").stats()["memory"]["total"]
    assert held < vectors.nbytes
