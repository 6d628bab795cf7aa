"""The honest baseline: the unchanged reference under the best flags the task allows, so that nobody wins by -O3."""

from __future__ import annotations

from outpace.candidate import Candidate, choose_flag, reference
from outpace.judge.judge import Judge
from outpace.judge.verdict import SpeedUp


def best_flags(judge: Judge) -> tuple[Candidate, SpeedUp | None]:
    """The reference with the best flags found group by group, and its speed-up; None when its own flags are the best.

    One pass of coordinate search: each choice is timed against the best so far and taken only if that is a win, so the
    baseline is never one that noise picked.
    """
    task = judge.domain.task
    best = reference(task)
    for group in task.build.flag_choices:
        for choice in group:
            flags = choose_flag(best.flags, group, choice)
            if set(flags) == set(best.flags):
                continue
            rival = Candidate(best.files, flags)
            speed_up = judge.compare(rival, best).speed_up
            if speed_up is not None and speed_up.win:
                best = rival
    if best.flags == task.build.flags:
        return best, None
    return best, judge.judge(best).speed_up
