"""Cost: what asking a policy took."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What was spent; `money` is in the currency the policy's prices are given in."""

    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0
    seconds: float = 0.0
    calls: int = 0
    failed_calls: int = 0
    # Calls whose tokens nobody told, so that they were guessed from the length of the text.
    estimated_calls: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.money + other.money,
            self.seconds + other.seconds,
            self.calls + other.calls,
            self.failed_calls + other.failed_calls,
            self.estimated_calls + other.estimated_calls,
        )
