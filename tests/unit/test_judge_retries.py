"""Whatever fails on our side while judging is tried again, and then leaves the judge as a fault of the harness."""

import pytest

from outpace.errors import HarnessError, TaskError
from outpace.judge.judge import ATTEMPTS, Judge
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed


@pytest.mark.parametrize("fault", [OSError(36, "File name too long"), HarnessError("File name too long")])
def test_a_fault_of_the_machine_is_tried_again_and_becomes_ours(fault: Exception) -> None:
    judge = Judge.__new__(Judge)
    tried = 0

    def fails() -> None:
        nonlocal tried
        tried += 1
        raise fault

    with pytest.raises(HarnessError, match="File name too long"):
        judge._retried(fails)
    assert tried == ATTEMPTS


def test_a_mistake_of_ours_is_no_traceback_and_tried_once() -> None:
    judge = Judge.__new__(Judge)
    tried = 0

    def overflows() -> complex:
        nonlocal tried
        tried += 1
        return complex(1 << 2000)

    with pytest.raises(HarnessError, match=r"OverflowError: .* \(test_judge_retries.py:\d+\).* please report it"):
        judge._retried(overflows)
    assert tried == 1


@pytest.mark.parametrize("fault", [TaskError("no such file"), Failed(Outcome.WRONG, "no")])
def test_what_was_found_out_leaves_the_judge_as_it_is(fault: Exception) -> None:
    judge = Judge.__new__(Judge)

    def fails() -> None:
        raise fault

    with pytest.raises(type(fault)):
        judge._retried(fails)
