"""The red team: attacks on a task before any trial, because a check that lets nothing-doers pass would crown them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from outpace.domains.base import Domain, Input
from outpace.judge.compare import brief, difference, nonfinite
from outpace.judge.inputs import checked
from outpace.judge.verdict import SpeedUp

# The reference against itself: outside these, something other than speed is being measured.
FAIR_LOW, FAIR_HIGH = 0.97, 1.03


def weaknesses(domain: Domain, answered: Sequence[tuple[Input, Any]]) -> list[str]:
    """Why this task must not be run: each a sentence, from the reference's own answers to several inputs."""
    found = []
    for given, answer in answered:
        if not domain.task.checking.allow_nonfinite and nonfinite(answer):
            found.append(f"the reference's own {nonfinite(answer)}; set [checking] allow_nonfinite if that is meant")
            break
        reason = checked(domain, given, answer, answer)
        if reason:
            found.append(f"the check rejects the reference's own answer: {reason}")
            break
    first = answered[0][1]
    if all(not difference(first, answer) for _, answer in answered[1:]):
        found.append(f"the reference answers {brief(first)} to every input: its output does not depend on its input")
    if _passes(domain, answered, [first] * len(answered)):
        found.append("a program that always gives the same answer passes the check")
    nothings = {
        "empty": [null_like(answer) for _, answer in answered],
        "None for an": [None for _ in answered],
        "unchanged": [untouched(given, answer) for given, answer in answered],
    }
    for name, answers in nothings.items():
        if _passes(domain, answered, answers):
            found.append(f"a program that does nothing ({name} answer) passes the check")
            break
    return found


def unfair(speed_up: SpeedUp) -> str:
    """Why the reference does not score 1.00 against itself, or ""."""
    if speed_up.win or speed_up.low > FAIR_HIGH or speed_up.high < FAIR_LOW:
        return (
            f"the unchanged reference scores {speed_up.ratio:.3f} ({speed_up.low:.3f} to {speed_up.high:.3f}) "
            "against itself; its speed depends on something other than its code (state between calls, time, chance)"
        )
    return ""


def null_like(answer: Any) -> Any:
    """An answer of the same form that holds nothing."""
    if isinstance(answer, np.ndarray):
        return np.zeros_like(answer)
    if isinstance(answer, dict):
        return {key: null_like(value) for key, value in answer.items()}
    return None if answer is None else type(answer)()


def untouched(given: Input, answer: Any) -> Any:
    """What a C function leaves behind that returns at once: arrays to be changed in place are as they came."""
    if not isinstance(answer, dict):
        return null_like(answer)
    return {
        name: given[name] if isinstance(given.get(name), np.ndarray) else null_like(value)
        for name, value in answer.items()
    }


def _passes(domain: Domain, answered: Sequence[tuple[Input, Any]], answers: Sequence[Any]) -> bool:
    return all(
        not checked(domain, given, answer, truth) for (given, truth), answer in zip(answered, answers, strict=True)
    )
