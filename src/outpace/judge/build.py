"""Building: a candidate's sources become something that can be run, in the jail, because a compiler reads files too."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from outpace.errors import HarnessError
from outpace.judge.cgroup import Cgroup
from outpace.judge.jail import JAIL_UID, LARGE_STACK, MIB, Bind, Confinement, JailKind, jail_command
from outpace.judge.verdict import Outcome
from outpace.judge.worker import Failed

# What a compiler says is kept up to here; beyond it the build is flooding.
_OUTPUT_LIMIT = 1 * MIB
_REASON_LINES = 12
_WATCH_SECONDS = 0.1
_DEPTH_LIMIT, _ENTRY_LIMIT, _PATH_LIMIT = 64, 10_000, 1000


@dataclass(frozen=True)
class BuildPlan:
    """The files to lay out, the commands to run in their folder, and the product that must be there afterwards."""

    files: Mapping[str, bytes]
    commands: tuple[tuple[str, ...], ...]
    product: str
    seconds: float
    memory: int
    disk: int
    binds: tuple[Bind, ...] = ()
    # For the user's own code alone: the address sanitizer looks at its own memory map.
    show_processes: bool = False


def build(kind: JailKind, plan: BuildPlan, folder: Path) -> None:
    """Lay out the files in `folder` and run the commands there; raises Failed with the compiler's first errors."""
    lay_out(plan.files, folder)
    if kind != "none":
        _give(folder, JAIL_UID)
    for command in plan.commands:
        _run(kind, plan, folder, command)
    product = folder / plan.product
    if plan.product and (product.is_symlink() or not product.is_file()):
        raise Failed(Outcome.BUILD_FAILED, f"the build made no file {plan.product}")
    seal(folder)


def lay_out(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def seal(folder: Path) -> None:
    """Make a built folder readable by anyone and owned by us again, so that no later candidate can change it."""
    _give(folder, 0)
    folder.chmod(0o755)
    # By descriptors, whatever names come to mean meanwhile: nothing that is changed here was reached through a link.
    for _, folders, files, place in os.fwalk(folder):
        for name in (*folders, *files):
            here = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=place)
            try:
                mode = os.fstat(here).st_mode
                if stat.S_ISLNK(mode):
                    # A link could point a later, more privileged reader anywhere.
                    os.unlink(name, dir_fd=place)
                else:
                    Path(f"/proc/self/fd/{here}").chmod(0o755 if stat.S_ISDIR(mode) or mode & 0o111 else 0o644)
            finally:
                os.close(here)


def _give(folder: Path, uid: int) -> None:
    if os.getuid() == 0:
        os.chown(folder, uid, uid, follow_symlinks=False)
        for _, folders, files, place in os.fwalk(folder):
            for name in (*folders, *files):
                os.chown(name, uid, uid, dir_fd=place, follow_symlinks=False)


def _run(kind: JailKind, plan: BuildPlan, folder: Path, command: tuple[str, ...]) -> None:
    source = Bind(folder, "/build", writable=True)
    confinement = Confinement(
        binds=(source, *plan.binds),
        folder=source.seen_as(kind),
        memory=plan.memory,
        disk=plan.disk,
        file_size=plan.disk,
        cpu_seconds=int(plan.seconds * 2) + 2,
        processes=64,
        threads=64,
        fork=True,
        stack=LARGE_STACK,
        show_processes=plan.show_processes,
    )
    # The launcher greets us once the walls stand: whatever ends after that was ended by the build, whatever it claims.
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # The launcher starts absolute paths alone; env looks names up in the jail's PATH, not in ours.
    inner = ["--socket", str(theirs.fileno()), "exec", "--", "/usr/bin/env", *command]
    jailed = jail_command(kind, confinement, inner)
    group = Cgroup.create(memory=plan.memory, processes=256) if kind != "none" else None
    argv = group.entrance(list(jailed.argv)) if group else list(jailed.argv)
    try:
        process = subprocess.Popen(
            argv,
            env=dict(jailed.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(theirs.fileno(), *jailed.fds),
            start_new_session=True,
        )
        theirs.close()
        output, limit = _communicate(process, plan, folder)
        # The jail may say that it has ended before the last of its processes has.
        if group is not None and not group.empty():
            raise HarnessError(f"processes of {command[0]} in the jail cannot be killed: run `outpace doctor`")
        # A build may have locked its own folder, which we still have to enter.
        folder.chmod(0o755)
        if limit:
            raise Failed(Outcome.REFUSED, limit)
        if group is not None and group.out_of_memory():
            raise Failed(Outcome.REFUSED, f"the build used more than the {plan.memory // MIB} MB of memory allowed")
        if process.returncode != 0 and not _greeted(ours):
            raise HarnessError(f"the jail failed to start {command[0]}: {output.strip()[:300]}")
        if len(output) > _OUTPUT_LIMIT:
            raise Failed(Outcome.REFUSED, f"the build printed more than {_OUTPUT_LIMIT >> 20} MB")
        if process.returncode != 0:
            raise Failed(
                Outcome.BUILD_FAILED,
                first_errors(output) or f"{command[0]} ended with status {process.returncode}",
            )
    except OSError as error:
        raise HarnessError(f"the jail could not be started: {error}") from error
    finally:
        ours.close()
        theirs.close()
        jailed.close()
        if group is not None:
            group.remove()


def _greeted(channel: socket.socket) -> bool:
    channel.setblocking(False)
    try:
        return bool(channel.recv(256))
    except OSError:
        return False


def _communicate(process: subprocess.Popen[bytes], plan: BuildPlan, folder: Path) -> tuple[str, str]:
    """What the process prints, up to the limit, and the limit it had to be killed for."""
    reasons: list[str] = []
    ended = threading.Event()

    def watch() -> None:
        deadline = time.monotonic() + plan.seconds
        while not reasons and not ended.wait(_WATCH_SECONDS):
            if time.monotonic() > deadline:
                reasons.append(f"the build took longer than the limit of {plan.seconds:g} s")
            else:
                reasons.extend(filter(None, [excess(folder, plan.disk)]))
        if reasons:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        assert process.stdout is not None
        output = process.stdout.read(_OUTPUT_LIMIT + 1)
        if len(output) > _OUTPUT_LIMIT:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        ended.set()
        watcher.join()
    return output.decode("utf-8", "replace"), "".join(reasons[:1]) or excess(folder, plan.disk)


def excess(folder: Path, disk: int) -> str:
    """Why a built folder is too big: its bytes, its files, or how deep and how long its paths are.

    The latter could tie up whoever walks it, or be too long for the system to take.
    """
    total = entries = 0
    waiting = [(str(folder), 0)]
    while waiting:
        place, depth = waiting.pop()
        if depth > _DEPTH_LIMIT:
            return f"the build made folders more than {_DEPTH_LIMIT} levels deep"
        with contextlib.suppress(OSError), os.scandir(place) as found:  # it may vanish while we look
            for entry in found:
                entries += 1
                if len(os.fsencode(entry.path)) > len(os.fsencode(folder)) + _PATH_LIMIT:
                    return f"the build made paths longer than {_PATH_LIMIT} bytes"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
                if entries > _ENTRY_LIMIT:
                    return f"the build made more than {_ENTRY_LIMIT} files"
                if total > disk:
                    return f"the build wrote more than the {disk // MIB} MB allowed"
    return ""


def remove(folder: Path) -> None:
    """Remove a folder that a candidate built, however deep; Python's own removal gives up on a thousand levels."""
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        if folder.exists():  # a build may have locked folders of its own
            subprocess.run([*command, "--", str(folder)], check=False, stderr=subprocess.DEVNULL)


def first_errors(output: str) -> str:
    """The compiler's first errors, which are those worth mending; the rest often follows from them."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    marked = [at for at, line in enumerate(lines) if "error" in line.lower() or "undefined reference" in line]
    start = marked[0] if marked else max(len(lines) - _REASON_LINES, 0)
    return "\n".join(line[:300] for line in lines[start : start + _REASON_LINES])
