"""Archive: every prompt, reply, source, verdict, sample and cost of all runs, in one SQLite file."""

from __future__ import annotations

import json
import os
import reprlib
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from outpace.aim import FASTER, Aim, aim_of
from outpace.archive.records import (
    COST_COLUMNS,
    RUN_COLUMNS,
    TRIAL_SELECT,
    VERDICT_COLUMNS,
    RunRecord,
    Trial,
    canonical_json,
    pack_candidate,
    pack_text,
    unpack_candidate,
    unpack_run,
    unpack_trial,
    unpack_verdict,
)
from outpace.archive.schema import connect, damaged, prefer_wal, told, transaction
from outpace.archive.scores import SCORE_COLUMNS, Scores, best
from outpace.archive.statements import add_cost, insert, insert_task, insert_verdict, keep_state
from outpace.cost import Cost
from outpace.errors import ArchiveError
from outpace.judge.verdict import TELLS_NOTHING, Verdict
from outpace.scored import Scored
from outpace.task import Task
from outpace.task.candidate import Candidate

T = TypeVar("T")
PAGE_TRIALS = 100


class Archive:
    """Facts only: each method that writes is one transaction, so a kill at any moment loses none halfway.

    Several processes may use one file. Records are frozen: a method that changes a trial returns it anew,
    and refuses a trial that another process has meanwhile answered or judged. One object, one thread.
    """

    def __init__(self, database: sqlite3.Connection, path: Path, clock: Callable[[], float]) -> None:
        self.path = path
        self._database = database
        self._clock = clock
        self._written = False
        self._scores: dict[tuple[str, int | None], Scores] = {}

    @classmethod
    def open(cls, path: Path | str, *, clock: Callable[[], float] = time.time) -> Archive:
        """The archive in this file, made with its folders where there is none."""
        path = Path(path)
        return cls(connect(path), path, clock)

    def close(self) -> None:
        """Nothing is pending: this only gives the file back."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Tasks and runs

    def remember_task(self, task: Task) -> None:
        """Keep the task's files by its hash; its folder is not recorded."""
        with self._writing() as database:
            insert_task(database, task)

    def task_files(self, task_hash: str) -> dict[str, bytes]:
        """The files of a task as they were when it was remembered."""
        rows = self._rows("SELECT name, content FROM task_files WHERE task = ?", task_hash)
        if not rows and not self._rows("SELECT 1 FROM tasks WHERE hash = ?", task_hash):
            raise ArchiveError(f"{self.path} has no task {task_hash}: run it once, or name another archive")
        return {name: self._unpacked(zlib.decompress, content) for name, content in rows}

    def start_run(
        self,
        name: str,
        task: Task,
        policy: str,
        settings: Mapping[str, Any],
        seed: int,
        machine: Mapping[str, Any],
        *,
        machine_key: str,
    ) -> RunRecord:
        """A new run, or the run of this name and task to go on with, which keeps its seed and machine facts.

        Speeds of two machines do not mix: a run goes on only where `machine_key` is what it was.
        """
        with self._writing() as database:
            insert_task(database, task)
            known = self._find_run(name, task.hash)
            if known is not None:
                _refuse_other_run(known, policy, settings, machine_key)
                return known
            database.execute(
                """INSERT INTO runs
                (name, task, policy, settings, seed, machine, machine_key, started_at, policy_state)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
                (
                    name,
                    task.hash,
                    policy,
                    canonical_json(dict(settings)),
                    str(int(seed)),
                    canonical_json(dict(machine)),
                    machine_key,
                    self._clock(),
                    b"",
                ),
            )
            return self.run(name, task.hash)

    def run(self, name: str, task_hash: str | None = None) -> RunRecord:
        """The run of this name; where several tasks had one, that of `task_hash`, or the newest."""
        found = self._find_run(name, task_hash)
        if found is None:
            names = sorted({run.name for run in self.runs()})
            known = f"it has {', '.join(names)}" if names else "it has none yet"
            raise ArchiveError(f"{self.path} has no run named {name}: {known}")
        return found

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        rows = self._rows(f"SELECT {RUN_COLUMNS} FROM runs JOIN tasks ON hash = task ORDER BY runs.id")
        return [self._unpacked(unpack_run, row) for row in rows]

    def _find_run(self, name: str, task_hash: str | None) -> RunRecord | None:
        rows = self._rows(
            f"""SELECT {RUN_COLUMNS} FROM runs JOIN tasks ON hash = task
            WHERE runs.name = ? AND (? IS NULL OR task = ?) ORDER BY runs.id DESC LIMIT 1""",
            name,
            task_hash,
            task_hash,
        )
        return self._unpacked(unpack_run, rows[0]) if rows else None

    def note(self, run: RunRecord, key: str, value: object) -> None:
        """Keep a small fact of a run, anything JSON can hold, in place of what the key held."""
        with self._writing() as database:
            database.execute(
                "INSERT OR REPLACE INTO notes (run, key, value) VALUES (?, ?, ?)",
                (run.id, key, canonical_json(value)),
            )

    def notes(self, run: RunRecord) -> dict[str, Any]:
        """The facts noted of a run, by key."""
        rows = self._rows("SELECT key, value FROM notes WHERE run = ? ORDER BY key", run.id)
        return {key: self._unpacked(json.loads, value) for key, value in rows}

    # The life of a trial

    def ask(self, run: RunRecord, prompt: str, exemplars: Sequence[str], parent: str | None) -> Trial:
        """A new trial under the run's next number, before the policy is called."""
        with self._writing() as database:
            trial = insert(
                database,
                """INSERT INTO trials (run, number, state, exemplars, parent, asked_at)
                SELECT ?, coalesce(max(number), 0) + 1, 'asked', ?, ?, ? FROM trials WHERE run = ?""",
                (run.id, canonical_json(tuple(exemplars)), parent, self._clock(), run.id),
            )
            database.execute("INSERT INTO texts (trial, prompt) VALUES (?, ?)", (trial, pack_text(prompt)))
            return self.trial(trial)

    def open_trial(self, run: RunRecord) -> Trial | None:
        """The run's first trial without a verdict: what a killed process left to go on with."""
        rows = self._rows(f"{TRIAL_SELECT} WHERE t.run = ? AND t.state <> 'judged' ORDER BY t.number LIMIT 1", run.id)
        return self._unpacked(unpack_trial, rows[0]) if rows else None

    def answer(self, trial: Trial, reply: str, cost: Cost, *, policy_state: bytes | None = None) -> Trial:
        """Keep the policy's reply, in place of one before, with what it cost and what the policy remembers."""
        with self._writing() as database:
            self._refuse_stale(trial)
            add_cost(database, trial, cost)
            database.execute("UPDATE trials SET state = 'answered' WHERE id = ?", (trial.id,))
            database.execute("UPDATE texts SET reply = ? WHERE trial = ?", (pack_text(reply), trial.id))
            keep_state(database, trial, policy_state)
            return self.trial(trial.id)

    def add_cost(self, trial: Trial, cost: Cost) -> Trial:
        """Add what a call cost that gave no reply, or judging, in any state of the trial."""
        with self._writing() as database:
            add_cost(database, trial, cost)
            return self.trial(trial.id)

    def settle(
        self,
        trial: Trial,
        *,
        analysis: str,
        design: str,
        candidate: Candidate | None,
        verdict: Verdict,
        duplicate_of: int | None = None,
        policy_state: bytes | None = None,
    ) -> Trial:
        """Keep the verdict, the sources and the policy's state together, so that none is ever ahead."""
        with self._writing() as database:
            self._refuse_stale(trial)
            candidate_hash = None
            if candidate is not None:
                candidate_hash = candidate.hash
                database.execute(
                    "INSERT OR IGNORE INTO candidates (hash, files, flags) VALUES (?, ?, ?)",
                    (candidate_hash, *pack_candidate(candidate)),
                )
            database.execute(
                """UPDATE trials SET state = 'judged', candidate = ?, duplicate_of = ?, judged_at = ?,
                verdict = ? WHERE id = ?""",
                (
                    candidate_hash,
                    duplicate_of,
                    self._clock(),
                    insert_verdict(database, trial, candidate_hash, verdict, confirmation=False),
                    trial.id,
                ),
            )
            database.execute(
                "UPDATE texts SET analysis = ?, design = ? WHERE trial = ?",
                (pack_text(analysis), pack_text(design), trial.id),
            )
            keep_state(database, trial, policy_state)
            return self.trial(trial.id)

    def confirm(self, trial: Trial, verdict: Verdict) -> Trial:
        """Keep a verdict from fresh processes; the newest is the one shown, older ones stay in the file."""
        with self._writing() as database:
            known = self.trial(trial.id)
            if known.candidate is None:
                raise ArchiveError(f"trial {known.number} has no judged candidate to confirm: judge it first")
            number = insert_verdict(database, known, known.candidate, verdict, confirmation=True)
            database.execute("UPDATE trials SET confirmation = ? WHERE id = ?", (number, trial.id))
            return self.trial(trial.id)

    def publish(self, trial: Trial, receipt: bytes) -> None:
        """Keep the receipt that was made of a trial's confirmation, in place of one that nobody can read any more."""
        with self._writing() as database:
            if self.trial(trial.id).confirmation is None:
                raise ArchiveError(f"trial {trial.number} is not confirmed, so there is nothing to publish of it")
            database.execute(
                """INSERT OR REPLACE INTO claims (confirmation, receipt, published_at)
                SELECT confirmation, ?, ? FROM trials WHERE id = ?""",
                (zlib.compress(receipt), self._clock(), trial.id),
            )

    def published(self, trial: Trial) -> bytes | None:
        """The receipt of a trial's newest confirmation, byte by byte, if one was published."""
        rows = self._rows("SELECT receipt FROM claims JOIN trials USING (confirmation) WHERE trials.id = ?", trial.id)
        return self._unpacked(zlib.decompress, rows[0][0]) if rows else None

    def _refuse_stale(self, trial: Trial) -> None:
        known = self.trial(trial.id)
        if known.state == "judged" or known.reply != trial.reply:
            raise ArchiveError(
                f"trial {known.number} was meanwhile {known.state} by another process: "
                "let one process at a time work on a run, or give this one another name"
            )

    # Reading

    def trials(self, run: RunRecord | None = None, task_hash: str | None = None, since: int = 0) -> Iterator[Trial]:
        """The trials with an id above `since`, in the order they were asked, of one run or task or of all."""
        conditions, values = ["t.id > ?"], list[object]()
        # The plus keeps SQLite from the index on runs, which would have it sort the whole run for every page.
        if run is not None:
            conditions.append("+t.run = ?")
            values.append(run.id)
        if task_hash is not None:
            conditions.append("+t.run IN (SELECT id FROM runs WHERE task = ?)")
            values.append(task_hash)
        query = f"{TRIAL_SELECT} WHERE {' AND '.join(conditions)} ORDER BY t.id LIMIT {PAGE_TRIALS}"
        # Page by page: an unfinished query would keep SQLite from trimming its log, and the caller may write.
        while rows := self._rows(query, since, *values):
            for row in rows:
                # Ids that do not rise, as a damaged tree may give them, would be read round and round.
                if row[0] <= since:
                    raise ArchiveError(damaged(self.path, f"trial {row[0]} comes after trial {since}"))
                since = row[0]
                yield self._unpacked(unpack_trial, row)

    def trial(self, number: int) -> Trial:
        """The trial of this id."""
        rows = self._rows(f"{TRIAL_SELECT} WHERE t.id = ?", number)
        if not rows:
            raise ArchiveError(f"{self.path} has no trial with id {number}: use an id that it listed")
        return self._unpacked(unpack_trial, rows[0])

    def numbered(self, run: RunRecord, number: int) -> Trial | None:
        """The trial of this number in a run, if it has one."""
        rows = self._rows(f"{TRIAL_SELECT} WHERE t.run = ? AND t.number = ?", run.id, number)
        return self._unpacked(unpack_trial, rows[0]) if rows else None

    def count(self, run: RunRecord) -> int:
        """How many trials were asked, open ones included."""
        return int(self._rows("SELECT count(*) FROM trials WHERE run = ?", run.id)[0][0])

    def candidate(self, candidate_hash: str) -> Candidate:
        """The sources of this hash."""
        rows = self._rows("SELECT files, flags FROM candidates WHERE hash = ?", candidate_hash)
        if not rows:
            raise ArchiveError(f"{self.path} has no candidate {candidate_hash}: use a hash that it listed")
        candidate = self._unpacked(unpack_candidate, rows[0])
        if self._unpacked(lambda one: one.hash, candidate) != candidate_hash:
            raise ArchiveError(damaged(self.path, f"the sources of {candidate_hash} have another hash"))
        return candidate

    def find_verdict(
        self, task_hash: str, candidate_hash: str, machine_key: str, *, aim: Aim = FASTER
    ) -> tuple[int, Verdict] | None:
        """The newest verdict measured on these sources in a run of this aim on such a machine, with its trial's id.

        One that tells nothing is no answer: that was the machine's doing or ours, and it may be otherwise now.
        """
        runs = self._rows("SELECT id, settings FROM runs WHERE task = ? AND machine_key = ?", task_hash, machine_key)
        alike = [str(number) for number, kept in runs if aim_of(self._unpacked(json.loads, kept)) is aim]
        rows = self._rows(
            f"""SELECT v.trial, {VERDICT_COLUMNS} FROM verdicts v
            JOIN trials t ON t.id = v.trial
            LEFT JOIN samples vs ON vs.digest = v.samples
            WHERE v.candidate = ? AND v.task = ? AND v.run IN ({", ".join(alike)}) AND v.outcome NOT IN (?, ?)
            AND (v.confirmation OR t.duplicate_of IS NULL) ORDER BY v.id DESC LIMIT 1""",
            candidate_hash,
            task_hash,
            *TELLS_NOTHING,
        )
        if not rows:
            return None
        verdict = self._unpacked(unpack_verdict, rows[0][1:])
        return None if verdict is None else (rows[0][0], verdict)

    def scored(self, task_hash: str, run: RunRecord | None = None) -> list[Scored]:
        """The candidates that are ok, one entry each, first found first; `trial` is the trial's id."""
        return self._up_to_date(task_hash, run).scored()

    def score(self, run: RunRecord, candidate_hash: str) -> Scored | None:
        """A candidate's entry among those of a run, if it is ok there."""
        return self._up_to_date(run.task_hash, run).of(candidate_hash)

    def _up_to_date(self, task_hash: str, run: RunRecord | None) -> Scores:
        scores = self._scores.setdefault((task_hash, run.id if run else None), Scores())
        condition, values = ("AND v.run = ?", [run.id]) if run else ("", [])
        scores.add(
            self._rows(
                f"""SELECT {SCORE_COLUMNS} FROM verdicts v JOIN trials t ON t.id = v.trial
                WHERE v.task = ? AND v.id > ? {condition}
                AND v.candidate IS NOT NULL AND (v.ratio IS NOT NULL OR v.confirmation) ORDER BY v.id""",
                task_hash,
                scores.seen,
                *values,
            )
        )
        return scores

    def best(self, run: RunRecord) -> Scored | None:
        """The run's fastest candidate that is a win, or else its fastest; a run that claims nothing has none."""
        return best(self.scored(run.task_hash, run)) if aim_of(run.settings).claims else None

    def recent_failures(self, run: RunRecord, limit: int) -> list[Trial]:
        """The newest trials that were not ok, newest first."""
        # 'ok' is spelt out, for SQLite uses a partial index only where it can see that its condition holds.
        rows = self._rows(
            f"""{TRIAL_SELECT} WHERE t.id IN (
                SELECT trial FROM verdicts WHERE run = ? AND NOT confirmation AND outcome <> 'ok'
                ORDER BY id DESC LIMIT ?) ORDER BY t.number DESC""",
            run.id,
            max(limit, 0),
        )
        return [self._unpacked(unpack_trial, row) for row in rows]

    def recent_trials(self, run: RunRecord, limit: int) -> list[Trial]:
        """The newest judged trials, oldest of them first."""
        rows = self._rows(
            f"{TRIAL_SELECT} WHERE t.run = ? AND t.state = 'judged' ORDER BY t.number DESC LIMIT ?",
            run.id,
            max(limit, 0),
        )
        return [self._unpacked(unpack_trial, row) for row in reversed(rows)]

    def costs(self, run: RunRecord) -> Cost:
        """What all trials of a run cost, open ones included."""
        return Cost(*self._rows(f"SELECT {', '.join(COST_COLUMNS)} FROM runs WHERE id = ?", run.id)[0])

    def outcome_counts(self, run: RunRecord) -> dict[str, int]:
        """How many trials of a run had each outcome, confirmations apart."""
        rows = self._rows(
            """SELECT outcome, count(*) FROM verdicts WHERE run = ? AND confirmation = 0
            GROUP BY outcome ORDER BY outcome""",
            run.id,
        )
        return dict(rows)

    def compact(self, path_out: Path | str) -> None:
        """Write all of it to a new file, small and without side files."""
        target = Path(path_out)
        part = target.with_name(f"{target.name}.part")
        check = self._rows("PRAGMA quick_check(1)")[0][0]
        if check != "ok":
            raise ArchiveError(damaged(self.path, check))
        # An older copy is not replaced: it might be another archive, or one in use.
        if target.exists():
            raise ArchiveError(f"{target} is there already: name another file for the copy, or remove it")
        with told(target):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                part.unlink(missing_ok=True)
                try:
                    self._database.execute("VACUUM INTO ?", (str(part.absolute()),))
                    # SQLite does not sync this copy by itself.
                    with part.open("rb+") as file:
                        os.fsync(file.fileno())
                    part.replace(target)
                finally:
                    part.unlink(missing_ok=True)
            except OSError as fault:
                raise ArchiveError(
                    f"cannot write {target} ({fault.strerror}): free space or name a file in another folder"
                ) from fault

    # SQLite

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with told(self.path):
            if not self._written:
                prefer_wal(self._database)
            # Immediate: the lock is taken before anything is read, so no number is given out twice.
            with transaction(self._database, "BEGIN IMMEDIATE"):
                # On a file that may not be written the lock is not refused, only a statement that writes; and
                # a run must hear of it when it starts, before the policy is paid for a reply.
                self._database.execute("UPDATE runs SET id = id WHERE false")
                yield self._database
            self._written = True

    def _rows(self, query: str, *values: object) -> list[Any]:
        with told(self.path):
            return self._database.execute(query, values).fetchall()

    def _unpacked(self, unpack: Callable[[Any], T], stored: object) -> T:
        try:
            return unpack(stored)
        except (zlib.error, ValueError, TypeError, AttributeError) as fault:
            raise ArchiveError(damaged(self.path, f"{type(fault).__name__}: {fault}")) from fault


def _refuse_other_run(known: RunRecord, policy: str, settings: Mapping[str, Any], machine_key: str) -> None:
    """The same command goes on with a run; another one must not mix its trials into it."""
    differing = [] if policy == known.policy else [f"policy was {known.policy}, now {policy}"]
    before, now = known.settings, json.loads(canonical_json(dict(settings)))
    differing += [
        f"{key} was {_shown(before, key)}, now {_shown(now, key)}"
        for key in sorted({*before, *now})
        # As text, for a NaN does not equal itself.
        if (key in before) != (key in now) or canonical_json(before[key]) != canonical_json(now[key])
    ]
    if differing:
        raise ArchiveError(
            f"run {known.name} was started otherwise ({'; '.join(differing)}): "
            "use the same again, or give the new run another name"
        )
    if machine_key != known.machine_key:
        raise ArchiveError(
            f"run {known.name} was started on another kind of machine ({known.machine_key}, "
            f"this is {machine_key}): go on with it there, or give the new run another name"
        )


def _shown(settings: Mapping[str, Any], key: str) -> str:
    return reprlib.repr(settings[key]) if key in settings else "unset"
