"""The contract of a domain: how one kind of task is prepared, built, called and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from outpace.judge.build import BuildPlan
from outpace.judge.jail import JailKind
from outpace.judge.question import Question
from outpace.judge.spots import Spots
from outpace.judge.worker import Program
from outpace.task import Task
from outpace.task.candidate import Candidate

Input = Mapping[str, Any]
# What is wrong of numbers that only the reference's own movement can excuse, or "" where it does.
Excuse = Callable[[Spots], str]


class Domain(Protocol):
    """Everything the judge asks about a task; it knows nothing of the archive, of policies or of rewards."""

    task: Task

    def build_plan(self, candidate: Candidate) -> BuildPlan:
        """What to lay out and run so that this candidate can be started."""
        ...

    def program(self, kind: JailKind, folder: Path) -> Program:
        """The worker that serves the candidate built in `folder`."""
        ...

    def make_input(self, rng: np.random.Generator) -> Input:
        """One call's arguments, from this source of chance alone."""
        ...

    def make_setup(self, rng: np.random.Generator) -> Input | None:
        """The data a fresh worker is set up with, or None."""
        ...

    def edge_inputs(self) -> Sequence[Input]:
        """Inputs that every candidate must get right; they stand at random places of every process."""
        ...

    def question(self, inputs: Sequence[Input], *, known_blank: bool = False) -> Question:
        """One call, or a bundle of them, laid out for the worker.

        Outputs start with chance, or with what an answer says of memory that nobody wrote to (`known_blank`).
        """
        ...

    def setup_question(self, data: Input) -> Question:
        """The set-up call laid out for the worker."""
        ...

    def check(self, given: Input, answer: Any, expected: Any, excuse: Excuse | None = None) -> str:
        """Why the answer to `given` is wrong, or "" when it is right; `excuse` is called only if that decides."""
        ...
