"""The honest baseline: the reference under the best compiler flags the task allows, so that nobody wins by -O3."""

from __future__ import annotations

from outpace.candidate import Candidate, choose_flag, reference
from outpace.judge.judge import Judge


def best_flags(judge: Judge) -> Candidate:
    """The unchanged reference with the best flags found, group by group.

    One pass of coordinate search: each choice is timed against the best so far and taken only if that is a win, so the
    baseline is never one that noise picked.
    """
    task = judge.domain.task
    best = reference(task)
    for group in task.build.flag_choices:
        for choice in group:
            rival = Candidate(best.files, choose_flag(best.flags, group, choice))
            if set(rival.flags) == set(best.flags):
                continue
            speed_up = judge.compare(rival, best).speed_up
            if speed_up is not None and speed_up.win:
                best = rival
    return best
