"""A check gets the reference's movement when that decides, and a reference that cannot be asked is no wrong answer."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from conftest import python_task
from outpace.domains.program import ProgramDomain
from outpace.errors import HarnessError, TaskError
from outpace.judge import patience
from outpace.judge.inputs import checked
from outpace.judge.nudge import variants
from outpace.judge.patience import CutOff, Patience, Watch, limited
from outpace.judge.spots import excused_by
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed

INPUTS = "def make_input(rng):\n    return {}\n"
NUMBERS = np.random.default_rng(0).standard_normal(999)
# The last number takes away all that the others add up to.
GIVEN = {"x": np.append(NUMBERS, -np.cumsum(NUMBERS)[-1])}


def domain(checking: str, check: str = "") -> ProgramDomain:
    return ProgramDomain(python_task("", INPUTS + check, f"[checking]\n{checking}\n"))


def total(x: np.ndarray) -> float:
    return float(np.cumsum(x)[-1])


def moved() -> Sequence[Any]:
    return [total(**each) for each in variants(GIVEN, np.random.default_rng(1))]


def never() -> Sequence[Any]:
    raise AssertionError("the reference was asked for nothing")


def test_a_sum_in_another_order_is_right_though_all_of_it_cancels() -> None:
    expected, other = total(**GIVEN), total(GIVEN["x"][::-1])
    assert expected != other
    assert "is expected" in checked(domain("tolerance = 1e-9"), GIVEN, other, expected)
    assert checked(domain("tolerance = 1e-9"), GIVEN, other, expected, excused_by(moved)) == ""
    assert "is expected" in checked(domain("tolerance = 1e-9"), GIVEN, other + 1e-9, expected, excused_by(moved))
    assert checked(domain("tolerance = 1e-9\nfloor = 1e-8"), GIVEN, other + 1e-9, expected, never) == ""
    assert "is expected" in checked(domain("tolerance = 0"), GIVEN, other, expected, never)


def test_a_check_of_the_tasks_own_has_the_last_word() -> None:
    own = domain("tolerance = 1e-9", "def check(input, output, expected):\n    return 'no'\n")
    assert checked(own, GIVEN, 1.0, 1.0, never) == "no"


CIRCLES = """
def check(input, output, expected):
    while output["round"]:
        try:
            output["rounds"] += 1
        except:
            pass
    return output["said"]
"""


def answer(*, round_: bool, said: str = "") -> dict[str, Any]:
    return {"round": round_, "rounds": 0, "said": said}


def test_a_check_that_an_answer_leads_round_in_circles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "TICK", 0.05)
    own = domain("", CIRCLES)
    few = Patience(0.05)
    assert "too long over this answer" in checked(own, {}, answer(round_=True), answer(round_=False), None, few)
    # What the next one says counts as ever, and so does what comes after it.
    assert checked(own, {}, answer(round_=False, said="no"), answer(round_=False), None, few) == "no"
    assert checked(own, {}, answer(round_=False), answer(round_=False), None, few) == ""
    time.sleep(0.2)


def test_in_any_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "TICK", 0.05)
    own = domain("", CIRCLES)
    with ThreadPoolExecutor(3) as threads:
        said = list(
            threads.map(
                lambda _: checked(own, {}, answer(round_=True), answer(round_=False), None, Patience(0.05)), range(3)
            )
        )
    assert all("too long" in each for each in said)


def test_a_check_that_never_ends_over_the_references_own_answer_is_the_tasks_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "TICK", 0.05)
    monkeypatch.setattr(patience, "OWN_SECONDS", 0.05)
    with pytest.raises(TaskError, match="over the reference's own answer"):
        checked(domain("", CIRCLES), {}, answer(round_=True), answer(round_=True), None, Patience(0.05))


def test_a_slow_check_is_cut_off_only_where_it_is_slower_than_over_the_references_answer() -> None:
    slow = """
def check(input, output, expected):
    for _ in range(output):
        pass
"""
    own, few = domain("", slow), Patience(1e-6)
    assert all(checked(own, {}, 20_000, 20_000, None, few) == "" for _ in range(300))
    assert "too long" in checked(own, {}, 20_000_000, 20_000, None, few)


def test_what_asking_the_reference_takes_is_not_the_answers_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "TICK", 0.02)

    def slowly() -> Sequence[Any]:
        begin = time.thread_time()
        while time.thread_time() < begin + 0.1:
            pass
        return moved()

    expected, other = total(**GIVEN), total(GIVEN["x"][::-1])
    few = Patience(0.05)
    assert checked(domain("tolerance = 1e-9"), GIVEN, other, expected, excused_by(slowly), few) == ""
    assert checked(domain("tolerance = 1e-9"), GIVEN, other, expected, excused_by(slowly), few) == ""


def test_nothing_is_raised_after_a_call_has_ended() -> None:
    watches: list[Watch] = []
    over = False

    def look() -> None:
        # At a moment at which the call runs or ends, or after that.
        seen = 0
        while not over:
            if len(watches) > seen:
                seen = len(watches)
                watches[-1].look()
            time.sleep(0)

    looker = threading.Thread(target=look)
    looker.start()
    cut = turn = 0
    try:
        # On a busy machine it may take long until the other thread looks in time.
        while turn < 3000 or (not cut and turn < 100_000):
            turn += 1
            watch = Watch(0.0)

            def call(watch: Watch, steps: int = turn % 3000) -> int:
                watches.append(watch)
                return sum(at for at in range(steps))

            try:
                limited(watch, call)
            except CutOff:
                cut += 1
            assert watch.spent > 0
    finally:
        over = True
        looker.join()
    assert cut > 0


@pytest.mark.parametrize("fault", [Failed(Outcome.CRASHED, "it died"), HarnessError("no core")])
def test_a_reference_that_cannot_be_asked_is_no_word_on_the_answer(fault: Exception) -> None:
    def fails() -> Sequence[Any]:
        raise fault

    with pytest.raises(type(fault)):
        checked(domain("tolerance = 1e-9"), GIVEN, 2.0, 1.0, excused_by(fails))
