"""Timing: fresh pairs of jailed processes, the same fresh inputs for both, in random order, until the test can decide.

One bucket is one pair of processes. Both are warmed in random order; then two batches are timed in the order ABBA or
BAAB. The answers of every timed call are checked against the reference's. The inputs of a batch appear in the shared
region only right before they are used, both workers map the same physical pages, and whoever is not running is stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.domains.base import Domain, Input
from outpace.errors import HarnessError, TaskError
from outpace.judge import statistics
from outpace.judge.batch import BadAnswer, Batch
from outpace.judge.compare import brief
from outpace.judge.jail import MIB, JailKind
from outpace.judge.statistics import Decision
from outpace.judge.verdict import Bucket, Outcome, Sample
from outpace.judge.worker import Failed, Program, Region, Worker

PAIRS = 2
INPUT_REGION = 256 * MIB
# Loading a candidate, setting it up and its first calls may take this many times the reference's CPU seconds, and the
# program's `once_seconds`: work must not move there from the timed calls without bound.
ONCE_FACTOR = 2.0
# A whole batch may take this many times what the reference takes over it, beside one call's own limit.
PATIENCE = 100
# Calls shorter than this get a short warm-up of their own before each sample, so that nobody profits from the
# caches its rival left behind. Longer ones refill the caches within a small part of the sample.
SELF_WARM_BELOW, SELF_WARM_SECONDS = 0.002, 0.001
# Making inputs may take this long per bucket; after that, inputs of earlier buckets are used again. Processes and
# shared memory are new in every bucket, so there is nothing in which an answer could have been remembered.
INPUT_SECONDS = 0.25
REHEARSAL_CALLS = 4
_MAX_CALLS = 4096


@dataclass(frozen=True)
class Plan:
    """How many calls one sample takes, and how many warm it up."""

    calls: int
    warm: int
    # Whether each sample gets a warm-up of its own.
    self_warm: bool
    # What reference and candidate take per call.
    seconds: tuple[float, float]


class Inputs:
    """Fresh inputs from a seed, as many as time allows, then earlier ones in a new order."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._known: list[Input] = []

    def draw(self, count: int, rng: np.random.Generator) -> list[Input]:
        """`count` inputs that differ from each other in origin: none is handed out twice in one draw."""
        begin = time.perf_counter()
        fresh: list[Input] = []
        while len(fresh) < count:
            enough = len(fresh) + len(self._known) >= count
            if enough and time.perf_counter() - begin > INPUT_SECONDS:
                break
            fresh.append(make_input(self._domain, rng))
        kept = rng.permutation(len(self._known))[: count - len(fresh)]
        drawn = [self._known[at] for at in kept] + fresh
        self._known += fresh
        return [drawn[at] for at in rng.permutation(count)]


def make_input(domain: Domain, rng: np.random.Generator) -> Input:
    """One input; whatever goes wrong in the task's own code is the task's error."""
    try:
        made = domain.make_input(rng)
    except Exception as error:  # a user's file may fail in any way
        raise TaskError(f"make_input failed: {type(error).__name__}: {error}") from error
    if not isinstance(made, dict):
        raise TaskError(f"make_input must return a dict of arguments, not {type(made).__name__}")
    return made


def checked(domain: Domain, given: Input, answer: Any, expected: Any) -> str:
    """The task's check; an answer so odd that the check itself fails on it is wrong, not a fault of ours."""
    try:
        return domain.check(given, answer, expected)
    except Exception as error:  # a user's check may fail in any way on an answer it did not foresee
        return f"the check cannot make sense of the answer {brief(answer)} ({type(error).__name__}: {error})"


class SideFailed(Exception):
    """A worker failed to start; `side` tells whose it was."""

    def __init__(self, failure: Failed, side: int) -> None:
        super().__init__(failure.reason)
        self.failure, self.side = failure, side


class Pair:
    """Reference and candidate, each in its own fresh worker, over the same shared memory."""

    def __init__(
        self,
        kind: JailKind,
        programs: tuple[Program, Program],
        cores: Sequence[int],
        output_bytes: int,
        first: int,
    ) -> None:
        self._inputs = Region(INPUT_REGION, writable_inside=False)
        # Inputs share their pages, which takes a large part of the noise out; answers must not, or the candidate
        # would find the reference's there.
        self._outputs = (
            Region(output_bytes, writable_inside=True),
            Region(output_bytes, writable_inside=True),
        )
        self.workers: dict[int, Worker] = {}
        self.once = [0.0, 0.0]  # CPU seconds each side spent on what it does once per process
        self.side = first
        try:
            for self.side in (first, 1 - first):
                self.workers[self.side] = Worker.start(
                    kind, programs[self.side], self._inputs, self._outputs[self.side], cores
                )
        except Failed as failure:
            self.close()
            raise SideFailed(failure, self.side) from failure
        except BaseException:
            self.close()
            raise

    def setup(self, batch: Batch | None) -> None:
        """Hand both the set-up data, if there is any."""
        self.once = [self.workers[side].loading for side in (0, 1)]
        if batch is not None:
            for self.side in (0, 1):
                self.once[self.side] += self.workers[self.side].setup(batch)
        self.bound_work_done_once()

    def warm(self, side: int, batch: Batch, plan: Plan) -> None:
        """The first calls of a process; what they take beyond twice their usual time is work done once."""
        usual = plan.seconds[side] * batch.count
        spent = self.sample(side, batch, plan.seconds[0] * batch.count).cpu / 1e9
        self.once[side] += max(spent - 2 * usual, 0.0)

    def bound_work_done_once(self) -> None:
        """The candidate may not take much longer than the reference over what it does once per process."""
        spent = self.once
        self.side = 1
        allowed = ONCE_FACTOR * spent[0] + self.workers[1].program.once_seconds
        if spent[1] > allowed:
            raise Failed(
                Outcome.REFUSED,
                f"loading, set-up and the first calls took {spent[1]:.3f} s of CPU time beyond the calls themselves, "
                f"the reference's {spent[0]:.3f} s; {allowed:.3f} s are allowed",
            )

    def prepare(self, batches: Sequence[Batch]) -> None:
        """Let both map the memory that these batches will use."""
        for side, worker in self.workers.items():
            self.side = side
            worker.prepare(batches)

    def sample(self, side: int, batch: Batch, expected: float) -> Sample:
        """Time one batch on one side, when the reference is expected to take so many seconds over it.

        One call may take as long as the task's limit says, but a batch of thousands may not take thousands of times
        that.
        """
        self.side = side
        worker = self.workers[side]
        worker.load(batch)
        limit = worker.program.seconds
        return worker.go(min(limit * batch.count, limit + PATIENCE * expected))

    def answers(self) -> list[Any]:
        """What the side that ran last answered."""
        try:
            return self.workers[self.side].answers()
        except BadAnswer as error:
            raise Failed(Outcome.WRONG, str(error)) from None

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        for region in (self._inputs, *self._outputs):
            region.close()


@dataclass(frozen=True)
class Timed:
    """What timing found: the decision and the buckets behind it."""

    decision: Decision
    buckets: tuple[Bucket, ...]


class Stopwatch:
    """Times one candidate against the reference."""

    def __init__(
        self,
        domain: Domain,
        kind: JailKind,
        programs: tuple[Program, Program],
        cores: Sequence[int],
        seed: int,
    ) -> None:
        self._domain = domain
        self._kind = kind
        self._programs = programs
        self._cores = cores
        self._seed = seed
        self._inputs = Inputs(domain)
        self._serial = 0

    def rehearse(self) -> tuple[float, float]:
        """Check the candidate on the edge cases and on some inputs; returns the seconds per call of both."""
        rng, _ = self._chance()
        pair = self._pair(rng)
        try:
            for given in self._domain.edge_inputs():
                self._both(pair, [given])
            seconds = self._both(pair, self._inputs.draw(REHEARSAL_CALLS, rng))
            if seconds[0] < 1e-3:
                # A single short call is mostly round trip and cold caches: look again at more of them.
                count = min(max(int(2e-3 / max(seconds[0], 1e-6)), REHEARSAL_CALLS), 64)
                seconds = self._both(pair, self._inputs.draw(count, rng))
        except Failed as failure:
            raise self._blame(failure, pair.side) from failure
        finally:
            pair.close()
        return seconds

    def _both(self, pair: Pair, inputs: Sequence[Input]) -> tuple[float, float]:
        """Run and check the same inputs on both sides; returns the seconds per call of each."""
        batch = self._domain.batch(inputs)
        seconds: list[float] = []
        answers: list[list[Any]] = []
        for side in (0, 1):
            expected = seconds[0] * len(inputs) if seconds else math.inf
            sample = pair.sample(side, batch, expected)
            # The CPU clock, because waiting for a core would make every call look long; threads share one wall clock.
            spent = sample.wall if self._domain.task.limits.parallel else sample.cpu
            seconds.append(max(spent, 100) / 1e9 / len(inputs))
            answers.append(pair.answers())
        self._check(inputs, answers[1], answers[0])
        return seconds[0], seconds[1]

    def reference_answers(self, count: int) -> list[tuple[Input, Any]]:
        """Some inputs and what the reference says to them."""
        rng, _ = self._chance()
        inputs = [make_input(self._domain, rng) for _ in range(count)]
        pair = self._pair(rng)
        try:
            found = []
            for given in inputs:
                pair.sample(0, self._domain.batch([given]), math.inf)
                found.append((given, pair.answers()[0]))
            return found
        except Failed as failure:
            raise self._blame(failure, 0) from failure
        finally:
            pair.close()

    def plan(self, reference: float, candidate: float) -> Plan:
        """Calls per sample: long enough that the round trip vanishes, also for a candidate that is far faster."""
        sample = self._domain.task.timing.sample_ms / 1e3
        calls = sample / reference
        # A tenfold gain shortens the candidate's sample tenfold: lengthen both, but the reference's at most fivefold.
        calls = max(calls, min(sample / 4 / candidate, 5 * calls))
        rng, _ = self._chance()
        begin = time.perf_counter()
        probe = self._domain.batch([make_input(self._domain, rng) for _ in range(2)])
        making = (time.perf_counter() - begin) / 2
        calls = min(calls, 4 * INPUT_SECONDS / making, _MAX_CALLS)
        room = min(INPUT_REGION / (len(probe.data) + 4096), 2 * self._output_bytes() / len(probe.blank))
        calls = max(1, math.ceil(min(calls, room / 2)))
        warm = max(1, min(calls, round(SELF_WARM_SECONDS / reference)))
        return Plan(calls, warm, self_warm=reference < SELF_WARM_BELOW, seconds=(reference, candidate))

    def bucket(self, plan: Plan) -> Bucket:
        """One fresh pair, timed."""
        rng, seed = self._chance()
        inputs = self._inputs.draw(PAIRS * plan.calls + plan.warm, rng)
        batches = [inputs[at * plan.calls : (at + 1) * plan.calls] for at in range(PAIRS)]
        laid_out = [self._domain.batch(batch) for batch in batches]
        warm = self._domain.batch(inputs[PAIRS * plan.calls :])
        first = int(rng.integers(2))
        samples: tuple[list[Sample], list[Sample]] = ([], [])
        pair = self._pair(rng)
        try:
            pair.prepare([warm, *laid_out])
            for side in rng.permutation(2):
                pair.warm(int(side), warm, plan)
            pair.bound_work_done_once()
            for number in range(PAIRS):
                answers: dict[int, list[Any]] = {}
                order = (first, 1 - first) if number % 2 == 0 else (1 - first, first)
                for side in order:
                    if plan.self_warm:
                        pair.sample(side, warm, plan.seconds[0] * plan.warm)
                    samples[side].append(pair.sample(side, laid_out[number], plan.seconds[0] * plan.calls))
                    answers[side] = pair.answers()
                pair.side = 1
                self._check(batches[number], answers[1], answers[0])
        except Failed as failure:
            raise self._blame(failure, pair.side) from failure
        finally:
            pair.close()
        return Bucket(tuple(samples[0]), tuple(samples[1]), plan.calls, seed)

    def time(self, plan: Plan, progress: Callable[[int], None] | None = None) -> Timed:
        """Buckets until the test decides; disturbed ones are timed again, up to twice as many in all."""
        task = self._domain.task
        buckets: list[Bucket] = []
        decision = Decision(False, None)
        limit = 2 * max(statistics.LOOKS)
        while not decision.stop and len(buckets) < limit:
            bucket = self.bucket(plan)
            buckets.append(bucket)
            ratios = statistics.log_ratios(buckets, parallel=task.limits.parallel)
            decision = statistics.decide(ratios, task.timing.margin)
            if progress is not None:
                progress(len(buckets))
        return Timed(decision, tuple(buckets))

    def _chance(self) -> tuple[np.random.Generator, int]:
        # Each bucket draws from a stream of its own, so that a stored seed and number suffice to make its inputs again.
        self._serial += 1
        return np.random.default_rng([self._seed, self._serial]), self._serial

    def _output_bytes(self) -> int:
        return max(self._domain.task.limits.output_mb, 1) * MIB

    def _pair(self, rng: np.random.Generator) -> Pair:
        first = int(rng.integers(2))
        try:
            pair = Pair(self._kind, self._programs, self._cores, self._output_bytes(), first)
        except SideFailed as failed:
            raise self._blame(failed.failure, failed.side) from failed
        data = self._domain.make_setup(rng)
        try:
            pair.setup(None if data is None else self._domain.setup_batch(data))
        except Failed as failure:
            pair.close()
            raise self._blame(failure, pair.side) from failure
        return pair

    def _check(self, inputs: Sequence[Input], answers: Sequence[Any], expected: Sequence[Any]) -> None:
        for given, answer, truth in zip(inputs, answers, expected, strict=True):
            reason = checked(self._domain, given, answer, truth)
            if reason:
                raise Failed(Outcome.WRONG, f"{reason}; input: {brief(dict(given), 160)}")

    def _blame(self, failure: Failed, side: int) -> Exception:
        """The candidate's failure is a verdict; the reference's is an error of the task or the machine."""
        if side == 1:
            return failure
        text = f"the reference itself failed ({failure.outcome}): {failure.reason}"
        return HarnessError(text) if failure.outcome is Outcome.TIMED_OUT else TaskError(text)
