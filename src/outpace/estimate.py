"""Estimates: the tokens, the money and the minutes that a run will take, before any of it is spent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from outpace.archive.records import Trial
from outpace.budget import Budget
from outpace.task.candidate import Candidate

# English and code under the tokenizers of 2024 to 2026: 3 to 4.5 bytes a token.
BYTES_PER_TOKEN = 3.5
# What a server's chat template and system text may add to a prompt.
TEMPLATE_TOKENS = 256
# The three sections without their code.
PROSE_TOKENS = 700
# Between a small model on a desktop and a large one behind an API; used only while no call was timed.
TOKENS_PER_SECOND = 50.0
# Trials where no limit says how many.
TRIALS = 40


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost, in any currency."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def money(self, tokens_in: float, tokens_out: float) -> float:
        """The price of so many tokens."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / 1e6


@dataclass(frozen=True)
class Pace:
    """What a trial took on the average of those that are known."""

    # None where no trial was timed or no call made.
    judging: float | None = None
    reply: float | None = None
    tokens_in: float | None = None
    tokens_out: float | None = None
    trials: int = 0


@dataclass(frozen=True)
class Estimate:
    """What the rest of a run is expected to take, trial by trial, and what is reserved before each call."""

    trials: int
    prompt_tokens: int
    reply_tokens: int
    money_per_trial: float
    reserved_tokens: int
    reserved_money: float
    judging_seconds: float
    reply_seconds: float

    @property
    def tokens(self) -> int:
        return self.trials * (self.prompt_tokens + self.reply_tokens)

    @property
    def money(self) -> float:
        return self.trials * self.money_per_trial

    @property
    def minutes(self) -> float:
        return self.trials * (self.judging_seconds + self.reply_seconds) / 60


def tokens(text: str) -> int:
    """About how many tokens a text is."""
    return tokens_of(_bytes(text))


def tokens_of(size: int) -> int:
    """About how many tokens so many bytes of text are."""
    return math.ceil(size / BYTES_PER_TOKEN)


def most_tokens(text: str) -> int:
    """More tokens than a prompt can be: no tokenizer makes two of one byte."""
    return _bytes(text) + TEMPLATE_TOKENS


def pace(trials: Iterable[Trial]) -> Pace:
    """The averages over judged trials; a verdict that was reused took no time, so it does not count."""
    judged = [trial for trial in trials if trial.verdict is not None]
    timed = [
        (trial.verdict.seconds if trial.verdict else 0.0) + (trial.confirmation.seconds if trial.confirmation else 0.0)
        for trial in judged
        if trial.duplicate_of is None
    ]
    # Per trial, not per call: reminders and failed calls are part of what a trial takes.
    called = [trial.cost for trial in judged if trial.cost.calls]
    spent = [cost for cost in called if cost.tokens_out]
    return Pace(
        fmean(timed) if timed else None,
        fmean(cost.seconds for cost in called) if called else None,
        fmean(cost.tokens_in for cost in spent) if spent else None,
        fmean(cost.tokens_out for cost in spent) if spent else None,
        len(judged),
    )


def expect(
    prompt: str,
    reference: Candidate,
    shown: int,
    remaining: Budget,
    known: Pace,
    prices: Prices,
    most_reply: int,
) -> Estimate:
    """The estimate for a model that is asked `prompt` now, and later ones that show scored candidates too.

    What earlier trials took counts more than lengths of texts.
    """
    code = "\n".join(reference.files.values())
    later = prompt + code * shown
    tokens_in = tokens(later) if known.tokens_in is None else math.ceil(known.tokens_in)
    tokens_out = tokens(code) + PROSE_TOKENS if known.tokens_out is None else math.ceil(known.tokens_out)
    tokens_out = min(tokens_out, most_reply)
    judging = known.judging or 0.0
    reply = tokens_out / TOKENS_PER_SECOND if known.reply is None else known.reply
    money = prices.money(tokens_in, tokens_out)
    most_in = most_tokens(later)
    reserved, reserved_money = most_in + most_reply, prices.money(most_in, most_reply)
    allowed = [
        # Minutes are looked at before a trial, so the last one may end after them.
        _times(remaining.minutes, (judging + reply) / 60, 0.0),
        _times(remaining.tokens, tokens_in + tokens_out, reserved),
        _times(remaining.money, money, reserved_money),
        remaining.trials,
    ]
    trials = min((each for each in allowed if each is not None), default=TRIALS)
    return Estimate(trials, tokens_in, tokens_out, money, reserved, reserved_money, judging, reply)


def _times(limit: float | None, each: float, reserved: float) -> int | None:
    """How often `each` can be spent while at least `reserved` is left before it; None means without end."""
    if limit is None or each <= 0:
        return None
    return math.floor((limit - reserved) / each) + 1 if limit >= reserved else 0


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
