"""The claim: a receipt in words and in JSON, the same wherever it is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outpace.claims.receipt import Evidence, FlagsShare, Receipt
from outpace.judge.accounts import Account, reckon
from outpace.judge.verdict import Bucket
from outpace.shown import shown
from outpace.task import Task

# Nanoseconds, and a share of the life that it is spread over. Below these a process's start varies by as much: a
# confirmation counts once-work at the upper end of what it may be, so that there always is some.
ONCE_WORTH_SAYING, ONCE_SHARE = 1e6, 0.005
# A share of the winner's time.
CONVERTING_WORTH_SAYING = 0.2
# What is longer than this is cut: a terminal's width would break it into lines of the stranger's choosing.
ONE_LINE = 400


def headline(receipt: Receipt) -> str:
    """How much faster, how sure that is, and whether compiler flags alone do it."""
    found = receipt.speed_up
    said = (
        f"{found.rounded()} the reference's {figure(receipt.task)} ({found.interval()}, confirmed in fresh processes)"
    )
    return f"{said}; {flags_headline(receipt)}" if flags_headline(receipt) else said


def sentences(receipt: Receipt) -> list[str]:
    """The whole claim, one sentence or two."""
    said = (
        f"{headline(receipt)}.",
        once(receipt.buckets, receipt.task),
        converting(receipt.buckets, receipt.task),
        beside(receipt),
    )
    return [each for each in said if each]


def figure(task: Task) -> str:
    """What is claimed: the speed of a call, or of calls that a candidate sees together."""
    bundle = task.timing.bundle
    return "speed" if bundle == 1 else f"throughput in bundles of {bundle}"


def once(buckets: Sequence[Bucket], task: Task) -> str:
    """What a candidate does once per process beyond the reference, and when that has paid off; "" where nothing."""
    account = reckon(buckets, task)
    if account.once < once_worth_saying(account) or account.pays_after is None:
        return ""
    spent = f"{account.once / 1e6:,.0f}" if account.once >= 1e7 else f"{account.once / 1e6:.1f}"
    return (
        f"It may do up to {spent} ms of work once per process, which pays after {account.pays_after:,} calls; "
        f"the figure spreads it over {account.lifetime:,.0f}."
    )


def once_worth_saying(account: Account) -> float:
    """From how many nanoseconds on once-work matters to the figure."""
    return max(ONCE_WORTH_SAYING, ONCE_SHARE * account.lifetime * account.candidate)


def converting(buckets: Sequence[Bucket], task: Task) -> str:
    """How much of the winner's time goes into arguments and answers, where that is much; "" where it is not."""
    account = reckon(buckets, task)
    if not share_converting(account) > CONVERTING_WORTH_SAYING:
        return ""
    return (
        f"Of its {account.candidate / 1e3:,.0f} us a call, converting arguments and answers takes "
        f"{account.converting / 1e3:,.0f}; see that its source does not go around that."
    )


def share_converting(account: Account) -> float:
    """How much of a call's time goes into arguments and answers: what the reference takes for them, of the winner's."""
    return min(account.converting / max(account.candidate, 1.0), 1.0)


def one_line(text: str, longest: int = ONE_LINE) -> str:
    """A stranger's text on one line, so that no part of it can pass for a line of ours."""
    line = " ".join(shown(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def to_check(place: Path) -> str:
    """How anybody can judge a receipt again."""
    name = shown(str(place))
    return f"Receipt: {name}; judge it again with `outpace verify {name} --trust`."


def flags_headline(receipt: Receipt) -> str:
    """What must stand beside the figure: that flags are all of it, or that nobody knows; "" where they are not."""
    if receipt.flags_share is FlagsShare.ALL:
        flags = receipt.candidate.flags if receipt.unchanged else receipt.best_flags
        return f"all of it is compiler flags: {_flags(flags)}"
    if receipt.flags_share is FlagsShare.UNKNOWN:
        return "how much of it is compiler flags could not be timed"
    return ""


def beside(receipt: Receipt) -> str:
    """The winner beside the unchanged reference under its best flags; "" where the task leaves no choice of flags."""
    over, said = receipt.over_best_flags, []
    if receipt.unchanged:
        said.append("Its sources are the reference's own.")
    if receipt.flags_share is FlagsShare.NONE and receipt.task.build.flag_choices:
        said.append(f"No other flags that the task allows make the reference faster than {_flags(receipt.best_flags)}.")
    elif over is not None:
        timed = f"{over.speed_up.rounded()} ({over.speed_up.interval()})"
        said.append(f"Beside the unchanged reference built with {_best(receipt)}: {timed}.")
    elif receipt.flags_share is FlagsShare.UNKNOWN:
        said.append(
            f"Beside the unchanged reference built with {_best(receipt)} the timings vary too much for a figure."
        )
    return " ".join(said)


def as_json(receipt: Receipt) -> dict[str, Any]:
    """The same for programs."""
    account = reckon(receipt.buckets, receipt.task)
    return {
        "speed_up": dataclasses.asdict(receipt.speed_up),
        "once_seconds": account.once / 1e9,
        "pays_after": account.pays_after,
        "flags_share": str(receipt.flags_share),
        "best_flags": list(receipt.best_flags),
        "flags_alone": _plain(receipt.flags_alone),
        "over_best_flags": _plain(receipt.over_best_flags),
        "candidate": receipt.candidate.hash,
    }


def _best(receipt: Receipt) -> str:
    alone = receipt.flags_alone
    worth = "" if alone is None else f" ({alone.speed_up.rounded()} by themselves)"
    return f"its best flags {_flags(receipt.best_flags)}{worth}"


def _flags(flags: Sequence[str]) -> str:
    return one_line(" ".join(flags)) or "(none)"


def _plain(evidence: Evidence | None) -> dict[str, Any] | None:
    return None if evidence is None else dataclasses.asdict(evidence.speed_up)
