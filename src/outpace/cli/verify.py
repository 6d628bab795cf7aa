"""`outpace verify`: judge a receipt again on this machine."""

from __future__ import annotations

import dataclasses
import json as json_module
import tempfile
from enum import StrEnum
from pathlib import Path

from rich.console import Console

from outpace.cli.trial import sentence
from outpace.domains.program import ProgramDomain
from outpace.errors import ReceiptError
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import SpeedUp, Verdict
from outpace.receipt import Receipt, read_receipt
from outpace.taskfile import load_task


class Finding(StrEnum):
    """What judging a claim again can come to."""

    HOLDS = "the claim holds on this machine"
    SMALLER = "a win on this machine too, but a smaller one than claimed"
    FAILS = "the claim does not hold on this machine"


def verify(
    receipt: Path, *, task: Path | None = None, trust: bool = False, no_jail: bool = False, json: bool = False
) -> int:
    """Judge a receipt's claim again here, and say whether it holds on this machine.

    The task's judge.py runs outside the jail, so a receipt from a stranger is as good as a program from a stranger:
    give your own copy of the task, or say that you trust this one.

    Parameters
    ----------
    receipt
        The receipt's file.
    task
        Your own copy of the task; it must be the one the receipt was made with, file by file.
    trust
        Run the judge.py that is stored in the receipt.
    no_jail
        Judge without a jail. Only for code you trust with this machine.
    json
        Print the finding as JSON.
    """
    claim = read_receipt(receipt)
    _check_trust(claim, task, trust)
    kind: JailKind = "none" if no_jail else best_jail()
    with (
        tempfile.TemporaryDirectory(prefix="outpace-verify-") as folder,
        Console(stderr=True).status("judging") as status,
    ):
        Path(folder).chmod(0o755)
        with Judge(ProgramDomain(claim.task), jail=kind, workspace=Path(folder), progress=status.update) as judge:
            judge.inspect()
            verdict = judge.judge(claim.candidate)
    finding = compare(claim.speed_up, verdict)
    if json:
        print(
            json_module.dumps(
                {
                    "finding": finding,
                    "claim": dataclasses.asdict(claim.speed_up),
                    "verdict": dataclasses.asdict(verdict),
                },
                indent=1,
            )
        )
    else:
        claimed = claim.speed_up
        print(f"claimed: {claimed.rounded()} ({claimed.interval()}) on {claim.machine['cpu']}")
        print(f"here:    {sentence(verdict)}")
        print(finding)
    return 0 if finding is Finding.HOLDS else 1


def compare(claimed: SpeedUp, verdict: Verdict) -> Finding:
    """Whether what was measured here bears the claim out."""
    if verdict.speed_up is None or not verdict.speed_up.win:
        return Finding.FAILS
    return Finding.HOLDS if verdict.speed_up.high >= claimed.low else Finding.SMALLER


def _check_trust(claim: Receipt, task: Path | None, trust: bool) -> None:
    if task is not None:
        own = load_task(task)
        differing = sorted(
            name for name in {*own.files, *claim.task.files} if own.files.get(name) != claim.task.files.get(name)
        )
        if differing:
            raise ReceiptError(
                f"the receipt was made with another version of the task; these files differ: {', '.join(differing)}"
            )
    elif not trust:
        raise ReceiptError(
            f"verifying runs the receipt's {claim.task.checking.file} outside the jail. Give your own copy of the task "
            "with --task FOLDER, or add --trust if you know where the receipt comes from"
        )
