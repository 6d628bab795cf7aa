"""The verdict: what judging one candidate found, with every sample it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

# How samples come about. The first protocol asked in batches, the second confirmed in brief lives and excused noise, up
# to the fourth both sides took turns in either order. Under the fifth arrays began on cache lines, and Python workers
# kept what was freed; under the sixth a thread's own variables were dear; up to the seventh no caller had ever freed an
# input, and arguments lay apart. Figures of two protocols are not to be compared.
PROTOCOL = 8


class Outcome(StrEnum):
    """How a trial ended; a fault of the harness leaves the judge as an exception, and is one of these in a run."""

    OK = "ok"
    UNUSABLE = "unusable"  # the reply could not be read or applied, or edits what it may not
    BUILD_FAILED = "build_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    WRONG = "wrong"
    CHEATING = "cheating"
    TOO_NOISY = "too_noisy"
    REFUSED = "refused"  # a limit of the task, such as memory or build time
    UNJUDGED = "unjudged"  # the judge itself failed on it, again and again, so that nothing is known of it


# These say nothing about a candidate.
TELLS_NOTHING = (Outcome.TOO_NOISY, Outcome.UNJUDGED)


@dataclass(frozen=True)
class Sample:
    """One turn of one worker: the calls it answered, and what its clocks moved by, in nanoseconds."""

    calls: int
    wall: int
    cpu: int
    # Of the wall time, what the machine or the judge took: runnable but not running, or asleep while the judge copied.
    delay: int


NONE = Sample(0, 0, 0, 0)


class Span(StrEnum):
    """How long the processes of a bucket live."""

    BRIEF = "brief"  # two timed turns: a first look, in which noise has to be excused
    WHOLE = "whole"  # many timed turns: a confirmation, in which noise is small and need not be
    LONG = "long"  # an opening of a lifetime, or for as long as there is time, before two timed turns


@dataclass(frozen=True)
class Life:
    """All that one worker did: its start, its first calls, then timed turns.

    Every nanosecond of its CPU time is in one of these.
    """

    opening: Sample
    # In blocks of equal length: all turns of a block follow one another, the first of them the other side's last.
    turns: tuple[Sample, ...]
    # Turns that look like the timed ones but hold an edge case too dear to be timed.
    asides: tuple[Sample, ...] = ()
    # From its first instruction to the end of its set-up, before any call.
    start: Sample = NONE
    # Of a long opening the second half, once more: what a call takes when all that was laid in early is used up.
    late: Sample = NONE

    @property
    def calls(self) -> int:
        """All that it answered."""
        return sum(sample.calls for sample in (self.opening, *self.turns, *self.asides))

    def settled(self, block: int) -> tuple[Sample, ...]:
        """The second half of each block of turns, by when what the other side did to the caches is mended."""
        return tuple(turn for at, turn in enumerate(self.turns) if at % block >= block // 2)


@dataclass(frozen=True)
class Bucket:
    """A fresh pair of processes that were asked the same questions."""

    reference: Life
    candidate: Life
    seed: int
    # The reference's last timed turn once more, with the same questions: what differs is noise.
    again: Sample = NONE
    # What it took the reference to convert the arguments and the answer of a call, in nanoseconds; 0 where nothing is.
    converting: int = 0
    span: Span = Span.BRIEF
    # How many timed turns each side has in a row.
    block: int = 1


@dataclass(frozen=True)
class SpeedUp:
    """How many times faster than the reference, with an interval from the test that decided."""

    ratio: float
    low: float
    high: float
    win: bool
    buckets: int

    def interval(self) -> str:
        """For people: between what and what, and how sure that is."""
        kind = "99% interval" if self.buckets >= 8 else f"range of {self.buckets} buckets"
        return f"{kind} {self.low:.3f} to {self.high:.3f}"

    def rounded(self) -> str:
        """For people: two decimals, rounded toward 1 so that no gain is overstated."""
        return f"{toward_one(self.ratio):.2f}x"


@dataclass(frozen=True)
class Verdict:
    """The judge's finding on one candidate; `speed_up` is there exactly when the outcome is ok."""

    outcome: Outcome
    reason: str = ""
    speed_up: SpeedUp | None = None
    buckets: tuple[Bucket, ...] = ()
    seconds: float = 0.0
    # The key of the machine that it was found on, as speeds of two kinds of machines do not mix; "" on that of the run.
    machine: str = field(default="", compare=False)


def toward_one(ratio: float, decimals: int = 2) -> float:
    """A ratio rounded toward 1: 1.118 becomes 1.11 and 0.992 becomes 1.00."""
    scale = float(10**decimals)
    if ratio >= 1:
        return math.floor(ratio * scale + 1e-9) / scale
    return math.ceil(ratio * scale - 1e-9) / scale
