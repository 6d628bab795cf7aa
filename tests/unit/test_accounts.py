"""No work is on no account: what calls, once-work, waiting, rare and late work do to a figure."""

import dataclasses
import functools
import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from conftest import c_task, command_task
from outpace.judge.accounts import Account, reckon
from outpace.judge.statistics import hodges_lehmann
from outpace.judge.verdict import NONE, Bucket, Life, Sample, Span
from outpace.task import Limits, Task, Timing

MAKE_INPUT = "def make_input(rng):\n    return {'x': 1}\n"
TASK = c_task("int f(int x) { return x; }", "int f(int x)", MAKE_INPUT)
# But for the handover that is charged to both sides.
near = functools.partial(pytest.approx, rel=4e-3)
# A lifetime of 100,000 calls of 10 us.
CALLS, CALL = 100, 100_000


def life(
    cpu: float = CALL, once: float = 0, *, opening: int = 10, turns: int = 2, wait: float = 0, delay: float = 0
) -> Life:
    """A worker whose calls take so long, after once-work; each turn also waits and is delayed so long."""
    first = Sample(opening, round(once + opening * cpu), round(once + opening * cpu), 0)
    wall = round(CALLS * cpu + wait + delay)
    return Life(first, (Sample(CALLS, wall, round(CALLS * cpu), round(delay)),) * turns)


def account(*pairs: tuple[Life, Life], task: Task = TASK) -> Account:
    return reckon([bucket(reference, candidate) for reference, candidate in pairs], task)


def bucket(reference: Life, candidate: Life) -> Bucket:
    """Marked by how long its processes live."""
    span = Span.LONG if reference.opening.calls >= 1000 else Span.BRIEF
    return Bucket(reference, candidate, 1, span=span)


def ratio(*pairs: tuple[Life, Life], task: Task = TASK) -> float:
    """The median over buckets, as a ratio."""
    ratios = sorted(account(*pairs, task=task).ratios)
    return math.exp(ratios[len(ratios) // 2])


def test_calls_that_take_half_as_long_are_twice_as_fast() -> None:
    assert ratio((life(), life(CALL / 2))) == near(2)


def test_short_calls_must_gain_more_than_skipping_the_handover_gives() -> None:
    assert account((life(), life(CALL / 2))).margin == TASK.timing.margin
    assert account((life(1000), life(1000))).margin == pytest.approx(1.17)
    bundled = dataclasses.replace(TASK, timing=Timing(bundle=100))
    assert account((life(1000), life(1000)), task=bundled).margin == pytest.approx(1.0215)
    command = command_task("int main(void) { return 0; }", MAKE_INPUT)
    assert account((life(1000), life(1000)), task=command).margin == command.timing.margin


def test_once_work_of_both_sides_alike_is_charged_to_nobody() -> None:
    assert ratio((life(once=5e9), life(CALL / 2, once=5e9))) == near(2)


def long(cpu: float = CALL, once: float = 0) -> Life:
    """One that lived for a whole lifetime."""
    return life(cpu, once, opening=100_000)


def aged(early: float, late: float) -> Life:
    """One that was asked for a tenth of a lifetime, in two halves."""
    halves = [Sample(5000, round(5000 * cpu), round(5000 * cpu), 0) for cpu in (early, late)]
    whole = Sample(10_000, sum(half.wall for half in halves), sum(half.cpu for half in halves), 0)
    return dataclasses.replace(life(late), opening=whole, late=halves[1])


def test_a_lifetime_goes_on_as_the_second_half_of_the_longest_process() -> None:
    short = (life(), life(CALL / 2))
    # A stock for the first half, and no gain after that.
    assert ratio(short, (aged(CALL, CALL), aged(CALL / 2, CALL))) == near(1.025, rel=0.01)
    assert ratio(short, (aged(CALL, CALL), aged(CALL / 2, CALL / 2))) == near(2)
    # Work that was done in the first half is not forgotten.
    assert ratio(short, (aged(CALL, CALL), aged(CALL, CALL / 2))) == near(4 / 3, rel=0.03)


def test_once_work_beyond_the_references_is_spread_over_ten_seconds_of_its_calls() -> None:
    found = account((life(), life(CALL / 2, once=1e9)), (long(), long(CALL / 2, once=1e9)))
    assert found.once == near(1e9)
    assert found.lifetime == near(1e5)
    # 1 s over 100,000 calls is 10 us a call on top of 50.
    assert math.exp(found.ratios[0]) == near(100 / 60)
    assert found.pays_after == 20_000


def test_the_lifetime_of_the_task_counts_where_it_names_one() -> None:
    task = dataclasses.replace(TASK, timing=Timing(lifetime=10_000))
    pairs = [(life(), life(CALL / 2, once=1e9)), (long(), long(CALL / 2, once=1e9))]
    assert ratio(*pairs, task=task) == near(100 / 150)


def test_once_work_is_spread_over_no_more_calls_than_a_process_was_seen_to_make() -> None:
    # A stock for the first calls would otherwise be spread over calls that it does not serve.
    found = account((life(), life(CALL / 2, once=1e9)))
    assert found.lifetime == 10 + 2 * CALLS
    assert math.exp(found.ratios[0]) < 0.1
    assert math.exp(found.promised[0]) == near(100 / 60)


def test_a_stock_that_runs_out_shows_in_a_long_life() -> None:
    # Ten thousand of a hundred thousand calls are quick.
    spent = round(1e8 + 10_000 * CALL / 10 + 90_000 * CALL)
    drained = Life(Sample(100_000, spent, spent, 0), life(CALL / 10).turns)
    pairs = [(life(), life(CALL / 10, once=1e8))] * 8
    assert ratio(*pairs, (long(), drained)) < 1.1
    assert ratio(*pairs, (long(), long(CALL / 10, once=1e8))) > 5


def test_no_more_is_claimed_than_when_nobody_interrupts() -> None:
    # Twice as fast after each turn of the other's, and no faster when left alone: as who reads a table in advance.
    pairs = [(life(), life(CALL / 2))] * 8
    reference = dataclasses.replace(long(), late=Sample(5000, *(round(5000 * CALL / 3),) * 2, 0))
    candidate = dataclasses.replace(long(CALL / 2), late=reference.late)
    assert ratio(*pairs, (reference, dataclasses.replace(candidate, late=NONE))) > 1.8
    assert ratio(*pairs, (reference, candidate)) == pytest.approx(1.0, abs=0.02)


def test_work_in_a_turn_that_is_not_timed_is_once_work() -> None:
    aside = Sample(CALLS, 10**7, 10**7, 0)
    dawdled = dataclasses.replace(life(CALL / 2), asides=(Sample(CALLS, 10**9, 10**9, 0),))
    reference = dataclasses.replace(life(), asides=(aside,))
    assert account((reference, dawdled)).once == near(10**9 - 10**7)
    assert account((reference, dataclasses.replace(life(CALL / 2), asides=(aside,)))).once == 0
    asleep = dataclasses.replace(life(CALL / 2), asides=(Sample(CALLS, 10**9, 10**7, 0),))
    assert account(*[(reference, asleep)] * 8).once == near(10**9 - 10**7), "sleep counts there too"


def test_once_work_within_the_noise_of_starting_a_process_is_charged_to_nobody() -> None:
    chance = random.Random(5)
    pairs = [(life(once=chance.gauss(1e6, 1e5)), life(once=chance.gauss(1e6, 1e5))) for _ in range(16)]
    assert account(*pairs).once == 0


def test_noise_of_the_candidates_own_making_hides_no_once_work() -> None:
    chance = random.Random(1)
    pairs = [(life(once=chance.gauss(1e6, 1e4)), life(once=chance.choice((1e8, 5e8)))) for _ in range(16)]
    assert account(*pairs).once > 0.9e8


def test_less_once_work_than_the_references_is_no_gain() -> None:
    found = account((life(once=1e9), life()))
    assert found.once == 0 and found.ratios == near((0,))


def test_once_work_that_nothing_saves_never_pays() -> None:
    assert account((life(), life(once=1e6))).pays_after is None


def test_a_command_is_charged_no_once_work_for_every_call_is_a_whole_process() -> None:
    task = command_task("int main(void) { return 0; }", MAKE_INPUT)
    assert ratio((life(), life(CALL / 2, once=1e9)), task=task) == near(2)


def test_sleeping_hides_from_the_cpu_clock_and_is_counted_all_the_same() -> None:
    assert ratio((life(), life(CALL / 2, wait=CALLS * CALL / 2))) == near(1)


def test_waiting_that_both_do_is_held_against_nobody() -> None:
    wait = CALLS * CALL
    assert ratio((life(wait=wait), life(CALL / 2, wait=wait))) == near(2)


def test_a_reference_that_waits_gives_the_candidate_nothing() -> None:
    assert ratio((life(wait=CALLS * CALL), life())) == near(1)


def test_waiting_for_a_core_is_not_held_against_anybody() -> None:
    assert ratio((life(), life(delay=2 * CALLS * CALL))) == near(1)


def test_noise_of_the_wall_clock_alone_does_not_pull_the_figure_down() -> None:
    chance = random.Random(7)
    pairs = [(life(wait=chance.random() * 1e6), life(wait=chance.random() * 1e6)) for _ in range(200)]
    assert ratio(*pairs) == near(1, abs=0.01)


def test_noise_of_the_candidates_own_making_hides_no_sleep() -> None:
    chance = random.Random(1)
    pairs = [(life(wait=chance.gauss(1e5, 1e4)), life(CALL / 2, wait=chance.choice((5e6, 3e7)))) for _ in range(16)]
    assert ratio(*pairs) < 2 / 1.5


def test_sleep_in_some_processes_only_is_counted_too() -> None:
    chance = random.Random(1)
    pairs = [(life(wait=chance.gauss(1e5, 1e4)), life(CALL / 2, wait=2e7 * (at % 5 < 2))) for at in range(16)]
    assert ratio(*pairs) < 1


def test_a_dear_call_that_is_too_rare_for_the_median_is_counted() -> None:
    rare = dataclasses.replace(life(CALL / 2), turns=(Sample(CALLS, 10**9, 10**9, 0),) * 2)
    pairs = [(life(), life(CALL / 2))] * 8
    assert ratio(*pairs) == near(2)
    spent = 8 * CALLS * CALL / 2 + 10**9
    assert ratio(*pairs, (life(), rare)) == near(9 * CALLS * CALL / spent)


def test_a_burst_of_other_work_is_not_taken_for_a_dear_call() -> None:
    chance = random.Random(3)
    pairs = [(life(CALL * math.exp(chance.gauss(0, 0.02))), life(CALL / 2)) for _ in range(15)]
    burst = (life(), life(CALL / 2 * 1.1))
    assert ratio(*pairs, burst) == near(ratio(*pairs), abs=0.03)


def test_work_put_off_until_late_in_a_long_life_is_counted() -> None:
    pairs = [(life(), life(CALL / 2))] * 8
    late = Life(Sample(5000, *(round(5000 * CALL),) * 2, 0), life(CALL / 2).turns)
    assert ratio(*pairs, (life(opening=5000), late)) == pytest.approx(5200 / 5100, rel=4e-3)
    honest = life(CALL / 2, opening=5000)
    assert ratio(*pairs, (life(opening=5000), honest)) == near(2)


def test_noise_of_the_candidates_own_making_hides_no_late_work() -> None:
    chance = random.Random(1)
    pairs = [(life(), life(CALL / chance.uniform(1.6, 2.4))) for _ in range(32)]
    assert ratio(*pairs) > 1.8
    assert ratio(*pairs, (long(), long(CALL / 1.5))) < 1.6


def test_once_work_is_not_mistaken_for_late_work() -> None:
    pairs = [(life(), life(CALL / 2, once=2e8))] * 8
    assert ratio(*pairs, (long(), long(CALL / 2, once=2e8))) == near(100 / 52)


def test_in_parallel_tasks_the_wall_clock_stands_alone() -> None:
    task = dataclasses.replace(TASK, limits=Limits(threads=2))
    two_cores = Life(Sample(1, 1, 1, 0), (Sample(CALLS, CALLS * CALL // 2, CALLS * CALL, 0),) * 2)
    assert ratio((life(), two_cores), task=task) == near(2, rel=0.01)


def test_a_clock_that_reads_nothing_spoils_the_bucket() -> None:
    broken = Life(Sample(1, 1, 1, 0), (Sample(CALLS, 1000, 0, 0),))
    assert account((broken, life())).ratios == ()
    assert len(account((broken, life()), (life(), life())).ratios) == 1


def test_each_ratio_has_its_bucket_and_long_lives_have_none() -> None:
    found = account((life(), life(CALL / 2)), (long(), long(CALL / 2)), (life(), life(CALL / 2)))
    assert len(found.ratios) == len(found.promised) == len(found.buckets) == 2
    assert all(bucket.reference.opening.calls == 10 for bucket in found.buckets)


def wide(number: int) -> tuple[float, float]:
    """What the calls of an opening and of the turns take in a process whose inputs happen to be large or small."""
    chance = random.Random(number)
    return CALL * chance.uniform(0.1, 3), CALL * chance.uniform(0.7, 1.4)


def with_inputs_of_wide_sizes(once: float = 0, faster: float = 1) -> Account:
    """The candidate takes `faster` of the reference's time over the same inputs, after some work done once."""
    buckets = []
    for number in range(16):
        first, usual = wide(number)
        sides = []
        for share, extra in ((1.0, 0.0), (faster, once)):
            opening = round(10 * first * share + extra)
            turns = tuple(Sample(CALLS, *(round(CALLS * usual * share * by),) * 2, 0) for by in (1.3, 0.8))
            sides.append(Life(Sample(10, opening, opening, 0), turns))
        buckets.append(Bucket(sides[0], sides[1], 1, sides[0].turns[-1]))
    return reckon(buckets, dataclasses.replace(TASK, timing=Timing(lifetime=100)))


def test_inputs_of_wide_sizes_are_no_noise_that_hides_once_work() -> None:
    assert with_inputs_of_wide_sizes().once == 0
    assert with_inputs_of_wide_sizes(faster=0.5).once == pytest.approx(0, abs=0.05 * CALL)
    assert with_inputs_of_wide_sizes(once=5 * CALL).once > 4.5 * CALL


def test_once_work_before_the_first_call_is_measured_by_itself() -> None:
    start = Sample(0, 10**8, 10**8, 0)
    found = account(*[(life(), dataclasses.replace(life(), start=start))] * 8)
    assert found.once == near(1e8)
    assert account(*[(dataclasses.replace(life(), start=start), life(once=1e8))] * 8).once == 0, "both do it once"


def test_a_minority_of_processes_that_do_something_once_is_charged_too() -> None:
    pairs = [(life(), life(once=1e8 if number % 3 == 0 else 0)) for number in range(16)]
    assert account(*pairs).once > 2e7


def test_sleeping_before_the_first_call_is_once_work() -> None:
    asleep = Sample(0, 3 * 10**9, 10**6, 0)
    awake = Sample(0, 10**6, 10**6, 0)
    pairs = [(dataclasses.replace(life(), start=awake), dataclasses.replace(life(), start=asleep))] * 8
    assert account(*pairs).once == near(3e9)


def test_what_is_put_off_shows_in_long_processes_though_inputs_vary() -> None:
    buckets = []
    for number in range(16):
        _, usual = wide(number)
        reference, candidate = (
            Life(
                Sample(10, *(round(10 * usual * share),) * 2, 0),
                (Sample(CALLS, *(round(CALLS * usual * share),) * 2, 0),) * 2,
            )
            for share in (1, 0.8)
        )
        buckets.append(Bucket(reference, candidate, 1, reference.turns[-1]))
    long_one = bucket(long(), dataclasses.replace(life(0.8 * CALL), opening=long().opening))
    assert math.exp(float(min(reckon([*buckets, long_one], TASK).ratios))) < 1.04
    assert reckon([*buckets, long_one], TASK).lasting == pytest.approx(0, abs=0.01)


def numbers(chance: random.Random, calls: int) -> Sample:
    cpu = round(calls * CALL * math.exp(chance.gauss(0, 0.2))) + 1
    return Sample(calls, round(cpu * chance.choice([1.0, 1.0, 1.3])), cpu, 0)


def any_life(chance: random.Random) -> Life:
    first, asides = chance.choice([1, 10, 100_000]), chance.choice([0, 0, 1])
    turns = tuple(numbers(chance, CALLS) for _ in range(3))
    return Life(numbers(chance, first), turns, (numbers(chance, CALLS),) * asides, numbers(chance, 30))


@pytest.mark.parametrize("seed", range(200))
def test_a_confirmation_never_says_more_than_a_first_look_at_the_same_samples(seed: int) -> None:
    chance = random.Random(seed)
    buckets = []
    for number in range(8):
        reference, candidate = any_life(chance), any_life(chance)
        candidate = dataclasses.replace(
            candidate,
            opening=dataclasses.replace(candidate.opening, calls=reference.opening.calls),
            asides=candidate.asides if len(candidate.asides) == len(reference.asides) else reference.asides,
        )
        span = Span.LONG if number == 7 else Span.BRIEF
        buckets.append(Bucket(reference, candidate, number, numbers(chance, CALLS), span=span))
    look = reckon(buckets, TASK)
    confirmation = reckon([_confirming(each) for each in buckets], TASK)
    assert claimed(confirmation) <= claimed(look) + 1e-12
    assert confirmation.once >= look.once


def claimed(account: Account) -> float:
    return max(float(np.median(account.ratios)), hodges_lehmann(account.ratios))


def by_lot(number: int, share: int) -> Bucket:
    """A candidate of 1.2x, which in some processes skips half of its work."""
    taken = 0.5 if number % 8 < share else 1.0
    ours, theirs = round(CALL * CALLS), round(CALL * CALLS / 1.2)
    reference = Life(Sample(CALLS, ours, ours, 0), (Sample(CALLS, ours, ours, 0),) * 4)
    skipped = round(theirs * taken)
    candidate = Life(Sample(CALLS, skipped, skipped, 0), (Sample(CALLS, skipped, skipped, 0),) * 4)
    return Bucket(reference, candidate, number, reference.turns[0], span=Span.WHOLE)


@pytest.mark.parametrize("share", range(9))
def test_what_is_left_undone_in_some_processes_is_held_against_the_claim(share: int) -> None:
    honest = by_lot(0, 0)
    life = (
        dataclasses.replace(
            side,
            opening=dataclasses.replace(
                side.opening, calls=100 * CALLS, wall=100 * side.opening.wall, cpu=100 * side.opening.cpu
            ),
        )
        for side in (honest.reference, honest.candidate)
    )
    long = Bucket(*life, 99, honest.again, span=Span.LONG)
    account = reckon([*(by_lot(number, share) for number in range(16)), long], TASK)
    assert claimed(account) <= math.log(1.2) + 1e-9


@pytest.mark.parametrize("share", range(9))
def test_a_reference_that_is_slowed_in_some_processes_is_no_gain(share: int) -> None:
    def slowed(number: int) -> Bucket:
        honest = by_lot(number, 0)
        turns = honest.reference.turns
        if number % 8 < share:
            turns = (
                *(dataclasses.replace(turn, cpu=2 * turn.cpu, wall=2 * turn.wall) for turn in turns[:2]),
                *turns[2:],
            )
        return dataclasses.replace(honest, reference=dataclasses.replace(honest.reference, turns=turns), block=4)

    account = reckon([slowed(number) for number in range(16)], TASK)
    assert claimed(account) <= math.log(1.2) + 1e-9


def _confirming(bucket: Bucket) -> Bucket:
    return dataclasses.replace(bucket, span=Span.WHOLE if bucket.span is Span.BRIEF else bucket.span)


def restless(number: int) -> float:
    return 1 + 0.05 * random.Random(number).uniform(-1, 1)


def confirmed(candidate_of: Callable[[int], Life]) -> float:
    """What a confirmation says of a candidate on a noisy machine, whose excuses would go a long way."""
    buckets = [
        Bucket(
            life(CALL * restless(at)), candidate_of(at), at, life(CALL * restless(99 - at)).turns[0], span=Span.WHOLE
        )
        for at in range(16)
    ]
    return math.exp(float(np.median(reckon(buckets, TASK).ratios)))


def test_noise_excuses_nothing_in_a_confirmation() -> None:
    fair = confirmed(lambda at: life(CALL / 2 * restless(-at)))
    assert 1.9 < fair < 2.1
    rarely = confirmed(lambda at: life(CALL / 2 * restless(-at) * (1.1 if at % 5 == 0 else 1)))
    assert rarely < fair * 0.99, "dear calls in a fifth of all processes"
    asleep = confirmed(lambda at: life(CALL / 2 * restless(-at), wait=0.02 * CALLS * CALL))
    assert asleep < fair * 0.97, "sleep of a fiftieth"
    prepared = confirmed(lambda at: life(CALL / 2 * restless(-at), once=0.02 * 10e9 if at % 2 else 0))
    assert prepared < fair * 0.95, "a table in half of all processes, over a lifetime of ten seconds"


def test_the_start_of_a_long_process_is_part_of_its_life() -> None:
    pairs = [bucket(life(), life(CALL / 10, once=1e7))] * 8
    stocked = dataclasses.replace(long(CALL / 10), start=Sample(0, 9 * 10**9, 9 * 10**9, 0))
    for buckets in (pairs, [_confirming(each) for each in pairs]):
        assert math.exp(reckon([*buckets, bucket(long(), long(CALL / 10, once=1e7))], TASK).ratios[0]) > 8
        assert math.exp(reckon([*buckets, bucket(long(), stocked)], TASK).ratios[0]) < 1.1
        asleep = dataclasses.replace(long(CALL / 10), start=Sample(0, 9 * 10**9, 10**6, 0))
        assert math.exp(reckon([*buckets, bucket(long(), asleep)], TASK).ratios[0]) < 1.1


def test_a_long_process_of_few_calls_counts_whole() -> None:
    # Calls so slow that the longest process makes four: what was stocked for all of them is no gain.
    second = 10**9
    few = Life(Sample(2, 2 * second, 2 * second, 0), (Sample(1, second, second, 0),) * 2)
    stocked = Life(Sample(2, 2, 2, 0), (Sample(1, 1, 1, 0),) * 2, start=Sample(0, 4 * second, 4 * second, 0))
    buckets = [_confirming(Bucket(few, stocked, at)) for at in range(8)]
    found = reckon([*buckets, Bucket(few, stocked, 9, span=Span.LONG)], TASK)
    assert math.exp(max(found.ratios)) <= 1.001


def test_a_confirmation_charges_what_the_noise_of_a_start_may_hide() -> None:
    def started(nanoseconds: float) -> Life:
        return dataclasses.replace(life(), start=Sample(0, *(round(nanoseconds),) * 2, 0))

    chance = random.Random(1)
    starts = [(chance.gauss(3e7, 1e6), chance.gauss(3e7, 1e6)) for _ in range(8)]
    buckets = [Bucket(started(one), started(other), at, span=Span.WHOLE) for at, (one, other) in enumerate(starts)]
    assert 5e5 < reckon(buckets, TASK).once < 5e6
    # Ten seconds of calls make nothing of it, but a life of a millisecond cannot be told from its start.
    assert math.exp(float(np.median(reckon(buckets, TASK).promised))) > 0.999
    brief = dataclasses.replace(TASK, timing=Timing(lifetime=10))
    assert math.exp(float(np.median(reckon(buckets, brief).ratios))) < 0.7


def test_converting_much_asks_for_a_larger_gain() -> None:
    pairs = [Bucket(life(), life(CALL / 2), 1, converting=CALL // 10)] * 8
    assert reckon(pairs, TASK).margin == pytest.approx(1 + (170 + 2 * CALL / 10) / (CALL / 2))


def test_turns_that_are_not_timed_count_in_a_long_process_too() -> None:
    cheap, dear = Sample(CALLS, 10**6, 10**6, 0), Sample(CALLS, 10**12, 10**12, 0)
    brief = [Bucket(life(), life(CALL / 2), 0, life().turns[-1], 0) for _ in range(8)]

    def lasting(aside: Sample) -> float:
        reference = dataclasses.replace(life(), asides=(cheap,))
        candidate = dataclasses.replace(life(CALL / 2), asides=(aside,))
        long = Bucket(reference, candidate, 0, life().turns[-1], 0, Span.LONG)
        return reckon([*brief, long], TASK).lasting

    assert lasting(cheap) > 0 > lasting(dear)
