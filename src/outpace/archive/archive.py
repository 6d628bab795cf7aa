"""Archive: every prompt, reply, source, verdict, sample and cost of all runs, in one SQLite file."""

from __future__ import annotations

import json
import reprlib
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from outpace.archive.reading import Reading
from outpace.archive.records import (
    RunRecord,
    Trial,
    canonical_json,
    pack_candidate,
    pack_shown,
    pack_text,
)
from outpace.archive.schema import prefer_wal, told, transaction
from outpace.archive.statements import add_cost, insert, insert_task, insert_verdict, keep_state
from outpace.cost import Cost
from outpace.errors import ArchiveError
from outpace.judge.verdict import Verdict
from outpace.scored import Scored
from outpace.task import Task
from outpace.task.candidate import Candidate


class Archive(Reading):
    """Facts only: each method that writes is one transaction, so a kill at any moment loses none halfway.

    Several processes may use one file. Records are frozen: a method that changes a trial returns it anew,
    and refuses a trial that another process has meanwhile answered or judged.
    """

    # Tasks and runs

    def remember_task(self, task: Task) -> None:
        """Keep the task's files by its hash; its folder is not recorded."""
        with self._writing() as database:
            insert_task(database, task)

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

    def note(self, run: RunRecord, key: str, value: object) -> None:
        """Keep a small fact of a run, anything JSON can hold, in place of what the key held."""
        with self._writing() as database:
            database.execute(
                "INSERT OR REPLACE INTO notes (run, key, value) VALUES (?, ?, ?)",
                (run.id, key, canonical_json(value)),
            )

    # The life of a trial

    def ask(
        self, run: RunRecord, prompt: str, shown: Sequence[Scored], parent: str | None, replies: int = 1
    ) -> list[Trial]:
        """A prompt and the trials that are to answer it, under the run's next numbers, before the policy is called."""
        with self._writing() as database:
            asked = insert(
                database,
                "INSERT INTO prompts (run, text, shown, parent) VALUES (?, ?, ?, ?)",
                (run.id, pack_text(prompt), pack_shown(shown), parent),
            )
            return [self._new_trial(database, run, asked, parent) for _ in range(replies)]

    def _new_trial(self, database: sqlite3.Connection, run: RunRecord, prompt: int, parent: str | None) -> Trial:
        trial = insert(
            database,
            """INSERT INTO trials (run, number, prompt, state, parent, asked_at)
            SELECT ?, coalesce(max(number), 0) + 1, ?, 'asked', ?, ? FROM trials WHERE run = ?""",
            (run.id, prompt, parent, self._clock(), run.id),
        )
        database.execute("INSERT INTO texts (trial) VALUES (?)", (trial,))
        return self.trial(trial)

    def answer(self, trial: Trial, reply: str, cost: Cost, *, policy_state: bytes | None = None) -> Trial:
        """Keep the policy's reply, in place of one before, with what it cost and what the policy remembers."""
        with self._writing() as database:
            self._refuse_stale(trial)
            add_cost(database, trial, cost)
            database.execute("UPDATE trials SET state = 'answered' WHERE id = ?", (trial.id,))
            database.execute("UPDATE texts SET reply = ? WHERE trial = ?", (pack_text(reply), trial.id))
            keep_state(database, trial.run, policy_state)
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
        parent: str | None = None,
        duplicate_of: int | None = None,
    ) -> Trial:
        """Keep the verdict and the sources together; `parent` is what the reply started from, if it named another."""
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
                """UPDATE trials SET state = 'judged', candidate = ?, parent = coalesce(?, parent), duplicate_of = ?,
                judged_at = ?, verdict = ? WHERE id = ?""",
                (
                    candidate_hash,
                    parent,
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
            return self.trial(trial.id)

    def learn(self, group: Sequence[Trial], policy_state: bytes) -> None:
        """Keep that the policy has learnt from these trials, all of one prompt, with what it remembers now."""
        with self._writing() as database:
            database.execute("UPDATE prompts SET learnt = 1 WHERE id = ?", (group[0].asked.id,))
            keep_state(database, group[0].run, policy_state)

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

    def _refuse_stale(self, trial: Trial) -> None:
        known = self.trial(trial.id)
        if known.state == "judged" or known.reply != trial.reply:
            raise ArchiveError(
                f"trial {known.number} was meanwhile {known.state} by another process: "
                "let one process at a time work on a run, or give this one another name"
            )

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
