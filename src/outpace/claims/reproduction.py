"""Reproduction: whether what is measured here bears out a claim, its figures by their intervals, its words each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from outpace.claims.claim import converting, once, once_worth_saying, share_converting
from outpace.judge.accounts import SURE, Account, reckon
from outpace.judge.verdict import Bucket, SpeedUp
from outpace.task import Task

# Two honest timings of the same code differ by more than their intervals, for memory is laid out anew and another
# machine has other caches. A tenth of the smaller gain is allowed for that, at least what the judge calls noise, and no
# more than a tenth of the figure itself: of the logarithm of 50 a tenth would be half as much again.
_SHARE, _LEAST, _MOST = 0.1, math.log(1.01), math.log(1.1)
# An interval that reaches further than this from its estimate says little, so it cannot excuse a difference either.
_REACH = 0.1
# By what factor a time of the same program may differ between two machines: some are many times as fast as others, but
# times that are wrong by a factor of 100 would make any work done once too short to be told.
_MACHINES = 20
# Once-work that a receipt leaves out may be so many times as long here as would be worth saying: just below it there.
_UNSAID = 4
# By what factor the call from which once-work pays may differ, and the share of the time that goes into converting.
_PAYS, _CONVERTING = 3, 2


class Finding(StrEnum):
    """What judging a claim again came to."""

    REPRODUCED = "reproduced"
    LARGER = "larger here"
    SMALLER = "smaller here"
    FAILED = "not reproduced"

    @property
    def holds(self) -> bool:
        """Whether the claim may be repeated for this machine."""
        return self in (Finding.REPRODUCED, Finding.LARGER)


def compared(claimed: SpeedUp, measured: SpeedUp | None) -> Finding:
    """How the measured speed-up stands to the claimed one.

    They agree if each estimate lies in the other's interval, but for the allowance. Both must, and no interval counts
    for more than `_REACH`: else a claim of 5 that reaches down to 1.02 would be borne out by any gain at all.
    """
    if measured is None or (claimed.win and not measured.win):
        return Finding.FAILED
    there, here = math.log(claimed.ratio), math.log(measured.ratio)
    if here < there:
        room = min(_reach(there, claimed.low), _reach(here, measured.high))
    else:
        room = min(_reach(there, claimed.high), _reach(here, measured.low))
    if abs(here - there) <= min(max(_SHARE * min(here, there), _LEAST), _MOST) + room:
        return Finding.REPRODUCED
    return Finding.LARGER if here > there else Finding.SMALLER


def _reach(estimate: float, end: float) -> float:
    return min(abs(math.log(end) - estimate), _REACH)


def not_borne_out(claimed: Sequence[Bucket], measured: Sequence[Bucket], faster: SpeedUp, task: Task) -> list[str]:
    """What a claim says beside its figure, or leaves out, and is otherwise here: a sentence for each.

    A claim's words follow from its samples, and whoever writes those chooses the words. So the words are found anew
    from the samples of the confirmation made here, in which the candidate is `faster` by so much.
    """
    there, here = reckon(claimed, task), reckon(measured, task)
    if not (here.reference > 0 and there.reference > 0):
        return []  # no clock could be believed: there is no figure either
    said = [_time(there, here), _once(claimed, measured, faster, task), _converting(claimed, measured, task)]
    return [each for each in said if each]


def _time(there: Account, here: Account) -> str:
    for whose, claimed, found in (
        ("the reference", there.reference, here.reference),
        ("the candidate", there.candidate, here.candidate),
    ):
        if not 1 / _MACHINES <= found / claimed <= _MACHINES:
            return (
                f"Not borne out: by the receipt a call of {whose} takes {claimed / 1e3:,.2f} us, and here "
                f"{found / 1e3:,.2f}; two machines do not differ by so much"
            )
    return ""


def _once(claimed: Sequence[Bucket], measured: Sequence[Bucket], faster: SpeedUp, task: Task) -> str:
    there, here = reckon(claimed, task), reckon(measured, task)
    words, least = once(claimed, task), min(_least_once(here, task), here.once)
    worth = once_worth_saying(here)
    # The figure's upper end, where that says more is saved: of a small gain what is saved is a difference of two times
    # that are nearly equal.
    saved = max(here.reference - here.candidate, here.reference * (1 - 1 / faster.high))
    if saved > 0 and least > worth:
        pays, allowed = least / saved, _PAYS * (math.inf if there.pays_after is None else there.pays_after)
        unsaid = not words and least > _UNSAID * worth
        if unsaid or pays > allowed + worth / saved:
            of_it = f"{there.once / 1e6:,.1f} ms and {there.pays_after or 0:,} calls" if words else "nothing of it"
            return (
                f"Not borne out: once per process it does {least / 1e6:,.1f} ms of work here or more, which pays after "
                f"{math.ceil(pays):,} calls; the receipt says {of_it}"
            )
    if words and not 1 / _MACHINES <= here.lifetime / there.lifetime <= _MACHINES:
        return (
            f"Not borne out: by the receipt the figure spreads work done once over {there.lifetime:,.0f} calls, and "
            f"here over {here.lifetime:,.0f}"
        )
    return ""


def _least_once(account: Account, task: Task) -> float:
    """The lower end of what the candidate's once-work may be: an account has the upper one, and noise is in that.

    What three processes in four do is no noise, however much more some of them do.
    """
    each = np.array([reckon([bucket], task).once for bucket in account.buckets])
    if len(each) < 2:
        return 0.0
    return max(float(each.mean() - SURE * each.std(ddof=1) / math.sqrt(len(each))), float(np.percentile(each, 25)))


def _converting(claimed: Sequence[Bucket], measured: Sequence[Bucket], task: Task) -> str:
    there, here = (share_converting(reckon(buckets, task)) for buckets in (claimed, measured))
    if not converting(measured, task) or here <= _CONVERTING * there:
        return ""
    return (
        f"Not borne out: converting arguments and answers takes {here:.0%} of the candidate's time here; by the "
        f"receipt it is {there:.0%}"
    )
