"""What a worker said before it died is heard, whatever it left unread."""

import socket

import pytest

from outpace.judge.worker import last_word


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
