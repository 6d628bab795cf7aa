"""Archive statements: the inserts and updates that the archive's transactions are made of."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Sequence

from outpace.archive.records import COST_COLUMNS, Trial, pack_samples, pack_verdict
from outpace.cost import Cost
from outpace.judge.verdict import Verdict
from outpace.task import Task


def insert_task(database: sqlite3.Connection, task: Task) -> None:
    """Keep a task's files, once."""
    if database.execute("SELECT 1 FROM tasks WHERE hash = ?", (task.hash,)).fetchone():
        return
    database.execute("INSERT INTO tasks (hash, name) VALUES (?, ?)", (task.hash, task.name))
    database.executemany(
        "INSERT INTO task_files (task, name, content) VALUES (?, ?, ?)",
        [(task.hash, name, zlib.compress(content)) for name, content in task.files.items()],
    )


def insert_verdict(
    database: sqlite3.Connection, trial: Trial, candidate: str | None, verdict: Verdict, *, confirmation: bool
) -> int:
    """Add a verdict with its samples, which are kept once by their hash; gives its id."""
    digest = None
    if verdict.buckets:
        samples = pack_samples(verdict.buckets)
        digest = hashlib.sha256(samples).digest()
        database.execute("INSERT OR IGNORE INTO samples (digest, data) VALUES (?, ?)", (digest, zlib.compress(samples)))
    return insert(
        database,
        """INSERT INTO verdicts (trial, run, task, candidate, confirmation, samples,
            outcome, reason, ratio, low, high, win, buckets, seconds, machine)
        SELECT ?, id, task, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(nullif(?, ''), machine_key)
        FROM runs WHERE id = ?""",
        (trial.id, candidate, confirmation, digest, *pack_verdict(verdict), trial.run),
    )


def insert(database: sqlite3.Connection, statement: str, values: Sequence[object]) -> int:
    """Add one row; gives its id."""
    number = database.execute(statement, values).lastrowid
    assert number is not None  # only before a connection's first insert
    return number


def add_cost(database: sqlite3.Connection, trial: Trial, cost: Cost) -> None:
    """Add to the costs of a trial, and to the sums of its run."""
    sums = ", ".join(f"{name} = {name} + ?" for name in COST_COLUMNS)
    values = [getattr(cost, name) for name in COST_COLUMNS]
    for table, number in (("trials", trial.id), ("runs", trial.run)):
        database.execute(f"UPDATE {table} SET {sums} WHERE id = ?", (*values, number))


def keep_state(database: sqlite3.Connection, run: int, state: bytes | None) -> None:
    """Keep what the policy of a run remembers, where that is told."""
    if state is not None:
        database.execute("UPDATE runs SET policy_state = ? WHERE id = ?", (state, run))
