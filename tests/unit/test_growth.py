"""Growth: memory beyond the reference's counts, whether it is mapped or on the control group's account alone."""

from __future__ import annotations

import pytest

from outpace.judge.timing import ACCOUNT_LAG, _Both, _growth
from outpace.judge.verdict import Sample
from outpace.judge.worker import Heard

CALLS = 100
NOTHING = [(0, 0), (0, 0)]


def both(*residents: tuple[int, int]) -> _Both:
    found = _Both()
    for resident in residents:
        reference, candidate = (Heard(Sample(CALLS, 1, 1, 0), (), each) for each in resident)
        found.add((reference, candidate))
    return found


@pytest.mark.parametrize(
    ("mapped", "held", "grown"),
    [
        ((0, 0), NOTHING, 0),
        ((0, 5000), NOTHING, 50),
        ((5000, 5000), NOTHING, 0),
        ((5000, 0), NOTHING, 0),
        ((0, 0), [(7, 9), (7, 9 + ACCOUNT_LAG)], 0),
        ((0, 0), [(7, 9), (7, 9 + ACCOUNT_LAG + 3000)], 30),
        ((0, 0), [(7, 9), (7 + ACCOUNT_LAG, 9 + 2 * ACCOUNT_LAG)], 0),
        ((0, 5000), [(0, 0), (0, ACCOUNT_LAG + 3000)], 50),
    ],
)
def test_growth_is_what_the_candidate_leaves_beyond_the_reference(
    mapped: tuple[int, int], held: list[tuple[int, int]], grown: float
) -> None:
    assert _growth(both((0, 0)), both(mapped), held) == grown
