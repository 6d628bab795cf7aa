"""Publishing: the confirmed winner of a run, beside the reference under its best flags, and its receipt."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from outpace import machine as machine_facts
from outpace.archive import Reading, Trial
from outpace.claims import claim, confirmation
from outpace.claims.receipt import Receipt, is_reference, make_receipt, packed, unpacked, write_receipt
from outpace.errors import ReceiptError
from outpace.judge.baseline import Comparer, beside_best_flags
from outpace.judge.verdict import Verdict
from outpace.machine import Machine
from outpace.run import Run
from outpace.shown import shown
from outpace.task import Task
from outpace.task.candidate import Candidate


class Timer(Comparer, Protocol):
    """Who times the winner beside the best flags, and in which jail."""

    @property
    def jail(self) -> str:
        """The jail's name."""
        ...


@dataclass(frozen=True)
class Publication:
    """What a run may claim; without a receipt it claims nothing."""

    task: str
    trials: int
    outcomes: dict[str, int]
    receipt: Receipt | None = None
    path: Path | None = None
    # Why the leader is not claimed, where it has one.
    unclaimed: str = ""

    def sentence(self) -> str:
        """For people: the claim, what the flags alone are worth, and how to check it."""
        name = shown(self.task)
        if self.receipt is None:
            trials = "1 trial" if self.trials == 1 else f"{self.trials} trials"
            said = f"No candidate of {name} is proven faster than the reference after {trials}."
            return f"{said}\n{shown(self.unclaimed)}" if self.unclaimed else said
        said = f"{name}: " + "\n".join(claim.sentences(self.receipt))
        return f"{said}\n{claim.to_check(self.path)}" if self.path is not None else said

    def as_json(self, reason: str) -> dict[str, Any]:
        """The same for programs."""
        nothing = dict.fromkeys(
            ["speed_up", "flags_share", "best_flags", "flags_alone", "over_best_flags", "candidate"], None
        )
        return {
            "task": self.task,
            "ended": reason,
            "trials": self.trials,
            "outcomes": self.outcomes,
            **(nothing if self.receipt is None else claim.as_json(self.receipt)),
            "unclaimed": self.unclaimed,
            "receipt": str(self.path) if self.path else None,
        }


def publish(run: Run, judge: Timer, here: Machine, folder: Path) -> Publication:
    """Claim the run's best candidate, if its confirmation is a win; what was claimed before is said again as it was."""
    outcomes = run.outcomes()
    trials = sum(outcomes.values())
    archive, best = run.archive, run.best()
    if best is None:
        return Publication(run.task.name, trials, outcomes)
    trial, winner = archive.trial(best.trial), archive.candidate(best.hash)
    if trial.confirmation is None or confirmation.confirmed(trial) is None or is_reference(run.task, winner):
        reason = unclaimed(trial, itself=is_reference(run.task, winner))
        return Publication(run.task.name, trials, outcomes, unclaimed=reason)
    path = folder / f"{run.record.name}.receipt.json"
    content, receipt = archive.published(trial), published(archive, trial)
    if content is None or receipt is None:
        content = packed(receipt_of(run.task, judge, winner, trial.confirmation, here))
        run.publish(trial, content)
        receipt = unpacked(content, path)
    write_receipt(content, path)
    return Publication(run.task.name, trials, outcomes, receipt, path)


def published(archive: Reading, trial: Trial) -> Receipt | None:
    """What was claimed on a trial's present confirmation, if anything, and this version can read it."""
    content = archive.published(trial)
    if content is not None:
        with suppress(ReceiptError):
            return unpacked(content, Path("the stored receipt"))
    return None


def receipt_of(task: Task, judge: Timer, winner: Candidate, confirmed: Verdict, here: Machine) -> Receipt:
    """The receipt of a confirmed win, with the winner timed beside the reference under its best flags."""
    beside = beside_best_flags(task, judge, winner)
    return make_receipt(task, winner, confirmed, beside, jail=judge.jail, machine=here, load=machine_facts.load())


def unclaimed(trial: Trial, *, itself: bool = False) -> str:
    """Why the leader of a run, found in this trial, is not claimed; "" where it never seemed to be a win."""
    first = None if trial.verdict is None else trial.verdict.speed_up
    found = f"The fastest, trial {trial.number}, was found at {first.rounded() if first else '?'}"
    if itself:
        return f"{found}, and is the reference itself: that was chance."
    why = confirmation.failed(trial)
    return f"{found}, but its confirmation in fresh processes failed: {why}." if why else ""
