"""Files: what is saved comes back, on every instruction set; what is damaged is refused; a save is never half done."""

import copy
import errno
import os
import pickle
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ann_facts import Rows, centres, clustered

from outpace.ann import Index, IndexFileError, _native

AROUND = centres(1, 30, 20)
PAGE = 4096
VERSION, HEADER_BYTES, CHECKSUM, COUNT = 8, 12, 16, 96  # where these lie in the header
WORD = 2**64


@pytest.fixture(scope="module")
def vectors() -> Rows:
    return clustered(2, 2500, AROUND)


@pytest.fixture(scope="module")
def queries() -> Rows:
    return clustered(3, 100, AROUND)


@pytest.fixture(scope="module", params=["graph", "partitions"])
def index(request: pytest.FixtureRequest, vectors: Rows) -> Index:
    index = Index.build(vectors, engine=request.param, ids=np.arange(2500) * 3 - 701)
    index.remove(index.ids[:40])
    return index


@pytest.fixture
def saved(index: Index, tmp_path: Path) -> Path:
    index.save(tmp_path / "an.index")
    return tmp_path / "an.index"


def same_answers(one: Index, other: Index, queries: Rows) -> None:
    for how in ({"recall": 0.95}, {"effort": 3}, {"effort": 50}, {"recall": 0.9, "where": np.arange(2000)}):
        mine, theirs = one.search(queries, 10, **how), other.search(queries, 10, **how)
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])


@pytest.mark.parametrize("mmap", [False, True])
def test_a_saved_index_comes_back_as_it_was(index: Index, saved: Path, queries: Rows, mmap: bool) -> None:
    loaded = Index.load(saved, mmap=mmap)
    same_answers(index, loaded, queries)
    facts, again = index.stats(), loaded.stats()
    for name in ("count", "dimension", "metric", "lists", "engines", "removed", "seed", "build_seconds"):
        assert facts[name] == again[name]
    assert sorted(loaded.ids.tolist()) == sorted(index.ids.tolist())
    loaded.save(saved)
    same_answers(index, Index.load(str(saved)), queries)


@pytest.mark.parametrize("mmap", [False, True])
def test_a_loaded_index_changes_as_any_other(
    index: Index, saved: Path, vectors: Rows, queries: Rows, mmap: bool
) -> None:
    before = saved.read_bytes()
    loaded, own = Index.load(saved, mmap=mmap), copy.deepcopy(index)
    for each in (loaded, own):
        each.remove(each.ids[100:400])
        each.add(vectors[:600] + 0.01, ids=np.arange(600) + 100_000)
    same_answers(own, loaded, queries)
    assert (loaded.search(vectors[:600] + 0.01, 1, effort=100)[0][:, 0] == np.arange(600) + 100_000).mean() > 0.98
    assert saved.read_bytes() == before


def test_a_mapped_index_outlives_its_file(index: Index, saved: Path, queries: Rows) -> None:
    loaded = Index.load(saved, mmap=True)
    saved.unlink()
    same_answers(index, loaded, queries)


def test_an_index_can_be_saved_over_the_file_it_is_mapped_from(saved: Path, vectors: Rows, queries: Rows) -> None:
    loaded = Index.load(saved, mmap=True)
    loaded.add(vectors[:50] + 1, ids=np.arange(50) + 100_000)
    loaded.save(saved)
    same_answers(loaded, Index.load(saved), queries)


def test_an_index_can_be_pickled_and_copied(index: Index, queries: Rows) -> None:
    for other in (pickle.loads(pickle.dumps(index)), copy.deepcopy(index)):
        same_answers(index, other, queries)
    other.remove(other.ids[:100])
    assert len(other) == len(index) - 100


def test_the_structure_has_the_same_bytes_for_any_number_of_threads(vectors: Rows) -> None:
    structures = []
    for threads in (1, 3):
        data = pickle.dumps(Index.build(vectors, engine="graph", threads=threads, seed=5))
        data = data[data.index(b"OUTPACEA") :]
        # Times differ: of the build in the header, of the measured searches in the last section.
        (header_bytes,) = struct.unpack_from("<I", data, HEADER_BYTES)
        (last_section,) = struct.unpack_from("<Q", data, header_bytes - 24)
        structures.append(data[PAGE:last_section])
    assert len(structures[0]) > 100_000 and structures[0] == structures[1]


@pytest.mark.parametrize("built", _native.instruction_sets())
def test_files_serve_every_instruction_set(vectors: Rows, queries: Rows, tmp_path: Path, built: str) -> None:
    first = Index.build(vectors, engine="graph", instruction_set=built)
    first.save(tmp_path / "an.index")
    for other in _native.instruction_sets():
        loaded = Index.load(tmp_path / "an.index", instruction_set=other)
        assert loaded.stats()["instruction_set"] == other
        for engine in ("graph", "partitions"):
            mine = first.search(queries, 10, effort=100, depth=100, engine=engine)
            theirs = loaded.search(queries, 10, effort=100, depth=100, engine=engine)
            np.testing.assert_allclose(mine[1], theirs[1], rtol=1e-5)
            assert (mine[0] == theirs[0]).mean() > 0.999  # the rest are ties within rounding


def test_an_instruction_set_that_cannot_run_is_refused(saved: Path) -> None:
    with pytest.raises(ValueError, match="'abacus' cannot run here"):
        Index.load(saved, instruction_set="abacus")


@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_cut_short_anywhere_is_refused(saved: Path, mmap: bool) -> None:
    whole = saved.stat().st_size
    places = np.random.default_rng(4).integers(0, whole, 60)
    pages = np.arange(0, whole, PAGE)  # every section begins on one
    sizes = {*pages.tolist(), *(pages[1:] - 1).tolist(), *(pages + 1).tolist(), *places.tolist()}
    for size in sorted(sizes, reverse=True):
        os.truncate(saved, size)
        with pytest.raises(IndexFileError, match=r"an\.index"):
            Index.load(saved, mmap=mmap)


def test_a_file_with_something_after_its_end_is_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + bytes(PAGE))
    with pytest.raises(IndexFileError, match="added to"):
        Index.load(saved)


def test_a_flipped_bit_is_found_or_harmless(index: Index, saved: Path, queries: Rows) -> None:
    whole = bytearray(saved.read_bytes())
    found = 0
    for place in [*range(0, 640, 9), *np.random.default_rng(5).integers(0, len(whole), 120).tolist()]:
        whole[place] ^= 1 << (place % 8)
        saved.write_bytes(whole)
        whole[place] ^= 1 << (place % 8)
        try:
            same_answers(index, Index.load(saved), queries)  # it lay in the empty space between sections
        except IndexFileError:
            found += 1
    assert found > 150


def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"x", b"PK" * 5000, b"OUTPACEA", b"OUTPACEA" + bytes(5000)):
        (tmp_path / "other").write_bytes(content)
        for mmap in (False, True):
            with pytest.raises(IndexFileError, match="other"):
                Index.load(tmp_path / "other", mmap=mmap)


def test_a_file_of_another_version_says_so(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    struct.pack_into("<I", data, VERSION, 99)
    saved.write_bytes(data)
    with pytest.raises(IndexFileError, match="file version 99"):
        Index.load(saved)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("change", [-7, 1, 32])
def test_a_file_that_counts_other_than_it_holds_is_refused_though_its_checksum_is_right(
    saved: Path, index: Index, change: int, mmap: bool
) -> None:
    data = bytearray(saved.read_bytes())
    assert struct.unpack_from("<Q", data, COUNT) == (len(index),)
    struct.pack_into("<Q", data, COUNT, len(index) + change)
    seal(data)
    saved.write_bytes(data)
    with pytest.raises(IndexFileError, match=f"it counts {len(index) + change} vectors"):
        Index.load(saved, mmap=mmap)


def seal(data: bytearray) -> None:
    """Writes the checksum of a changed header."""
    (size,) = struct.unpack_from("<I", data, HEADER_BYTES)
    struct.pack_into("<Q", data, CHECKSUM, 0)

    def mix(state: int, word: int) -> int:
        state = (state ^ word) * 0x9E3779B185EBCA87 % WORD
        return (state << 31 | state >> 33) % WORD

    lanes, whole = [1, 2, 3, 4], size // 32 * 32
    for i, (word,) in enumerate(struct.iter_unpack("<Q", data[:whole])):
        lanes[i % 4] = mix(lanes[i % 4], word)
    value = size
    for lane in lanes:
        value = mix(value, lane)
    for byte in data[whole:size]:
        value = mix(value, byte)
    struct.pack_into("<Q", data, CHECKSUM, value ^ value >> 29)


def test_the_seal_of_these_tests_is_the_one_of_the_files(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    seal(data)
    assert data == saved.read_bytes()


@pytest.mark.parametrize("mmap", [False, True])
def test_what_is_no_file_is_refused_with_its_path(tmp_path: Path, mmap: bool) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.index"):
        Index.load(tmp_path / "nothing.index", mmap=mmap)
    with pytest.raises(IsADirectoryError, match=f"{tmp_path.name} is a folder; give the file that Index.save wrote"):
        Index.load(tmp_path, mmap=mmap)
    (tmp_path / "empty.index").touch()
    with pytest.raises(IndexFileError, match=r"empty\.index is empty"):
        Index.load(tmp_path / "empty.index", mmap=mmap)
    os.mkfifo(tmp_path / "pipe.index")  # nobody writes to it: a load that opened it would never end
    for name in ("pipe.index", "/dev/zero"):
        with pytest.raises(IndexFileError, match=f"{name} is no file but a pipe or a device"):
            Index.load(tmp_path / name, mmap=mmap)


@pytest.mark.parametrize("folder", ["/proc", "/nonexistent"])
def test_a_folder_that_cannot_be_written_gives_an_os_error_with_the_path(index: Index, folder: str) -> None:
    with pytest.raises(OSError, match=f"{folder}/an.index"):
        index.save(f"{folder}/an.index")


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    setup = """
        import sys
        import numpy as np
        from outpace.ann import Index
        def made(seed):
            vectors = np.random.default_rng(seed).standard_normal((400 * seed, 16)).astype(np.float32)
            return Index.build(vectors, threads=1)
        """
    text = textwrap.dedent(setup) + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_a_full_disk_gives_an_os_error_and_leaves_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    code = """
        import resource
        index = Index.load(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # a disk with so much left
        try:
            index.save(sys.argv[1])
        except OSError as error:
            print(error)
        """
    process = child(code, saved)
    said, _ = process.communicate()
    assert process.returncode == 0 and "cannot write" in said and str(saved) in said
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_save_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "an.index"
    code = """
        small, large = made(1), made(6)
        print("ready", flush=True)
        while True:
            small.save(sys.argv[1])
            large.save(sys.argv[1])
        """
    counts: list[Any] = []
    for wait in np.random.default_rng(6).uniform(0.02, 0.1, 5):
        process = child(code, path)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        while not path.exists():
            time.sleep(0.001)
        time.sleep(wait)  # the kill is to fall anywhere in a save
        process.send_signal(signal.SIGKILL)
        process.communicate()
        counts.append(len(Index.load(path)))
    assert set(counts) <= {400, 2400}


def test_threads_that_save_to_one_path_leave_a_whole_file(index: Index, vectors: Rows, tmp_path: Path) -> None:
    path = tmp_path / "an.index"
    other = Index.build(vectors[:300])
    failed: list[Exception] = []

    def save(which: Index) -> None:
        try:
            for _ in range(15):
                which.save(path)
                assert len(Index.load(path)) in (len(index), 300)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=save, args=(which,)) for which in (index, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == [] and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("way", ["save", "pickle", "copy"])
def test_the_id_of_a_removed_vector_does_not_come_back_with_the_index(vectors: Rows, tmp_path: Path, way: str) -> None:
    index = Index.build(vectors)
    index.remove([len(vectors) - 1])
    if way == "save":
        index.save(tmp_path / "an.index")
    ways = {
        "save": lambda: Index.load(tmp_path / "an.index", mmap=True),
        "pickle": lambda: pickle.loads(pickle.dumps(index)),
        "copy": lambda: copy.copy(index),
    }
    assert list(ways[way]().add(vectors[:2])) == [len(vectors), len(vectors) + 1]


def test_a_file_larger_than_memory_can_be_mapped(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(IndexFileError, match="this is not an Outpace index"):
        Index.load(tmp_path / "large", mmap=True)


def test_a_save_keeps_the_permissions_of_the_file_that_it_replaces(saved: Path, index: Index) -> None:
    saved.chmod(0o600)
    index.save(saved)
    assert saved.stat().st_mode & 0o777 == 0o600


def test_a_save_to_a_link_replaces_the_file_that_it_leads_to(saved: Path, vectors: Rows) -> None:
    link = saved.parent / "link"
    link.symlink_to(saved)
    other = Index.build(vectors[:100])
    other.save(os.fsencode(link))
    assert link.is_symlink()
    assert len(Index.load(saved)) == 100
    assert [each.name for each in saved.parent.iterdir() if "part" in each.name] == []


def test_a_save_to_a_link_that_leads_to_no_file_yet_makes_that_file(tmp_path: Path, index: Index) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    (tmp_path / "second").symlink_to(Path("disk") / "new.outpace")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    index.save(tmp_path / "first")
    assert (tmp_path / "first").is_symlink() and (tmp_path / "second").is_symlink()
    assert len(Index.load(folder / "new.outpace")) == len(index)


def test_a_save_to_links_that_lead_in_a_circle_is_refused(tmp_path: Path, index: Index) -> None:
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")
    with pytest.raises(OSError, match="one") as fault:
        index.save(tmp_path / "one")
    assert fault.value.errno == errno.ELOOP
