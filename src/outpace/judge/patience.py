"""Patience: a task's check may take only so much longer over an answer than over the reference's own.

An answer can lead a check round in a circle for ever. So one thread, started when it is first needed, looks now and
then at the processor time that running checks have used, and raises `CutOff` in the thread of one that has used too
much. It cannot reach into a single call of C code: that runs to its end.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from outpace.errors import TaskError

T = TypeVar("T")
# The checks of a verdict may take this long before they are held against the reference's own, ...
SECONDS = 20.0
# ... and from then on so many times as long as over the reference's own answer, ...
TIMES = 4
# ... for which a check may take this long.
OWN_SECONDS = 60.0
# How often the thread looks; a check may go on for this long beyond its end.
TICK = 1.0

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)


class CutOff(BaseException):
    """A check took too long; no check that catches exceptions catches this one by accident."""


class Patience:
    """How long the checks of one verdict may still take."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._left = seconds

    def with_check(self, check: Callable[[Watch], str], own: Callable[[], object]) -> str:
        """What the check says, or why it was cut off; `own` checks the reference's own answer instead.

        What is left is spent by one check after another. When there is nothing left, the reference's own answer is
        checked, and gives TIMES as long as that took, which an honest answer never uses up.
        """
        had = self._left
        said = self._within(check)
        if said is not None and self._left > 0:
            return said
        more = TIMES * _own(own)
        if said is not None:
            self._left += more
        elif more > had:
            self._left = more
            said = self._within(check)
        if said is not None and self._left >= 0:
            return said
        self._left = 0.0
        return (
            f"the task's check took too long over this answer: {TIMES} times as long as over the reference's, or more"
        )

    def _within(self, check: Callable[[Watch], str]) -> str | None:
        """What the check says within what is left, or None where it was cut off."""
        watch = Watch(self._left)
        try:
            return limited(watch, check)
        except CutOff:
            return None
        finally:
            self._left -= watch.spent


def _own(own: Callable[[], object]) -> float:
    """How long the check takes over the reference's own answer."""
    watch = Watch(OWN_SECONDS)
    try:
        limited(watch, lambda _: own())
    except CutOff:
        raise TaskError(
            f"check takes more than {OWN_SECONDS:g} s over the reference's own answer: make it faster, or end its loops"
        ) from None
    return watch.spent


def limited(watch: Watch, call: Callable[[Watch], T]) -> T:
    """What the call returns; raises CutOff when this thread has spent on it what the watch allows."""
    # `end` is called again wherever a CutOff may have interrupted it. A watch raises no oftener than once in a TICK,
    # so there is never a third one in these few steps.
    try:
        try:
            try:
                _observe(watch)
                return call(watch)
            finally:
                watch.end()
        finally:
            watch.end()
    except CutOff:
        watch.end()
        raise


class Watch:
    """A running call, and when it has to be over."""

    # The processor time that it took, known when it is over.
    spent = 0.0

    def __init__(self, seconds: float) -> None:
        self.thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self.thread)
        self._begun = time.thread_time()
        self._until = self._begun + seconds
        # Whoever holds it may raise: the observer for a moment, then its own thread for ever. It may be taken twice by
        # one thread, for a CutOff can come just after it was taken.
        self._gate = threading.RLock()
        self._raised = False

    def end(self) -> None:
        """From now on nothing is counted or raised, and what was raised and has not arrived never does."""
        while True:
            try:
                self._gate.acquire()
                _watched.pop(self.thread, None)
                if self._raised:
                    _raise_in(self.thread, ctypes.py_object())
                self.spent = self.spent or time.thread_time() - self._begun
                return
            except CutOff:
                continue

    def look(self) -> None:
        """Raise if it is time to; again and again, for a check may catch everything."""
        if not self._gate.acquire(blocking=False):
            return
        try:
            if time.clock_gettime(self._clock) > self._until:
                self._raised = True
                _raise_in(self.thread, CutOff)
        except OSError:
            pass  # the thread is gone
        finally:
            self._gate.release()


_watched: dict[int, Watch] = {}
_observer: threading.Thread | None = None
_starting = threading.Lock()


def _observe(watch: Watch) -> None:
    global _observer
    _watched[watch.thread] = watch
    # Not alive in a child of this process either.
    if _observer is None or not _observer.is_alive():
        with _starting:
            if _observer is None or not _observer.is_alive():
                _observer = threading.Thread(target=_look_now_and_then, name="patience", daemon=True)
                _observer.start()


def _look_now_and_then() -> None:
    while True:
        time.sleep(TICK)
        for watch in list(_watched.values()):
            watch.look()
