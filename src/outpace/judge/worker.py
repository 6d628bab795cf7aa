"""The worker, seen from the judge: one jailed process that is handed inputs, is timed, and can be killed."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from outpace.errors import HarnessError
from outpace.judge.batch import Batch
from outpace.judge.cgroup import Cgroup
from outpace.judge.jail import MIB, Confinement, JailKind, jail_command
from outpace.judge.syscalls import name_of
from outpace.judge.verdict import Outcome, Sample

_REQUEST = struct.Struct("<QIIQQ")
_REPLY = struct.Struct("<QIIQ232s")
_SETUP, _LOAD, _GO, _QUIT, _PREPARE = 1, 2, 3, 4, 5
_DONE, _HELLO, _READY, _LOAD_FAILED, _FORBIDDEN, _FAULT, _CALL_FAILED = range(7)
# The server's own work over a batch, such as writing a command's files, beside what the calls may take.
LOAD_SECONDS = 10.0
_F_ADD_SEALS, _SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW, _SEAL_FUTURE_WRITE = 1033, 1, 2, 4, 16


def last_word(channel: socket.socket, size: int) -> bytes:
    """The next message, or nothing where the other side is gone without one.

    Where it ended with a request of ours unread, the kernel tells of the reset first, and only then gives out what was
    sent before: without a second look, the word of a forbidden system call would be lost.
    """
    for _ in range(2):
        with contextlib.suppress(ConnectionError):
            return channel.recv(size)
    return b""


class Failed(Exception):
    """The worker did not do what it was asked; whose fault it is follows from whose worker it was."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        # Parts of it are the candidate's own words, which shall not move anybody's cursor.
        self.reason = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in reason)


class Region:
    """Memory shared with a worker: a sealed memfd, so that the worker cannot cut it away under the judge."""

    def __init__(self, size: int, *, writable_inside: bool) -> None:
        self.size = size
        self.fd = os.memfd_create("region", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        self.map = mmap.mmap(self.fd, size)
        seals = _SEAL_SEAL | _SEAL_SHRINK | _SEAL_GROW | (0 if writable_inside else _SEAL_FUTURE_WRITE)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, seals)
        self.view = memoryview(self.map)

    def close(self) -> None:
        # Somebody may still hold a view, a traceback for one; the memory then goes with that.
        with contextlib.suppress(BufferError):
            self.view.release()
            self.map.close()
        os.close(self.fd)


@dataclass(frozen=True)
class Program:
    """What to start in the jail: the launcher's mode with its operands, and the confinement."""

    confinement: Confinement
    # `{socket}` and the like are replaced by the numbers the worker gets; see Worker.
    inner: tuple[str, ...]
    seconds: float
    setup_seconds: float
    # CPU seconds beyond twice the reference's that may go into what is done once per process.
    once_seconds: float


@dataclass
class Worker:
    """A running worker, stopped (SIGSTOP) out of its turn: it can neither compute ahead nor disturb its rival."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    pid: int
    program: Program
    inputs: Region
    outputs: Region
    group: Cgroup | None
    errors: int  # read end of the pipe that is the worker's standard error
    handle: int = -1  # pidfd of the worker
    # CPU seconds from the greeting until the candidate's code was loaded, constructors and imports included.
    loading: float = 0.0
    stopped: bool = False
    _loaded: Batch | None = None
    _mark: tuple[int, int, int] = (0, 0, 0)

    @staticmethod
    def start(kind: JailKind, program: Program, inputs: Region, outputs: Region, cores: Sequence[int]) -> Worker:
        """Start a worker pinned to these cores and wait until the candidate's code is loaded."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        errors_read, errors_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        numbers = {"socket": theirs.fileno(), "input": inputs.fd, "output": outputs.fd}
        numbers |= {"input_bytes": inputs.size, "output_bytes": outputs.size}
        options = [part for name in numbers for part in ("--" + name.replace("_", "-"), "{" + name + "}")]
        inner = [part.format(**numbers) if part.startswith("{") else part for part in (*options, *program.inner)]
        command = jail_command(kind, program.confinement, inner)
        limits = program.confinement
        group = (
            Cgroup.create(memory=limits.memory, processes=limits.processes + limits.threads + 8)
            if kind != "none"
            else None
        )
        argv = group.entrance(list(command.argv)) if group else list(command.argv)
        try:
            process = subprocess.Popen(
                argv,
                env=dict(command.environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors_write,
                pass_fds=(theirs.fileno(), inputs.fd, outputs.fd, *command.fds),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            os.close(errors_read)
            if group is not None:
                group.remove()
            raise HarnessError(f"the jail could not be started: {error}") from error
        finally:
            theirs.close()
            os.close(errors_write)
            command.close()
        worker = Worker(process, ours, 0, program, inputs, outputs, group, errors_read)
        try:
            worker._greet(cores)
        except BaseException:
            worker.close()
            raise
        return worker

    def _greet(self, cores: Sequence[int]) -> None:
        self.channel.settimeout(30)
        try:
            data, ancillary, _, _ = self.channel.recvmsg(_REPLY.size, socket.CMSG_SPACE(12))
        except TimeoutError:
            raise HarnessError("the jail did not start within 30 s") from None
        credentials = [
            body for level, kind, body in ancillary if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS
        ]
        if len(data) != _REPLY.size or not credentials or _REPLY.unpack(data)[1] != _HELLO:
            raise HarnessError(f"the jail did not start: {self._last_words() or 'no greeting'}")
        self.pid = struct.unpack("3i", credentials[0][:12])[0]
        # Signals go by this: a bare pid may have become somebody else's by the time it is used.
        with contextlib.suppress(ProcessLookupError):
            self.handle = os.pidfd_open(self.pid)
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(self.pid, cores)
        begin = self._cpu()
        self._receive(0, self.program.setup_seconds, "loading", expected=_READY)
        self._stop()
        self.loading = (self._cpu() - begin) / 1e9

    def setup(self, batch: Batch) -> float:
        """Hand over the set-up data; returns the CPU seconds it took."""
        self._lay_out(batch)
        begin = self._cpu()
        self._resume()
        self._ask(_SETUP, batch, self.program.setup_seconds, "set-up")
        self._stop()
        return (self._cpu() - begin) / 1e9

    def prepare(self, batches: Sequence[Batch]) -> None:
        """Let the worker map the memory these batches will use, before any of their inputs is there to be seen.

        The first touch of a page costs as much as filling it; left to chance, a candidate could touch them in the
        warm-up and look twice as fast.
        """
        self._resume()
        inputs, outputs = max(len(batch.data) for batch in batches), max(batch.mapped for batch in batches)
        self._request(_PREPARE, 0, inputs, outputs, 30, "preparing")
        self._stop()

    def _lay_out(self, batch: Batch) -> None:
        self.inputs.view[: len(batch.data)] = batch.data
        self.outputs.view[: len(batch.blank)] = batch.blank

    def load(self, batch: Batch, seconds: float) -> None:
        """Put a batch before the worker. Its inputs appear only now, while nothing runs in the jail."""
        self._lay_out(batch)
        # The clocks start here: whoever has taken the worker over can see the inputs from now on.
        self._mark = self._clocks()
        self._resume()
        self._ask(_LOAD, batch, seconds + LOAD_SECONDS, "loading inputs")
        if batch.usage is not None:
            # A command's server is out of the candidate's reach, so what it does to lay out files costs nobody.
            self._mark = self._clocks()
        self._loaded = batch

    def go(self, seconds: float) -> Sample:
        """Let the worker perform the loaded calls, timed by our clock and by the kernel's account of its CPU time."""
        batch = self._loaded
        assert batch is not None
        self._ask(_GO, batch, seconds, "a call")
        end = time.perf_counter_ns()
        # Stopped before the CPU clock is read, so that work which goes on behind an early reply is counted.
        self._stop()
        wall, cpu, delay = end - self._mark[0], self._cpu() - self._mark[1], self._delay() - self._mark[2]
        if batch.usage is not None:
            spent, waited = batch.usage(self.outputs.view)
            cpu, delay = cpu + spent, delay + waited
        return Sample(wall, cpu, min(delay, wall - 1))

    def _clocks(self) -> tuple[int, int, int]:
        return time.perf_counter_ns(), self._cpu(), self._delay()

    def answers(self) -> list[object]:
        """The answers of the last calls, copied out of the shared region while the worker is stopped."""
        batch = self._loaded
        assert batch is not None
        return batch.read(self.outputs.view[: batch.output_bytes])

    def close(self) -> None:
        """Kill the whole tree and give back everything it held."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._signal(signal.SIGKILL)
        self.process.wait()
        self.channel.close()
        if self.group is not None:
            self.group.remove()
        os.close(self.errors)
        if self.handle >= 0:
            os.close(self.handle)

    def _signal(self, number: signal.Signals) -> None:
        if self.handle >= 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self.handle, number)

    def _ask(self, verb: int, batch: Batch, seconds: float, doing: str) -> None:
        self._request(verb, batch.count, 0, batch.records, seconds, doing)

    def _request(self, verb: int, count: int, first: int, second: int, seconds: float, doing: str) -> None:
        # Not to be foretold: a reply sent before it was asked for must not fit.
        nonce = int.from_bytes(os.urandom(8), "little")
        with contextlib.suppress(OSError):  # it is gone, but may have left a word about why
            self.channel.send(_REQUEST.pack(nonce, verb, count, first, second))
        self._receive(nonce, seconds, doing, expected=_DONE)

    def _receive(self, nonce: int, seconds: float, doing: str, *, expected: int) -> None:
        self.channel.settimeout(max(seconds, 0.001))
        try:
            data = last_word(self.channel, _REPLY.size)
        except TimeoutError:
            raise Failed(Outcome.TIMED_OUT, f"{doing} took longer than the limit of {seconds:g} s") from None
        if not data:
            raise self._death(doing)
        if len(data) != _REPLY.size:
            raise Failed(Outcome.CHEATING, "the worker's channel carried a message that is not the worker's")
        got, status, detail, _, raw = _REPLY.unpack(data)
        text = raw.split(b"\0")[0].decode("utf-8", "replace")
        if status == expected and got == nonce:
            return
        if status == _FORBIDDEN:
            raise Failed(
                Outcome.CHEATING,
                f"the candidate made the system call {name_of(detail)}, which the jail forbids",
            )
        if status == _LOAD_FAILED:
            raise Failed(Outcome.CRASHED, f"the candidate could not be loaded: {text}")
        if status == _CALL_FAILED:
            raise Failed(Outcome.CRASHED, text)
        if status == _FAULT:
            # Ours if the request was bad, a lie if it was not; the reference never lies, so blame sorts it out.
            raise Failed(Outcome.CHEATING, f"the worker refused a request while {doing}: {text}")
        raise Failed(Outcome.CHEATING, "the worker's channel carried a reply that was not asked for")

    def _death(self, doing: str) -> Exception:
        """What a worker that went away died of."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        code = self.process.returncode
        if self.group is not None and self.group.out_of_memory():
            return Failed(
                Outcome.REFUSED,
                f"more than the {self.program.confinement.memory // MIB} MB of memory allowed",
            )
        number = -code if code is not None and code < 0 else (code or 0) - 128
        words = self._last_words()
        if number == signal.SIGXCPU or (number == signal.SIGKILL and doing != "loading"):
            return Failed(Outcome.CRASHED, f"killed during {doing} (CPU time or memory limit, or it killed itself)")
        if number == signal.SIGSYS:
            # Where the candidate has signals blocked, the filter's trap kills instead of telling which call it was.
            return Failed(Outcome.CHEATING, f"the candidate made a system call that the jail forbids, during {doing}")
        if 0 < number < 65:
            name = signal.Signals(number).name if number in signal.Signals._value2member_map_ else f"signal {number}"
            return Failed(Outcome.CRASHED, f"{name} during {doing}{': ' + words if words else ''}")
        return Failed(
            Outcome.CRASHED,
            f"the process ended by itself during {doing} (exit status {code}){': ' + words if words else ''}",
        )

    def _last_words(self) -> str:
        try:
            raw = os.read(self.errors, 65536)
        except BlockingIOError:
            return ""
        lines = [line for line in raw.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[0][:300] if lines else ""

    def _stop(self) -> None:
        self._signal(signal.SIGSTOP)
        self.stopped = True

    def _resume(self) -> None:
        if self.stopped:
            self._signal(signal.SIGCONT)
            self.stopped = False

    def _cpu(self) -> int:
        try:
            # The kernel's CPU clock of another process: ~pid << 3 | CPUCLOCK_SCHED (see clock_getcpuclockid(3)).
            return time.clock_gettime_ns((~self.pid << 3) | 2)
        except OSError:
            raise self._death("a call") from None

    def _delay(self) -> int:
        """Nanoseconds that the worker and this thread were runnable but had to wait for a core."""
        return _run_delay(f"/proc/{self.pid}/schedstat") + _run_delay("/proc/thread-self/schedstat")


def _run_delay(path: str) -> int:
    try:
        return int(Path(path).read_bytes().split()[1])
    except (OSError, IndexError):
        return 0  # a kernel without schedstats: waits count as the candidate's own time, for both sides alike
