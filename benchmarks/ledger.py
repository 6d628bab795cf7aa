"""The ledger: what an archive holds of a run after a kill, and what is wrong with it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path

from outpace.archive import Archive, Trial
from outpace.errors import ArchiveError


@dataclass(frozen=True)
class Ledger:
    """What an archive holds of its run, from a copy, so that the file itself is recovered by the next process."""

    trials: tuple[Trial, ...] = ()
    verdicts: tuple[tuple[int, int], ...] = ()
    faults: tuple[str, ...] = ()


def read_ledger(folder: Path, most_open: int) -> Ledger:
    """The state of the archive after a kill, with so many trials open at most, and everything that is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="outpace-copy-") as copy:
        for path in folder.glob("archive.sqlite*"):
            shutil.copy(path, copy)
        path = Path(copy) / "archive.sqlite"
        if not path.exists():
            return Ledger()
        try:
            with Archive.open(path) as archive:
                trials = tuple(archive.trials())
        except ArchiveError as fault:
            return Ledger(faults=(str(fault),))
        with contextlib.closing(sqlite3.connect(path)) as database:
            faults = [row[0] for row in database.execute("PRAGMA integrity_check") if row[0] != "ok"]
            faults += [f"dangling {row}" for row in database.execute("PRAGMA foreign_key_check")]
            query = "SELECT trial, count(*) FROM verdicts WHERE NOT confirmation GROUP BY trial ORDER BY trial"
            verdicts = tuple(database.execute(query))
    numbers = [trial.number for trial in trials]
    if numbers != list(range(1, len(trials) + 1)):
        faults.append(f"trials are numbered {numbers}")
    waiting = [trial.number for trial in trials if trial.state != "judged"]
    if waiting != numbers[len(numbers) - len(waiting) :] or len(waiting) > most_open:
        faults.append(f"trials {waiting} were left open, of {len(trials)}")
    judged = tuple((trial.id, 1) for trial in trials if trial.state == "judged")
    if verdicts != judged:
        faults.append(f"verdicts per trial are {verdicts}, judged are {judged}")
    return Ledger(trials, verdicts, tuple(faults))


KEPT = ("id", "number", "asked", "reply", "candidate", "verdict", "confirmation")


def taken_back(before: Ledger, after: Ledger) -> list[str]:
    """What was stored and is no more, or is otherwise."""
    if len(after.trials) < len(before.trials):
        return [f"{len(before.trials)} trials became {len(after.trials)}"]
    lost = []
    for old, new in zip(before.trials, after.trials, strict=False):
        # Which candidate it started from is known when the reply was read.
        for name in (*KEPT, *(["parent"] if old.state == "judged" else [])):
            stored, now = getattr(old, name), getattr(new, name)
            if stored is not None and stored != now:
                lost.append(f"{name} of trial {old.number} changed")
    return lost
