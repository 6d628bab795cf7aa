"""The schedule: what a process is asked and in which order, drawn by chance so that no candidate can foresee it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outpace.domains.base import Input
from outpace.judge.accounts import LIFETIME_NS
from outpace.judge.verdict import Span
from outpace.task import Task

# Timed turns of each side of a pair, in a life that is brief.
TURNS = 2
# In a block a side has so many turns in a row at least. It has more where it takes longer to bring its memory back into
# the caches from which the other side drove it, at so many seconds a byte, of no more bytes than large caches have.
BLOCK, REFILL, CACHED = 2, 100e-9 / 64, 32 << 20
# What the questions of a block take.
BLOCK_BYTES = 256 << 20
# In a long opening a side goes on for so many seconds: as users' programs do, which nobody interrupts, and long enough
# for what is looked up by chance in a large table to be in the caches again.
STRETCH = 0.5
# How much the number of turns of a whole life varies around the plan's.
TURNS_SPREAD = 1.25
# Edge cases that one process meets, at most.
EDGES = 8
# How much a turn's length varies around the plan's.
SPREAD = 1.4
# Making the inputs of a bucket may take so many seconds; a task whose make_input is slower has fewer calls in a turn.
INPUT_SECONDS = 0.25
# What the questions of a turn take, and their answers; a bucket holds several turns, and inputs twice.
TURN_BYTES = 64 << 20
# A long process may take so many seconds, inputs and both sides included.
LONG_SECONDS = 8.0
# And the two processes of a whole life so many, in so many turns at most.
WHOLE_SECONDS, TURNS_MOST = 0.8, 80
# An edge case that takes more than this share of a turn is not timed: all of them together must be worth little to
# whoever knows their answers by heart.
LIGHT_SHARE = 0.001
# One process in so many has a turn with an edge case that is too dear to be timed.
DEAR_EVERY = 2


@dataclass(frozen=True)
class Costs:
    """What a rehearsal found: seconds per call, and bytes."""

    reference: float
    candidate: float
    # Of making a question and of checking its answer, for the judge.
    making: float
    checking: float
    # The largest question or answer, and the reference's longest answer.
    largest: int
    longest_answer: int
    # Memory of the reference that it may want in the caches.
    memory: int = 0
    # Each edge case, and what the reference takes over it.
    edges: tuple[tuple[Input, float], ...] = ()


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
    # Bytes of the largest question or answer.
    largest: int = 0
    # Timed turns of a whole life, about, and how many of them a side has in a row.
    turns: int = TURNS
    block: int = BLOCK
    note: str = ""


@dataclass(frozen=True)
class Lengths:
    """How many questions the opening and each timed turn of one process have, how many such turns there are, and how
    many of them in a row."""

    opening: int
    turn: int
    turns: int
    block: int


def plan_for(task: Task, costs: Costs) -> Plan:
    """The plan of all buckets of a verdict."""
    timing = task.timing
    question, sample = costs.reference * timing.bundle, timing.sample_ms / 1e3
    wanted = sample / question
    # A tenfold gain shortens the candidate's turn tenfold: lengthen both, but the reference's at most fivefold.
    wanted = max(wanted, min(sample / 4 / (costs.candidate * timing.bundle), 5 * wanted), 1.0)
    # Inputs of an opening and of the timed turns, all of them new.
    by_inputs = INPUT_SECONDS / costs.making / (TURNS + 1)
    by_memory = TURN_BYTES / max(costs.largest, 1)
    lifetime = timing.lifetime or LIFETIME_NS / 1e9 / costs.reference
    # In questions. No process makes more calls than programs that use the code do: what a candidate is like after
    # that is of no use to anybody. Every call of a command is a life of its own.
    life = math.inf if task.entry.kind == "command" else lifetime / timing.bundle
    questions = math.ceil(max(min(wanted, by_inputs, by_memory, turn_within(life)), 1.0))
    note = ""
    if questions < wanted / 2 and turn_within(life) < min(by_inputs, by_memory):
        note = f"a timed turn had {questions} questions and not {wanted:.0f}: a process lives for {lifetime:.0f} calls"
    elif questions < wanted / 2:
        note = (
            f"a timed turn had {questions} questions instead of {wanted:.0f}: making one takes "
            f"{costs.making * 1e3:.3g} ms, and its answer up to {costs.longest_answer // 1024} KB"
        )
    # By the reference alone: a candidate that dawdles in the rehearsal must not escape a long life.
    each = costs.making + costs.checking + 2 * question
    longest = min(opening_within(life, questions), LONG_SECONDS / each)
    turns = min(WHOLE_SECONDS / (questions * each), turns_within(life, questions))
    turns = max(min(int(turns), TURNS_MOST), TURNS)
    # Half a block to refill, half to look at.
    refilled = REFILL * min(costs.memory, CACHED) / (questions * question)
    block = 2 * math.ceil(min(max(refilled, 1), turns / 4, BLOCK_BYTES / (2 * questions * max(costs.largest, 1))))
    light = LIGHT_SHARE * question * questions
    return Plan(
        questions,
        question,
        light=tuple(edge for edge, seconds in costs.edges if seconds <= light),
        dear=tuple(edge for edge, seconds in costs.edges if seconds > light),
        dearest=max((seconds for _, seconds in costs.edges), default=0.0),
        lifetime=lifetime,
        longest=max(int(longest), 1),
        largest=costs.largest,
        turns=turns,
        block=max(block, BLOCK),
        note=note,
    )


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


def stretch(plan: Plan, size: int) -> int:
    """How many turns of so many questions a side has in a row in a long opening."""
    # Of the next stretch the questions are there already, and of this one the answers too.
    room = TURN_BYTES / (size * max(plan.largest, 1))
    return max(math.ceil(min(STRETCH / (size * plan.seconds), room)), 1)


def draw_lengths(plan: Plan, rng: np.random.Generator, span: Span) -> Lengths:
    """The lengths of one process; a long one lives for the lifetime, or as long as there is time for."""
    turn = turn_length(plan, rng)
    if span is Span.LONG:
        return Lengths(max(plan.longest, 2 * plan.questions), turn, TURNS, TURNS)
    opening = max(round(_log_uniform(rng, 1, 2 * plan.questions)), 1)
    if span is Span.BRIEF:
        # A first look ranks candidates: it is brief, and its turns as close to each other as they can be.
        return Lengths(opening, turn, TURNS, 1)
    blocks = max(round(plan.turns / plan.block * _log_uniform(rng, 1 / TURNS_SPREAD, TURNS_SPREAD)), 1)
    return Lengths(opening, turn, blocks * plan.block, plan.block)


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
