"""Arrays of a Python answer are fetched from where they lie: what is given away is given away."""

import ctypes

import launcher_driver as driver
import numpy as np
import pytest
from feeder_seat import python_function

from outpace.judge.feeder import Told
from outpace.judge.question import Question, python_question

GIVES = """
import numpy as np
kept = np.full(5000, 7.0)
many = [np.full(5000, 7.0), np.full(600, 7.0)]
seen = []
def solve(how):
    if how == "new":
        return [np.full(5000, 7.0), {"a": np.full(600, 7.0)}]
    if how == "kept":
        return kept
    if how == "many":
        return many
    if how == "hidden":  # a new one each time, of which the address is kept
        array = np.full(5000, 7.0)
        seen.append(array.ctypes.data)
        return array
    import ctypes
    return list((ctypes.c_double * 5000).from_address(seen[-1]))
"""


def given(how: str) -> Question:
    return python_question([{"how": how}])


def values(question: Question, answer: memoryview) -> list[float]:
    (found,) = question.read(answer)
    whole = [found] if isinstance(found, np.ndarray) else found if isinstance(found, list) else []
    return [float(value) for part in whole for value in np.ravel(part["a"] if isinstance(part, dict) else part)]


@pytest.mark.parametrize("how", ["new", "kept", "many"])
def test_what_is_given_away_is_whole_and_what_is_kept_stays(how: str) -> None:
    with python_function(GIVES) as seat:
        questions = [given(how)] * 3
        turn = seat.turn(questions, replies=True)
        assert turn.told is Told.FINISHED
        for question, answer in zip(questions, turn.answers, strict=True):
            assert set(values(question, answer)) == {7.0}
            # Of what somebody keeps a copy is fetched, made on the clock, and the kept one stays as it was.
            assert int.from_bytes(answer[-8:], "little") == (1 if how == "kept" else 2)


def test_nobody_can_rely_on_an_array_that_was_given_away() -> None:
    with python_function(GIVES) as seat:
        questions = [given("hidden"), given("look")]
        turn = seat.turn(questions, replies=True)
        assert turn.told is Told.FINISHED
        assert set(values(questions[0], turn.answers[0])) == {7.0}
        # All of it: what is left in parts can be mended in parts.
        assert 7.0 not in values(questions[1], turn.answers[1])


def test_nobody_can_rely_on_what_was_answered_in_the_region() -> None:
    with python_function("def solve(how):\n    return [how * 500, [how] * 500]\n") as seat:
        question = given("seven")
        turn = seat.turn([question], replies=True)
        assert turn.told is Told.FINISHED
        assert b"sevenseven" in bytes(turn.answers[0])
        assert b"sevenseven" not in ctypes.string_at(seat.worker.desk, driver.REGION)


# A worker that was taken over answers by itself, and looks at its array again and again while that is fetched.
GOES_ON = """
import ctypes, marshal, os, struct, sys, time
import numpy as np
def solve(n):
    worker = sys._getframe(1)
    own, room = worker.f_locals, worker.f_globals
    array = np.arange(float(n))
    words = marshal.dumps((None, [((), "<f8", (n,))]), 2)
    first = 24 + len(words) + -(24 + len(words)) % 64
    end = first + 8 * n
    struct.pack_into("<QQ", own["answers"], 8, len(words), end - 8)
    own["answers"][24 : 24 + len(words)] = words
    struct.pack_into("<Q", own["answers"], 0, end - 8)
    where = ctypes.c_uint64(array.ctypes.data)
    struct.pack_into("<QQQ", own["desk"], 128, first, ctypes.addressof(where), 8 * n)
    struct.pack_into("<QQ", own["desk"], 72, end, 1)
    struct.pack_into("<I", own["desk"], 64, own["nonce"])
    os.write(own["sock"], room["REPLY"].pack(own["nonce"], 0, 0, 0, b""))
    while True:
        time.sleep(1e-6)
"""


def test_nobody_runs_while_his_array_is_fetched() -> None:
    with python_function(GOES_ON) as seat:
        turn = seat.turn([python_question([{"n": 120_000}])], replies=True)
        assert turn.told is Told.UNREADABLE_ANSWER


# One buffer for every answer, whose keeping nothing of the worker's own can see.
AGAIN = """
import sys
import numpy as np
room = np.empty(5000)
sys.modules["__main__"].NOBODY_ELSE = 1 << 30
sys.modules["outpace_wire"]._own = lambda array, apart: array
def solve(n):
    room[:] = n
    return room
"""


def test_an_array_that_was_given_away_is_not_used_again() -> None:
    with python_function(AGAIN) as seat:
        turn = seat.turn([python_question([{"n": float(n)}]) for n in range(60)], replies=True)
        assert turn.told is Told.CHANGED


def test_who_keeps_answers_keeps_them_for_a_turn() -> None:
    with python_function(GIVES) as seat:
        for _ in range(3):
            turn = seat.turn([given("new")] * 60, replies=True)
            assert turn.told is Told.FINISHED
