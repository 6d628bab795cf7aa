"""The interview: fresh pairs of jailed processes, the questions put to both, and whether their answers agree.

Every answer is checked, whichever turn it is of, and what both sides may take in all is bounded: no candidate keeps a
judge busy for longer than a slow one that is honest would.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from outpace.domains.base import Domain, Input
from outpace.errors import HarnessError, TaskError
from outpace.judge.accounts import clock, handover
from outpace.judge.doubts import Doubts
from outpace.judge.feeder import ANSWER_LIMIT, Lot
from outpace.judge.inputs import make_input, make_setup
from outpace.judge.jail import MIB, JailKind
from outpace.judge.pair import Pair, SideFailed
from outpace.judge.question import BadAnswer, Question
from outpace.judge.verdict import Outcome, Sample, Span
from outpace.judge.worker import Failed, Heard, Memory, Program
from outpace.task import Entry

# A turn may take so many times what the reference takes over it, less in a confirmation, which nothing so slow will
# win; beyond that all turns of a verdict together may take as long as one call may. And what turns of a first look take
# beyond the less may be so many seconds more, which is enough to tell how slow a slow candidate is.
PATIENCE = {Span.BRIEF: 100, Span.WHOLE: 10, Span.LONG: 10}
LEISURE = 10.0
# All starts together may take so many lifetimes of the reference, or as long as one start may, but no more seconds.
STARTS, STARTS_MOST = 5, 60.0
# Calls of a bucket of which the reference says what converting took.
CONVERTED = 8
# Answers of fewer bytes are compared faster than arrays of them are made.
SHORT = 4096


class Interview:
    """All that the reference and one candidate are asked for one verdict."""

    def __init__(
        self,
        domain: Domain,
        kind: JailKind,
        programs: tuple[Program, Program],
        cores: Sequence[int],
        seed: int,
        *,
        trusted: bool = True,
    ) -> None:
        """`trusted` where the first program is the task's reference, and not a candidate in its place."""
        self.domain = domain
        self._trusted = trusted
        self._kind = kind
        self._programs = programs
        self._cores = cores
        self._seed = seed
        self._bundle = domain.task.timing.bundle
        self._serial = 0
        # The largest question and the longest answer of the reference so far: memory for them is mapped beforehand.
        self._question_bytes = 0
        self._kept_bytes = 0
        self._answer_bytes = 0
        # The largest array of a question or of its answer: any other caller makes such blocks and frees them.
        self._freed = 0
        self._set_up: list[Question] = []
        # Seconds that the candidate may still dawdle, in its calls and before the first.
        self._slack = domain.task.limits.seconds
        self._slack_before = programs[1].setup_seconds
        self._leisure = self._slack + LEISURE
        self._loading = 0.0  # seconds, of the reference
        self.doubts = Doubts(domain, self.reference_answers, np.random.default_rng(seed))

    # What it is about

    @property
    def largest(self) -> int:
        """The bytes of the largest question or answer so far."""
        return max(self._answer_bytes, self._question_bytes)

    @property
    def longest_answer(self) -> int:
        """The bytes of the reference's longest answer so far."""
        return self._answer_bytes

    def expect(self, seconds: float, lifetime: float) -> None:
        """The reference takes so long over a call, and programs make so many calls."""
        # Once-work that takes a lifetime cannot pay: a table that may pay has time to be made in every process.
        self._slack_before = max(self._slack_before, min(STARTS * lifetime * seconds, STARTS_MOST))

    def reference_answers(self, inputs: Sequence[Input]) -> list[Any]:
        """What the reference says to these inputs, set up as it was last."""
        rng, _ = self.chance()
        with self.pair(rng, sides=(0,)) as pair:
            # No candidate is asked these, and what nobody wrote to reads the same to the last byte.
            lot = self.lot(inputs, self._set_up or self.setup(rng), known_blank=True)
            return self._read_reference(lot, pair.ask(0, lot))

    def some_inputs(self, count: int) -> list[Input]:
        """Fresh inputs."""
        rng, _ = self.chance()
        return [make_input(self.domain, rng) for _ in range(count)]

    # Questions

    def chance(self) -> tuple[np.random.Generator, int]:
        """A source of chance for one pair, and its seed, by which the fresh inputs of that pair can be made again."""
        self._serial += 1
        digest = hashlib.sha256(f"{self._seed}:{self._serial}".encode()).digest()
        seed = int.from_bytes(digest[:8], "little")
        return np.random.default_rng(seed), seed

    def fresh(self, questions: int, rng: np.random.Generator) -> list[Input]:
        """Inputs for so many questions."""
        return [make_input(self.domain, rng) for _ in range(questions * self._bundle)]

    def setup(self, rng: np.random.Generator) -> list[Question]:
        """What a worker is set up with: one question or none."""
        data = make_setup(self.domain, rng)
        self._set_up = [] if data is None else [self.domain.setup_question(data)]
        return self._set_up

    def lot(self, inputs: Sequence[Input], before: Sequence[Question] = (), *, known_blank: bool = False) -> Lot:
        """One turn's questions about these inputs, and before them perhaps the set-up."""
        bundles = [inputs[at : at + self._bundle] for at in range(0, len(inputs), self._bundle)]
        lot = Lot([*before, *(self.domain.question(each, known_blank=known_blank) for each in bundles)], inputs)
        self._question_bytes = max(self._question_bytes, lot.input_bytes)
        self._kept_bytes = max(self._kept_bytes, lot.kept)
        self._freed = max(self._freed, *(question.largest for question in lot.questions), 0)
        return lot

    # Turns

    @contextlib.contextmanager
    def pair(self, rng: np.random.Generator, sides: Sequence[int] = (0, 1)) -> Iterator[Pair]:
        """Fresh workers; what the candidate does wrong is a verdict, what the reference does is not."""
        output_bytes = max(self.domain.task.limits.output_mb, 1) * MIB
        order = [side for side in rng.permutation(2).tolist() if side in sides]
        # Rounded up, so that it says little about what came before.
        memory = Memory(
            _power_of_two(self._kept_bytes + self._question_bytes), _power_of_two(self._answer_bytes), self._freed
        )
        patient = self._slack_before + PATIENCE[Span.WHOLE] * self._loading
        hurried = dataclasses.replace(
            self._programs[1], setup_seconds=max(min(self._programs[1].setup_seconds, patient), 0.0)
        )
        programs = {side: hurried if side else self._programs[0] for side in order}
        try:
            begin = time.perf_counter()
            pair = Pair(self._kind, programs, self._cores, output_bytes, memory)
            try:
                loaded = {side: worker.loaded_in for side, worker in pair.workers.items()}
                self._loading = max(self._loading, loaded.get(0, 0.0))
                self._slack_before -= max(loaded.get(1, 0.0) - PATIENCE[Span.WHOLE] * self._loading, 0.0)
                yield pair
            finally:
                pair.close()
            # Each while the pair's set-up is the last that was made. To settle them the reference alone is asked, in a
            # pair that has no doubts of its own.
            if 1 in programs:
                self.doubts.settle(time.perf_counter() - begin)
        except SideFailed as failed:
            raise _blame(failed.failure, failed.side, self.domain.task.entry) from failed

    def alone(self, pair: Pair, lot: Lot) -> Heard:
        """The reference's turn while no candidate is there."""
        heard = pair.ask(0, lot)
        self._measure_answers(heard)
        return heard

    def start(self, pair: Pair, lot: Lot, expected: float, first: int, span: Span = Span.BRIEF) -> tuple[Heard, Heard]:
        """The turn before the first, in which both are set up, in either order: it has no answers."""
        return self.block(pair, [lot], [expected], span, first=first)[0]

    def turn(self, pair: Pair, lot: Lot, expected: float, span: Span = Span.BRIEF) -> tuple[Heard, Heard]:
        """One turn of both, checked; the reference is expected to take so many seconds."""
        return self.block(pair, [lot], [expected], span)[0]

    def block(
        self,
        pair: Pair,
        lots: Sequence[Lot],
        expected: Sequence[float],
        span: Span,
        *,
        first: int = 1,
        between: Callable[[], None] = lambda: None,
    ) -> list[tuple[Heard, Heard]]:
        """Several turns of one side in a row and then as many of the other, checked; `between` is called in between.

        The candidate answers first. Whoever is asked what was just answered beside him can tell by the time of a look,
        or by what was driven from the caches, where the other one found it.
        """
        try:
            heard = {first: self._ask(pair, first, lots, expected, span)}
        except SideFailed as failed:
            if failed.side == 1 and failed.failure.outcome is Outcome.CRASHED:
                # Where the reference crashes too, the task is wrong, and not the candidate that was asked first.
                self._ask(pair, 0, lots, expected, span)
            raise
        between()
        heard[1 - first] = self._ask(pair, 1 - first, lots, expected, span)
        both = list(zip(heard[0], heard[1], strict=True))
        self._give_back(both, expected, span)
        for lot, (reference, candidate) in zip(lots, both, strict=True):
            if not lot.calls:
                taken = (candidate.sample.wall - PATIENCE[Span.WHOLE] * reference.sample.wall) / 1e9
                self._slack_before -= max(taken, 0.0)
            self._check(lot, reference, candidate)
        return both

    def _ask(self, pair: Pair, side: int, lots: Sequence[Lot], expected: Sequence[float], span: Span) -> list[Heard]:
        """One side's turns; what the candidate dawdles in one is not there for the next."""
        found: list[Heard] = []
        for lot, seconds in zip(lots, expected, strict=True):
            room = ANSWER_LIMIT - sum(len(answer) for heard in found for answer in heard.answers)
            # What the candidate dawdled is not missing to the reference, whose calls have limits of their own.
            usual, least = PATIENCE[span] * seconds, PATIENCE[Span.WHOLE] * seconds
            most = min(self._slack + usual, self._leisure + least) if side == 1 else math.inf
            found.append(pair.ask(side, lot, most, room))
            if side == 1 and lot.calls:
                taken = found[-1].sample.wall / 1e9
                self._slack -= _dawdled(taken, PATIENCE[span], seconds)
                self._leisure -= _dawdled(taken, PATIENCE[Span.WHOLE], seconds)
        return found

    def _give_back(self, both: Sequence[tuple[Heard, Heard]], expected: Sequence[float], span: Span) -> None:
        """Where few inputs are dear, the reference may take far longer than was expected: then so may the candidate."""
        most, least = PATIENCE[span], PATIENCE[Span.WHOLE]
        for (reference, candidate), seconds in zip(both, expected, strict=True):
            if reference.sample.calls:
                taken, known = candidate.sample.wall / 1e9, max(reference.sample.wall / 1e9, seconds)
                self._slack += _dawdled(taken, most, seconds) - _dawdled(taken, most, known)
                self._leisure += _dawdled(taken, least, seconds) - _dawdled(taken, least, known)

    def seconds(self, sample: Sample) -> float:
        """Per call. The CPU clock, because waiting for a core would make every call look long."""
        return max(clock(sample, parallel=self.domain.task.limits.parallel), 100) / 1e9 / max(sample.calls, 1)

    def converting(self, pair: Pair, asked: Lot) -> int:
        """What it takes the reference to convert the arguments and the answer of a call, in nanoseconds.

        Converting once more finds everything in the caches, which the first time may not: so all that a turn takes
        outside the calls counts, beyond a handover. Of C++ glue, what it takes with the answer at hand.
        """
        task = self.domain.task
        if task.entry.kind != "python" and not task.build.glue:
            return 0
        count = max(CONVERTED // self._bundle, 1)
        again = Lot(asked.questions[:count], asked.inputs, converts=True, unchanged=self._trusted)
        heard = pair.ask(0, again)
        if task.build.glue:
            return heard.converting // again.calls
        outside = (heard.sample.cpu - heard.calling) / again.calls - handover(self.domain.task)
        return max(heard.converting // again.calls, int(outside))

    # Answers

    def compare(self, lot: Lot, reference: Heard, candidate: Heard) -> None:
        """Every answer of the candidate's against the reference's, read even where all bytes are the same."""
        expected = self._read_reference(lot, reference)
        try:
            answers = self._read(lot, candidate, expected)
        except BadAnswer as error:
            raise Failed(Outcome.WRONG, str(error)) from None
        spent = [
            nanoseconds / question.count / 1e9
            for question, nanoseconds in zip(lot.questions, reference.spent, strict=True)
            if not question.setup
            for _ in range(question.count)
        ]
        for each, seconds in zip(zip(lot.inputs, answers, expected, strict=True), spent, strict=True):
            doubt = self.doubts.check(*each)
            if doubt is not None:
                self.doubts.keep(doubt, seconds)

    def _check(self, lot: Lot, reference: Heard, candidate: Heard) -> None:
        """The same; but what is equal byte for byte need not be read."""
        self._measure_answers(reference)
        if not all(map(_same, reference.answers, candidate.answers)):
            self.compare(lot, reference, candidate)

    def _read(self, lot: Lot, heard: Heard, expected: Sequence[Any] | None = None) -> list[Any]:
        answers: list[Any] = []
        for question, answer in zip(lot.questions, heard.answers, strict=True):
            if not question.setup:
                like = None if expected is None else expected[len(answers) : len(answers) + question.count]
                answers += question.read(answer, like)
        return answers

    def _read_reference(self, lot: Lot, heard: Heard) -> list[Any]:
        try:
            return self._read(lot, heard)
        except BadAnswer as error:
            raise TaskError(f"the reference's own answer cannot be read: {error}") from None

    def _measure_answers(self, reference: Heard) -> None:
        self._answer_bytes = max(self._answer_bytes, *map(len, reference.answers), 0)


def _dawdled(taken: float, times: float, expected: float) -> float:
    """The seconds beyond so many times what was expected."""
    return max(taken - times * expected, 0.0)


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()


def _blame(failure: Failed, side: int, entry: Entry) -> Exception:
    """The candidate's failure is a verdict; the reference's is an error of the task or the machine."""
    if side == 1:
        return failure
    text = f"the reference itself failed ({failure.outcome}): {failure.reason}"
    if failure.outcome is Outcome.CRASHED and entry.kind == "c" and not entry.align:
        text += "; if it needs aligned arrays, promise them with [entry] align"
    return HarnessError(text) if failure.outcome is Outcome.TIMED_OUT else TaskError(text)


def _same(one: memoryview, other: memoryview) -> bool:
    # Two memoryviews are compared byte by byte, 25 times as slowly.
    if len(one) < SHORT or len(one) != len(other):
        return len(one) == len(other) and bytes(one) == bytes(other)
    return np.array_equal(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8))
