"""Remote: an object in a process of its own, called from here, because the libraries' extensions clash in one."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from outpace.bench.ann.orphans import end_with_parent


class RemoteFailed(Exception):
    """What was raised over there, or that the process died."""


# How many threads NumPy's linear algebra takes; it is read when the process loads it.
_POOLS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Remote:
    """One object over there; its process ends with this one, and its NumPy has one thread."""

    def __init__(self, make: Callable[..., object], *arguments: object, cores: Collection[int]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, arguments, tuple(cores)), daemon=True)
        with _one_thread():
            self._process.start()
        theirs.close()
        try:
            self.wait()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, method: str, *arguments: object) -> Any:
        """Call a method and wait for what it returns."""
        self.begin(method, *arguments)
        return self.wait()

    def begin(self, method: str, *arguments: object) -> None:
        """Call a method and let it run."""
        try:
            self._pipe.send((method, arguments))
        except OSError:
            raise self._died() from None

    def wait(self) -> Any:
        """What the method that was begun returns."""
        try:
            fault, value = self._pipe.recv()
        except (EOFError, OSError):
            raise self._died() from None
        if fault is not None:
            raise RemoteFailed(fault)
        return value

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.kill()
        self._process.join()

    def _died(self) -> RemoteFailed:
        self._process.join(5)
        return RemoteFailed(f"the process ended with code {self._process.exitcode}")


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(_POOLS, "1"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _serve(
    pipe: Connection, make: Callable[..., object], arguments: tuple[object, ...], cores: tuple[int, ...]
) -> None:
    end_with_parent()
    os.sched_setaffinity(0, cores)
    served: object = None
    method: str | None = None
    reply: tuple[str | None, object]
    while True:
        try:
            if method is None:
                served, value = make(*arguments), None
            else:
                value = getattr(served, method)(*arguments)
            reply = (None, value)
        except Exception as fault:  # whatever a library raises is a finding about it
            reply = (f"{type(fault).__name__}: {fault}"[:500], None)
        try:
            pipe.send(reply)
            method, arguments = pipe.recv()
        except (EOFError, OSError):
            return
