"""Inputs: the task's own functions, called so that whatever goes wrong in them is the task's error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from outpace.domains.base import Domain, Excuse, Input
from outpace.errors import OutpaceError, TaskError
from outpace.judge.compare import brief
from outpace.judge.patience import Patience, Watch
from outpace.judge.spots import Spots
from outpace.judge.worker import Failed

T = TypeVar("T")


def make_input(domain: Domain, rng: np.random.Generator) -> Input:
    """One input; whatever goes wrong in the task's own code is the task's error."""
    made = guarded("make_input", lambda: domain.make_input(rng))
    if not isinstance(made, dict):
        raise TaskError(f"make_input must return a dict of arguments, not {type(made).__name__}")
    return made


def checked(
    domain: Domain,
    given: Input,
    answer: Any,
    expected: Any,
    excuse: Excuse | None = None,
    patience: Patience | None = None,
) -> str:
    """The task's check; an answer so odd that the check fails on it, or never ends, is wrong, not a fault of ours."""

    def check(watch: Watch) -> str:
        def ask(spots: Spots) -> str:
            # Processes are started and asked now: what that takes is not the answer's doing. No check of a task's own
            # gets here, so that nothing that could go round in circles follows.
            watch.end()
            return "" if excuse is None else excuse(spots)

        try:
            return domain.check(given, answer, expected, None if excuse is None else ask)
        except (OutpaceError, Failed):
            raise  # from `excuse`: the reference could not be asked, which is no word on the answer
        except Exception as error:  # a user's check may fail in any way on an answer it did not foresee
            return f"the check cannot make sense of the answer {brief(answer)} ({type(error).__name__}: {error})"

    def own() -> None:
        with contextlib.suppress(Exception):
            domain.check(given, expected, expected)

    return (patience or Patience()).with_check(check, own)


def make_setup(domain: Domain, rng: np.random.Generator) -> Input | None:
    """The data a worker is set up with, if the task has any."""
    return guarded("make_setup", lambda: domain.make_setup(rng))


def edge_inputs(domain: Domain) -> Sequence[Input]:
    """The inputs that every candidate must get right."""
    return guarded("edge_inputs", domain.edge_inputs)


def guarded(name: str, call: Callable[[], T]) -> T:
    """What a function of the task's judge returns; however it fails, that is one kind of trouble."""
    try:
        return call()
    except OutpaceError:
        raise
    except Exception as error:
        raise TaskError(f"{name} failed: {type(error).__name__}: {error}") from error
