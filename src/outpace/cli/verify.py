"""`outpace verify`: judge a receipt again on this machine."""

from __future__ import annotations

import dataclasses
import json as json_module
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from outpace.claims.claim import flags_headline, one_line
from outpace.claims.receipt import FlagsShare, Receipt, read_receipt
from outpace.claims.reproduction import Finding, compared, not_borne_out
from outpace.domains.program import ProgramDomain
from outpace.errors import ReceiptError
from outpace.judge.baseline import beside_best_flags
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import Outcome, SpeedUp, Verdict
from outpace.task.candidate import Candidate, reference
from outpace.task.file import load_task

_NOTHING = SpeedUp(1.0, 1.0, 1.0, False, 8)


@dataclass(frozen=True)
class Again:
    """A claimed figure, and what was found of it here."""

    claimed: SpeedUp
    verdict: Verdict
    # Of the unchanged reference that the candidate stands beside; none where that is the task's own reference.
    flags: tuple[str, ...] = ()
    # Whether the receipt names others: it implies that the gain is no smaller under any flags.
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
        if self.alone:
            return self.finding is not Finding.LARGER and works(self.verdict)
        return self.finding.holds


def verify(
    receipt: Path, /, *, task: Path | None = None, trust: bool = False, no_jail: bool = False, json: bool = False
) -> int:
    """Judge a receipt's claim again here, and say whether it is reproduced, larger, smaller or not reproduced.

    It ends with 0 for the first two. All that the claim says is found anew here and compared: the gain beside the
    reference's best flags, in the same way; what those flags are worth by themselves, which must not be more here;
    whether other flags leave less of the gain; work done once, and from which call on it pays; how much of the time
    goes into converting arguments and answers; how long a call takes, within what two machines can differ by. What the
    receipt says or leaves out and is otherwise here is named, and then it ends with 1.

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
            whole = Again(claim.speed_up, _steady(lambda: judge.confirm(claim.candidate)))
            beside = _beside(claim, judge, whole.verdict) if whole.verdict.speed_up is not None else []
    wrong = otherwise(claim, whole)
    if json:
        print(json_module.dumps({**_as_json(claim, whole, beside), "not_borne_out": wrong}, indent=1))
    else:
        print("\n".join([told(claim, whole, beside), *wrong]))
    return 0 if all(each.holds for each in (whole, *beside)) and not wrong else 1


def told(claim: Receipt, whole: Again, beside: Sequence[Again]) -> str:
    """What was claimed and what was found, each with its interval, as a person reads it."""
    share = flags_headline(claim)
    lines = _lines(whole, f", on {one_line(str(claim.machine.get('cpu', 'an unknown processor')), 80)}")
    if share:
        lines.insert(1, f"         {share}")
    for each in beside:
        whose = "the best flags found here," if each.implied else "its best flags"
        what = "The" if each.alone else "Beside the"
        lines.append(f"{what} unchanged reference built with {whose} {one_line(' '.join(each.flags)) or '(none)'}:")
        lines += _lines(each, " or more" if each.implied else "")
    return "\n".join(lines)


def otherwise(claim: Receipt, whole: Again) -> list[str]:
    """What the claim says beside its figures, or leaves out, and is otherwise here."""
    found = whole.verdict.speed_up
    return [] if found is None else not_borne_out(claim.buckets, whole.verdict.buckets, found, claim.task)


def works(verdict: Verdict) -> bool:
    """Whether the answers were right, if perhaps not timed."""
    return verdict.outcome in (Outcome.OK, Outcome.TOO_NOISY)


def _lines(again: Again, where: str) -> list[str]:
    found = again.verdict.speed_up
    here = _figure(found) if found is not None else one_line(f"{again.verdict.outcome}: {again.verdict.reason}")
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


def _beside(claim: Receipt, judge: Judge, whole: Verdict) -> list[Again]:
    """The candidate beside the unchanged reference under the receipt's best flags, and under those found here.

    Unless the receipt says itself that flags are all, they are looked for anew: whoever made it may have left them out.
    Those found here may be the task's own, beside which the candidate has been timed already.
    """
    over, alone, found = claim.over_best_flags, claim.flags_alone, []
    if over is not None or alone is not None:
        rival = Candidate(reference(claim.task).files, claim.best_flags)
        # Flags such as -ffast-math can make the reference wrong; then nothing that is said of them is so.
        tried = judge.judge(rival)
        again = _steady(lambda: judge.confirm(rival)) if works(tried) else tried
        if alone is not None:
            found.append(Again(alone.speed_up, again, claim.best_flags, alone=True))
        elif again.speed_up is not None and again.speed_up.win and claim.best_flags != claim.task.build.flags:
            # What they are worth by themselves is left out: as if that were nothing.
            found.append(Again(_NOTHING, again, claim.best_flags, alone=True))
        if over is not None:
            again = _steady(lambda: judge.confirm(claim.candidate, rival)) if works(tried) else tried
            theirs = Again(over.speed_up, again, claim.best_flags)
            own = Again(over.speed_up, whole, claim.task.build.flags, implied=True)
            # Where a gain is larger beside the best flags than beside the task's own, those are not the best.
            found += [theirs, own] if theirs.holds and not own.holds else [theirs]
    if claim.flags_share is not FlagsShare.ALL and claim.task.build.flag_choices:
        # Where the share could not be timed, nothing was said of it; if it can be here, that is left out of the claim.
        untimed = claim.flags_share is FlagsShare.UNKNOWN
        best = beside_best_flags(claim.task, judge, claim.candidate)
        if best is not None and best.over is not None and (untimed or set(best.flags) != set(claim.best_flags)):
            claimed = claim.speed_up if over is None else over.speed_up
            if not (untimed and best.over.outcome is Outcome.TOO_NOISY):
                found.append(Again(claimed, best.over, best.flags, implied=True))
    return found


def _steady(time: Callable[[], Verdict]) -> Verdict:
    """A verdict, asked for once more where the machine was too noisy for one."""
    found = time()
    return time() if found.outcome is Outcome.TOO_NOISY else found


def _check_trust(claim: Receipt, task: Path | None, trust: bool) -> None:
    if task is not None:
        own = load_task(task)
        differing = sorted(
            name for name in {*own.files, *claim.task.files} if own.files.get(name) != claim.task.files.get(name)
        )
        if differing:
            raise ReceiptError(
                "the receipt was made with another version of the task; these files differ: "
                f"{one_line(', '.join(differing))}"
            )
    elif not trust:
        raise ReceiptError(
            f"verifying runs the receipt's {one_line(claim.task.checking.file)} outside the jail. Give your own copy "
            "of the task with --task FOLDER, or add --trust if you know where the receipt comes from"
        )
