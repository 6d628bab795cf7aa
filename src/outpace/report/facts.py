"""Facts: what the report needs of a run, read from the archive once, so that everything after is pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outpace.archive import Reading, RunRecord, Trial
from outpace.claims import confirmation
from outpace.claims.publish import published
from outpace.claims.receipt import Receipt
from outpace.errors import TaskError
from outpace.judge.verdict import SpeedUp, Verdict
from outpace.run import ENDED
from outpace.scored import Scored
from outpace.task import Task, variation
from outpace.task.candidate import Candidate, reference
from outpace.task.file import make_task
from outpace.task.variation import Point


@dataclass(frozen=True)
class Facts:
    """A run as it stood when the page was written; prompts and replies are left out, for no figure shows them."""

    run: RunRecord
    # None where this version cannot read the stored task file; then there is no reference to compare with.
    task: Task | None
    trials: tuple[Trial, ...]
    best: Scored | None
    # The sources of `best`, if it is a win.
    winner: Candidate | None
    # What was published of the winner, from the archive; the file beside it is for others to verify.
    receipt: Receipt | None
    receipt_name: str
    # Why that file is not what was published, or "".
    receipt_problem: str
    ablation: Mapping[str, Any] | None
    # Why the run ended; "" while it goes on, or where it was killed.
    ended: str
    # Whether a judge was at work on this run.
    judging: bool
    written_at: float

    @property
    def reference(self) -> Candidate | None:
        """The task's own sources."""
        return None if self.task is None else reference(self.task)

    @property
    def points(self) -> tuple[Point, ...]:
        """The task's variation points, as far as they can be read."""
        try:
            return () if self.task is None else variation.points(self.task)
        except TaskError:
            return ()

    @property
    def leading_trial(self) -> Trial | None:
        """The trial that found the fastest candidate, winner or not."""
        return next((trial for trial in self.trials if self.best is not None and trial.id == self.best.trial), None)

    @property
    def winning_trial(self) -> Trial | None:
        """The trial that found the winner."""
        return None if self.winner is None else self.leading_trial

    @property
    def confirmed(self) -> Verdict | None:
        """What the winner may claim: its confirmation, if that is a win too."""
        trial = self.winning_trial
        return None if trial is None or confirmation.confirmed(trial) is None else trial.confirmation

    @property
    def claim(self) -> SpeedUp | None:
        """The speed-up that is published."""
        return None if self.confirmed is None else self.confirmed.speed_up

    @property
    def open_trial(self) -> Trial | None:
        """The first trial without a verdict."""
        return next((trial for trial in self.trials if trial.state != "judged"), None)


def gather(archive: Reading, run: RunRecord, *, receipt: Path, now: float, judge_alive: bool) -> Facts:
    """Everything the page tells of this run; `receipt` is where the run leaves its receipt."""
    # The leader before the trials: a run that goes on adds trials, and the leader must be among those read.
    best = archive.best(run)
    winner = archive.candidate(best.hash) if best is not None and best.win else None
    trials = tuple(
        dataclasses.replace(trial, asked=dataclasses.replace(trial.asked, text=""), reply=None)
        for trial in archive.trials(run)
    )
    content = None if best is None else archive.published(archive.trial(best.trial))
    found = None if best is None else published(archive, archive.trial(best.trial))
    notes = archive.notes(run)
    ablation = notes.get("ablation")
    about_winner = isinstance(ablation, dict) and winner is not None and ablation.get("candidate") == winner.hash
    return Facts(
        run=run,
        task=_task(archive, run),
        trials=trials,
        best=best,
        winner=winner,
        receipt=found,
        receipt_name=receipt.name,
        receipt_problem="" if content is None else _problem(receipt, content),
        ablation=ablation if about_winner else None,
        ended=str(notes.get(ENDED) or ""),
        judging=judge_alive and not _busy_elsewhere(archive, run, trials),
        written_at=now,
    )


def _task(archive: Reading, run: RunRecord) -> Task | None:
    try:
        return make_task(Path(run.task_name), archive.task_files(run.task_hash))
    except (TaskError, KeyError):
        return None


def _problem(path: Path, published: bytes) -> str:
    try:
        same = path.read_bytes() == published
    except OSError:
        return f"{path.name} is missing; the same `outpace run` command writes it again."
    return "" if same else f"{path.name} is not what the run published; the same `outpace run` command writes it again."


def _busy_elsewhere(archive: Reading, run: RunRecord, trials: tuple[Trial, ...]) -> bool:
    """Whether another run of this archive asked something after the last that happened here."""
    last = max((trial.judged_at or trial.asked_at for trial in trials), default=run.started_at)
    others = (archive.open_trials(other, 1) for other in archive.runs() if other.id != run.id)
    return any(trial.asked_at > last for waiting in others for trial in waiting)
