"""A claim judged again is compared as a whole, not by the end of an interval that its maker chose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.judge.verdict import SpeedUp
from outpace.reproduction import Finding, compared

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
