"""The worker, seen from the judge: one jailed process that is asked questions, is timed, and can be killed."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import platform
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outpace.errors import HarnessError
from outpace.judge.cgroup import Cgroup
from outpace.judge.cores import prefer
from outpace.judge.feeder import ANSWER_LIMIT, Asked, Lot, Told, address, feed
from outpace.judge.jail import MIB, Confinement, JailKind, jail_command
from outpace.judge.syscalls import name_of
from outpace.judge.verdict import Outcome, Sample

_REPLY = struct.Struct("<QIIQ232s")
_DONE, _HELLO, _READY, _LOAD_FAILED, _FORBIDDEN, _FAULT, _CALL_FAILED = range(7)
# A worker that has not stopped after so long is killed.
STOP_SECONDS = 10.0
# What the first write to a page of 4 KB takes, generously.
FAULT_NS = 1000
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


# A reason has so many letters at most.
_REASON = 2000


class Failed(Exception):
    """The worker did not do what it was asked; whose fault it is follows from whose worker it was."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        # Parts of it are the candidate's own words, which shall not move anybody's cursor, nor fill anybody's disk.
        short = reason if len(reason) <= _REASON else reason[: _REASON - 3] + "..."
        self.reason = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in short)


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
        self.address = address(np.frombuffer(self.map, np.uint8))

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
    # Whether it sleeps on its socket and not on a futex.
    by_message: bool
    # Whether it says once more when it has begun, after it has made ready what it needs itself.
    makes_ready: bool = False
    # Whether its own clock says nothing, because every call is a process of its own.
    serves_processes: bool = False


@dataclass(frozen=True)
class Heard:
    """A worker's answers to a lot, what the turn took, and how much memory it held afterwards.

    `converting` is the worker's own word for what converting once more took, in nanoseconds, and `calling` for that and
    the calls themselves: to be believed of the reference.
    """

    sample: Sample
    answers: tuple[memoryview, ...]
    resident: int
    converting: int = 0
    calling: int = 0
    # Nanoseconds that each question took.
    spent: tuple[int, ...] = ()


@dataclass(frozen=True)
class Memory:
    """What a worker's memory is like before the first call: as if calls had been made already."""

    # So many bytes of the input and the output region are mapped.
    input: int = 0
    output: int = 0
    # The largest block that callers make and free, which malloc goes by.
    freed: int = 0


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
    # Whether judge and worker share one core, so that the judge has to sleep while the worker works.
    one_core: bool = False
    core: int = -1
    # Bytes of the input region in which its set-up lies.
    kept: int = 0
    # Seconds that it took to load.
    loaded_in: float = 0.0
    # The worker's CPU clock and ours when its last sample ended; the first begins before any of its code is loaded.
    _cpu_mark: int = 0
    _loading: int = 0

    @staticmethod
    def start(
        kind: JailKind,
        program: Program,
        inputs: Region,
        outputs: Region,
        cores: Sequence[int],
        memory: Memory,
    ) -> Worker:
        """Start a worker pinned to these cores and wait until the candidate's code is loaded.

        Its memory is made ready before anything of the candidate is there.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        errors_read, errors_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        numbers = {"socket": theirs.fileno(), "input": inputs.fd, "output": outputs.fd}
        numbers |= {"input_bytes": inputs.size, "output_bytes": outputs.size}
        numbers |= {"populate_input": memory.input, "populate_output": memory.output, "freed": memory.freed}
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
        prefer(self.pid)
        self.one_core = len(os.sched_getaffinity(0) - set(cores)) == 0
        self.core = min(cores)
        # The worker's own word, given while all of its code is still ours: between this moment and the one in which we
        # read a clock, a constructor could have done a table's worth of work.
        hello = _REPLY.unpack(data)
        if self.program.makes_ready:
            # As before: what every candidate of this kind needs is nobody's once-work, and nobody's to save.
            hello = self._receive(0, 30, "making ready", expected=_HELLO)
        self._cpu_mark = hello[3]
        # Where the CPU clock counts, what we were busy with in between is not to pass for sleep.
        begin = int(_text(hello)) if self.program.confinement.parallel else time.perf_counter_ns()
        self._receive(0, self.program.setup_seconds, "loading", expected=_READY)
        self._stop()
        self._loading = time.perf_counter_ns() - begin
        self.loaded_in = self._loading / 1e9

    def held(self) -> int:
        """Bytes of memory on the account of its control group, mapped or not; 0 without one."""
        return 0 if self.group is None else self.group.held()

    def ask(self, lot: Lot, turn_seconds: float, room: int = ANSWER_LIMIT) -> Heard:
        """One turn: the questions of a lot, each after the answer to the last; raises Failed where there is none."""
        limit, doing = self.program.seconds, "a call"
        if lot.questions and lot.questions[0].setup:
            limit, doing = max(limit, self.program.setup_seconds), "set-up or a call"
            turn_seconds += self.program.setup_seconds
        turn = feed(self._asked(limit, turn_seconds), lot, room)
        self.kept = max(self.kept, lot.kept)
        if turn.told is Told.SPEAKS:
            self._receive(-1, 1.0, doing, expected=-1)
        if turn.told is Told.TIMED_OUT:
            raise Failed(Outcome.TIMED_OUT, self._too_slow(turn.wall / 1e9, limit, turn_seconds, len(turn.answers)))
        if turn.told is Told.NO_ROOM:
            raise Failed(Outcome.REFUSED, f"the answers of {lot.calls} calls take more than {room // MIB} MB")
        if turn.told is Told.TOO_LONG:
            raise Failed(Outcome.WRONG, f"an answer claims more than the {self.outputs.size // MIB} MB allowed")
        if turn.told is Told.UNREADABLE_ANSWER:
            raise Failed(Outcome.WRONG, "an array of the answer does not lie in memory of its own")
        if turn.told is Told.CHANGED:
            raise Failed(Outcome.WRONG, "an array that it had returned, and that its caller had kept, was changed")
        if turn.told is not Told.FINISHED:
            raise HarnessError(f"the feeder could not follow the worker ({turn.told.name.lower()})")
        # Fresh pages of zeros that nobody wrote would otherwise be ours to pay for.
        faults = turn.faults * FAULT_NS
        wall, self._loading = turn.wall + self._loading + faults, 0
        sample = Sample(lot.calls, wall, turn.cpu - self._cpu_mark + faults, max(min(turn.delay, turn.wall - 1), 0))
        spent = tuple(np.diff([self._cpu_mark, *turn.clocks]).tolist())
        self._cpu_mark = turn.cpu
        if self.program.serves_processes:
            used = _of_processes(lot, turn.answers)
            sample, spent = _together(lot, used), tuple(cpu for cpu, _, _ in used)
        return Heard(sample, turn.answers, turn.resident, turn.converting, turn.calling + faults, spent)

    def _asked(self, seconds: float, turn_seconds: float) -> Asked:
        threads = self.program.confinement.threads > 1
        return Asked(
            input=self.inputs.address,
            output=self.outputs.address,
            input_bytes=self.inputs.size,
            output_bytes=self.outputs.size,
            pid=self.pid,
            handle=self.handle,
            socket=self.channel.fileno(),
            by_message=self.program.by_message,
            # With threads it is stopped between questions instead, and may need all of its cores in between. Elsewhere
            # than on x86 Python's stores may be seen out of order; a message comes after them.
            replies=not threads or self.one_core or (self.program.by_message and platform.machine() != "x86_64"),
            threads=threads,
            kept=self.kept,
            limit=int(seconds * 1e9),
            turn_limit=int(turn_seconds * 1e9),
            core=-1 if threads else self.core,
        )

    def _too_slow(self, taken: float, limit: float, turn_limit: float, answered: int) -> str:
        # The first call's own limit ends before the turn's, however long it took to stop the worker after that.
        if taken >= turn_limit and (answered or turn_limit < limit):
            return (
                f"{answered} calls took longer than the {turn_limit:.3g} s that the reference's speed allows for them"
            )
        return f"a call took longer than the limit of {limit:g} s"

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

    def _receive(self, nonce: int, seconds: float, doing: str, *, expected: int) -> tuple[Any, ...]:
        """The reply expected."""
        self.channel.settimeout(max(seconds, 0.001))
        try:
            data = last_word(self.channel, _REPLY.size)
        except TimeoutError:
            raise Failed(Outcome.TIMED_OUT, f"{doing} took longer than the limit of {seconds:g} s") from None
        if not data:
            raise self._death(doing)
        if len(data) != _REPLY.size:
            raise Failed(Outcome.CHEATING, "the worker's channel carried a message that is not the worker's")
        reply = got, status, detail, _, _ = _REPLY.unpack(data)
        text = _text(reply)
        if status == expected and got == nonce:
            return reply
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
        """Stop it, and wait until it has stopped: before that it may still compute."""
        self._signal(signal.SIGSTOP)
        patience = time.monotonic() + STOP_SECONDS
        # All of its threads: one in a system call that no signal ends goes on after the others have stopped.
        while any(state not in "TtZX?" for state in _states(self.pid)):
            if time.monotonic() > patience:
                self._signal(signal.SIGKILL)
            time.sleep(0.0001)


def _text(reply: tuple[Any, ...]) -> str:
    raw: bytes = reply[-1]
    return raw.split(b"\0")[0].decode("utf-8", "replace")


def _states(pid: int) -> list[str]:
    """The state of each of a process's threads."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []
    return [_state(thread) for thread in threads]


def _state(process: Path) -> str:
    try:
        # The name before it, which a process gives itself, may hold any bytes and brackets.
        return (process / "stat").read_bytes().rpartition(b")")[2].split()[0].decode("ascii", "replace")
    except (OSError, IndexError):
        return "?"


def _of_processes(lot: Lot, answers: Sequence[memoryview]) -> list[tuple[int, int, int]]:
    """What the processes of a command took, call by call, which only their server can know: the candidate cannot
    change it."""
    found = []
    for question, answer in zip(lot.questions, answers, strict=True):
        assert question.usage is not None
        found.append(question.usage(answer))
    return found


def _together(lot: Lot, used: Sequence[tuple[int, int, int]]) -> Sample:
    cpu, wall, delay = (sum(column) for column in zip(*used, strict=True)) if used else (0, 0, 0)
    return Sample(lot.calls, wall, cpu, max(min(delay, wall - 1), 0))
