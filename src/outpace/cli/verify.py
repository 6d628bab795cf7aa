"""`outpace verify`: judge a receipt again on this machine."""

from __future__ import annotations

import dataclasses
import json as json_module
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from outpace.candidate import Candidate, reference
from outpace.claim import flags_headline, once_worth_saying
from outpace.domains.program import ProgramDomain
from outpace.errors import ReceiptError
from outpace.judge.accounts import reckon
from outpace.judge.baseline import beside_best_flags
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import Outcome, SpeedUp, Verdict
from outpace.receipt import FlagsShare, Receipt, read_receipt
from outpace.reproduction import Finding, compared
from outpace.shown import shown
from outpace.taskfile import load_task


@dataclass(frozen=True)
class Again:
    """A claimed figure, and what was found of it here."""

    claimed: SpeedUp
    verdict: Verdict
    # Of the unchanged reference that the candidate stands beside; none where that is the task's own reference.
    flags: tuple[str, ...] = ()
    # Whether they were found here: the receipt implies that the gain is no smaller under any flags.
    implied: bool = False
    # Whether it is the flags by themselves that were timed: what they are worth is no part of the gain.
    alone: bool = False

    @property
    def finding(self) -> Finding:
        """How the two stand to each other."""
        return compared(self.claimed, self.verdict.speed_up)

    @property
    def holds(self) -> bool:
        """Whether the candidate is owed what is claimed: the less the flags do by themselves, the more."""
        return self.finding is not Finding.LARGER if self.alone else self.finding.holds


def verify(
    receipt: Path, *, task: Path | None = None, trust: bool = False, no_jail: bool = False, json: bool = False
) -> int:
    """Judge a receipt's claim again here, and say whether it is reproduced, larger, smaller or not reproduced.

    It ends with 0 for the first two. The gain beside the reference's best flags is compared in the same way, and what
    those flags are worth by themselves, which must not be more here than was claimed.

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
            whole = Again(claim.speed_up, judge.confirm(claim.candidate))
            beside = _beside(claim, judge) if whole.verdict.speed_up is not None else []
    more = more_once(claim, whole)
    if json:
        print(json_module.dumps({**_as_json(claim, whole, beside), "more_once": more}, indent=1))
    else:
        print("\n".join(filter(None, (told(claim, whole, beside), more))))
    return 0 if all(each.holds for each in (whole, *beside)) and not more else 1


def told(claim: Receipt, whole: Again, beside: Sequence[Again]) -> str:
    """What was claimed and what was found, each with its interval, as a person reads it."""
    share = flags_headline(claim)
    lines = _lines(whole, f", on {shown(str(claim.machine.get('cpu', 'an unknown processor')))}")
    if share:
        lines.insert(1, f"         {share}")
    for each in beside:
        whose = "the best flags found here," if each.implied else "its best flags"
        what = "The" if each.alone else "Beside the"
        lines.append(f"{what} unchanged reference built with {whose} {shown(' '.join(each.flags))}:")
        lines += _lines(each, " or more" if each.implied else "")
    return "\n".join(lines)


def more_once(claim: Receipt, whole: Again) -> str:
    """That the candidate does far more once per process here than its receipt says; "" where it does not."""
    there, here = (reckon(buckets, claim.task) for buckets in (claim.buckets, whole.verdict.buckets))
    # As it would be on a machine as fast as this one.
    said, found = there.once * here.reference / there.reference, here.once
    if found - said <= max(once_worth_saying(here), said):
        return ""
    return f"Once per process it does {found / 1e6:.1f} ms of work here, where {said / 1e6:.1f} ms are claimed: not so"


def _lines(again: Again, where: str) -> list[str]:
    found = again.verdict.speed_up
    here = _figure(found) if found is not None else shown(f"{again.verdict.outcome}: {again.verdict.reason}")
    return [f"claimed: {_figure(again.claimed)}{where}", f"here:    {here}", str(again.finding)]


def _figure(found: SpeedUp) -> str:
    return f"{found.rounded()} ({found.interval()}), {'a win' if found.win else 'no win'}"


def _as_json(claim: Receipt, whole: Again, beside: Sequence[Again]) -> dict[str, Any]:
    def plain(again: Again) -> dict[str, Any]:
        return {
            "finding": again.finding,
            "claim": dataclasses.asdict(again.claimed),
            "verdict": dataclasses.asdict(again.verdict),
        }

    return {
        **plain(whole),
        "flags_share": str(claim.flags_share),
        "beside": [
            {"flags": list(each.flags), "implied": each.implied, "alone": each.alone, **plain(each)} for each in beside
        ],
    }


def _beside(claim: Receipt, judge: Judge) -> list[Again]:
    """The candidate beside the unchanged reference under the receipt's best flags, and under those found here.

    Unless the receipt says itself that flags are all, they are looked for anew: whoever made it may have left them out.
    """
    over, alone, found = claim.over_best_flags, claim.flags_alone, []
    if over is not None or alone is not None:
        rival = Candidate(reference(claim.task).files, claim.best_flags)
        # Flags such as -ffast-math can make the reference wrong; then there is nothing to stand beside.
        if judge.judge(rival).outcome in (Outcome.OK, Outcome.TOO_NOISY):
            if alone is not None:
                found.append(Again(alone.speed_up, judge.confirm(rival), claim.best_flags, alone=True))
            if over is not None:
                found.append(Again(over.speed_up, judge.confirm(claim.candidate, rival), claim.best_flags))
    if claim.flags_share in (FlagsShare.NONE, FlagsShare.PART) and claim.task.build.flag_choices:
        best = beside_best_flags(claim.task, judge, claim.candidate)
        if best is not None and best.over is not None and set(best.flags) != set(claim.best_flags):
            claimed = claim.speed_up if over is None else over.speed_up
            found.append(Again(claimed, best.over, best.flags, implied=True))
    return found


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
