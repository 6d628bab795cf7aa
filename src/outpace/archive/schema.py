"""Archive schema: the SQLite file, its numbered migrations, and its faults told in one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from outpace.errors import ArchiveError
from outpace.shown import shown_text

# "Outp", in the file's header: keeps us from writing into another program's database.
APPLICATION_ID = 0x4F757470
BUSY_SECONDS = 30.0
# An SQLite page has at least this many bytes.
SMALLEST_BYTES = 512

# Step n brings a file from version n to n + 1. A step that was released is never changed.
MIGRATIONS: list[tuple[str, ...]] = [
    (
        "CREATE TABLE tasks (hash TEXT PRIMARY KEY, name TEXT NOT NULL)",
        """CREATE TABLE task_files (
            task TEXT NOT NULL REFERENCES tasks, name TEXT NOT NULL, content BLOB NOT NULL,
            PRIMARY KEY (task, name))""",
        # The seed is text because SQLite's integers end at 2^63. The costs are the sums over the trials: they are
        # asked for several times a trial, and adding up 10,000 trials takes 3 ms each time.
        """CREATE TABLE runs (
            id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, task TEXT NOT NULL REFERENCES tasks,
            policy TEXT NOT NULL, settings TEXT NOT NULL, seed TEXT NOT NULL, machine TEXT NOT NULL,
            machine_key TEXT NOT NULL, started_at REAL NOT NULL, policy_state BLOB NOT NULL,
            tokens_in INTEGER NOT NULL DEFAULT 0, tokens_out INTEGER NOT NULL DEFAULT 0,
            money REAL NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0,
            calls INTEGER NOT NULL DEFAULT 0, failed_calls INTEGER NOT NULL DEFAULT 0,
            estimated_calls INTEGER NOT NULL DEFAULT 0,
            UNIQUE (name, task))""",
        """CREATE TABLE candidates (
            hash TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, files BLOB NOT NULL, flags TEXT NOT NULL)""",
        # Kept, for making the fingerprints of 10,000 sources anew would take seconds at every start.
        "CREATE INDEX lookalikes ON candidates (fingerprint)",
        # Long texts live in a table of their own, so that counting and summing read few pages.
        """CREATE TABLE trials (
            id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs,
            number INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ('asked', 'answered', 'judged')),
            exemplars TEXT NOT NULL, parent TEXT, candidate TEXT REFERENCES candidates,
            verdict INTEGER REFERENCES verdicts, confirmation INTEGER REFERENCES verdicts,
            duplicate_of INTEGER REFERENCES trials,
            tokens_in INTEGER NOT NULL DEFAULT 0, tokens_out INTEGER NOT NULL DEFAULT 0,
            money REAL NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0,
            calls INTEGER NOT NULL DEFAULT 0, failed_calls INTEGER NOT NULL DEFAULT 0,
            estimated_calls INTEGER NOT NULL DEFAULT 0,
            asked_at REAL NOT NULL, judged_at REAL,
            UNIQUE (run, number))""",
        "CREATE INDEX open_trials ON trials (run, number) WHERE state <> 'judged'",
        """CREATE TABLE texts (
            trial INTEGER PRIMARY KEY REFERENCES trials, prompt BLOB NOT NULL, reply BLOB,
            analysis BLOB NOT NULL DEFAULT '', design BLOB NOT NULL DEFAULT '')""",
        # By their hash: a verdict that is reused shares its samples.
        "CREATE TABLE samples (digest BLOB PRIMARY KEY, data BLOB NOT NULL)",
        # Rows are only ever added, so whoever has read up to an id has read all before it.
        """CREATE TABLE verdicts (
            id INTEGER PRIMARY KEY AUTOINCREMENT, trial INTEGER NOT NULL REFERENCES trials,
            task TEXT NOT NULL, run INTEGER NOT NULL, candidate TEXT, confirmation INTEGER NOT NULL,
            outcome TEXT NOT NULL, ratio REAL, low REAL, high REAL, win INTEGER, buckets INTEGER,
            seconds REAL, samples BLOB REFERENCES samples, reason BLOB NOT NULL)""",
        """CREATE INDEX scores ON verdicts (task, id)
            WHERE candidate IS NOT NULL AND (ratio IS NOT NULL OR confirmation)""",
        "CREATE INDEX judged ON verdicts (candidate, task)",
        # Asked for several times a trial; without these two each time would read the whole run.
        "CREATE INDEX outcomes ON verdicts (run, confirmation, outcome)",
        "CREATE INDEX failures ON verdicts (run, id) WHERE NOT confirmation AND outcome <> 'ok'",
        """CREATE TABLE notes (
            run INTEGER NOT NULL REFERENCES runs, key TEXT NOT NULL, value TEXT NOT NULL,
            PRIMARY KEY (run, key))""",
    ),
    # Sources that differ in comments alone no longer share a verdict, for they may behave differently. A new table
    # instead of DROP COLUMN, which SQLite has only since 3.35.
    (
        "DROP INDEX lookalikes",
        "CREATE TABLE kept_candidates (hash TEXT PRIMARY KEY, files BLOB NOT NULL, flags TEXT NOT NULL)",
        "INSERT INTO kept_candidates SELECT hash, files, flags FROM candidates ORDER BY rowid",
        "DROP TABLE candidates",
        "ALTER TABLE kept_candidates RENAME TO candidates",
    ),
    (
        # What was published on a confirmation, byte by byte, so that it is said again as it was.
        """CREATE TABLE claims (
            confirmation INTEGER PRIMARY KEY REFERENCES verdicts, receipt BLOB NOT NULL,
            published_at REAL NOT NULL)""",
    ),
    # A prompt is a thing of its own, which several trials may answer, with what it showed as it was then; a trial has
    # the parent that its reply named; each verdict tells on which kind of machine it was found.
    (
        """CREATE TABLE prompts (
            id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs, text BLOB NOT NULL,
            shown TEXT NOT NULL, parent TEXT, learnt INTEGER NOT NULL DEFAULT 0)""",
        """INSERT INTO prompts SELECT t.id, t.run, x.prompt, t.exemplars, t.parent, t.state = 'judged'
            FROM trials t JOIN texts x ON x.trial = t.id ORDER BY t.id""",
        """CREATE TABLE kept_trials (
            id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs,
            number INTEGER NOT NULL, prompt INTEGER NOT NULL REFERENCES prompts,
            state TEXT NOT NULL CHECK (state IN ('asked', 'answered', 'judged')),
            parent TEXT, candidate TEXT REFERENCES candidates,
            verdict INTEGER REFERENCES verdicts, confirmation INTEGER REFERENCES verdicts,
            duplicate_of INTEGER REFERENCES trials,
            tokens_in INTEGER NOT NULL DEFAULT 0, tokens_out INTEGER NOT NULL DEFAULT 0,
            money REAL NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0,
            calls INTEGER NOT NULL DEFAULT 0, failed_calls INTEGER NOT NULL DEFAULT 0,
            estimated_calls INTEGER NOT NULL DEFAULT 0,
            asked_at REAL NOT NULL, judged_at REAL,
            UNIQUE (run, number))""",
        """INSERT INTO kept_trials SELECT id, run, number, id, state, parent, candidate, verdict, confirmation,
            duplicate_of, tokens_in, tokens_out, money, seconds, calls, failed_calls, estimated_calls, asked_at,
            judged_at FROM trials ORDER BY id""",
        "DROP TABLE trials",
        "ALTER TABLE kept_trials RENAME TO trials",
        "CREATE INDEX open_trials ON trials (run, number) WHERE state <> 'judged'",
        "CREATE INDEX replies ON trials (prompt)",
        "CREATE INDEX unlearnt ON prompts (run) WHERE NOT learnt",
        """CREATE TABLE kept_texts (
            trial INTEGER PRIMARY KEY REFERENCES trials, reply BLOB,
            analysis BLOB NOT NULL DEFAULT '', design BLOB NOT NULL DEFAULT '')""",
        "INSERT INTO kept_texts SELECT trial, reply, analysis, design FROM texts ORDER BY trial",
        "DROP TABLE texts",
        "ALTER TABLE kept_texts RENAME TO texts",
        "ALTER TABLE verdicts ADD COLUMN machine TEXT NOT NULL DEFAULT ''",
        "UPDATE verdicts SET machine = (SELECT machine_key FROM runs WHERE runs.id = verdicts.run)",
        # Groups were four trials in a row, whatever they had been asked.
        "UPDATE runs SET settings = replace(settings, '\"group\":4,', '')",
    ),
]


def connect(path: Path) -> sqlite3.Connection:
    """Open a file, new or old, and bring it to the newest version; an up-to-date file is only read."""
    with told(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise ArchiveError(
                f"cannot make the folder {path.parent} for the archive ({fault.strerror}): "
                "name an archive in a folder you may write to"
            ) from fault
        _refuse_scrap(path)
        # Absolute, because SQLite takes the name ":memory:" for no file at all.
        database = sqlite3.connect(path.absolute(), timeout=BUSY_SECONDS, isolation_level=None)
        try:
            # A reply may have cost money: it is to survive a power cut too, for one fsync a step.
            database.execute("PRAGMA synchronous = FULL")
            # Without references, which a table that is replaced would break for a moment.
            database.execute("PRAGMA foreign_keys = OFF")
            _migrate(database, path)
            database.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            database.close()
            raise
        return database


def _refuse_scrap(path: Path) -> None:
    # SQLite takes a file of one byte for an empty database and writes over it. Only its size is asked for:
    # to open and close the file here would drop the locks that another connection of this process holds.
    if path.is_file() and 0 < path.stat().st_size < SMALLEST_BYTES:
        raise ArchiveError(f"{path} is not an archive: name another file")


def _refuse_cut(database: sqlite3.Connection, path: Path) -> None:
    # SQLite itself reads the missing end of a last page as zeros. With a log beside it the file may be
    # shorter than the database is, rightly; SQLite keeps the log where a link leads.
    real = path.resolve()
    log = real.with_name(f"{real.name}-wal")
    pages, page = (int(database.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
    size = path.stat().st_size
    if size < pages * page and not (log.exists() and log.stat().st_size):
        raise ArchiveError(damaged(path, f"cut off after {size} of {pages * page} bytes"))


def _migrate(database: sqlite3.Connection, path: Path) -> None:
    with transaction(database, "BEGIN"):
        version = _version(database, path)
        _refuse_cut(database, path)
    if version == len(MIGRATIONS):
        return
    with transaction(database, "BEGIN IMMEDIATE"):
        # Read again under the lock: another process may have migrated meanwhile.
        for step in MIGRATIONS[_version(database, path) :]:
            for statement in step:
                database.execute(statement)
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(database: sqlite3.Connection, path: Path) -> int:
    application = int(database.execute("PRAGMA application_id").fetchone()[0])
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    tables = int(database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if (application, version, tables) == (0, 0, 0):
        return 0
    if application != APPLICATION_ID:
        raise ArchiveError(f"{path} is a database of another program: name another file for the archive")
    if version > len(MIGRATIONS):
        raise ArchiveError(
            f"{path} is of version {version} and this Outpace knows up to {len(MIGRATIONS)}: "
            "upgrade outpace, or name another archive"
        )
    return version


def prefer_wal(database: sqlite3.Connection) -> None:
    """Let readers go on while one writes; left for the first write, so that reading changes no byte."""
    # The switch needs the file for itself for a moment. Without it all is as safe, only slower;
    # any other fault shows again in the write that follows.
    with suppress(sqlite3.OperationalError):
        database.execute("PRAGMA journal_mode = WAL").fetchone()


@contextmanager
def transaction(database: sqlite3.Connection, begin: str) -> Iterator[None]:
    """All of the block, or, whatever is raised in it, nothing of it."""
    database.execute(begin)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        # SQLite may have rolled back by itself, as it does on a full disk.
        if database.in_transaction:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
        raise


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn SQLite's faults into one line that says what to do."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a fault of ours
    except sqlite3.DatabaseError as fault:
        raise ArchiveError(_advice(path, fault)) from fault
    except UnicodeDecodeError as fault:
        # Python's, over a message of SQLite that quotes a name from a damaged schema.
        raise ArchiveError(damaged(path, "its schema is not text")) from fault
    except UnicodeEncodeError as fault:
        raise ArchiveError(f"{fault.object!r} cannot be stored in {path}: use plain Unicode text") from fault


def _advice(path: Path, fault: sqlite3.DatabaseError) -> str:
    # Faults that Python itself raises, such as text that is not UTF-8, carry no code.
    code = getattr(fault, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"another process kept {path} locked for {BUSY_SECONDS:g} s: let it end, then try again"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return f"{path} cannot be written to: make the file and its folder writable, or copy it elsewhere"
        case sqlite3.SQLITE_CANTOPEN if path.is_dir():
            return f"{path} is a folder: name a file for the archive"
        case sqlite3.SQLITE_CANTOPEN:
            return f"{path} cannot be opened: make its folder writable, or use an archive in another folder"
        case sqlite3.SQLITE_FULL:
            return f"no space left for {path}: free some and run this again; what was recorded is kept"
        case sqlite3.SQLITE_IOERR:
            return (
                f"{path} could not be read or written ({fault}): check the disk and its free space, "
                "then run this again; what was recorded is kept"
            )
        case sqlite3.SQLITE_NOTADB:
            return f"{path} is not an archive: name another file"
        case sqlite3.SQLITE_CONSTRAINT:
            return f"{path} does not hold what this refers to ({fault}): use records of this archive only"
        case _:
            return damaged(path, str(fault))


def damaged(path: Path, what: str) -> str:
    """What to say of a file whose content cannot be what we wrote."""
    # SQLite quotes what it stumbles over, which may be long and hold anything; this is to be one line.
    line = " ".join(shown_text(what[:100]).split())
    return f"{path} is damaged ({line}): restore a copy, or move it away to start a new archive"
