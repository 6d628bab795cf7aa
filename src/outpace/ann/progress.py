"""Progress: a line on the terminal that says how far a build is, once it takes longer than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Progress = Callable[[str, float], None]

PATIENCE = 2.0  # seconds before a word is said
ERASE = "\r\x1b[K"
# What a stage is called when it is shown.
STAGES = {
    "transform": "learning the codes",
    "lists": "grouping",
    "codes": "encoding",
    "neighbours": "looking for neighbours",
    "graph": "linking neighbours",
    "recall": "measuring recall",
}


class Line:
    """Written over and over, and gone when the build is."""

    def __init__(self, what: str, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._stream, self._clock = what, stream, clock
        self._begun, self._shown = clock(), False

    def __call__(self, stage: str, done: float) -> None:
        passed = self._clock() - self._begun
        if passed >= PATIENCE and stage in STAGES:
            self._stream.write(f"{ERASE}{self._what}: {STAGES[stage]} {done:.0%}, {passed:.0f} s")
            self._stream.flush()
            self._shown = True

    def close(self) -> None:
        if self._shown:
            self._stream.write(ERASE)
            self._stream.flush()


@contextmanager
def shown(progress: Progress | bool | None, what: str) -> Iterator[Progress | None]:
    """A function of the user's as it is; otherwise a line, which without a word from the user needs a terminal."""
    if callable(progress):
        yield progress
    elif progress or (progress is None and sys.stderr is not None and sys.stderr.isatty()):
        line = Line(what, sys.stderr)
        try:
            yield line
        finally:
            line.close()
    else:
        yield None
