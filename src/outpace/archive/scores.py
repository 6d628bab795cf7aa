"""Archive scores: verdicts, taken in the order they were given, become one score per candidate."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from outpace.judge.verdict import Outcome
from outpace.scored import Scored

SCORE_COLUMNS = "v.id, v.candidate, v.trial, t.parent, v.confirmation, v.outcome, v.ratio, v.low, v.high, v.win"


class Scores:
    """The best verdict of each candidate up to the verdict numbered `seen`.

    A confirmation outranks what the trial found, for a trial's ratio is biased upwards (winner's curse).
    A confirmation that rejects takes the candidate off, also where a duplicate was given the first verdict.
    One that was too noisy says nothing, and a candidate may make it so: then others go first.
    """

    # Kept between calls and fed with new verdicts only: making 10,000 records anew takes some 20 ms.
    def __init__(self) -> None:
        self.seen = 0
        self._best: dict[str, Scored] = {}
        self._confirmed: set[str] = set()
        self._rejected: set[str] = set()
        self._doubtful: set[str] = set()

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Take in further rows of SCORE_COLUMNS, in the order of their ids."""
        for number, candidate, trial, parent, confirmation, outcome, ratio, low, high, win in rows:
            self.seen = number
            if outcome == Outcome.OK and ratio is not None:
                scored = Scored(candidate, ratio, low, high, bool(win), trial, parent)
                if confirmation:
                    self._confirm(scored)
                else:
                    self._find(scored)
            elif confirmation and outcome == Outcome.TOO_NOISY:
                self._doubt(candidate)
            elif confirmation and outcome != Outcome.OK:
                self._best.pop(candidate, None)
                self._confirmed.discard(candidate)
                self._rejected.add(candidate)

    def _find(self, scored: Scored) -> None:
        if scored.hash in self._confirmed or scored.hash in self._rejected:
            return
        known = self._best.get(scored.hash)
        if known is None or scored.ratio > known.ratio:
            self._best[scored.hash] = dataclasses.replace(scored, doubtful=scored.hash in self._doubtful)

    def _confirm(self, scored: Scored) -> None:
        rival = self._best.get(scored.hash) if scored.hash in self._confirmed else None
        # A trial that is confirmed anew has its newest ratio, not its luckiest.
        if rival is None or rival.trial == scored.trial or scored.ratio > rival.ratio:
            self._best[scored.hash] = scored
        self._confirmed.add(scored.hash)
        self._rejected.discard(scored.hash)
        self._doubtful.discard(scored.hash)

    def _doubt(self, candidate: str) -> None:
        if candidate in self._confirmed:
            return
        self._doubtful.add(candidate)
        if candidate in self._best:
            self._best[candidate] = dataclasses.replace(self._best[candidate], doubtful=True)

    def of(self, candidate_hash: str) -> Scored | None:
        """The entry of one candidate."""
        return self._best.get(candidate_hash)

    def scored(self) -> list[Scored]:
        """One entry per candidate, in the order in which they were first found."""
        return list(self._best.values())


def best(scored: Iterable[Scored]) -> Scored | None:
    """The fastest that is a win and not doubtful, or else the fastest win, or else the fastest; of equals the first."""
    return max(scored, key=lambda one: (one.win and not one.doubtful, one.win, one.ratio, -one.trial), default=None)
