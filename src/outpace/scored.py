"""Scored: a correct candidate with the speed-up that was measured on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scored:
    """A correct candidate by its hash, its speed-up and where it came from."""

    hash: str
    ratio: float
    low: float
    high: float
    win: bool
    trial: int
    parent: str | None
    # Whether its confirmation was too noisy to tell anything: then others come before it.
    doubtful: bool = False
