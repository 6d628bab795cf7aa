"""Accounts: what the clocks of each pair say, added up so that no work is on none of them.

A worker's CPU time, from its first instruction on, is in its start, its opening or its timed turns. The turns give what
a call takes. The start, and what the opening took beyond its calls, is work done once per process, and the candidate is
charged with as much of it as exceeds the reference's, spread over the task's lifetime. Four more accounts can only
lower the figure: waiting that the CPU clock does not see, calls that are rare but dear, what shows late in a long life,
and what the candidate does to the reference.

At a first look processes live for some tens of milliseconds, and what noise explains has to be excused. Whoever knows
how noise is told from work can pass the one off as the other. So a confirmation excuses nothing: its processes live
long enough for noise to be small, and what is left of it lowers the figure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from outpace.judge.statistics import hodges_lehmann
from outpace.judge.verdict import Bucket, Life, Sample, Span
from outpace.task import Task

Numbers = npt.NDArray[np.float64]
# Without a `lifetime` of the task's own, once-work is spread over as many calls as the reference makes in this time.
LIFETIME_NS = 10e9
# What is rare or late must show beyond this many standard deviations.
NOISE_FACTOR = 3.0
# Nanoseconds that a candidate might save for each question, and for each call in it, if it took its worker over and did
# nothing but answer. Commands are served by a process that is out of their reach.
HANDOVER_NS = {"c": (150, 20), "python": (5000, 3000), "command": (0, 0)}
# A candidate that took its worker over could read and write the packed form of lists, dicts and texts instead of the
# objects: it would save the conversion, and about as much again for reading and making them.
CONVERSIONS_SKIPPED = 2
# What starting a process may take more or less by chance, in most buckets.
START_NOISE_NS = 100_000
# What a first look takes for a tick of the hypervisor's, which counts as CPU time of whoever was running.
STOLEN_NS = 5e6
# In a confirmation once-work is charged at the upper end of what it may be, so many standard errors above its mean:
# what cannot be told from the noise of a start is not taken for nothing.
SURE = 3.0
# Beyond this (log ratio) nothing is excused as noise, however noisy the machine is.
NOISE_MOST = 0.1
# What varies so many times as much as the reference is no noise of the machine's.
OWN_NOISE = 3.0
# The standard error of a median, beside that of a mean.
MEDIAN_ERROR = 1.25
# By how much a process may be faster or slower than others by chance, by where its memory lies, say (log ratio).
PROCESS_NOISE = 0.01
# A claim may be so much more (log ratio) than the figure of both sides when nobody interrupts them: less is noise.
UNSETTLED = 0.03
# Long processes that are asked where the first is no win by itself, or where memory grew in most short ones.
LONG_LIVES = 3


@dataclass(frozen=True)
class Account:
    """Nanoseconds per call of both sides, the candidate's once-work beyond the reference's, and the log ratios."""

    ratios: tuple[float, ...] = ()
    reference: float = math.nan
    candidate: float = math.nan
    once: float = 0.0
    # Calls over which that is spread: the task's lifetime, or the longest process seen where that was shorter. What is
    # made beforehand for the first calls alone must not be spread over others.
    lifetime: float = math.inf
    # The buckets behind the ratios: clocks can be believed, and no process lived long.
    buckets: tuple[Bucket, ...] = ()
    # The log ratios if a process had been seen to live as long as the task says.
    promised: tuple[float, ...] = ()
    # What a win must be faster than.
    margin: float = math.inf
    # What the reference takes to convert the arguments and the answer of a call.
    converting: float = 0.0
    # The median log ratio of the timed turns alone, nothing charged.
    typical: float = 0.0
    # The log ratio over the whole lives of long processes, noise included.
    lasting: float = math.inf

    @property
    def pays_after(self) -> int | None:
        """After how many calls of one process the candidate's once-work has paid off; None if it never does."""
        if self.once == 0:
            return 0
        saved = self.reference - self.candidate
        return math.ceil(self.once / saved) if saved > 0 else None


def reckon(buckets: Sequence[Bucket], task: Task) -> Account:
    """The account of all buckets whose clocks can be believed; its log ratios are what a claim is tested on."""
    parallel = task.limits.parallel
    usable = [bucket for bucket in buckets if parallel or _plausible(bucket)]
    if not usable:
        return Account()
    # With several threads or processes the CPU clock adds them up and says nothing about speed.
    calls, reference, candidate = _turns(usable, parallel=parallel)
    # The handover once more, for both sides: it makes gains smaller, and leaves little to whoever skipped it.
    each_handed = handover(task)
    handed = calls * each_handed if task.entry.kind == "c" else np.zeros(len(calls))
    logs = np.log(reference / candidate)
    typical = float(np.median(logs))
    excuses = not any(bucket.span is Span.WHOLE for bucket in usable)
    noise = 0.0
    if excuses:
        restless = max(_unrest(usable, parallel=parallel), PROCESS_NOISE)
        noise = min(NOISE_FACTOR * min(_spread(logs), restless), NOISE_MOST)
    # A burst of other work looks like a rare, dear call; only what noise does not explain is held against anybody.
    stolen = _stolen(logs, reference, candidate) if excuses else 0.0
    pooled = math.log(reference.sum() / (candidate.sum() - stolen))
    middle = _middle if excuses else _claimed
    rare = _beyond(middle(logs) - pooled, noise / math.sqrt(len(logs)))
    waits = 0.0 if parallel else math.log1p(_waits(usable, excuses=excuses))
    harm = _harm(usable, noise, excuses=excuses, parallel=parallel)
    long = np.array([bucket.span is Span.LONG for bucket in usable])
    long &= not long.all()
    short = [bucket for bucket, lived in zip(usable, long, strict=True) if not lived]
    each = float(np.median(reference / calls))
    once, whole = 0.0, math.inf
    if task.entry.kind != "command":  # each call of which is a whole process: there is nothing to spread
        whole = task.timing.lifetime or LIFETIME_NS / each
        once = _extra(short, (reference / calls)[~long], (candidate / calls)[~long], excuses, parallel=parallel)
    lifetime = min(whole, max(bucket.reference.calls for bucket in usable))

    def spread_over(lives: float) -> Numbers:
        # A long process is there for its opening; as a bucket among others it is no different from them.
        logs = np.log((reference + handed) / (candidate + handed + calls * once / lives))
        charged: Numbers = logs[~long] - rare - waits - harm
        return charged

    old = [bucket for bucket in usable if bucket.span is Span.LONG]
    lasting = _lasting(old, whole, float(np.median(handed / calls)), parallel=parallel)
    lives = int(long.sum())
    # As many as that are asked only where one was no win: what they say counts without an allowance.
    excused = 0.0 if lives >= LONG_LIVES else noise / math.sqrt(max(lives, 1))
    late = max(_beyond(middle(spread_over(lifetime)) - lasting, excused), 0.0)
    taken = float(np.median(candidate / calls))
    converting = float(np.median([bucket.converting for bucket in usable]))
    return Account(
        tuple((spread_over(lifetime) - late).tolist()),
        each,
        taken,
        once,
        lifetime,
        tuple(short),
        tuple((spread_over(whole) - late).tolist()),
        max(task.timing.margin, 1 + (each_handed + CONVERSIONS_SKIPPED * converting) / max(taken, 1.0)),
        converting,
        typical,
        lasting,
    )


def _middle(logs: Numbers) -> float:
    return float(np.median(logs))


def _claimed(logs: Numbers) -> float:
    """What is claimed of these log ratios, or their median if that is more; a first look claims nothing.

    What a candidate does in some processes only, drawn by lot, moves the one and not the other: whatever bounds a claim
    is held against both.
    """
    return max(_middle(logs), hodges_lehmann(logs.tolist()))


def of_its_own(buckets: Sequence[Bucket], task: Task) -> bool:
    """Whether the candidate's times vary from process to process far more than the reference's over the same inputs."""
    parallel = task.limits.parallel
    usable = [bucket for bucket in buckets if parallel or _plausible(bucket)]
    if not usable:
        return False
    calls, *taken = _turns(usable, parallel=parallel)
    reference, candidate = (_spread(np.log(each / calls)) for each in taken)
    return candidate > OWN_NOISE * reference


def _stolen(logs: Numbers, reference: Numbers, candidate: Numbers) -> float:
    """What a hypervisor may have taken in the dearest of every eight buckets, a few milliseconds of each."""
    dearest = np.argsort(logs)[: len(logs) // 8]
    beyond = candidate[dearest] - reference[dearest] / math.exp(float(np.median(logs)))
    return float(np.clip(beyond, 0, STOLEN_NS).sum())


def handover(task: Task) -> float:
    """Nanoseconds of each call that a candidate might save by taking its worker over."""
    question, each = HANDOVER_NS[task.entry.kind]
    return question / task.timing.bundle + each


def _harm(buckets: Sequence[Bucket], noise: float, *, excuses: bool, parallel: bool) -> float:
    """How much of the log ratio is what the candidate did to the reference, and no speed of its own.

    A candidate can empty the caches, or throw out of them what both sides map, such as the pages of libraries. What the
    reference then takes longer passes in the course of a block. So no figure is larger than that of the second halves,
    neither of the usual one nor of all together: what is done in some processes only moves the one and not the other.
    At a first look the median of few is uncertain there; what is smaller than its error is no harm.
    """
    turns = [[bucket.reference.turns, bucket.candidate.turns] for bucket in buckets]
    settled = [[bucket.reference.settled(bucket.block), bucket.candidate.settled(bucket.block)] for bucket in buckets]
    whole, late = (
        np.array(
            [[max(sum(clock(turn, parallel=parallel) for turn in side), 1) for side in both] for both in chosen],
            dtype=float,
        )
        for chosen in (turns, settled)
    )
    gained = np.log(whole[:, 0] / whole[:, 1]) - np.log(late[:, 0] / late[:, 1])
    if not excuses:
        together = np.log(whole[:, 0].sum() / whole[:, 1].sum()) - np.log(late[:, 0].sum() / late[:, 1].sum())
        return max(_claimed(gained), float(together), 0.0)
    error = MEDIAN_ERROR * _spread(gained) / math.sqrt(len(gained))
    return max(_beyond(float(np.median(gained)) - error, noise / math.sqrt(len(gained))), 0.0)


def _spread(logs: Numbers) -> float:
    """The standard deviation as the middle half of the buckets shows it, which rare work cannot widen."""
    low, high = np.percentile(logs, [25, 75])
    return float(high - low) / 1.349


def _unrest(buckets: Sequence[Bucket], *, parallel: bool) -> float:
    """How much the reference's time over the same questions differs: noise that is not of the candidate's making.

    Not over other questions: two turns may differ many times over by what they were asked, which excuses nothing.
    """
    first, again = (
        np.array([max(clock(sample, parallel=parallel), 1) for sample in samples])
        for samples in ([bucket.reference.turns[-1] for bucket in buckets], [bucket.again for bucket in buckets])
    )
    return _spread(np.log(first / again))


def _beyond(found: float, noise: float) -> float:
    """What was found, all of it, if noise does not explain it; else nothing.

    Were the noise taken off, a noisy machine would pay for a part of what was put off or done beforehand.
    """
    return found if found > noise else 0.0


def _noise(of_the_reference: Numbers) -> float:
    """What the median of a difference to these may be off by: from the reference alone, for noise of a candidate's own
    making must not hide anything."""
    return NOISE_FACTOR * math.sqrt(2 / len(of_the_reference)) * _spread(of_the_reference)


def clock(sample: Sample, *, parallel: bool) -> int:
    """The reading that counts."""
    return sample.wall if parallel else sample.cpu


def _turns(buckets: Sequence[Bucket], *, parallel: bool) -> tuple[Numbers, Numbers, Numbers]:
    """Calls, and both sides' time over them, of each bucket's timed turns."""
    rows = [
        (
            sum(turn.calls for turn in bucket.reference.turns),
            sum(clock(turn, parallel=parallel) for turn in bucket.reference.turns),
            sum(clock(turn, parallel=parallel) for turn in bucket.candidate.turns),
        )
        for bucket in buckets
    ]
    calls, reference, candidate = np.maximum(np.array(rows, dtype=float), 1.0).T
    return calls, reference, candidate


def _once(buckets: Sequence[Bucket], per_call: Numbers, side: int, parallel: bool) -> Numbers:
    """What each bucket's opening took on one side beyond its calls."""
    openings = [_side(bucket, side).opening for bucket in buckets]
    spent: Numbers = np.array([clock(opening, parallel=parallel) for opening in openings], dtype=float)
    beyond: Numbers = spent - per_call * np.array([opening.calls for opening in openings], dtype=float)
    return beyond


def _extra(
    buckets: Sequence[Bucket], reference: Numbers, candidate: Numbers, excuses: bool, *, parallel: bool
) -> float:
    """What the candidate does once per process beyond the reference, from both sides' time per call in each bucket.


    Before the first call nothing but once-work is done. In the first calls it is what they took beyond the usual, and
    the usual follows from the reference's time over the same inputs: of few inputs some are many times as dear as
    others, and by the mean call a table's worth of work could pass for that. Sleeping counts as work.
    """
    lives = [[_side(bucket, side) for bucket in buckets] for side in (0, 1)]
    starts = [np.array([clock(life.start, parallel=parallel) for life in side], dtype=float) for side in lives]
    openings = [np.array([clock(life.opening, parallel=parallel) for life in side], dtype=float) for side in lives]
    beyond = _once(buckets, reference, 0, parallel)
    taken = candidate / reference
    # `taken * opening` takes off only a share of what the reference did once in its first calls; take off the rest.
    own = max(float(np.median(beyond)) - _noise(beyond), 0.0)
    first = openings[1] - taken * openings[0] - (1 - taken) * own
    extra = starts[1] - starts[0] + first
    idle = np.zeros((2, len(buckets)))
    if not parallel:
        idle = np.array([[_idle(life.start) + _idle(life.opening) for life in side] for side in lives], dtype=float)
    if not excuses:
        return _at_most(extra) + _at_most(idle[1] - idle[0]) + _asides(buckets, 0.0, parallel=parallel)
    # Noise of the candidate's own making hides nothing, nor do set-ups of many sizes: that of the reference bounds it.
    restless = NOISE_FACTOR * max(_unrest(buckets, parallel=parallel), PROCESS_NOISE)
    by_chance = restless * math.sqrt(2 / len(buckets))
    begun = min(_noise(starts[0]), max(by_chance * float(np.median(starts[0])), START_NOISE_NS))
    noise = begun + min(by_chance * float(np.median(openings[0])), _noise(first))
    once = _beyond(_typical(extra), noise) + _asides(buckets, restless, parallel=parallel)
    return once + _beyond(_typical(idle[1] - idle[0]), _noise(idle[0]))


def _at_most(values: Numbers) -> float:
    """The upper end of what the mean of these may be, or their median if that is more; nothing below zero."""
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return max(float(values.mean()) + SURE * error, float(np.median(values)), 0.0)


def _typical(values: Numbers) -> float:
    """The median, or the mean of all but the highest eighth if that is more: a minority of processes counts too."""
    kept = np.sort(values)[: len(values) - len(values) // 8]
    return max(float(np.median(values)), float(kept.mean()))


def _asides(buckets: Sequence[Bucket], restless: float, *, parallel: bool) -> float:
    """What the candidate took longer over turns that are not timed, spread over all processes."""
    extra, taken = [], []
    for bucket in buckets:
        for reference, candidate in zip(bucket.reference.asides, bucket.candidate.asides, strict=True):
            slept = 0 if parallel else _idle(candidate) - _idle(reference)
            taken.append(clock(reference, parallel=parallel))
            extra.append(clock(candidate, parallel=parallel) - taken[-1] + slept)
    if not extra:
        return 0.0
    noise = restless * math.sqrt(2 / len(extra)) * float(np.median(taken))
    # The mean too: a table that is made in a few of them serves the rest of those processes.
    found = max(float(np.median(extra)), 0.0 if restless else float(np.mean(extra)))
    return max(_beyond(found, noise), 0.0) * len(extra) / len(buckets)


def _lasting(long: Sequence[Bucket], lifetime: float, handed: float, *, parallel: bool) -> float:
    """The log ratio over the whole lives of long processes, or over the lifetime if that is less; infinite without one.

    All of the candidate's life is in it, from its first instruction on: nothing that is done early, late or in some
    processes only is left out. Of its start, only as much as the reference's own takes is taken off. Where there was no
    time for all of the lifetime, the rest of it is taken to go on as the second half did: a stock, or room that is
    never given back, serves the first calls alone. Sums, because a candidate may draw lots whether a process does what
    it puts off.
    """
    if not long:
        return math.inf
    lives = [[_side(bucket, side) for bucket in long] for side in (0, 1)]
    start, opening, late, turns, asides = (
        np.array([[_spent(getattr(life, part), parallel=parallel) for life in side] for side in lives]).sum(axis=1)
        for part in ("start", "opening", "late", "turns", "asides")
    )
    start[1, 1] = max(start[1, 1], start[0, 1])
    start[:, 1] -= start[0, 1]
    # Of turns with a dear edge case, what they took longer than the reference's.
    start[1, 1:] += np.maximum(asides[1, 1:] - asides[0, 1:], 0)
    start[:, 0] = 0  # calls

    def ratio(rest: float) -> float:
        # Calls, time and idle time of both sides, with so many calls more like the late ones.
        calls, times, idle = (start + opening + turns + (late + turns) * rest).T
        # What the candidate waits longer than the reference counts as work.
        times = times + calls * handed + (0, max(idle[1] - idle[0], 0))
        return math.log(max(times[0], 1) / max(times[1], 1))

    seen, after = (opening + turns)[0, 0], (late + turns)[0, 0]
    rest = max(lifetime * len(long) - seen, 0) / after
    whole = min(ratio(0), ratio(rest)) if math.isfinite(rest) else ratio(0)
    if not late[0, 0]:
        return whole
    # Uninterrupted, both have in the caches what they need, whatever it was worth to bring it back after each turn of
    # the other's.
    alone = np.maximum(late[:, 1] + late[:, 0] * handed, 1)
    steady = math.log(alone[0] / alone[1])
    return steady if steady < whole - UNSETTLED else whole


def _spent(samples: Sample | Sequence[Sample], *, parallel: bool) -> Numbers:
    """Calls, time and idle time."""
    each = [samples] if isinstance(samples, Sample) else samples
    rows = [(sample.calls, clock(sample, parallel=parallel), 0 if parallel else _idle(sample)) for sample in each]
    found: Numbers = np.array([(0, 0, 0), *rows], dtype=float).sum(axis=0)
    return found


def _waits(buckets: Sequence[Bucket], *, excuses: bool) -> float:
    """How much longer than its CPU time the candidate takes, beyond what the reference waits, relative to that time.

    A sleeping candidate hides its time from the CPU clock alone. By the median, or by the mean of most if it sleeps in
    some processes only; beyond noise, because where others want the core too, both sides wait for it by chance. A few
    long waits count for nothing: a hypervisor may take the core away for as long as a turn lasts.
    """
    spent = [max(sum(turn.cpu for turn in bucket.candidate.turns), 1) for bucket in buckets]
    reference, candidate = (
        np.array([sum(map(_idle, _side(bucket, side).turns)) for bucket in buckets]) / spent for side in (0, 1)
    )
    excess = candidate - reference
    if not excuses:
        return max(_typical(excess), float(excess.mean()), 0.0)
    by_mean = _beyond(_typical(excess), NOISE_FACTOR * math.sqrt(2 / len(excess)) * float(reference.std()))
    return max(_beyond(float(np.median(excess)), _noise(reference)), by_mean, 0.0)


def _idle(sample: Sample) -> int:
    # The judge may wait for its own core while the worker is at work on another; no turn lasts less than its CPU time.
    return max(sample.wall - sample.delay - sample.cpu, 0)


def _plausible(bucket: Bucket) -> bool:
    # About one CPU-clock reading in some thousands is far off (steal correction in the hypervisor, it seems). A
    # candidate cannot use this: it can lower its CPU time below its wall time only by sleeping, which the wall clock
    # counts, and a bucket thrown away is only timed again.
    turns = (*bucket.reference.turns, *bucket.candidate.turns)
    return all(0 < turn.cpu < 1.5 * turn.wall for turn in turns)


def _side(bucket: Bucket, side: int) -> Life:
    return bucket.candidate if side else bucket.reference
