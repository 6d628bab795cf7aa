"""Budgets: trials, minutes, tokens and money; what is left, and why a run must stop."""

from __future__ import annotations

from dataclasses import dataclass

from outpace.cost import Cost


@dataclass(frozen=True)
class Budget:
    """What a run may spend; None means as much as it likes. Minutes count from the start of this command."""

    trials: int | None = None
    minutes: float | None = None
    tokens: int | None = None
    money: float | None = None


@dataclass(frozen=True)
class Spent:
    """What a run has spent so far, failed calls included."""

    trials: int
    minutes: float
    cost: Cost

    @property
    def tokens(self) -> int:
        return self.cost.tokens_in + self.cost.tokens_out


def exhausted(budget: Budget, spent: Spent) -> str:
    """Why no further trial may be asked for, or "" while one may. Work already paid for is always finished."""
    if budget.trials is not None and spent.trials >= budget.trials:
        return "the 1 trial is done" if budget.trials == 1 else f"all {budget.trials} trials are done"
    if budget.minutes is not None and spent.minutes >= budget.minutes:
        return f"{budget.minutes:g} minutes are over"
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return f"{spent.tokens} of {budget.tokens} tokens are spent"
    if budget.money is not None and spent.cost.money >= budget.money:
        return f"{spent.cost.money:.2f} of {budget.money:.2f} are spent"
    return ""


def left(budget: Budget, spent: Spent) -> dict[str, float]:
    """What remains of each limit that was set."""
    remaining: dict[str, float] = {}
    if budget.trials is not None:
        remaining["trials"] = max(budget.trials - spent.trials, 0)
    if budget.minutes is not None:
        remaining["minutes"] = max(budget.minutes - spent.minutes, 0.0)
    if budget.tokens is not None:
        remaining["tokens"] = max(budget.tokens - spent.tokens, 0)
    if budget.money is not None:
        remaining["money"] = max(budget.money - spent.cost.money, 0.0)
    return remaining
