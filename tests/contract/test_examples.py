"""The shipped examples withstand what every task is attacked with before it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from outpace.judge import redteam
from outpace.judge.interview import Interview
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.task import Task
from outpace.task.file import load_task

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/task.toml"))
INPUTS, SEED = 8, 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_a_shipped_example_has_no_weakness(path: Path, judge_of: Callable[[Task, JailKind], Judge]) -> None:
    judge = judge_of(load_task(path.parent), best_jail())
    program = judge.domain.program(judge.jail, judge._reference_folder())
    with judge._timing():
        ask = Interview(judge.domain, judge.jail, (program, program), judge.cores, SEED)
        inputs = ask.some_inputs(INPUTS)
        answered = list(zip(inputs, ask.reference_answers(inputs), strict=True))
        assert redteam.weaknesses(judge.domain, answered, ask.doubts.moved) == []


def test_the_examples_are_there() -> None:
    assert len(EXAMPLES) >= 9
