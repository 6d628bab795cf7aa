"""Background load: a process that burns one core, comes and goes at random, and dies with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import time
from collections.abc import Iterator


@contextlib.contextmanager
def bursts(core: int, mean_seconds: float = 0.7) -> Iterator[None]:
    """Load on one core, on and off for times that are exponentially distributed."""
    child = os.fork()  # no new interpreter: after a change of user it might not be readable any more
    if child == 0:
        _burn(core, mean_seconds)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _burn(core: int, mean_seconds: float) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no load may outlive its benchmark
    os.sched_setaffinity(0, {core})
    chance = random.Random(core)
    while True:
        until = time.monotonic() + chance.expovariate(1 / mean_seconds)
        while time.monotonic() < until:
            sum(range(2000))
        time.sleep(chance.expovariate(1 / mean_seconds))
