"""Confirmation: what timing a leader again, in fresh processes on fresh inputs, allows to say of it."""

from __future__ import annotations

from outpace.archive.records import Trial
from outpace.judge.verdict import SpeedUp


def confirmed(trial: Trial) -> SpeedUp | None:
    """The speed-up that may be published: the confirmation's, if that is a win too."""
    found = None if trial.confirmation is None else trial.confirmation.speed_up
    return found if found is not None and found.win else None


def failed(trial: Trial) -> str:
    """Why a trial's confirmation failed, or "" where it did not, or was not tried yet."""
    again = trial.confirmation
    if again is None or confirmed(trial) is not None:
        return ""
    if again.speed_up is None:
        return f"{again.outcome}: {again.reason}" if again.reason else str(again.outcome)
    return f"{again.speed_up.rounded()} ({again.speed_up.interval()}) is no win"
