"""Whatever fails on our side while judging is tried again, and then leaves the judge as a fault of the harness."""

import pytest

from outpace.errors import HarnessError
from outpace.judge.judge import ATTEMPTS, Judge


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
