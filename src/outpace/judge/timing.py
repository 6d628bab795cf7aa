"""Timing: fresh pairs of jailed processes, asked the same fresh questions one by one, until the test can decide.

One bucket is one pair of processes. Each lives through an opening of random length, then timed turns, two at a first
look and many in a confirmation. They come in blocks, first the candidate's, then the reference's over the same
questions; whoever is not running is stopped. All of its CPU time is on one account or another, all of its answers are
checked, and edge cases stand at random places, so that no process can tell checking from timing.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from outpace.domains.base import Input
from outpace.judge import statistics
from outpace.judge.accounts import LONG_LIVES, clock, reckon
from outpace.judge.feeder import Lot
from outpace.judge.inputs import edge_inputs
from outpace.judge.interview import Interview
from outpace.judge.jail import MIB
from outpace.judge.pair import Pair
from outpace.judge.schedule import (
    Costs,
    Plan,
    dear_edge,
    draw_lengths,
    placed,
    plan_for,
    stretch,
    turn_length,
    with_edges,
)
from outpace.judge.statistics import Decision
from outpace.judge.verdict import NONE, Bucket, Life, Outcome, Sample, Span
from outpace.judge.worker import Failed, Heard

REHEARSED, REHEARSED_MOST = 4, 64
# One verdict in so many has a long process. A confirmation always has one.
LONG_EVERY = 16
# Once-work beyond this share of the time of the longest process seen calls for a longer one.
ONCE_MATTERS = 0.002
# A long process whose clocks cannot be believed is lived again, so often at most.
LONG_TRIES = 2
# A long process that has taken so many times what the reference takes over all of its life is at its end.
HOPELESS = 1.2
# A control group's account is kept in batches of pages for each core.
ACCOUNT_LAG = MIB
# A short opening has up to so many turns.
OPENING_TURNS = 3


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
        reference, candidate = (dataclasses.replace(each, answers=()) for each in heard)
        self.heard.append((reference, candidate))

    def samples(self, side: int) -> list[Sample]:
        return [each[side].sample for each in self.heard]

    def seconds(self, side: int, *, parallel: bool) -> float:
        return sum(clock(sample, parallel=parallel) for sample in self.samples(side)) / 1e9


@dataclass
class _Block:
    """Turns that one side has in a row, which of them is an aside, and what both said to them."""

    lots: list[Lot]
    aside: int
    expected: list[float] = field(default_factory=list)
    heard: list[tuple[Heard, Heard]] = field(default_factory=list)


class Stopwatch:
    """Times one candidate against the reference."""

    def __init__(self, interview: Interview) -> None:
        self._interview = interview
        self._task = interview.domain.task
        self._bundle = self._task.timing.bundle
        # By how many bytes per call the candidate's memory grew in each bucket.
        self._growth: list[float] = []

    def rehearse(self) -> Plan:
        """Check the candidate on all edge cases and some inputs, and plan the buckets by what the reference takes."""
        ask = self._interview
        rng, _ = ask.chance()
        edges = list(edge_inputs(ask.domain))
        ask.doubts.edges = set(map(id, edges))
        # The candidate meets everything at random places, as in any other process.
        met = with_edges(ask.fresh(REHEARSED, rng), edges, rng)
        setup = ask.setup(rng)
        # The reference alone first: how long answers are shows in what is mapped for a worker, and a candidate could
        # tell by that whether anything was known of them, that is, whether it is being rehearsed.
        with ask.pair(rng, sides=(0,)) as pair:
            alone = ask.alone(pair, ask.lot(met, setup)).sample.wall / 1e9
        # In as many turns as in any other process.
        size = -(-len(met) // int(rng.integers(1, OPENING_TURNS + 1)))
        with ask.pair(rng) as pair:
            ask.start(pair, ask.lot([], setup), alone, first=int(rng.integers(2)))
            for at in range(0, len(met), size):
                ask.turn(pair, ask.lot(met[at : at + size]), alone)
            dear = [ask.seconds(pair.ask(0, ask.lot([edge])).sample) for edge in edges]
            seconds = ask.seconds(pair.ask(0, ask.lot(ask.fresh(1, rng))).sample)
            begin = time.perf_counter()
            count = min(max(int(2e-3 / seconds), REHEARSED), REHEARSED_MOST)
            lot = ask.lot(ask.fresh(count, rng))
            making = (time.perf_counter() - begin) / count
            heard = ask.turn(pair, lot, seconds * lot.calls)
            # The reference's own answers: a candidate that is dear to check must not shorten its life by that.
            begin = time.perf_counter()
            ask.compare(lot, heard[0], heard[0])
            checking = (time.perf_counter() - begin) / count
        reference, candidate = (ask.seconds(each.sample) for each in heard)
        found = tuple(zip(edges, dear, strict=True))
        plan = plan_for(
            self._task,
            Costs(reference, candidate, making, checking, ask.largest, ask.longest_answer, heard[0].resident, found),
        )
        ask.expect(reference, plan.lifetime)
        return plan

    def bucket(self, plan: Plan, span: Span = Span.BRIEF) -> Bucket:
        """One fresh pair, timed."""
        ask = self._interview
        rng, seed = ask.chance()
        lengths = draw_lengths(plan, rng, span)
        # All of a long opening at once might not fit into memory. Into how many turns it falls is drawn too: whoever
        # counts them cannot tell which is timed.
        parts = max(
            -(-lengths.opening // (2 * plan.questions)), min(int(rng.integers(1, OPENING_TURNS + 1)), lengths.opening)
        )
        size = -(-lengths.opening // parts)
        # The last part of the opening has its share of the edge cases too.
        edges = placed(plan.light, lengths.turns + 1, rng)
        setup = ask.setup(rng)
        dear = dear_edge(plan, rng)
        aside = int(rng.integers(lengths.turns)) if dear else -1
        starts, openings, turns, asides = _Both(), _Both(), _Both(), _Both()
        held: list[tuple[int, int]] = []
        # Of each row of the opening the second half.
        settled: list[list[tuple[Heard, Heard]]] = []
        with ask.pair(rng) as pair:
            starts.add(ask.start(pair, ask.lot([], setup), 0.0, first=int(rng.integers(2)), span=span))
            asked = [*([()] * (parts - 1)), edges.pop()]
            # The first part alone: how much memory both hold is looked at behind it.
            row = stretch(plan, size) if span is Span.LONG else 1
            rows = [asked[:1], *(asked[at : at + row] for at in range(1, parts, row))]
            for block in self._asked(pair, [partial(self._lots, plan, rng, size, each) for each in rows], span):
                for heard in block.heard:
                    openings.add(heard)
                settled.append(openings.heard[-((len(block.heard) + 1) // 2) :])
                held = held or [pair.held()]
                spent = openings.seconds(1, parallel=self._task.limits.parallel)
                if span is Span.LONG and spent > HOPELESS * plan.seconds * lengths.opening:
                    break  # were all the rest done in no time, it would still be no gain
            blocks = [
                partial(
                    self._lots, plan, rng, lengths.turn, edges[number : number + lengths.block], dear, aside - number
                )
                for number in range(0, lengths.turns, lengths.block)
            ]
            for block in self._asked(pair, blocks, span):
                for number, heard in enumerate(block.heard):
                    (asides if number == block.aside else turns).add(heard)
            held.append(pair.held())
            again = pair.ask(0, block.lots[-1]).sample
            converting = ask.converting(pair, block.lots[-1])
        self._growth.append(_growth(openings, turns, held))
        reference, candidate = (
            Life(
                _together(openings.samples(side)),
                tuple(turns.samples(side)),
                tuple(asides.samples(side)),
                _together(starts.samples(side)),
                _late(settled, side) if span is Span.LONG else NONE,
            )
            for side in (0, 1)
        )
        return Bucket(reference, candidate, seed, again, converting, span, lengths.block)

    def _lots(
        self,
        plan: Plan,
        rng: np.random.Generator,
        length: int,
        edges: Sequence[Sequence[Input]],
        dear: Sequence[Input] = (),
        aside: int = -1,
    ) -> _Block:
        """The turns of a block, so many questions each and their edge cases; one aside may stand among them."""
        ask = self._interview
        lots = [ask.lot(with_edges(ask.fresh(length, rng), each, rng)) for each in edges]
        found = _Block(lots, aside if 0 <= aside < len(lots) else -1)
        if found.aside >= 0:
            lots.insert(aside, ask.lot(with_edges(ask.fresh(turn_length(plan, rng), rng), dear, rng)))
        found.expected = [
            plan.seconds * len(lot.questions) + plan.dearest * (number == found.aside)
            for number, lot in enumerate(lots)
        ]
        return found

    def _asked(self, pair: Pair, blocks: Sequence[Callable[[], _Block]], span: Span) -> Iterator[_Block]:
        """These blocks one after another, each made when it is wanted, with what both said.

        Every second one is made between the two sides of the one before it. While a block is made the worker's core
        rests, or somebody else has it: after that both sides are as often the first.
        """
        ready: list[_Block] = []
        for number, make in enumerate(blocks):
            block = ready.pop() if ready else make()
            following = blocks[number + 1 : number + 2] if number % 2 == 0 else ()
            between = partial(_make, following, ready)
            block.heard = self._interview.block(pair, block.lots, block.expected, span, between=between)
            yield block

    def time(self, plan: Plan, progress: Callable[[int], None] | None = None, *, confirm: bool = False) -> Timed:
        """Buckets until the test decides; disturbed ones are timed again, up to twice as many in all.

        In a confirmation processes live whole lives, and nothing is excused as noise. One process of every confirmed
        win, and of other wins now and then, lives long: what a candidate puts off until then is seen, and what it does
        once is spread over a life that was seen.
        """
        task = self._task
        rng, _ = self._interview.chance()
        wanted, lived, tries = confirm or not rng.integers(LONG_EVERY), False, 0
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
            won = promise.speed_up is not None and promise.speed_up.win
            if not lived and won and (wanted or matters) and tries < LONG_TRIES:
                # One that would be no win by itself may only be unlucky: others of its age are asked too.
                for _ in range(LONG_LIVES):
                    buckets.append(self.bucket(plan, Span.LONG))
                    limit += 1
                    account = reckon(buckets, task)
                    if math.log(account.margin) < account.lasting < math.inf or account.lasting < -math.log(HOPELESS):
                        break
                # One whose clocks cannot be believed says nothing of a life.
                lived, tries = math.isfinite(account.lasting), tries + 1
            decision = statistics.decide(account.ratios, account.margin)
            early = len(account.ratios) == statistics.EARLY_BUCKETS and account.typical > math.log(
                statistics.EARLY_LOSS
            )
            if decision.stop and (not promise.stop or early):
                # Once-work may yet pay over a whole lifetime, and of four buckets one may have been disturbed.
                decision = Decision(False, None)
            if progress is not None:
                progress(len(buckets))
        if confirm and not lived and decision.speed_up is not None and decision.speed_up.win:
            decision = Decision(False, None)
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
        """Whether memory grew so that it would not fit the limit over the lifetime, were all processes the same."""
        # The mean, because a candidate may draw lots in which processes it leaves memory behind.
        grows = max(float(np.median(self._growth)), float(np.mean(self._growth)))
        return grows * plan.lifetime > self._task.limits.memory_mb * MIB

    def _refuse_growth(self, plan: Plan) -> None:
        """Memory that grows with each call must fit the limit over the lifetime, or freeing it is put off for ever."""
        grows, limit = self._growth[-1], self._task.limits.memory_mb
        if grows * plan.lifetime > limit * MIB:
            raise Failed(
                Outcome.REFUSED,
                f"each call leaves {grows:.0f} bytes of memory behind that the reference does not; over a lifetime "
                f"of {plan.lifetime:.0f} calls that is more than the {limit} MB allowed",
            )


def _together(samples: Sequence[Sample]) -> Sample:
    return Sample(*(sum(getattr(each, name) for each in samples) for name in ("calls", "wall", "cpu", "delay")))


def _late(settled: Sequence[Sequence[tuple[Heard, Heard]]], side: int) -> Sample:
    """What a side did late in its opening and late in each row, when the other side's traces in the caches are gone."""
    return _together([heard[side].sample for row in settled[len(settled) // 2 :] for heard in row])


def _growth(openings: _Both, turns: _Both, held: Sequence[tuple[int, int]]) -> float:
    """Bytes per call by which the candidate's memory grew beyond the reference's, after its first calls.

    What it has mapped shows page by page; what it has not, in shared pages or in the kernel, on its group's account.
    """
    # The set-up and the first part of the opening fill caches and arenas of honest code.
    heard = [*openings.heard, *turns.heard]
    asked = sum(one.sample.calls for one, _ in heard[1:])
    resident = [heard[-1][side].resident - heard[0][side].resident for side in (0, 1)]
    account = [held[-1][side] - held[0][side] for side in (0, 1)]
    grown = (_beyond(resident), _beyond(account) - ACCOUNT_LAG)
    return max(*grown, 0) / max(asked, 1)


def _beyond(grown: Sequence[int]) -> int:
    return grown[1] - max(grown[0], 0)


def _make(blocks: Sequence[Callable[[], _Block]], made: list[_Block]) -> None:
    made += [make() for make in blocks]
