"""Copies of an archive are whole, small and one file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from archive_facts import everything, ok, source, start, tried

from outpace.archive import Archive
from outpace.errors import ArchiveError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "archive.db"


@pytest.fixture
def archive(path: Path) -> Iterator[Archive]:
    ticks = iter(range(1_000_000))
    with Archive.open(path, clock=lambda: float(next(ticks))) as opened:
        yield opened


def test_a_compact_copy_is_one_file_and_reading_it_changes_no_byte(archive: Archive, tmp_path: Path) -> None:
    tried(archive, start(archive), source(1), ok(2.0))
    copy = tmp_path / "copies" / "copy.db"
    archive.compact(copy)
    content = copy.read_bytes()
    with Archive.open(copy) as read:
        assert everything(read) == everything(archive)
    assert copy.read_bytes() == content
    assert [file.name for file in copy.parent.iterdir()] == ["copy.db"]
    with Archive.open(copy) as written:
        tried(written, written.run("first"), source(2), ok(3.0))
    with Archive.open(copy) as read:
        assert len(list(read.trials())) == 2


def test_a_copy_takes_the_place_of_no_other_file(archive: Archive, path: Path, tmp_path: Path) -> None:
    start(archive)
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work " * 20)
    for target in (precious, path):
        before = target.read_bytes()
        with pytest.raises(ArchiveError, match="name another file"):
            archive.compact(target)
        assert target.read_bytes() == before
