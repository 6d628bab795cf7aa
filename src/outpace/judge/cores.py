"""Cores: which ones timing runs on, and the lock that keeps two timings apart, also between two runs."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_FOLDER = Path("/tmp/outpace-cores")
_PRIORITY = -15
# The shortest time slice that Linux gives, in nanoseconds, and the call that asks for it.
_SLICE = 100_000
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_ATTRIBUTES = struct.Struct("<IIQiIQQQ")


def timing_cores(threads: int) -> tuple[int, ...]:
    """The last cores this process may use; the first ones serve interrupts on most machines."""
    return tuple(sorted(os.sched_getaffinity(0))[-threads:])


@contextlib.contextmanager
def exclusive(cores: tuple[int, ...], waiting: Callable[[], None] = lambda: None) -> Iterator[float]:
    """Hold these cores for timing; yields the seconds it had to wait for them, after calling `waiting` if it had to."""
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        for core in cores:  # in ascending order, so that two judges cannot wait for each other
            lock = _lock_file(core)
            stack.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield time.monotonic() - begin


def _lock_file(core: int) -> int:
    """The open lock of a core, shared by all users of the machine: world-writable in a sticky folder, like /tmp itself.

    Somebody else may have made the folder, or a link in its place: no link is followed, nothing of others changed.
    """
    with contextlib.suppress(FileExistsError):
        _FOLDER.mkdir(mode=0o700)
    folder = os.open(_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _open_to_all(folder, 0o1777)
        lock = os.open(f"core-{core}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
    _open_to_all(lock, 0o666)
    return lock


def _open_to_all(descriptor: int, mode: int) -> None:
    if os.fstat(descriptor).st_uid == os.getuid():
        os.fchmod(descriptor, mode)


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


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let this thread, and the workers that it starts, go before others on their cores, where that is allowed.

    Judge and worker wake each other for every question. Whoever else wants the core would be let finish its slice of
    some milliseconds each time, however much less it matters, and leave the caches full of its own things.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)
    _ask_for_slices(_SLICE)
    try:
        yield
    finally:
        _ask_for_slices(0)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def prefer(worker: int) -> None:
    """Let a worker's session go before other sessions too, where that is allowed.

    Where Linux groups processes by session, as desktops have it, a nice value counts within one alone.
    """
    with contextlib.suppress(OSError):
        Path(f"/proc/{worker}/autogroup").write_text(str(_PRIORITY))


def _ask_for_slices(nanoseconds: int) -> None:
    """Ask for slices of this length for this thread, or 0 for the usual ones: whoever has short ones is let in at once.

    Linux knows it since 6.12. It is asked for nothing but speed, so that an older one may refuse.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if number is not None:
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, 0, nice, 0, nanoseconds, 0, 0)
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)
