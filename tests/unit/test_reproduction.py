"""A claim judged again is compared as a whole, not by the end of an interval that its maker chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from claim_facts import task
from hypothesis import given
from hypothesis import strategies as st

from outpace.claims import claim
from outpace.claims.reproduction import Finding, compared, not_borne_out
from outpace.judge.verdict import Bucket, Life, Sample, Span, SpeedUp

RATIOS = st.floats(1.02, 50)


def of(ratio: float, low: float | None = None, high: float | None = None, *, win: bool | None = None) -> SpeedUp:
    low, high = ratio * 0.99 if low is None else low, ratio * 1.01 if high is None else high
    return SpeedUp(ratio, low, high, low > 1.01 if win is None else win, 8)


@pytest.mark.parametrize(
    ("claimed", "measured", "finding"),
    [
        # The forged receipt: 5.00x that reaches down to 1.02, and 1.09x here.
        (of(5.0, 1.02, 8.0), of(1.09, 1.08, 1.10), "smaller here"),
        (of(5.0, 1.02, 8.0), of(1.5, 1.02, 8.0), "smaller here"),
        (of(1.43), of(1.43), "reproduced"),
        (of(1.43), of(1.40), "reproduced"),
        (of(1.43), of(1.46), "reproduced"),
        (of(1.43), of(1.25), "smaller here"),
        (of(1.43), of(1.70), "larger here"),
        (of(1.74, 1.50, 2.00), of(1.69, 1.34, 2.41), "reproduced"),
        # Half of a small gain is not that gain.
        (of(1.09), of(1.045, 1.035, 1.055), "smaller here"),
        # A wide interval of either side excuses nothing that the other rules out.
        (of(2.0, 1.02, 4.0), of(1.2), "smaller here"),
        (of(2.0), of(1.2, 1.02, 2.5), "smaller here"),
        (of(1.2), of(2.0, 1.02, 4.0), "larger here"),
        (of(1.43), of(1.43, 1.0, 2.0), "not reproduced"),
        (of(1.43), of(0.9), "not reproduced"),
        (of(1.43), None, "not reproduced"),
        (of(50), of(41), "smaller here"),
        # Beside the best flags a receipt may itself say that nothing is left of the gain.
        (of(1.0), of(1.003), "reproduced"),
        (of(1.0), of(1.3), "larger here"),
        (of(1.0), of(0.8), "smaller here"),
        (of(1.0), None, "not reproduced"),
    ],
)
def test_what_a_second_measurement_says_of_a_claim(claimed: SpeedUp, measured: SpeedUp | None, finding: str) -> None:
    assert compared(claimed, measured) == finding


@given(RATIOS, RATIOS, st.floats(0, 0.5), st.floats(0, 0.5))
def test_no_width_of_an_interval_makes_far_figures_agree(
    claimed: float, measured: float, wide: float, narrow: float
) -> None:
    low, high = max(claimed * (1 - wide), 1.011), claimed * (1 + 9 * wide)
    found = compared(of(claimed, low, high), of(measured, measured * (1 - narrow), measured * (1 + narrow), win=True))
    if measured < claimed * 0.8:
        assert found is Finding.SMALLER
    if found is Finding.REPRODUCED:
        assert 0.8 < measured / claimed < 1.25


@given(RATIOS, RATIOS)
def test_figures_that_agree_do_so_from_either_side(one: float, other: float) -> None:
    there, back = compared(of(one, win=True), of(other, win=True)), compared(of(other, win=True), of(one, win=True))
    opposite = {Finding.LARGER: Finding.SMALLER, Finding.SMALLER: Finding.LARGER}
    assert back is opposite.get(there, there)


def test_only_a_claim_that_is_borne_out_holds() -> None:
    assert [each for each in Finding if each.holds] == ["reproduced", "larger here"]


# Whether a claim's words are borne out

CALLS, GAIN, MS = 1000, 2.0, 10**6


def side(per_call: float, start: float) -> Life:
    def turn(calls: int) -> Sample:
        return Sample(calls, round(calls * per_call), round(calls * per_call), 0)

    return Life(turn(10), (turn(100),) * 2, (), Sample(0, round(start), round(start), 0))


def samples(
    per_call: float = 100_000, once: Sequence[float] = (0,), converting: float = 0, calls: int = CALLS
) -> tuple[Bucket, ...]:
    """A confirmation of a candidate twice as fast, with so much work done once in each process in turn."""
    short = [
        Bucket(side(per_call, MS), side(per_call / GAIN, MS + once[at % len(once)]), 1, NONE, round(converting), WHOLE)
        for at in range(8)
    ]
    long = Sample(calls, round(calls * per_call), round(calls * per_call), 0)
    half = Sample(calls, round(calls * per_call / GAIN), round(calls * per_call / GAIN), 0)
    last = replace(short[0], reference=replace(short[0].reference, opening=long), span=Span.LONG)
    return (*short, replace(last, candidate=replace(short[0].candidate, opening=half)))


NONE, WHOLE = Sample(0, 0, 0, 0), Span.WHOLE
FASTER = of(GAIN, 1.98, 2.0)


def told(claimed: tuple[Bucket, ...], measured: tuple[Bucket, ...]) -> str:
    return "; ".join(not_borne_out(claimed, measured, FASTER, task()))


def scaled(buckets: tuple[Bucket, ...], by: float) -> tuple[Bucket, ...]:
    def life(one: Life) -> Life:
        opening, start = each(one.opening), each(one.start)
        return Life(opening, tuple(map(each, one.turns)), tuple(map(each, one.asides)), start, each(one.late))

    def each(one: Sample) -> Sample:
        return Sample(one.calls, round(one.wall * by), round(one.cpu * by), round(one.delay * by))

    return tuple(replace(one, reference=life(one.reference), candidate=life(one.candidate)) for one in buckets)


def test_times_that_no_other_machine_explains_are_not_borne_out() -> None:
    here = samples(once=(8 * MS,))
    assert told(here, here) == "" and claim.once(here, task()) != ""
    hundredth = scaled(here, 0.01)
    assert claim.once(hundredth, task()) == "", "so the claim does not say when the once-work pays"
    assert told(hundredth, here).startswith(
        "Not borne out: by the receipt a call of the reference takes 1.00 us, and here 100.00; "
    )
    assert "two machines do not differ by so much" in told(scaled(here, 100), here)


def test_once_work_that_is_scaled_out_of_sight_is_not_borne_out_though_the_times_might_be() -> None:
    here = samples(once=(8 * MS,))
    tenth = scaled(here, 0.1)
    assert claim.once(tenth, task()) == ""
    assert told(tenth, here) == (
        "Not borne out: once per process it does 8.0 ms of work here or more, which pays after 160 calls; "
        "the receipt says nothing of it"
    )


def test_once_work_that_pays_later_than_the_receipt_says_is_not_borne_out() -> None:
    assert told(samples(once=(2 * MS,)), samples(once=(30 * MS,))) == (
        "Not borne out: once per process it does 30.0 ms of work here or more, which pays after 600 calls; "
        "the receipt says 2.0 ms and 40 calls"
    )


def test_once_work_that_varies_is_not_taken_for_noise() -> None:
    here = samples(once=(10 * MS, 10 * MS, 10 * MS, 10 * MS, 10 * MS, 10 * MS, 90 * MS, 400 * MS))
    assert "does 10.0 ms of work here or more" in told(samples(), here)


def test_a_figure_that_is_spread_over_other_calls_than_the_receipt_says_is_not_borne_out() -> None:
    there, here = samples(once=(8 * MS,), calls=1000), samples(once=(8 * MS,), calls=50_000)
    assert told(there, here).endswith("spreads work done once over 1,200 calls, and here over 50,200")
    assert told(samples(calls=1000), samples(calls=50_000)) == "", "nothing was said of it"


def test_converting_that_a_receipt_leaves_out_is_not_borne_out() -> None:
    here = samples(converting=20_000)
    assert claim.converting(here, task()) != ""
    assert told(samples(), here) == (
        "Not borne out: converting arguments and answers takes 40% of the candidate's time here; "
        "by the receipt it is 0%"
    )


@pytest.mark.parametrize(
    ("there", "here"),
    [
        # Another machine is several times as fast or slow, and does work done once at another speed again.
        (samples(once=(8 * MS,)), scaled(samples(once=(8 * MS,)), 8)),
        (scaled(samples(once=(8 * MS,)), 8), samples(once=(8 * MS,))),
        (samples(once=(8 * MS,)), samples(once=(20 * MS,))),
        # Just too little to be said there, and just enough here.
        (samples(once=(0.9 * MS,)), samples(once=(1.1 * MS,))),
        (samples(once=(0.9 * MS,)), scaled(samples(once=(0.9 * MS,)), 4)),
        (samples(converting=9_000), samples(converting=14_000)),
        # More was said against the candidate than there is here.
        (samples(once=(80 * MS,), converting=20_000), samples()),
        # Starts that vary make the upper end of once-work high, and say nothing of what is done in every process.
        (samples(), samples(once=(0, 0, 0, 0, 0, 0, 0, 100 * MS))),
        (samples(), samples(once=(-9 * MS, 2 * MS, 8 * MS, -6 * MS, 12 * MS, 1 * MS, 5 * MS, -8 * MS))),
    ],
)
def test_an_honest_claim_is_borne_out_on_another_machine(there: tuple[Bucket, ...], here: tuple[Bucket, ...]) -> None:
    assert told(there, here) == ""
