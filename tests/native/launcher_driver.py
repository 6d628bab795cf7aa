"""The judge's end of the launcher, small enough to drive it by hand: jails, programs, workers and records."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import functools
import json
import mmap
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outpace.judge.feeder import address
from outpace.judge.jail import launcher_path

NOBODY = 61001
REGION = 1 << 20
# The desk in native/launcher/message.hpp: the question at 0, then these; answers begin behind its page.
ANSWERED_AT, BYTES_AT, DESK_BYTES = 64, 72, 4096
ANSWERS = REGION - DESK_BYTES  # bytes of room for them
IS_SETUP, WANTS_REPLY = 1, 2
DONE, HELLO, READY, LOAD_FAILED, FORBIDDEN, FAULT, CALL_FAILED = range(7)
IMMEDIATE, INPUT, OUTPUT, RESULT = range(4)
STDIN, FILE, ARGUMENT, STDOUT, OUTPUT_FILE, EXIT, USAGE = range(1, 8)
TOO_LONG, MISSING = 2**64 - 1, 2**64 - 2
PATIENCE = 20  # seconds until a hung worker fails the test instead of the suite


# Room: a folder that an unprivileged user can reach, with what the tests compile.


@functools.cache
def room() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="launcher-test-"))
    atexit.register(shutil.rmtree, folder)
    folder.chmod(0o755)
    shutil.copy(os.environ.get("OUTPACE_LAUNCHER") or launcher_path(), folder / "launch")
    (folder / "launch").chmod(0o755)
    return folder


@functools.cache
def scratch() -> Path:
    """Where workers without a jail make their folders."""
    folder = room() / "scratch"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@functools.cache
def compiled(source: str, *flags: str) -> Path:
    path = room() / f"made{abs(hash((source, flags)))}"
    compiler, language = ("c++", "c++") if 'extern "C"' in source else ("cc", "c")
    command = [compiler, "-x", language, "-O1", "-pthread", *flags, "-", "-o", path]
    subprocess.run(command, input=source, text=True, check=True)
    return path


def library(source: str) -> Path:
    headers = ("errno", "stdint", "sys/syscall", "unistd")
    head = "#define _GNU_SOURCE\n" + "".join(f"#include <{name}.h>\n" for name in headers)
    return compiled(head + source, "-shared", "-fPIC")


@functools.cache
def number_of(name: str) -> int:
    """The system call's number on this machine."""
    text = f"#include <sys/syscall.h>\nnumber __NR_{name}\n"
    done = subprocess.run(["cc", "-E", "-P", "-"], input=text, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


# A library whose call makes the system call it is told to, with the value or -errno as its result.
RAW = """void outpace_call(const uint64_t* s, uint64_t* r) {
    long value = syscall(s[0], s[1], s[2], s[3], s[4], s[5], s[6]);
    *r = value < 0 ? -errno : value;
}"""
RAW_PROGRAM = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char** words) {  /* groups of seven numbers; prints each call's value or -errno */
    for (int at = 1; at + 6 < count; at += 7) {
        long n[7];
        for (int i = 0; i < 7; i++) n[i] = strtol(words[at + i], 0, 0);
        long value = syscall(n[0], n[1], n[2], n[3], n[4], n[5], n[6]);
        printf("%ld\\n", value < 0 ? -errno : value);
        fflush(stdout);
    }
}
"""


# Jails: how a worker is started.


@dataclass(frozen=True)
class Jail:
    outer: tuple[str, ...] = ()
    launcher: str = ""
    options: tuple[str, ...] = ()
    spec: str | None = None
    start: dict[str, Any] = field(default_factory=dict)
    made: str = ""  # where room() is seen inside

    def path(self, outside: Path) -> str:
        return f"{self.made}/{outside.name}" if self.made else str(outside)


PLAIN = Jail()
AS_NOBODY = ("--uid", str(NOBODY), "--gid", str(NOBODY))


def unprivileged() -> dict[str, Any]:
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def system() -> list[tuple[str, str]]:
    names = [Path(name) for name in ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives")]
    return [(str(path.readlink()) if path.is_symlink() else "", str(path)) for path in names if path.exists()]


def namespaces(kind: str, *more: str) -> Jail:
    """The fallback jail, started by root or by an ordinary user."""
    lines = [f"symlink\t{target}\t{path}" if target else f"ro\t{path}\t{path}" for target, path in system()]
    lines += [f"ro\t{room()}\t/made", "proc", "dev", "tmpfs\t/tmp\t1048576", *more]
    if kind == "root":
        if os.geteuid() != 0:
            pytest.skip("needs root")
        return Jail((), "", AS_NOBODY, "\n".join(["userns\t0", *lines]), {}, "/made")
    if not probe(**unprivileged())["user_namespaces"]:
        pytest.skip("ordinary users may not make namespaces here")
    return Jail((), "", (), "\n".join(["userns\t1", *lines]), unprivileged(), "/made")


def bubblewrap(kind: str) -> Jail:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    outer = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent"]
    outer += ["--new-session", "--clearenv", "--cap-drop", "ALL"]
    if kind != "root":
        if not probe(**unprivileged())["user_namespaces"]:
            pytest.skip("ordinary users may not make namespaces here")
        outer += ["--unshare-user"]
    elif os.geteuid() != 0:
        pytest.skip("needs root")
    else:
        outer += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    for target, path in system():
        outer += ["--symlink", target, path] if target else ["--ro-bind", path, path]
    outer += ["--ro-bind", str(room()), "/made", "--proc", "/proc", "--dev", "/dev"]
    outer += ["--perms", "1777", "--tmpfs", "/tmp", "--"]
    if kind == "root":
        return Jail(tuple(outer), "/made/launch", AS_NOBODY, None, {}, "/made")
    return Jail(tuple(outer), "/made/launch", (), None, unprivileged(), "/made")


@functools.cache
def _probe(start: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    done = subprocess.run([room() / "launch", "probe"], capture_output=True, check=True, **dict(start))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def probe(**start: Any) -> dict[str, Any]:
    start.pop("extra_groups", None)
    return _probe(tuple(start.items()))


@contextlib.contextmanager
def started(
    jail: Jail, arguments: Sequence[str], fds: Sequence[int] = (), **streams: Any
) -> Iterator[subprocess.Popen[bytes]]:
    command = [*jail.outer, jail.launcher or str(room() / "launch")]
    kept = list(fds)
    if jail.spec is not None:
        kept.append(os.memfd_create("spec"))
        os.write(kept[-1], jail.spec.encode())
        command += ["--namespaces", str(kept[-1])]
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    options |= {"env": {"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp" if jail.made else str(scratch())}}
    options |= jail.start | streams
    process = subprocess.Popen([*command, *jail.options, *arguments], pass_fds=kept, **options)
    if jail.spec is not None:
        os.close(kept[-1])
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def execute(
    jail: Jail, program: Sequence[str], options: Sequence[str] = (), fds: Sequence[int] = ()
) -> tuple[int, str, str]:
    """Runs a program to its end; what it exits with, and what it prints."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(jail, [*options, "exec", "--", *program], fds, **pipes) as process:
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out.decode(), err.decode()


def shell(jail: Jail, script: str, *options: str) -> tuple[int, str, str]:
    return execute(jail, ["/bin/sh", "-c", script], ["--allow-fork", *options])


def raw_calls(jail: Jail, calls: Sequence[Sequence[int]], *options: str) -> list[int]:
    words = [str(word) for call in calls for word in (*call, *[0] * (7 - len(call)))]
    _, out, _ = execute(jail, [jail.path(compiled(RAW_PROGRAM)), *words], options)
    return [int(line) for line in out.split()]


# Workers: the judge's end of the conversation.


@dataclass(frozen=True)
class Reply:
    nonce: int
    status: int
    detail: int
    value: int
    text: str
    pid: int


class Worker:
    def __init__(
        self,
        process: subprocess.Popen[bytes],
        channel: socket.socket,
        inputs: mmap.mmap,
        outputs: mmap.mmap,
        by_message: bool,
    ) -> None:
        self.process, self.channel, self.inputs, self.outputs = process, channel, inputs, outputs
        self.by_message = by_message
        self.nonce = 100
        self.desk = address(np.frombuffer(outputs, np.uint8))

    def hear(self) -> Reply | None:
        data, extra, _, _ = self.channel.recvmsg(256, socket.CMSG_SPACE(12))
        if not data:
            return None
        nonce, status, detail, value, text = struct.unpack("<QIIQ232s", data)
        pid = struct.unpack("3i", extra[0][2])[0]
        return Reply(nonce, status, detail, value, text.rstrip(b"\0").decode(), pid)

    def greet(self) -> Reply:
        hello, ready = self.hear(), self.hear()
        assert hello and ready and (hello.status, ready.status) == (HELLO, READY), (hello, ready)
        return hello

    def lay(self, records: bytes, count: int = 1, size: int | None = None, flags: int = WANTS_REPLY) -> None:
        """Lays a question on the desk, its nonce last, and wakes the worker."""
        self.nonce += 1
        self.inputs[: len(records)] = records
        self.outputs[4:24] = struct.pack("<IQII", count, len(records) if size is None else size, flags, 0)
        # One store: a worker that looks meanwhile must not see half a nonce.
        ctypes.c_uint32.from_address(self.desk).value = self.nonce
        self.wake()

    def wake(self) -> None:
        if self.by_message:
            self.channel.send(b"?")
        else:
            ctypes.CDLL(None).syscall(number_of("futex"), ctypes.c_void_p(self.desk), 1, 1, None, None, 0)

    def ask(self, records: bytes, count: int = 1, size: int | None = None, flags: int = WANTS_REPLY) -> Reply:
        self.lay(records, count, size, flags)
        reply = self.hear()
        assert reply is not None and reply.nonce == self.nonce, (reply, self.process.wait())
        assert (reply.status == DONE) == (self.answered() == self.nonce)
        return reply

    def call(self, *slots: tuple[int, int]) -> int:
        """One call whose result goes to the start of the answers."""
        assert self.ask(record(*slots, (RESULT, 0))).status == DONE
        return int.from_bytes(self.answers(0, 8), "little", signed=True)

    def answered(self) -> int:
        """The nonce of the last question that was answered."""
        return ctypes.c_uint32.from_address(self.desk + ANSWERED_AT).value

    def answers(self, begin: int, end: int) -> bytes:
        return self.outputs[DESK_BYTES + begin : DESK_BYTES + end]

    def ending(self) -> int:
        return self.process.wait(timeout=PATIENCE)


def state(pid: int) -> str:
    """The letter behind the name, which may itself hold spaces and brackets."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for_state(pid: int, letter: str) -> None:
    end = time.monotonic() + PATIENCE
    while state(pid) != letter:
        assert time.monotonic() < end, f"process {pid} is {state(pid)}, not {letter}"
        time.sleep(0.001)


def record(*slots: tuple[int, int]) -> bytes:
    rows = [struct.pack("<IIQ", kind, 0, value % 2**64) for kind, value in slots]
    return struct.pack("<IIQ", len(slots), 0, 16 + 16 * len(slots)) + b"".join(rows)


def immediates(*values: int) -> list[tuple[int, int]]:
    return [(IMMEDIATE, value) for value in (*values, *[0] * (7 - len(values)))]


@contextlib.contextmanager
def worker(
    jail: Jail, mode: Sequence[str], *options: str, inputs: bytes = b"", answers: bytes = b"", **streams: Any
) -> Iterator[Worker]:
    """A worker over two regions, which begin with `inputs` and `answers`; `{socket}` and the like are replaced."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    ours.settimeout(PATIENCE)
    fds = [os.memfd_create(name, os.MFD_ALLOW_SEALING) for name in ("input", "output")]
    maps = []
    for fd, seals in zip(fds, (0x17, 0x7), strict=True):  # SEAL, SHRINK, GROW; FUTURE_WRITE for the input
        os.ftruncate(fd, REGION)
        maps.append(mmap.mmap(fd, REGION))
        fcntl.fcntl(fd, 1033, seals)
    maps[0][: len(inputs)] = inputs
    maps[1][DESK_BYTES : DESK_BYTES + len(answers)] = answers
    kept = [theirs.fileno(), *fds]
    shared = ["--socket", str(kept[0]), "--input", str(kept[1]), "--output", str(kept[2])]
    shared += ["--input-bytes", str(REGION), "--output-bytes", str(REGION)]
    numbers = dict(zip(("socket", "input", "output"), kept, strict=True))
    words = [word.format(**numbers) if word.startswith("{") else word for word in mode]
    with ours, maps[0], maps[1], contextlib.ExitStack() as stack:
        process = stack.enter_context(started(jail, [*shared, *options, *words], kept, **streams))
        theirs.close()
        for fd in fds:
            os.close(fd)
        yield Worker(process, ours, maps[0], maps[1], by_message=mode[0] != "function")


@contextlib.contextmanager
def function(
    source: str, *options: str, jail: Jail = PLAIN, inputs: bytes = b"", answers: bytes = b""
) -> Iterator[Worker]:
    mode = ["function", jail.path(library(source))]
    with worker(jail, mode, *options, inputs=inputs, answers=answers) as it:
        yield it


@contextlib.contextmanager
def waiting_program(jail: Jail, *options: str) -> Iterator[int]:
    """The pid of a program that waits, to be looked at from outside: inside, nothing tells of processes."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with worker(jail, ["exec", "--", "/bin/cat"], *options, **pipes) as it:
        hello = it.hear()
        assert hello is not None and hello.status == HELLO
        assert it.process.stdin is not None and it.process.stdout is not None
        with it.process.stdin as stdin:
            stdin.write(b"up\n")
            stdin.flush()
            assert it.process.stdout.readline() == b"up\n"
            yield hello.pid


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line.split(":")[0]: line.split(":")[1].strip() for line in lines}


def needs_landlock() -> None:
    if not probe()["landlock"]:
        pytest.skip("the kernel has no Landlock")


# What tells of processes and of the world outside the jail.
HIDDEN = ("/proc/self/mountinfo", "/proc/1/cmdline", "/proc/self/maps", "/proc/self/root/proc/self/maps", "/proc")


def part(kind: int, content: bytes = b"", name: str = "", room: int = 0) -> dict[str, Any]:
    return {"kind": kind, "content": content, "name": name.encode(), "room": room}


def command_record(*parts: dict[str, Any], base: int = 0) -> bytes:
    """A call of a command, to stand at offset `base` of the input region."""
    rows, data = b"", b""
    start = base + 16 + 56 * len(parts)
    for each in parts:
        content_at = start + len(data)
        name_at = content_at + len(each["content"])
        data += each["content"] + each["name"]
        places = (content_at, len(each["content"]), 0, each["room"], name_at, len(each["name"]))
        rows += struct.pack("<IIQQQQQQ", each["kind"], 0o600, *places)
    data += bytes(-len(data) % 8)
    return struct.pack("<IIQ", len(parts), 0, 16 + len(rows) + len(data)) + rows + data
