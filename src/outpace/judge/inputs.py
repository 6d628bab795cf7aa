"""Inputs: the task's own functions, called so that whatever goes wrong in them is the task's error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from outpace.domains.base import Domain, Input, Moved
from outpace.errors import OutpaceError, TaskError
from outpace.judge.compare import brief
from outpace.judge.worker import Failed

T = TypeVar("T")


def make_input(domain: Domain, rng: np.random.Generator) -> Input:
    """One input; whatever goes wrong in the task's own code is the task's error."""
    made = guarded("make_input", lambda: domain.make_input(rng))
    if not isinstance(made, dict):
        raise TaskError(f"make_input must return a dict of arguments, not {type(made).__name__}")
    return made


def checked(domain: Domain, given: Input, answer: Any, expected: Any, moved: Moved | None = None) -> str:
    """The task's check; an answer so odd that the check itself fails on it is wrong, not a fault of ours."""
    try:
        return domain.check(given, answer, expected, moved)
    except (OutpaceError, Failed):
        raise  # from `moved`: the reference could not be asked, which is no word on the answer
    except Exception as error:  # a user's check may fail in any way on an answer it did not foresee
        return f"the check cannot make sense of the answer {brief(answer)} ({type(error).__name__}: {error})"


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
