"""What a worker said before it died is heard, whatever it left unread."""

import socket

import pytest

from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed, last_word


def test_the_last_word_of_a_worker_that_left_a_request_unread_is_heard() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        ours.send(b"a request")
        theirs.send(b"forbidden")
        theirs.close()
        assert last_word(ours, 100) == b"forbidden"
        assert last_word(ours, 100) == b""


def test_a_worker_that_died_without_a_word_gives_none() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        ours.send(b"a request")
        theirs.close()
        assert last_word(ours, 100) == b""


def test_a_silent_worker_runs_out_of_time() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, pytest.raises(TimeoutError):
        ours.settimeout(0.01)
        last_word(ours, 100)


def test_a_reason_has_an_end_however_long_a_candidates_words_are() -> None:
    failed = Failed(Outcome.WRONG, "an array of " + "x" * 60_000)
    assert failed.reason == "an array of " + "x" * 1985 + "..." and len(failed.reason) == 2000
