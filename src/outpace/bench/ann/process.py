"""A peer's process from outside: started with its threads and cores set, asked, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from outpace.bench.ann.messages import Ended, Failed, Imported, Late, Reply, Request, Version, receive, send
from outpace.errors import OutpaceError

# The pools that the libraries' own pools sit on; each is read once, when its library is loaded.
_POOLS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
_IMPORTING = 180.0


class PeerFailed(Exception):
    """A peer raised an error, died or took too long: a row of the results, never the end of the benchmark."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status, self.reason = status, reason


class PeerProcess:
    """One library in one process, because their extensions clash in one."""

    def __init__(self, peer: str, *, threads: int, log: Path) -> None:
        self.peer = peer
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        here, theirs = os.pipe(), os.pipe()
        environment = os.environ | dict.fromkeys(_POOLS, str(threads))
        with log.open("wb") as output:
            # Its own group, so that tools it starts end with it; its prints must not mix with ours.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "outpace.bench.ann.worker", peer, str(here[0]), str(theirs[1])],
                pass_fds=(here[0], theirs[1]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        os.close(here[0])
        os.close(theirs[1])
        self._requests, self._replies = here[1], theirs[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, request: Request, seconds: float | None = None) -> Reply:
        """Send a request and wait for its reply."""
        try:
            send(self._requests, request)
        except BrokenPipeError:
            raise PeerFailed("crashed", self._last_words()) from None
        return self.wait(seconds)

    def wait(self, seconds: float | None = None) -> Reply:
        """Wait for a further reply."""
        try:
            reply: Reply = receive(self._replies, Reply, seconds)
        except Ended:
            raise PeerFailed("crashed", self._last_words()) from None
        except Late:
            self.close()
            raise PeerFailed("late", f"no answer within {seconds:.0f} s, so it was ended") from None
        if isinstance(reply, Failed):
            raise PeerFailed("failed", reply.reason)
        return reply

    def close(self) -> None:
        """End the process and all that it started."""
        for descriptor in (self._requests, self._replies):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._requests = self._replies = -1
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _last_words(self) -> str:
        code = self._process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        lines = self._log.read_text(errors="replace").strip().splitlines() if self._log.is_file() else []
        return f"{how}; {lines[-1][:300]}" if lines else how


def version(peer: str, log: Path) -> str:
    """The version of a peer that can be imported; PeerFailed where it cannot."""
    with PeerProcess(peer, threads=1, log=log) as process:
        reply = process.ask(Version(), _IMPORTING)
    if not isinstance(reply, Imported):
        raise OutpaceError(f"the process of {peer} answered out of turn with {type(reply).__name__}: a fault of ours")
    return reply.version
