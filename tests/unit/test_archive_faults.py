"""The archive loses nothing through kills, other writers, full disks, damaged files and new versions."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import string
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from archive_facts import TASK, everything, integrity, ok, source, start, tried

from outpace.archive import Archive, Trial
from outpace.archive import schema as archive_schema
from outpace.archive.records import TRIAL_SELECT, pack_candidate, pack_text
from outpace.errors import ArchiveError
from outpace.judge.verdict import SpeedUp


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "archive.db"


@pytest.fixture
def archive(path: Path) -> Iterator[Archive]:
    ticks = iter(range(1_000_000))
    with Archive.open(path, clock=lambda: float(next(ticks))) as opened:
        yield opened


# Processes that die, and processes side by side

WRITER = """
import sys
from pathlib import Path
from outpace.cost import Cost
from outpace.archive import Archive
from outpace.task.candidate import Candidate
from outpace.judge.verdict import Bucket, Life, Outcome, Sample, SpeedUp, Verdict
from outpace.task import Entry, Task

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
task = Task("sum", "", Path("/"), ("a.c",), {"a.c": b"int x;"}, Entry("c"))
life = Life(Sample(1, 2, 3, 4), tuple(Sample(n, n, n, n) for n in range(300)))
with Archive.open(path) as archive:
    run = archive.start_run(name, task, "moves", {}, 1, {}, machine_key="k")
    print("ready", flush=True)
    for step in range(count):
        left = archive.open_trials(run) if sys.argv[4] == "resume" else []
        trial = left[0] if left else archive.ask(run, "p" * 5000, (), None)[0]
        if trial.state == "asked":
            trial = archive.answer(trial, "r" * 9000, Cost(calls=1))
        buckets = (Bucket(life, life, trial.id),)
        verdict = Verdict(Outcome.OK, "", SpeedUp(2.0, 1.0, 3.0, True, 1), buckets)
        candidate = Candidate({"a.c": f"int x = {trial.id};" * 100})
        archive.settle(trial, analysis="", design="", candidate=candidate, verdict=verdict)
        for group in archive.unlearnt(run):
            archive.learn(group, str(group[0].number).encode())
        print(trial.number, flush=True)
"""


def writer(path: Path, name: str, count: int, mode: str) -> subprocess.Popen[str]:
    source_root = str(Path(archive_schema.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count), mode],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source_root},
    )


def test_kills_at_any_moment_lose_no_trial_and_double_none(path: Path) -> None:
    chance = random.Random(11)
    acknowledged: list[int] = []
    for _ in range(20):
        with writer(path, "killed", 10_000, "resume") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(chance.randrange(4)):
                acknowledged.append(int(process.stdout.readline()))
            # A random bit of spinning, so that kills fall on every part of a transaction.
            for _ in range(chance.randrange(60_000)):
                pass
            process.kill()
            acknowledged += [int(line) for line in process.stdout if line.endswith("\n")]
    with Archive.open(path) as archive:
        run = archive.run("killed")
        trials = list(archive.trials(run))
        judged = [trial.number for trial in trials if trial.state == "judged"]
        assert [trial.number for trial in trials] == list(range(1, len(trials) + 1))
        assert len(acknowledged) == len(set(acknowledged))
        assert set(acknowledged) <= set(judged)
        # Each process goes on with what the one before left, so at most the last trial is open.
        assert judged == list(range(1, len(judged) + 1)) and len(trials) - len(judged) <= 1
        unlearnt = archive.unlearnt(run)
        assert len(unlearnt) <= 1
        assert run.policy_state == str(judged[-1] - len(unlearnt)).encode()
        assert len(archive.scored(run.task_hash, run)) == len(judged)
        assert archive.costs(run).calls == sum(trial.state != "asked" for trial in trials)
    assert integrity(path) == "ok"


@pytest.mark.parametrize("names", [("same", "same"), ("one", "two")])
def test_two_processes_share_an_archive_from_its_first_moment(path: Path, names: tuple[str, str]) -> None:
    processes = [writer(path, name, 25, "ask") for name in names]
    printed = [process.communicate()[0].split()[1:] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    with Archive.open(path) as archive:
        for name in set(names):
            given = [int(n) for mine, out in zip(names, printed, strict=True) if mine == name for n in out]
            numbers = [trial.number for trial in archive.trials(archive.run(name))]
            assert sorted(given) == numbers == list(range(1, len(given) + 1))
        assert len(list(archive.trials())) == 50
    assert integrity(path) == "ok"


def test_an_archive_in_use_can_be_opened_through_a_link(archive: Archive, path: Path, tmp_path: Path) -> None:
    # Noise, which does not compress: the log must hold pages that the file has not got yet.
    asked = archive.ask(start(archive), random.Random(3).randbytes(50_000).hex(), (), None)[0]
    (tmp_path / "link.db").symlink_to(path)
    with Archive.open(tmp_path / "link.db") as linked:
        assert list(linked.trials()) == [asked]


def test_a_lock_that_is_never_released_is_told(archive: Archive, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(archive)
    monkeypatch.setattr(archive_schema, "BUSY_SECONDS", 0.0)
    with Archive.open(path) as other:
        archive._database.execute("BEGIN IMMEDIATE")
        with pytest.raises(ArchiveError, match="locked"):
            other.ask(run, "p", (), None)[0]
        assert other.runs() == [run]
        archive._database.execute("ROLLBACK")
        assert other.ask(run, "p", (), None)[0].number == 1


# Disks and files that do not play along


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_and_loses_nothing(archive: Archive, path: Path) -> None:
    run = start(archive)
    noise = random.Random(3)
    known: list[Trial] = []

    def fill() -> None:
        for _ in range(1000):
            prompt = "".join(noise.choices(string.printable, k=20_000))
            known.append(archive.ask(run, prompt, (), None)[0])

    with files_end_at(400_000), pytest.raises(ArchiveError, match="free"):
        fill()
    assert len(known) > 3
    assert list(archive.trials(run)) == known
    known.append(archive.ask(run, "space again", (), None)[0])
    with Archive.open(path) as again:
        assert list(again.trials(run)) == known
    assert integrity(path) == "ok"


def test_a_full_disk_while_copying_leaves_no_half_copy(archive: Archive, tmp_path: Path) -> None:
    archive.ask(start(archive), "".join(random.Random(3).choices(string.printable, k=300_000)), (), None)[0]
    copy = tmp_path / "copies" / "copy.db"
    with files_end_at(100_000), pytest.raises(ArchiveError, match="free"):
        archive.compact(copy)
    assert list(copy.parent.iterdir()) == []
    archive.compact(copy)
    with Archive.open(copy) as read:
        assert everything(read) == everything(archive)


def test_a_disk_full_at_birth_is_told_and_the_file_can_be_used_later(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with files_end_at(5000), pytest.raises(ArchiveError, match="free"):
        Archive.open(path)
    with Archive.open(path) as archive:
        assert archive.ask(start(archive), "p", (), None)[0].number == 1


@pytest.fixture
def unwritable() -> Iterator[Callable[[], Any]]:
    """A folder, and the means to be someone who may enter but not write it, also when root runs the tests."""

    @contextmanager
    def powerless(folder: Path) -> Iterator[None]:
        folder.chmod(0o555)
        user = os.geteuid()
        try:
            if user == 0:
                os.seteuid(65534)
            yield
        finally:
            os.seteuid(user)
            folder.chmod(0o755)

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield lambda: (Path(folder), powerless(Path(folder)))


def test_a_folder_that_may_not_be_written_is_told(unwritable: Callable[[], Any]) -> None:
    folder, powerless = unwritable()
    with powerless:
        with pytest.raises(ArchiveError, match="writable"):
            Archive.open(folder / "archive.db")
        with pytest.raises(ArchiveError, match="write to"):
            Archive.open(folder / "deeper" / "archive.db")
    assert list(folder.iterdir()) == []


def test_a_copy_can_be_read_but_not_written_where_nothing_may_be_written(
    archive: Archive, unwritable: Callable[[], Any]
) -> None:
    run = start(archive)
    tried(archive, run, source(1), ok(2.0))
    folder, powerless = unwritable()
    copy = folder / "copy.db"
    archive.compact(copy)
    with powerless, Archive.open(copy) as read:
        assert everything(read) == everything(archive)
        with pytest.raises(ArchiveError, match="writable"):
            start(read)
        with pytest.raises(ArchiveError, match="writable"):
            read.ask(run, "p", (), None)[0]


def test_a_file_of_a_newer_version_is_refused_untouched(archive: Archive, path: Path) -> None:
    start(archive)
    archive.close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    content = path.read_bytes()
    with pytest.raises(ArchiveError, match=r"version 99.*upgrade"):
        Archive.open(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.db"
    with closing(sqlite3.connect(theirs)) as database:
        database.execute("CREATE TABLE songs (name)")
        database.execute("PRAGMA user_version = 1")
    content = theirs.read_bytes()
    with pytest.raises(ArchiveError, match="another program"):
        Archive.open(theirs)
    assert theirs.read_bytes() == content


@pytest.mark.parametrize("content", [b"not a database at all", b"\0" * 5000, b"SQLite format 3\0" + b"\7" * 5000])
def test_garbage_is_refused_untouched(tmp_path: Path, content: bytes) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(content)
    with pytest.raises(ArchiveError) as refused:
        Archive.open(garbage)
    assert "\n" not in str(refused.value)
    assert garbage.read_bytes() == content


def test_a_folder_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="is a folder"):
        Archive.open(tmp_path)


def test_the_name_that_sqlite_keeps_for_memory_is_a_file_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Archive.open(":memory:") as archive:
        start(archive)
    assert (tmp_path / ":memory:").stat().st_size > 0


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("sound")
    with Archive.open(folder / "archive.db") as archive:
        run = start(archive)
        for number in range(12):
            tried(archive, run, source(number), ok(1.0 + number))
        archive.compact(folder / "copy.db")
    return (folder / "copy.db").read_bytes()


@pytest.mark.parametrize("kept", [1, 17, 90, 100, 4095, 4096, 5000, -4096, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, sound: bytes, kept: int) -> None:
    cut = tmp_path / "cut.db"
    cut.write_bytes(sound[:kept])
    with pytest.raises(ArchiveError), Archive.open(cut) as archive:
        everything(archive)
    assert cut.read_bytes() == sound[:kept]


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_file_raises_nothing_but_an_archive_error(sound: bytes, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(sound)
    for _ in range(chance.choice([1, 10, 100])):
        content[chance.randrange(len(content))] = chance.randrange(256)
    hurt = tmp_path / "hurt.db"
    hurt.write_bytes(content)
    try:
        with Archive.open(hurt) as archive:
            everything(archive)
    except ArchiveError as told:
        assert str(hurt) in str(told)


def test_trials_that_come_round_again_are_noticed(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(archive)
    archive.ask(run, "p", (), None)[0]
    archive.ask(run, "p", (), None)[0]
    page = archive._rows(f"{TRIAL_SELECT} ORDER BY t.id")
    monkeypatch.setattr(archive, "_rows", lambda *_: page)
    with pytest.raises(ArchiveError, match="trial 1 comes after trial 2"):
        list(archive.trials(run))


def test_sources_that_do_not_match_their_hash_are_not_handed_out(archive: Archive, path: Path) -> None:
    tried(archive, start(archive), source(1), ok(2.0))
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE candidates SET files = ?", ('{"sum.c":"int other;"}',))
        database.commit()
    with pytest.raises(ArchiveError, match="another hash"):
        archive.candidate(source(1).hash)


def test_a_run_name_that_is_no_text_is_told(archive: Archive) -> None:
    with pytest.raises(ArchiveError, match="plain Unicode"):
        start(archive, "\udcff")


# Versions


def test_a_file_of_version_1_is_brought_up_with_all_its_facts(
    archive: Archive, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive._database.execute("PRAGMA user_version").fetchone() == (len(archive_schema.MIGRATIONS),)
    tried(archive, start(archive), source(1), ok(2.0))
    facts = everything(archive)
    archive.close()
    later = [("CREATE TABLE extra (x)",), ("INSERT INTO extra VALUES (1)", "ALTER TABLE extra ADD COLUMN y")]
    monkeypatch.setattr(archive_schema, "MIGRATIONS", [*archive_schema.MIGRATIONS, *later])
    for _ in range(2):
        with Archive.open(path) as migrated:
            assert everything(migrated) == facts
            assert migrated._database.execute("SELECT x, y FROM extra").fetchall() == [(1, None)]


def old_file(path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive as the first versions wrote it: a judged and confirmed trial, an answered one and an asked one."""
    monkeypatch.setattr(archive_schema, "MIGRATIONS", archive_schema.MIGRATIONS[:version])
    archive_schema.connect(path).close()
    monkeypatch.undo()
    one, fingerprint = source(1), ("fingerprint",) if version == 1 else ()
    settings = '{"exemplars":"buckets","group":4,"shown":2}'
    trial = ("money", "exemplars", "parent", "asked_at")
    rows: list[tuple[str, tuple[str, ...], tuple[object, ...]]] = [
        ("tasks", ("hash", "name"), (TASK.hash, TASK.name)),
        (
            "runs",
            ("name", "task", "policy", "settings", "seed", "machine", "machine_key", "started_at", "policy_state"),
            ("first", TASK.hash, "moves", settings, "7", "{}", "x86-16", 0.0, b"state"),
        ),
        ("candidates", ("hash", "files", "flags", *fingerprint), (one.hash, *pack_candidate(one), *fingerprint)),
        ("trials", ("run", "number", "state", "candidate", *trial), (1, 1, "judged", one.hash, 0.5, "[]", None, 1.0)),
        ("trials", ("run", "number", "state", *trial), (1, 2, "answered", 0.25, f'["{one.hash}"]', one.hash, 2.0)),
        ("trials", ("run", "number", "state", *trial), (1, 3, "asked", 0.0, f'["{one.hash}"]', one.hash, 3.0)),
        ("texts", ("trial", "prompt", "reply", "analysis"), (1, "make it faster", "a reply", "slow")),
        ("texts", ("trial", "prompt", "reply"), (2, pack_text("faster " * 1000), "another")),
        ("texts", ("trial", "prompt"), (3, "still faster")),
    ]
    columns = "trial, run, task, candidate, confirmation, outcome, ratio, low, high, win, buckets, seconds, reason"
    with closing(sqlite3.connect(path)) as database:
        for table, names, values in rows:
            marks = ", ".join("?" * len(values))
            database.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", values)
        for confirmation, ratio in ((0, 2.0), (1, 1.9)):
            database.execute(
                f"INSERT INTO verdicts ({columns}) VALUES (1, 1, ?, ?, ?, 'ok', ?, 1.8, 2.1, 1, 8, 0.5, '')",
                (TASK.hash, one.hash, confirmation, ratio),
            )
        database.execute("UPDATE trials SET verdict = 1, confirmation = 2 WHERE number = 1")
        database.commit()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_file_of_each_earlier_version_loses_nothing(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    old_file(path, version, monkeypatch)
    for _ in range(2):
        with Archive.open(path) as migrated:
            (run,) = migrated.runs()
            assert run.settings == {"exemplars": "buckets", "shown": 2} and run.policy_state == b"state"
            judged, answered, asked = migrated.trials(run)
            assert (judged.state, judged.asked.text, judged.reply, judged.analysis) == (
                "judged",
                "make it faster",
                "a reply",
                "slow",
            )
            assert judged.verdict is not None and judged.confirmation is not None
            assert (judged.verdict.machine, judged.confirmation.speed_up) == ("x86-16", SpeedUp(1.9, 1.8, 2.1, True, 8))
            assert migrated.open_trials(run) == [answered, asked]
            assert (answered.reply, answered.parent) == ("another", source(1).hash)
            assert answered.asked.text == "faster " * 1000
            assert migrated.candidate(source(1).hash) == source(1)
            assert migrated.unlearnt(run) == [], "whatever was judged then was learnt then"
            assert migrated._database.execute("PRAGMA foreign_keys").fetchone() == (1,)
            assert migrated._database.execute("PRAGMA foreign_key_check").fetchall() == []
    with Archive.open(path) as migrated:
        migrated.publish(judged, b"a receipt")
        assert migrated.published(judged) == b"a receipt"
        assert tried(migrated, run, source(3), ok(2.0)).number == 4
        with pytest.raises(ArchiveError, match="does not hold"):
            tried(migrated, run, source(4), ok(2.0), duplicate_of=12345)


def test_a_migration_that_fails_leaves_the_old_file_as_it_was(
    archive: Archive, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(archive)
    facts = everything(archive)
    archive.close()
    known = archive_schema.MIGRATIONS
    broken = [*known, ("CREATE TABLE extra (x)",), ("INSERT INTO absent VALUES (1)",)]
    monkeypatch.setattr(archive_schema, "MIGRATIONS", broken)
    with pytest.raises(ArchiveError, match="absent"):
        Archive.open(path)
    monkeypatch.setattr(archive_schema, "MIGRATIONS", known)
    with Archive.open(path) as old:
        assert everything(old) == facts
