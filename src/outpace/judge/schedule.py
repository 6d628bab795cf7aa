"""The schedule: what a process is asked and in which order, drawn by chance so that no candidate can foresee it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outpace.domains.base import Input
from outpace.judge.verdict import Span

# Timed turns of each side of a pair, in the order ABBA or BAAB, in a life that is brief.
TURNS = 2
# How much the number of turns of a whole life varies around the plan's.
TURNS_SPREAD = 1.25
# Edge cases that one process meets, at most.
EDGES = 8
# How much a turn's length varies around the plan's.
SPREAD = 1.4
# One process in so many has a turn with an edge case that is too dear to be timed.
DEAR_EVERY = 2


@dataclass(frozen=True)
class Plan:
    """How many questions a timed turn has, and which edge cases stand among them."""

    questions: int
    # Seconds that the reference takes over one question.
    seconds: float
    # Edge cases that take little beside a turn stand anywhere; dear ones in turns that are not timed.
    light: tuple[Input, ...] = ()
    dear: tuple[Input, ...] = ()
    # Seconds that the reference takes over the dearest of them.
    dearest: float = 0.0
    # Calls over which once-work is spread, and the longest opening for which there is time, in questions.
    lifetime: float = math.inf
    longest: int = 1
    # Timed turns of a whole life, about.
    turns: int = TURNS
    note: str = ""


@dataclass(frozen=True)
class Lengths:
    """How many questions the opening and each timed turn of one process have, and how many such turns there are."""

    opening: int
    turn: int
    turns: int


# How much of a life fits, in questions: an opening of up to two turns, the timed turns, and one that is not timed.


def turn_within(life: float) -> float:
    """The questions of a turn, if a process is to make no more than `life`."""
    return life / (2 + (TURNS + 1) * SPREAD)


def turns_within(life: float, questions: int) -> float:
    """How many timed turns of so many questions fit into such a life."""
    return (life / questions - 2 - SPREAD) / (SPREAD * TURNS_SPREAD)


def opening_within(life: float, questions: int) -> float:
    """The questions of the longest opening before two timed turns."""
    return life - (TURNS + 1) * SPREAD * questions


def draw_lengths(plan: Plan, rng: np.random.Generator, span: Span) -> Lengths:
    """The lengths of one process; a long one lives for the lifetime, or as long as there is time for."""
    turn = turn_length(plan, rng)
    if span is Span.LONG:
        return Lengths(max(plan.longest, 2 * plan.questions), turn, TURNS)
    opening = max(round(_log_uniform(rng, 1, 2 * plan.questions)), 1)
    if span is Span.BRIEF:
        return Lengths(opening, turn, TURNS)
    return Lengths(opening, turn, max(round(plan.turns * _log_uniform(rng, 1 / TURNS_SPREAD, TURNS_SPREAD)), TURNS))


def turn_length(plan: Plan, rng: np.random.Generator) -> int:
    """The questions of one turn."""
    return max(round(plan.questions * _log_uniform(rng, 1 / SPREAD, SPREAD)), 1)


def with_edges(fresh: Sequence[Input], edges: Sequence[Input], rng: np.random.Generator) -> list[Input]:
    """The inputs with the edge cases at random places among them."""
    mixed = list(fresh)
    for at in rng.permutation(len(edges)):
        mixed.insert(int(rng.integers(len(mixed) + 1)), edges[at])
    return mixed


def placed(edges: Sequence[Input], places: int, rng: np.random.Generator) -> list[list[Input]]:
    """Which of the edge cases stand in each of so many turns of a process, drawn by chance."""
    found: list[list[Input]] = [[] for _ in range(places)]
    for at in rng.permutation(len(edges))[:EDGES]:
        found[int(rng.integers(places))].append(edges[at])
    return found


def dear_edge(plan: Plan, rng: np.random.Generator) -> list[Input]:
    """The dear edge case that a process meets, now and then, in a turn that otherwise looks like a timed one."""
    if not plan.dear or rng.integers(DEAR_EVERY):
        return []
    return [plan.dear[int(rng.integers(len(plan.dear)))]]


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))
