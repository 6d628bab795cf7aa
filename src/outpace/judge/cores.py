"""Cores: which ones timing runs on, and the lock that keeps two timings apart, also between two runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_FOLDER = Path("/tmp/outpace-cores")


def timing_cores(threads: int) -> tuple[int, ...]:
    """The last cores this process may use; the first ones serve interrupts on most machines."""
    return tuple(sorted(os.sched_getaffinity(0))[-threads:])


@contextlib.contextmanager
def exclusive(cores: tuple[int, ...], waiting: Callable[[], None] = lambda: None) -> Iterator[float]:
    """Hold these cores for timing; yields the seconds it had to wait for them, after calling `waiting` if it had to."""
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        for core in cores:  # in ascending order, so that two judges cannot wait for each other
            lock = os.open(_lock_file(core), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            stack.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield time.monotonic() - begin


def _lock_file(core: int) -> Path:
    # Shared by all users of the machine, hence world-writable with the sticky bit, like /tmp itself.
    if not _FOLDER.is_dir():
        with contextlib.suppress(FileExistsError):
            _FOLDER.mkdir(mode=0o1777)
            _FOLDER.chmod(0o1777)
    path = _FOLDER / f"core-{core}"
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o666))
        path.chmod(0o666)
    return path


@contextlib.contextmanager
def kept_off(cores: tuple[int, ...]) -> Iterator[None]:
    """Keep this thread off the timing cores, where there are others.

    On the worker's own core a round trip would cost 5 us instead of 50, but the worker would preempt the judge in the
    middle of its request, and the judge's wait for the core could no longer be told from the worker's work.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before - set(cores) or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
