"""Estimates: the tokens, the money and the minutes that a run will take, before any of it is spent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from outpace.archive_records import Trial
from outpace.budget import Budget
from outpace.candidate import Candidate

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
    """What the rest of a run is expected to take, and the most that its calls may take."""

    trials: int
    prompt_tokens: int
    most_prompt_tokens: int
    reply_tokens: int
    most_reply_tokens: int
    money: float
    most_money: float
    judging_seconds: float
    reply_seconds: float

    @property
    def tokens(self) -> int:
        return self.trials * (self.prompt_tokens + self.reply_tokens)

    @property
    def most_tokens(self) -> int:
        return self.trials * (self.most_prompt_tokens + self.most_reply_tokens)

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
        (trial.verdict.seconds if trial.verdict else 0.0)
        + (trial.confirmation.seconds if trial.confirmation else 0.0)
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
    judging_seconds: float,
) -> Estimate:
    """The estimate for a model that is asked `prompt` now; a later one also shows scored candidates.

    What earlier trials took counts more than lengths of texts; `judging_seconds` serves where none was timed.
    """
    code = "\n".join(reference.files.values())
    later = prompt + "\n" + code * shown
    tokens_in = tokens(later) if known.tokens_in is None else math.ceil(known.tokens_in)
    tokens_out = tokens(code) + PROSE_TOKENS if known.tokens_out is None else math.ceil(known.tokens_out)
    tokens_out = min(tokens_out, most_reply)
    judging = judging_seconds if known.judging is None else known.judging
    reply = tokens_out / TOKENS_PER_SECOND if known.reply is None else known.reply
    per_trial = prices.money(tokens_in, tokens_out)
    trials = _trials(remaining, (judging + reply) / 60, tokens_in + tokens_out, per_trial)
    most_in = most_tokens(later)
    return Estimate(
        trials=trials,
        prompt_tokens=tokens_in,
        most_prompt_tokens=most_in,
        reply_tokens=tokens_out,
        most_reply_tokens=most_reply,
        money=trials * per_trial,
        most_money=trials * prices.money(most_in, most_reply),
        judging_seconds=judging,
        reply_seconds=reply,
    )


def _trials(remaining: Budget, minutes: float, spent_tokens: float, money: float) -> int:
    """How many trials the tightest limit allows."""
    limits = [(remaining.minutes, minutes), (remaining.tokens, spent_tokens), (remaining.money, money)]
    allowed = [int(limit / each) for limit, each in limits if limit is not None and each > 0]
    if remaining.trials is not None:
        allowed.append(remaining.trials)
    return max(min(allowed, default=TRIALS), 0)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
