"""Publishing: the confirmed winner of a run, beside the reference under its best flags, and its receipt."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outpace import machine as machine_facts
from outpace.archive import Archive
from outpace.candidate import Candidate
from outpace.judge.baseline import best_flags
from outpace.judge.judge import Judge
from outpace.judge.verdict import SpeedUp
from outpace.machine import Machine
from outpace.receipt import make_receipt, write_receipt
from outpace.run import Run


@dataclass(frozen=True)
class Publication:
    """What a run may claim; without a winner it claims nothing."""

    task: str
    trials: int
    outcomes: dict[str, int]
    winner: Candidate | None = None
    speed_up: SpeedUp | None = None
    best_flags: tuple[str, ...] = ()
    # The reference under its best flags, and the winner against that.
    flags_alone: SpeedUp | None = None
    over_best_flags: SpeedUp | None = None
    receipt: Path | None = None

    def sentence(self) -> str:
        """For people: the claim, what the flags alone are worth, and how to check it."""
        if self.speed_up is None:
            return f"No candidate of {self.task} is proven faster than the reference after {self.trials} trials."
        found = self.speed_up
        claim = f"{found.rounded()} the reference's speed ({found.interval()}, confirmed in fresh processes)"
        lines = [f"{self.task}: {claim}."]
        if self.over_best_flags is not None:
            alone = f"; {self.flags_alone.rounded()} by themselves" if self.flags_alone is not None else ""
            flags = " ".join(self.best_flags)
            lines.append(
                f"Beside the reference built with its best flags ({flags}{alone}): {self.over_best_flags.rounded()}."
            )
        if self.receipt is not None:
            lines.append(f"Receipt: {self.receipt}; judge it again with `outpace verify {self.receipt} --trust`.")
        return "\n".join(lines)

    def as_json(self, reason: str) -> dict[str, Any]:
        """The same for programs."""
        return {
            "task": self.task,
            "ended": reason,
            "trials": self.trials,
            "outcomes": self.outcomes,
            "speed_up": _plain(self.speed_up),
            "best_flags": list(self.best_flags),
            "flags_alone": _plain(self.flags_alone),
            "over_best_flags": _plain(self.over_best_flags),
            "candidate": self.winner.hash if self.winner else None,
            "receipt": str(self.receipt) if self.receipt else None,
        }


def _plain(speed_up: SpeedUp | None) -> dict[str, Any] | None:
    return None if speed_up is None else dataclasses.asdict(speed_up)


def publish(run: Run, archive: Archive, judge: Judge, here: Machine, folder: Path) -> Publication:
    """Claim the run's best candidate, if its confirmation is a win."""
    outcomes = run.outcomes()
    claim = Publication(run.task.name, sum(outcomes.values()), outcomes)
    best = run.best()
    confirmed = None if best is None else archive.trial(best.trial).confirmation
    if best is None or confirmed is None or confirmed.speed_up is None or not confirmed.speed_up.win:
        return claim
    winner = archive.candidate(best.hash)
    baseline = best_flags(judge)
    alone = over = None
    if baseline.flags != run.task.build.flags:
        alone, over = judge.judge(baseline).speed_up, judge.compare(winner, baseline).speed_up
    receipt = folder / f"{run.record.name}.receipt.json"
    write_receipt(
        make_receipt(
            run.task,
            winner,
            confirmed,
            jail=judge.jail,
            machine=here,
            load=machine_facts.load(),
            over_best_flags=over,
            best_flags=baseline.flags,
        ),
        receipt,
    )
    return dataclasses.replace(
        claim,
        winner=winner,
        speed_up=confirmed.speed_up,
        best_flags=baseline.flags,
        flags_alone=alone,
        over_best_flags=over,
        receipt=receipt,
    )
