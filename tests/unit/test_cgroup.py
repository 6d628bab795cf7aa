"""What the kernel remembers for a group that is gone is given back, if it is much."""

from pathlib import Path

import pytest

from outpace.judge.cgroup import Cgroup

MUCH, LITTLE = 300 << 20, 1 << 20


@pytest.mark.parametrize(("held", "written"), [(MUCH, "0"), (LITTLE, "")])
def test_the_first_version_is_told_to_forget_all(tmp_path: Path, held: int, written: str) -> None:
    (tmp_path / "memory.kmem.usage_in_bytes").write_text(f"{held}\n")
    (tmp_path / "memory.force_empty").write_text("")
    Cgroup((tmp_path,), 1)._give_back()
    assert (tmp_path / "memory.force_empty").read_text() == written


@pytest.mark.parametrize(("held", "written"), [(MUCH, str(MUCH)), (LITTLE, "")])
def test_the_second_version_is_told_how_much(tmp_path: Path, held: int, written: str) -> None:
    (tmp_path / "memory.stat").write_text(f"anon 5\nslab_reclaimable {held}\nslab_unreclaimable 7\n")
    (tmp_path / "memory.reclaim").write_text("")
    Cgroup((tmp_path,), 2)._give_back()
    assert (tmp_path / "memory.reclaim").read_text() == written


@pytest.mark.parametrize("version", [1, 2])
def test_a_kernel_without_these_files_is_none_the_worse(tmp_path: Path, version: int) -> None:
    Cgroup((tmp_path,), version)._give_back()


def test_an_account_without_that_row_is_none_either(tmp_path: Path) -> None:
    (tmp_path / "memory.stat").write_text("anon 5\n")
    Cgroup((tmp_path,), 2)._give_back()


def test_what_a_group_holds_is_more_than_what_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "memory.stat").write_text("cache 900\nrss 10\nshmem 200\n")
    (tmp_path / "memory.kmem.usage_in_bytes").write_text("3000\n")
    assert Cgroup((tmp_path,), 1).held() == 3210, "files in the page cache are nobody's memory"
    (tmp_path / "memory.stat").write_text("anon 10\nfile 900\nshmem 200\nkernel 3000\nsock 40000\n")
    assert Cgroup((tmp_path,), 2).held() == 43210


@pytest.mark.parametrize("version", [1, 2])
def test_an_account_that_cannot_be_read_holds_nothing(tmp_path: Path, version: int) -> None:
    assert Cgroup((tmp_path,), version).held() == 0
