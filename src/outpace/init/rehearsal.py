"""The rehearsal: call a new task's reference in the jail; how long a call takes, or why it cannot be judged."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outpace.domains.base import Input
from outpace.domains.program import ProgramDomain
from outpace.errors import HarnessError, TaskError
from outpace.init.soundness import FAILED
from outpace.judge import redteam
from outpace.judge.build import BuildPlan, build
from outpace.judge.compare import difference
from outpace.judge.cores import exclusive, kept_off, timing_cores
from outpace.judge.interview import Interview
from outpace.judge.jail import JailKind
from outpace.judge.timing import Stopwatch
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed
from outpace.task import Task
from outpace.task.candidate import reference

# Below the first a call drowns in the round trip, above the second a verdict takes minutes.
SHORT, LONG = 100e-6, 20e-3
SMALLEST, LARGEST, GROWTH, SHRINKING = 4, 1 << 16, 8, 4
# Making an input may not take much longer than using it: each timed call needs a fresh one.
MAKING = 5e-3
_INPUTS, _MORE_INPUTS = 8, 40
# Calls in a turn of those that only have to go well.
TURN = 16


@dataclass(frozen=True)
class Rehearsed:
    """Seconds of a call and of making its input; or the problem, and whether that was only slowness."""

    seconds: float = 0.0
    making: float = 0.0
    problem: str = ""
    slow: bool = False


class Rehearsal:
    """Rehearses versions of a task; what was built once is used again while only the inputs change."""

    def __init__(self, jail: JailKind, workspace: Path) -> None:
        self.jail = jail
        self._workspace = workspace
        self._built: dict[str, Path | Failed] = {}

    def rehearse(self, task: Task) -> Rehearsed:
        """What a few calls of the reference show."""
        try:
            domain = ProgramDomain(task)
            program = domain.program(self.jail, self._folder(domain.build_plan(reference(task))))
            cores = timing_cores(task.limits.threads)
            ask = Interview(domain, self.jail, (program, program), cores, int.from_bytes(os.urandom(8), "little"))
            with exclusive(cores), kept_off(cores):
                if problem := _weak(ask):
                    return Rehearsed(problem=problem)
                plan = Stopwatch(ask).rehearse()
            begin = time.perf_counter()
            domain.make_input(np.random.default_rng(0))
            return Rehearsed(plan.seconds / task.timing.bundle, time.perf_counter() - begin)
        except (Failed, HarnessError, TaskError) as error:
            return _problem(error)

    def weakness(self, task: Task) -> Rehearsed:
        """The problem that some calls of the reference show, if any; nothing is timed."""
        try:
            with self._untimed(ProgramDomain(task)) as ask:
                return Rehearsed(problem=_weak(ask, _MORE_INPUTS))
        except (Failed, HarnessError, TaskError) as error:
            return _problem(error)

    def turns(self, task: Task, seconds: float) -> tuple[list[Any], list[float]]:
        """The reference's answers to as many inputs as so many seconds are enough for, and what each turn of it took.

        A turn is of `TURN` calls, and on a core that may not be quiet.
        """
        with self._untimed(ProgramDomain(task)) as ask:
            rng, _ = ask.chance()
            inputs, times = ask.fresh(TURN, rng), []
            end = time.perf_counter() + seconds
            with ask.pair(rng, sides=(0,)) as pair:
                ask.alone(pair, ask.lot(inputs, ask.setup(rng)))
                while time.perf_counter() < end:
                    lot = ask.lot(ask.fresh(TURN, rng))
                    inputs += lot.inputs
                    times.append(TURN * ask.seconds(pair.ask(0, lot).sample))
            return ask.reference_answers(inputs), times

    def answers(self, task: Task, inputs: Sequence[Input]) -> list[Any]:
        """What the reference says to these inputs, FAILED where it does not get to an answer."""
        if not inputs:
            return []
        try:
            return self._answered(ProgramDomain(task), inputs)
        except (Failed, TaskError, HarnessError) as error:
            if isinstance(error, HarnessError) and Outcome.TIMED_OUT not in str(error):
                raise
            # One of them took the whole process with it: the others have their answers in smaller company.
            if len(inputs) == 1:
                return [FAILED]
            half = len(inputs) // 2
            return self.answers(task, inputs[:half]) + self.answers(task, inputs[half:])

    def _answered(self, domain: ProgramDomain, inputs: Sequence[Input]) -> list[Any]:
        with self._untimed(domain) as ask:
            return ask.reference_answers(inputs)

    @contextlib.contextmanager
    def _untimed(self, domain: ProgramDomain) -> Iterator[Interview]:
        program = domain.program(self.jail, self._folder(domain.build_plan(reference(domain.task))))
        timing = timing_cores(domain.task.limits.threads)
        # Nothing is timed here: beside the timing cores it neither waits for another judge nor disturbs one.
        cores = tuple(sorted(os.sched_getaffinity(0) - set(timing)))
        ask = Interview(domain, self.jail, (program, program), cores or timing, int.from_bytes(os.urandom(8), "little"))
        with contextlib.nullcontext() if cores else exclusive(timing):
            yield ask

    def _folder(self, plan: BuildPlan) -> Path:
        key = hashlib.sha256(repr((sorted(plan.files.items()), plan.commands)).encode()).hexdigest()[:16]
        if key not in self._built:
            try:
                build(self.jail, plan, self._workspace / key)
                self._built[key] = self._workspace / key
            except Failed as failure:
                self._built[key] = failure
        found = self._built[key]
        if isinstance(found, Failed):
            raise found
        return found


def fit_size(rehearse: Callable[[int], Rehearsed], start: int) -> tuple[int, Rehearsed]:
    """The input size at which a call takes neither too short nor too long, and what the rehearsal found there."""
    seen: dict[int, Rehearsed] = {}
    size = start
    while size not in seen:
        found = seen[size] = rehearse(size)
        if found.problem and not found.slow:
            break
        if found.slow or found.seconds > LONG:
            size = max(size // SHRINKING, SMALLEST)
        elif found.seconds < SHORT and found.making < MAKING:
            size = min(size * GROWTH, LARGEST)
    usable = {each: found for each, found in seen.items() if not found.problem}
    if not usable:
        last = list(seen)[-1]
        return last, seen[last]
    # Of what was tried, the nearest to the middle of what is wanted.
    best = min(usable, key=lambda each: abs(np.log(usable[each].seconds / (10 * SHORT))))
    return best, usable[best]


def _weak(ask: Interview, count: int = _INPUTS) -> str:
    """Why the reference's answers to some inputs make no task, or ""."""
    inputs = ask.some_inputs(count)
    answers = ask.reference_answers(inputs)
    if not any(difference(answers[0], answer) for answer in answers):
        # Yes or no: the other one may be as rare as a prime.
        more = ask.some_inputs(_MORE_INPUTS)
        inputs, answers = [*inputs, *more], [*answers, *ask.reference_answers(more)]
    answered = list(zip(inputs, answers, strict=True))
    return "; ".join([*redteam.weaknesses(ask.domain, answered, ask.doubts.moved), *_unseen(answered)])


def _problem(error: Failed | HarnessError | TaskError) -> Rehearsed:
    if isinstance(error, Failed):
        return Rehearsed(problem=f"{error.outcome}: {error.reason}")
    # A reference that runs past the limit counts as a fault of the machine, for there it mostly is one.
    slow = isinstance(error, HarnessError)
    if slow and Outcome.TIMED_OUT not in str(error):
        raise error
    return Rehearsed(problem=str(error), slow=slow)


def _unseen(answered: list[tuple[Input, Any]]) -> list[str]:
    """A function that only leaves its input as it was shows nothing by which it could be judged."""
    if all(
        isinstance(answer, Mapping) and "return" not in answer and _unchanged(given, answer)
        for given, answer in answered
    ):
        return ["nothing in its answer tells what it did: it returns nothing and leaves its arguments as they were"]
    return []


def _unchanged(given: Input, answer: Mapping[str, Any]) -> bool:
    shared = [name for name in answer if name in given]
    return len(shared) == len(answer) and all(
        not difference(_array(given[name]), _array(answer[name])) for name in shared
    )


def _array(value: Any) -> Any:
    raw = value.encode() if isinstance(value, str) else value
    return np.frombuffer(raw, np.uint8) if isinstance(raw, bytes) else raw
