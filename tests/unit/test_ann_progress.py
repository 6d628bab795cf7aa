"""Progress of a build: a line where a person looks on, nothing where none does, and Ctrl-C heard on the way."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from outpace.ann import Index
from outpace.ann.progress import ERASE, PATIENCE, STAGES, Line, shown


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """A shell without job control starts what runs in the background with Ctrl-C ignored, and then nothing hears it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_quick_build_says_nothing() -> None:
    stream, clock = io.StringIO(), Clock()
    line = Line("building", stream, clock)
    clock.now += PATIENCE / 2
    line("lists", 0.5)
    line.close()
    assert stream.getvalue() == ""


def test_a_longer_one_writes_a_line_over_and_over_and_leaves_none() -> None:
    stream, clock = io.StringIO(), Clock()
    line = Line("building an index of 700,000 vectors", stream, clock)
    clock.now += 12
    line("neighbours", 0.25)
    line("neighbours", 0.5)
    line("done", 1)
    line.close()
    assert stream.getvalue() == (
        f"{ERASE}building an index of 700,000 vectors: looking for neighbours 25%, 12 s"
        f"{ERASE}building an index of 700,000 vectors: looking for neighbours 50%, 12 s{ERASE}"
    )


def test_the_line_fits_into_a_terminal_of_80_columns() -> None:
    stream, clock = io.StringIO(), Clock()
    line = Line(f"building an index of {2_000_000_000:,} vectors", stream, clock)
    clock.now += 9999
    for stage in STAGES:
        line(stage, 1)
    assert max(len(text) for text in stream.getvalue().split(ERASE)) < 80


@pytest.mark.parametrize(("asked", "stream", "speaks"), [
    (None, Terminal(), True), (None, io.StringIO(), False), (False, Terminal(), False), (True, io.StringIO(), True),
])  # fmt: skip
def test_a_line_needs_a_terminal_unless_it_is_asked_for(
    asked: bool | None, stream: io.StringIO, speaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with shown(asked, "building") as told:
        assert (told is not None) == speaks


def test_without_a_stream_for_errors_there_is_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    with shown(None, "building") as told:
        assert told is None


def test_a_function_of_the_user_is_called_as_it_is() -> None:
    with shown(print, "building") as told:
        assert told is print


@pytest.mark.parametrize("stage", ["lists", "neighbours", "recall"])
def test_ctrl_c_ends_a_build_at_any_stage(stage: str) -> None:
    vectors = np.random.default_rng(0).standard_normal((3000, 16), dtype=np.float32)

    def pressed(now: str, _: float) -> None:
        if now == stage:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Index.build(vectors, progress=pressed, threads=2)


def test_ctrl_c_ends_a_calibration_and_leaves_the_one_before() -> None:
    vectors = np.random.default_rng(0).standard_normal((20_000, 16), dtype=np.float32)
    index = Index.build(vectors)
    before = index.search(vectors[:50], recall=0.9)[0]
    threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            index.calibrate(vectors[:400] + 0.01)
    assert (index.search(vectors[:50], recall=0.9)[0] == before).mean() > 0.5
    assert len(index) == len(vectors)


def test_ids_that_an_interrupted_addition_took_are_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).standard_normal((600, 8), dtype=np.float32)
    index = Index.build(vectors[:300])
    index.add(vectors[300:301])
    handle = index._handle

    class Interrupted:
        """Adds, and hears of Ctrl-C when it comes back."""

        def __getattr__(self, name: str) -> object:
            return getattr(handle, name)

        def __len__(self) -> int:
            return len(handle)

        def add(self, *arguments: object) -> None:
            handle.add(*arguments)
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(index, "_handle", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            index.add(vectors[301:400])
    assert len(index) == 400
    assert index.add(vectors[400:402]).tolist() == [400, 401]
