"""What a process is asked is drawn by chance, and no process lives longer than the task says."""

import numpy as np
import pytest

from conftest import c_task
from outpace.judge.schedule import (
    BLOCK,
    CACHED,
    EDGES,
    SPREAD,
    STRETCH,
    TURNS,
    Costs,
    Plan,
    draw_lengths,
    opening_within,
    placed,
    plan_for,
    stretch,
    turn_within,
    turns_within,
)
from outpace.judge.verdict import Span


def plan_within(life: float) -> Plan:
    questions = max(int(turn_within(life)), 1)
    longest = max(int(opening_within(life, questions)), 1)
    return Plan(questions, 1e-5, longest=longest, turns=max(int(turns_within(life, questions)), TURNS))


def test_in_a_long_opening_a_side_goes_on_for_half_a_second_or_as_long_as_there_is_memory() -> None:
    plan = Plan(300, 20e-6, largest=2000)
    assert stretch(plan, 600) * 600 * 20e-6 == pytest.approx(STRETCH, rel=0.05)
    assert stretch(Plan(300, 20e-6, largest=8 << 20), 4) == 2
    assert stretch(Plan(300, 1.0), 600) == 1


@pytest.mark.parametrize("life", [10, 100, 350, 10_000])
@pytest.mark.parametrize("span", list(Span))
def test_no_process_makes_more_calls_than_its_life_has(life: int, span: Span) -> None:
    plan, rng = plan_within(life), np.random.default_rng(1)
    for _ in range(200):
        lengths = draw_lengths(plan, rng, span)
        # And a turn beside them that is not timed.
        whole = lengths.opening + lengths.turns * lengths.turn + round(SPREAD * plan.questions)
        assert whole <= life + TURNS + 2, "but for rounding"


def test_a_whole_life_has_more_turns_than_a_brief_one_and_a_long_one_a_longer_opening() -> None:
    plan, rng = plan_within(10_000), np.random.default_rng(1)
    plan = Plan(100, 1e-5, longest=plan.longest, turns=40)
    brief, whole, long = (draw_lengths(plan, rng, span) for span in Span)
    assert brief.turns == long.turns == TURNS and whole.turns > 20
    assert long.opening > 5 * max(brief.opening, whole.opening)


def test_edge_cases_stand_in_any_turn_and_not_too_many_of_them() -> None:
    rng = np.random.default_rng(1)
    edges = [{"x": number} for number in range(20)]
    met = np.zeros(3)
    for _ in range(300):
        found = placed(edges, 3, rng)
        assert sum(map(len, found)) == EDGES
        met += [len(each) for each in found]
    assert met.min() > 0.25 * met.sum()


TASK = c_task("int f(int x) { return x; }", "int f(int x)", "def make_input(rng):\n    return {'x': 1}\n")


def planned(memory: int, call: float = 1e-4, largest: int = 8) -> Plan:
    return plan_for(TASK, Costs(call, call, 1e-7, 1e-7, largest, 8, memory))


def test_a_block_is_as_long_as_it_takes_to_bring_the_references_memory_back() -> None:
    small, large, huge = planned(0), planned(CACHED // 2), planned(100 * CACHED)
    assert small.block == BLOCK < large.block < huge.block <= huge.turns
    # Half of a block, at 100 ns for each cache line.
    assert large.block / 2 * large.questions * large.seconds >= CACHED / 2 / 64 * 100e-9


def test_the_questions_of_a_block_fit_into_memory() -> None:
    plan = planned(100 * CACHED, largest=8 << 20)
    assert plan.block * plan.questions * (8 << 20) <= 512 << 20


@pytest.mark.parametrize("span", list(Span))
@pytest.mark.parametrize("memory", [0, CACHED])
def test_turns_fill_whole_blocks(span: Span, memory: int) -> None:
    rng = np.random.default_rng(1)
    for call in (1e-6, 1e-4, 5e-2):
        lengths = draw_lengths(planned(memory, call), rng, span)
        assert lengths.turns % lengths.block == 0 and lengths.turns >= TURNS
        # A first look has turns that stand alone: as close to each other as they can be.
        assert lengths.block == 1 if span is Span.BRIEF else lengths.block % 2 == 0
