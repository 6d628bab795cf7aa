"""Timing: fresh pairs of jailed processes, the same fresh inputs for both, in random order, until the test can decide.

One bucket is one pair of processes. Both are warmed in random order; then two batches are timed in the order ABBA or
BAAB. The answers of every timed call are checked against the reference's. The inputs of a batch appear in the shared
region only right before they are used, both workers map the same physical pages, and whoever is not running is stopped.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.domains.base import Domain, Input
from outpace.errors import HarnessError, TaskError
from outpace.judge import statistics
from outpace.judge.compare import brief
from outpace.judge.inputs import INPUT_SECONDS, Inputs, checked, edge_inputs, make_input, make_setup
from outpace.judge.jail import MIB, JailKind
from outpace.judge.pair import Pair, SideFailed
from outpace.judge.statistics import Decision
from outpace.judge.verdict import Bucket, Outcome, Sample
from outpace.judge.worker import Failed, Program

PAIRS = 2
# Calls shorter than this get a short warm-up of their own before each sample, so that nobody profits from the
# caches its rival left behind. Longer ones refill the caches within a small part of the sample.
SELF_WARM_BELOW, SELF_WARM_SECONDS = 0.002, 0.001
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
        # How many calls fit the shared regions, going by the largest inputs and answers seen so far.
        self._room = _MAX_CALLS

    def rehearse(self) -> tuple[float, float]:
        """Check the candidate on the edge cases and on some inputs; returns the seconds per call of both."""
        rng, _ = self._chance()
        pair = self._pair(rng)
        try:
            for given in edge_inputs(self._domain):
                self._both(pair, [given])
            seconds = self._both(pair, self._inputs.draw(REHEARSAL_CALLS, rng))
            if seconds[0] < 1e-3:
                # A single short call is mostly round trip and cold caches: look again at more of them.
                count = min(max(int(2e-3 / max(seconds[0], 1e-6)), REHEARSAL_CALLS), 64, self._room)
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
            self._room = min(self._room, pair.room_for(batch))
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
        self._domain.batch([make_input(self._domain, rng)])
        making = time.perf_counter() - begin
        calls = max(1, math.ceil(min(calls, 4 * INPUT_SECONDS / making, self._room)))
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
                pair.warm(int(side), warm, plan.seconds)
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
        # Each bucket has a seed of its own, which is stored with it: its fresh inputs can be made again from that.
        self._serial += 1
        digest = hashlib.sha256(f"{self._seed}:{self._serial}".encode()).digest()
        seed = int.from_bytes(digest[:8], "little")
        return np.random.default_rng(seed), seed

    def _output_bytes(self) -> int:
        return max(self._domain.task.limits.output_mb, 1) * MIB

    def _pair(self, rng: np.random.Generator) -> Pair:
        first = int(rng.integers(2))
        try:
            pair = Pair(self._kind, self._programs, self._cores, self._output_bytes(), first)
        except SideFailed as failed:
            raise self._blame(failed.failure, failed.side) from failed
        try:
            data = make_setup(self._domain, rng)
            pair.setup(None if data is None else self._domain.setup_batch(data))
        except Failed as failure:
            pair.close()
            raise self._blame(failure, pair.side) from failure
        except BaseException:
            pair.close()
            raise
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
