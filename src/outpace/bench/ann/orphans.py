"""Orphans: a process asks the kernel to be ended with the one that started it, however that came to its end."""

from __future__ import annotations

import contextlib
import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """From now on; closing a pipe would not do, since a library that builds for minutes lets no thread look at one."""
    with contextlib.suppress(AttributeError):  # Linux alone has it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
