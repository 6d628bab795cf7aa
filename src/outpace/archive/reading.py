"""Reading: what an archive tells of its runs, trials, candidates, verdicts and costs."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
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
    unpack_candidate,
    unpack_run,
    unpack_trial,
    unpack_verdict,
)
from outpace.archive.schema import connect, damaged, told
from outpace.archive.scores import SCORE_COLUMNS, Scores, best
from outpace.cost import Cost
from outpace.errors import ArchiveError
from outpace.judge.verdict import TELLS_NOTHING, Verdict
from outpace.scored import Scored
from outpace.task.candidate import Candidate

T = TypeVar("T")
PAGE_TRIALS = 100


class Reading:
    """All that an archive tells; whoever only reads it is given no more. One object, one thread."""

    def __init__(self, database: sqlite3.Connection, path: Path, clock: Callable[[], float]) -> None:
        self.path = path
        self._database = database
        self._clock = clock
        self._written = False
        self._scores: dict[tuple[str, int | None], Scores] = {}

    @classmethod
    def open(cls, path: Path | str, *, clock: Callable[[], float] = time.time) -> Self:
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

    def task_files(self, task_hash: str) -> dict[str, bytes]:
        """The files of a task as they were when it was remembered."""
        rows = self._rows("SELECT name, content FROM task_files WHERE task = ?", task_hash)
        if not rows and not self._rows("SELECT 1 FROM tasks WHERE hash = ?", task_hash):
            raise ArchiveError(f"{self.path} has no task {task_hash}: run it once, or name another archive")
        return {name: self._unpacked(zlib.decompress, content) for name, content in rows}

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

    def notes(self, run: RunRecord) -> dict[str, Any]:
        """The facts noted of a run, by key."""
        rows = self._rows("SELECT key, value FROM notes WHERE run = ? ORDER BY key", run.id)
        return {key: self._unpacked(json.loads, value) for key, value in rows}

    # Trials

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
        if number >= 1 << 63:
            return None  # no number to SQLite
        rows = self._rows(f"{TRIAL_SELECT} WHERE t.run = ? AND t.number = ?", run.id, number)
        return self._unpacked(unpack_trial, rows[0]) if rows else None

    def count(self, run: RunRecord) -> int:
        """How many trials were asked, open ones included."""
        return int(self._rows("SELECT count(*) FROM trials WHERE run = ?", run.id)[0][0])

    def open_trials(self, run: RunRecord, limit: int = -1) -> list[Trial]:
        """The run's first trials without a verdict: what waits for a reply, or for the judge."""
        rows = self._rows(
            f"{TRIAL_SELECT} WHERE t.run = ? AND t.state <> 'judged' ORDER BY t.number LIMIT ?", run.id, limit
        )
        return [self._unpacked(unpack_trial, row) for row in rows]

    def unlearnt(self, run: RunRecord) -> list[list[Trial]]:
        """The groups whose last verdict has come and from which the policy has not learnt, the first asked first."""
        rows = self._rows(
            """SELECT id FROM prompts WHERE run = ? AND NOT learnt
            AND NOT EXISTS (SELECT 1 FROM trials WHERE prompt = prompts.id AND state <> 'judged') ORDER BY id""",
            run.id,
        )
        return [
            [
                self._unpacked(unpack_trial, row)
                for row in self._rows(f"{TRIAL_SELECT} WHERE t.prompt = ? ORDER BY t.number", prompt)
            ]
            for (prompt,) in rows
        ]

    def candidate(self, candidate_hash: str) -> Candidate:
        """The sources of this hash."""
        rows = self._rows("SELECT files, flags FROM candidates WHERE hash = ?", candidate_hash)
        if not rows:
            raise ArchiveError(f"{self.path} has no candidate {candidate_hash}: use a hash that it listed")
        candidate = self._unpacked(unpack_candidate, rows[0])
        if self._unpacked(lambda one: one.hash, candidate) != candidate_hash:
            raise ArchiveError(damaged(self.path, f"the sources of {candidate_hash} have another hash"))
        return candidate

    def published(self, trial: Trial) -> bytes | None:
        """The receipt of a trial's newest confirmation, byte by byte, if one was published."""
        rows = self._rows("SELECT receipt FROM claims JOIN trials USING (confirmation) WHERE trials.id = ?", trial.id)
        return self._unpacked(zlib.decompress, rows[0][0]) if rows else None

    # Verdicts

    def find_verdict(
        self, task_hash: str, candidate_hash: str, machine_key: str, *, aim: Aim = FASTER
    ) -> tuple[int, Verdict] | None:
        """The newest verdict found on such a machine on these sources in a run of this aim, with its trial's id.

        One that tells nothing is no answer: that was the machine's doing or ours, and it may be otherwise now.
        """
        runs = self._rows("SELECT id, settings FROM runs WHERE task = ?", task_hash)
        alike = [str(number) for number, kept in runs if aim_of(self._unpacked(json.loads, kept)) is aim]
        rows = self._rows(
            f"""SELECT v.trial, {VERDICT_COLUMNS} FROM verdicts v
            JOIN trials t ON t.id = v.trial
            LEFT JOIN samples vs ON vs.digest = v.samples
            WHERE v.candidate = ? AND v.task = ? AND v.run IN ({", ".join(alike)}) AND v.machine = ?
            AND v.outcome NOT IN (?, ?) AND (v.confirmation OR t.duplicate_of IS NULL) ORDER BY v.id DESC LIMIT 1""",
            candidate_hash,
            task_hash,
            machine_key,
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

    def _rows(self, query: str, *values: object) -> list[Any]:
        with told(self.path):
            return self._database.execute(query, values).fetchall()

    def _unpacked(self, unpack: Callable[[Any], T], stored: object) -> T:
        try:
            return unpack(stored)
        except (zlib.error, ValueError, TypeError, AttributeError) as fault:
            raise ArchiveError(damaged(self.path, f"{type(fault).__name__}: {fault}")) from fault
