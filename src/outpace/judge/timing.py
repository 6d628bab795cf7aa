"""Timing: fresh pairs of jailed processes, asked the same fresh questions one by one, until the test can decide.

One bucket is one pair of processes. Each lives through an opening of random length, then timed turns in the order ABBA
or BAAB, two at a first look and many in a confirmation; whoever is not running is stopped. All of its CPU time is on
one account or another, all of its answers are checked, and edge cases stand at random places, so that no process can
tell checking from timing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.domains.base import Domain, Input
from outpace.errors import HarnessError, TaskError
from outpace.judge import statistics
from outpace.judge.accounts import LIFETIME_NS, LONG_LIVES, clock, handover, reckon
from outpace.judge.doubts import Doubts
from outpace.judge.feeder import Lot
from outpace.judge.inputs import edge_inputs, make_input, make_setup
from outpace.judge.jail import MIB, JailKind
from outpace.judge.pair import Pair, SideFailed
from outpace.judge.question import BadAnswer, Question
from outpace.judge.schedule import (
    TURNS,
    Plan,
    dear_edge,
    draw_lengths,
    opening_within,
    placed,
    turn_length,
    turn_within,
    turns_within,
    with_edges,
)
from outpace.judge.statistics import Decision
from outpace.judge.verdict import NONE, Bucket, Life, Outcome, Sample, Span
from outpace.judge.worker import Failed, Heard, Program

REHEARSED, REHEARSED_MOST = 4, 64
# Making the inputs of a bucket may take this long; a task whose make_input is slower has fewer calls in a turn.
INPUT_SECONDS = 0.25
# What the questions of a turn take, and their answers; a bucket holds several turns, and inputs twice.
TURN_BYTES = 64 * MIB
# A long process may take this long, inputs and both sides included.
LONG_SECONDS = 8.0
# And the two processes of a whole life this long, in this many turns at most.
WHOLE_SECONDS, TURNS_MOST = 0.8, 48
# One verdict in so many has a long process. A confirmation always has one.
LONG_EVERY = 16
# Once-work beyond this share of the time of the longest process seen calls for a longer one.
ONCE_MATTERS = 0.002
# A short opening has up to so many turns.
OPENING_TURNS = 3
# A turn may take so many times what the reference takes over it, less in a confirmation, which nothing so slow will
# win; beyond that all turns of a verdict together may take as long as one call may.
PATIENCE = {Span.BRIEF: 100, Span.WHOLE: 10, Span.LONG: 10}
# All starts together may take so many lifetimes of the reference, or as long as one start may.
STARTS = 5
# Calls of a bucket of which the reference says what converting took.
CONVERTED = 8
# An edge case that takes more than this share of a turn is not timed: all of them together must be worth little to
# whoever knows their answers by heart.
LIGHT_SHARE = 0.001
# Answers of fewer bytes are compared faster than arrays of them are made.
SHORT = 4096


@dataclass(frozen=True)
class Timed:
    """What timing found: the decision, the buckets behind it, and what a reader of the figure should know."""

    decision: Decision
    buckets: tuple[Bucket, ...]
    note: str = ""


class _Both:
    """What both sides answered, turn by turn."""

    def __init__(self) -> None:
        self.heard: list[tuple[Heard, Heard]] = []

    def add(self, heard: tuple[Heard, Heard]) -> None:
        # Answers were checked: kept, those of a long process would fill the memory.
        self.heard.append((dataclasses.replace(heard[0], answers=()), dataclasses.replace(heard[1], answers=())))

    def samples(self, side: int) -> list[Sample]:
        return [each[side].sample for each in self.heard]


class Stopwatch:
    """Times one candidate against the reference."""

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
        self._domain = domain
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
        self._set_up: list[Question] = []
        # Seconds that the reference takes over a call, once that is known.
        self._usual = math.inf
        # Seconds that the candidate may still dawdle, in its calls and before the first.
        self._slack = domain.task.limits.seconds
        self._slack_before = programs[1].setup_seconds
        self._loading = 0.0  # seconds, of the reference
        self.doubts = Doubts(domain, self.reference_answers, np.random.default_rng(seed))
        # By how many bytes per call the candidate's memory grew in each bucket.
        self._growth: list[float] = []

    # Checking and planning

    def rehearse(self) -> Plan:
        """Check the candidate on all edge cases and some inputs, and plan the buckets by what the reference takes."""
        rng, _ = self._chance()
        edges = list(edge_inputs(self._domain))
        self.doubts.edges = set(map(id, edges))
        # The candidate meets everything at random places, as in any other process.
        met = with_edges(self._fresh(REHEARSED, rng), edges, rng)
        setup = self._setup(rng)
        # The reference alone first: how long answers are shows in what is mapped for a worker, and a candidate could
        # tell by that whether anything was known of them, that is, whether it is being rehearsed.
        with self._pair(rng, sides=(0,)) as alone:
            first = alone.ask(0, self._lot(met, setup))
            self._measure_answers(first)
        with self._pair(rng) as pair:
            # In as many turns as in any other process.
            for part in (self._lot([], setup), *self._parted(met, rng)):
                heard = [pair.ask(side, part, self._allowed(first.sample.wall / 1e9)) for side in (0, 1)]
                self._check(part, *heard)
            costs = [self._seconds(pair.ask(0, self._lot([edge])).sample) for edge in edges]
            seconds = self._seconds(pair.ask(0, self._lot(self._fresh(1, rng))).sample)
            begin = time.perf_counter()
            count = min(max(int(2e-3 / seconds), REHEARSED), REHEARSED_MOST)
            lot = self._lot(self._fresh(count, rng))
            making = (time.perf_counter() - begin) / count
            heard = [pair.ask(side, lot, self._allowed(seconds * lot.calls)) for side in (0, 1)]
            self._check(lot, *heard)
            # The reference's own answers: a candidate that is dear to check must not shorten its life by that.
            begin = time.perf_counter()
            self._check_each(lot, heard[0], heard[0])
            checking = (time.perf_counter() - begin) / count
        taken = [self._seconds(each.sample) for each in heard]
        return self._plan(taken[0], taken[1], making, checking, list(zip(edges, costs, strict=True)))

    def _plan(
        self, reference: float, candidate: float, making: float, checking: float, edges: list[tuple[Input, float]]
    ) -> Plan:
        """Questions per turn, from the seconds of both sides over one call, and of making and checking a question."""
        timing = self._domain.task.timing
        self._usual = reference
        question, sample = reference * self._bundle, timing.sample_ms / 1e3
        wanted = sample / question
        # A tenfold gain shortens the candidate's turn tenfold: lengthen both, but the reference's at most fivefold.
        wanted = max(wanted, min(sample / 4 / (candidate * self._bundle), 5 * wanted), 1.0)
        # Inputs of an opening and of the timed turns, all of them new.
        by_inputs = INPUT_SECONDS / making / (TURNS + 1)
        by_memory = TURN_BYTES / max(self._answer_bytes, self._question_bytes, 1)
        lifetime = timing.lifetime or LIFETIME_NS / 1e9 / reference
        # Once-work that takes a lifetime cannot pay: a table that may pay has time to be made in every process.
        self._slack_before = max(self._slack_before, STARTS * lifetime * reference)
        # In questions. No process makes more calls than programs that use the code do: what a candidate is like after
        # that is of no use to anybody. Every call of a command is a life of its own.
        life = math.inf if self._domain.task.entry.kind == "command" else lifetime / self._bundle
        questions = math.ceil(max(min(wanted, by_inputs, by_memory, turn_within(life)), 1.0))
        note = ""
        if questions < wanted / 2 and turn_within(life) < min(by_inputs, by_memory):
            note = (
                f"a timed turn had {questions} questions and not {wanted:.0f}: a process lives for {lifetime:.0f} calls"
            )
        elif questions < wanted / 2:
            note = (
                f"a timed turn had {questions} questions instead of {wanted:.0f}: making one takes "
                f"{making * 1e3:.3g} ms, and its answer up to {self._answer_bytes // 1024} KB"
            )
        # By the reference alone: a candidate that dawdles here must not escape a long life.
        each = making + checking + 2 * question
        longest = min(opening_within(life, questions), LONG_SECONDS / each)
        turns = min(WHOLE_SECONDS / (questions * each), turns_within(life, questions))
        light = LIGHT_SHARE * question * questions
        return Plan(
            questions,
            question,
            light=tuple(edge for edge, seconds in edges if seconds <= light),
            dear=tuple(edge for edge, seconds in edges if seconds > light),
            dearest=max((seconds for _, seconds in edges), default=0.0),
            lifetime=lifetime,
            longest=max(int(longest), 1),
            turns=max(min(int(turns), TURNS_MOST), TURNS),
            note=note,
        )

    def reference_answers(self, inputs: Sequence[Input]) -> list[Any]:
        """What the reference says to these inputs, set up as it was last."""
        rng, _ = self._chance()
        with self._pair(rng, sides=(0,)) as pair:
            lot = self._lot(inputs, self._set_up or self._setup(rng))
            return self._read_reference(lot, pair.ask(0, lot))

    def some_inputs(self, count: int) -> list[Input]:
        """Fresh inputs."""
        rng, _ = self._chance()
        return [make_input(self._domain, rng) for _ in range(count)]

    # Buckets

    def bucket(self, plan: Plan, span: Span = Span.BRIEF) -> Bucket:
        """One fresh pair, timed."""
        rng, seed = self._chance()
        lengths = draw_lengths(plan, rng, span)
        # All of a long opening at once might not fit into memory. Into how many turns it falls is drawn too: whoever
        # counts them cannot tell which is timed.
        parts = max(
            -(-lengths.opening // (2 * plan.questions)), min(int(rng.integers(1, OPENING_TURNS + 1)), lengths.opening)
        )
        size = -(-lengths.opening // parts)
        # The last part of the opening has its share of the edge cases too.
        edges = placed(plan.light, lengths.turns + 1, rng)
        setup = self._setup(rng)
        dear = dear_edge(plan, rng)
        aside_at = int(rng.integers(lengths.turns + 1)) if dear else -1
        starts, openings, turns, asides = _Both(), _Both(), _Both(), _Both()
        with self._pair(rng) as pair:

            def turn(lot: Lot, first: int, expected: float) -> tuple[Heard, Heard]:
                seconds = self._allowed(expected, span)
                heard = {side: pair.ask(side, lot, seconds) for side in (first, 1 - first)}
                self._take_off(heard, expected, span)
                self._check(lot, heard[0], heard[1])
                return heard[0], heard[1]

            def usual(lot: Lot, first: int) -> tuple[Heard, Heard]:
                return turn(lot, first, plan.seconds * lot.calls / self._bundle)

            starts.add(usual(self._lot([], setup), int(rng.integers(2))))
            for _ in range(parts - 1):
                openings.add(usual(self._lot(self._fresh(size, rng)), int(rng.integers(2))))
            lot = self._lot(with_edges(self._fresh(size, rng), edges.pop(), rng))
            openings.add(usual(lot, int(rng.integers(2))))
            first = int(rng.integers(2))
            for number in range(lengths.turns + 1):
                if number == aside_at:
                    aside = self._lot(with_edges(self._fresh(turn_length(plan, rng), rng), dear, rng))
                    asides.add(turn(aside, int(rng.integers(2)), plan.dearest + plan.seconds * len(aside.questions)))
                if number < lengths.turns:
                    lot = self._lot(with_edges(self._fresh(lengths.turn, rng), edges[number], rng))
                    turns.add(usual(lot, first if number % 2 == 0 else 1 - first))
            again = pair.ask(0, lot).sample
            converting = self._converting(pair, lot)
        self._growth.append(_growth(openings, turns))
        reference, candidate = (
            Life(
                _together(openings.samples(side)),
                tuple(turns.samples(side)),
                tuple(asides.samples(side)),
                _together(starts.samples(side)),
                _together(openings.samples(side)[parts // 2 :]) if span is Span.LONG else NONE,
            )
            for side in (0, 1)
        )
        return Bucket(reference, candidate, seed, again, converting, span)

    def _converting(self, pair: Pair, asked: Lot) -> int:
        """What it takes the reference to convert the arguments and the answer of a call, in nanoseconds.

        Converting once more finds everything in the caches, which the first time may not: so all that a turn takes
        outside the calls counts, beyond a handover.
        """
        if self._domain.task.entry.kind != "python":
            return 0
        count = max(CONVERTED // self._bundle, 1)
        again = Lot(asked.questions[:count], asked.inputs, converts=True, unchanged=self._trusted)
        heard = pair.ask(0, again)
        outside = (heard.sample.cpu - heard.calling) / again.calls - handover(self._domain.task)
        return max(heard.converting // again.calls, int(outside))

    def time(self, plan: Plan, progress: Callable[[int], None] | None = None, *, confirm: bool = False) -> Timed:
        """Buckets until the test decides; disturbed ones are timed again, up to twice as many in all.

        In a confirmation processes live whole lives, and nothing is excused as noise. One process of every confirmed
        win, and of other wins now and then, lives long: what a candidate puts off until then is seen, and what it does
        once is spread over a life that was seen.
        """
        task = self._domain.task
        rng, _ = self._chance()
        wanted, lived = confirm or not rng.integers(LONG_EVERY), False
        span = Span.WHOLE if confirm else Span.BRIEF
        buckets: list[Bucket] = []
        decision = Decision(False, None)
        limit = 2 * max(statistics.LOOKS)
        while not decision.stop and len(buckets) < limit:
            buckets.append(self.bucket(plan, span))
            account = reckon(buckets, task)
            promise = statistics.decide(account.promised, account.margin)
            # Once-work is spread over no more calls than a process was seen to make: where it matters, one lives long.
            matters = account.once > ONCE_MATTERS * account.candidate * account.lifetime
            if not lived and promise.speed_up is not None and promise.speed_up.win and (wanted or matters):
                # One that would be no win by itself may only be unlucky: others of its age are asked too.
                for _ in range(LONG_LIVES):
                    buckets.append(self.bucket(plan, Span.LONG))
                    limit += 1
                    account = reckon(buckets, task)
                    if math.log(account.margin) < account.lasting < math.inf:
                        break
                lived = True
            decision = statistics.decide(account.ratios, account.margin)
            early = len(account.ratios) == statistics.EARLY_BUCKETS and account.typical > math.log(
                statistics.EARLY_LOSS
            )
            if decision.stop and (not promise.stop or early):
                # Once-work may yet pay over a whole lifetime, and of four buckets one may have been disturbed.
                decision = Decision(False, None)
            if progress is not None:
                progress(len(buckets))
        if decision.speed_up is not None and decision.speed_up.win and self._grows(plan):
            # Short processes may only be filling an arena: ask some that live longer. Several, because a candidate may
            # draw lots whether it cleans up; and what cleaning up takes shows in them too.
            for _ in range(LONG_LIVES):
                buckets.append(self.bucket(plan, Span.LONG))
                self._refuse_growth(plan)
            account = reckon(buckets, task)
            decision = statistics.decide(account.ratios, account.margin)
        return Timed(decision, tuple(buckets), plan.note)

    def _grows(self, plan: Plan) -> bool:
        """Whether memory grew so in most processes that it would not fit the limit over the lifetime."""
        return float(np.median(self._growth)) * plan.lifetime > self._domain.task.limits.memory_mb * MIB

    def _refuse_growth(self, plan: Plan) -> None:
        """Memory that grows with each call must fit the limit over the lifetime, or freeing it is put off for ever."""
        grows, limit = self._growth[-1], self._domain.task.limits.memory_mb
        if grows * plan.lifetime > limit * MIB:
            raise Failed(
                Outcome.REFUSED,
                f"each call leaves {grows:.0f} bytes of memory behind that the reference does not; over a lifetime "
                f"of {plan.lifetime:.0f} calls that is more than the {limit} MB allowed",
            )

    # Asking and checking

    def _fresh(self, questions: int, rng: np.random.Generator) -> list[Input]:
        return [make_input(self._domain, rng) for _ in range(questions * self._bundle)]

    def _setup(self, rng: np.random.Generator) -> list[Question]:
        data = make_setup(self._domain, rng)
        self._set_up = [] if data is None else [self._domain.setup_question(data)]
        return self._set_up

    def _parted(self, inputs: Sequence[Input], rng: np.random.Generator) -> list[Lot]:
        """These inputs in a random number of turns."""
        size = -(-len(inputs) // int(rng.integers(1, OPENING_TURNS + 1)))
        return [self._lot(inputs[at : at + size]) for at in range(0, len(inputs), size)]

    def _lot(self, inputs: Sequence[Input], before: Sequence[Question] = ()) -> Lot:
        bundles = [inputs[at : at + self._bundle] for at in range(0, len(inputs), self._bundle)]
        lot = Lot([*before, *map(self._domain.question, bundles)], inputs)
        self._question_bytes = max(self._question_bytes, lot.input_bytes)
        self._kept_bytes = max(self._kept_bytes, lot.kept)
        return lot

    def _seconds(self, sample: Sample) -> float:
        """Per call. The CPU clock, because waiting for a core would make every call look long."""
        return max(clock(sample, parallel=self._domain.task.limits.parallel), 100) / 1e9 / max(sample.calls, 1)

    def _allowed(self, expected: float, span: Span = Span.BRIEF) -> float:
        """How long a turn may take that the reference is expected to take so long over."""
        return self._slack + PATIENCE[span] * expected

    def _take_off(self, heard: Mapping[int, Heard], expected: float, span: Span) -> None:
        """What the candidate dawdled in a turn, of calls or of a set-up, is not there for the next."""
        reference, candidate = (heard[side].sample.wall / 1e9 for side in (0, 1))
        if heard[1].sample.calls:
            self._slack -= max(candidate - PATIENCE[span] * expected, 0.0)
        else:
            self._slack_before -= max(candidate - PATIENCE[Span.WHOLE] * reference, 0.0)

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

    def _check(self, lot: Lot, reference: Heard, candidate: Heard) -> None:
        """Every answer of the candidate's against the reference's; what is equal byte for byte need not be read."""
        self._measure_answers(reference)
        if not all(map(_same, reference.answers, candidate.answers)):
            self._check_each(lot, reference, candidate)

    def _check_each(self, lot: Lot, reference: Heard, candidate: Heard) -> None:
        expected = self._read_reference(lot, reference)
        try:
            answers = self._read(lot, candidate, expected)
        except BadAnswer as error:
            raise Failed(Outcome.WRONG, str(error)) from None
        found = map(self.doubts.check, lot.inputs, answers, expected)
        doubts = [doubt for doubt in found if doubt is not None]
        if doubts:
            size = max(self._question_bytes, self._answer_bytes)
            self.doubts.settle(doubts, min(self._seconds(reference.sample), self._usual), size)

    def _measure_answers(self, reference: Heard) -> None:
        self._answer_bytes = max(self._answer_bytes, *map(len, reference.answers), 0)

    @contextlib.contextmanager
    def _pair(self, rng: np.random.Generator, sides: Sequence[int] = (0, 1)) -> Iterator[Pair]:
        """Fresh workers; what the candidate does wrong is a verdict, what the reference does is not."""
        output_bytes = max(self._domain.task.limits.output_mb, 1) * MIB
        order = [side for side in rng.permutation(2).tolist() if side in sides]
        # Rounded up, so that it says little about what came before.
        populate = (_power_of_two(self._kept_bytes + self._question_bytes), _power_of_two(self._answer_bytes))
        patient = self._slack_before + PATIENCE[Span.WHOLE] * self._loading
        hurried = dataclasses.replace(
            self._programs[1], setup_seconds=max(min(self._programs[1].setup_seconds, patient), 0.0)
        )
        programs = {side: hurried if side else self._programs[0] for side in order}
        try:
            pair = Pair(self._kind, programs, self._cores, output_bytes, populate)
            try:
                loaded = {side: worker.loaded_in for side, worker in pair.workers.items()}
                self._loading = max(self._loading, loaded.get(0, 0.0))
                self._slack_before -= max(loaded.get(1, 0.0) - PATIENCE[Span.WHOLE] * self._loading, 0.0)
                yield pair
            finally:
                pair.close()
        except SideFailed as failed:
            raise _blame(failed.failure, failed.side) from failed

    def _chance(self) -> tuple[np.random.Generator, int]:
        # Each bucket has a seed of its own, which is stored with it: its fresh inputs can be made again from that.
        self._serial += 1
        digest = hashlib.sha256(f"{self._seed}:{self._serial}".encode()).digest()
        seed = int.from_bytes(digest[:8], "little")
        return np.random.default_rng(seed), seed


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()


def _blame(failure: Failed, side: int) -> Exception:
    """The candidate's failure is a verdict; the reference's is an error of the task or the machine."""
    if side == 1:
        return failure
    text = f"the reference itself failed ({failure.outcome}): {failure.reason}"
    return HarnessError(text) if failure.outcome is Outcome.TIMED_OUT else TaskError(text)


def _same(one: memoryview, other: memoryview) -> bool:
    # Two memoryviews are compared byte by byte, 25 times as slowly.
    if len(one) < SHORT or len(one) != len(other):
        return len(one) == len(other) and bytes(one) == bytes(other)
    return np.array_equal(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8))


def _together(samples: Sequence[Sample]) -> Sample:
    return Sample(*(sum(getattr(each, name) for each in samples) for name in ("calls", "wall", "cpu", "delay")))


def _growth(openings: _Both, turns: _Both) -> float:
    """Bytes per call by which the candidate's memory grew beyond the reference's, after its first calls."""
    # The set-up and the first part of the opening fill caches and arenas of honest code.
    heard = [*openings.heard, *turns.heard]
    asked = sum(one.sample.calls for one, _ in heard[1:])
    grown = [heard[-1][side].resident - heard[0][side].resident for side in (0, 1)]
    return max(grown[1] - max(grown[0], 0), 0) / max(asked, 1)
