"""The jail: the command that runs a program with no network, a read-only system, private temp and hard limits.

Two jails and the lack of one. `bubblewrap` builds the namespaces with bwrap; `fallback` lets our own launcher build
them, where bwrap is not installed. In both the launcher is the inner half: limits, dropped privileges, seccomp.
Started by root, the candidate runs as a uid of its own that owns nothing; started by an ordinary user it runs as
that user in a user namespace. `none` keeps the limits and the system-call filter and nothing else.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from outpace.errors import JailError

JailKind = Literal["bubblewrap", "fallback", "none"]
# Not a uid that Debian, Fedora or systemd hands out.
JAIL_UID = 61001
MIB = 1 << 20
# What compilers ask for.
LARGE_STACK = 64 * MIB
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_SYSTEM_FILES = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")


@dataclass(frozen=True)
class Bind:
    """A path of this machine that is visible in the jail."""

    source: Path
    target: str
    writable: bool = False

    def seen_as(self, kind: JailKind) -> str:
        """The path under which a program in this kind of jail finds it."""
        return str(self.source) if kind == "none" else self.target


def _usual_stack() -> int:
    """What the programs of this user get: code that needs more crashes wherever else it is called."""
    usual = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return LARGE_STACK if usual == resource.RLIM_INFINITY else min(usual, LARGE_STACK)


@dataclass(frozen=True)
class Confinement:
    """Everything the jail lets through, and how much of it."""

    binds: tuple[Bind, ...] = ()
    # Folders of the system that are covered by an empty one, such as other people's site-packages.
    hidden: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    memory: int = 2048 * MIB
    disk: int = 256 * MIB
    file_size: int = 256 * MIB
    cpu_seconds: int = 600
    processes: int = 1
    threads: int = 1
    fork: bool = False
    # Two jails of one user would share what the kernel counts for each: processes, pipes, signals.
    uid: int = JAIL_UID
    stack: int = field(default_factory=_usual_stack)
    # Whether /proc can be read; only for code that is trusted, for it tells of this machine.
    show_processes: bool = False

    @property
    def parallel(self) -> bool:
        """Whether what runs inside may use several cores."""
        return self.threads > 1 or self.processes > 1


@functools.cache
def launcher_path() -> Path:
    """Where the installed launcher is; an editable install keeps it beside site-packages, not beside the sources."""
    for folder in (Path(__file__).parents[1], Path(sysconfig.get_path("platlib")) / "outpace"):
        if (folder / "bin" / "outpace-launch").exists():
            return folder / "bin" / "outpace-launch"
    raise JailError("the launcher outpace-launch is not installed; run `pip install .` (it needs g++ and make)")


@functools.cache
def probe() -> Mapping[str, object]:
    """What this kernel allows this user, as the launcher found by trying."""
    done = subprocess.run([launcher_path(), "probe"], capture_output=True, text=True, check=False, timeout=30)
    if done.returncode != 0:
        raise JailError(f"the launcher's probe failed: {done.stderr.strip()}")
    found: Mapping[str, object] = json.loads(done.stdout)
    return found


@functools.cache
def bubblewrap_works() -> str:
    """ "" when bwrap can start a program here, else why not."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    try:
        command = [*_bubblewrap_outer(Confinement()), "--", "/usr/bin/true"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=30, env={"PATH": os.defpath}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not start: {error}"
    return "" if done.returncode == 0 else f"bwrap fails: {done.stderr.strip() or done.returncode}"


def fallback_works() -> str:
    """ "" when the launcher can build the namespaces itself, else why not."""
    found = probe()
    if not found["seccomp"]:
        return "the kernel has no seccomp filters"
    if not found["namespaces_as_root" if os.getuid() == 0 else "user_namespaces"]:
        return "this user may not create namespaces"
    return ""


def best_jail() -> JailKind:
    """The strongest jail that works here; raises when there is none."""
    why = bubblewrap_works()
    if not why:
        return "bubblewrap"
    if not fallback_works():
        return "fallback"
    raise JailError(
        f"no jail works here ({why}; {fallback_works()}). Run `outpace doctor` for the command that fixes it, "
        "or add --no-jail if you trust every candidate with this machine"
    )


@dataclass(frozen=True)
class JailCommand:
    """A command ready to start; close it once it has."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    spec: IO[bytes] | None

    @property
    def fds(self) -> tuple[int, ...]:
        return () if self.spec is None else (self.spec.fileno(),)

    def close(self) -> None:
        """Give back what was only needed to start."""
        if self.spec is not None:
            self.spec.close()


def jail_command(kind: JailKind, confinement: Confinement, inner: list[str]) -> JailCommand:
    """How to start the launcher with the arguments `inner` (a mode and its operands) under this confinement."""
    limits = _launcher_limits(kind, confinement)
    if kind == "bubblewrap":
        launcher = "/outpace/launch"
        outer = [*_bubblewrap_outer(confinement), "--", launcher]
        return JailCommand((*outer, *limits, *inner), {"PATH": os.defpath}, None)
    if kind == "fallback":
        spec = tempfile.TemporaryFile(prefix="outpace-jail-")  # noqa: SIM115 - lives until the jail has started
        spec.write("".join("\t".join(line) + "\n" for line in _fallback_spec(confinement)).encode())
        spec.seek(0)
        argv = (str(launcher_path()), "--namespaces", str(spec.fileno()), *limits, *inner)
        return JailCommand(argv, dict(_environment(confinement)), spec)
    return JailCommand((str(launcher_path()), *limits, *inner), dict(_environment(confinement)), None)


def _launcher_limits(kind: JailKind, confinement: Confinement) -> list[str]:
    # The address space also holds libraries, guard pages and the shared regions; the memory cap proper is the
    # control group's where there is one.
    grouped = kind != "none" and _has_cgroup()
    address_space = 2 * confinement.memory + 4096 * MIB if grouped else confinement.memory + 1536 * MIB
    # The kernel counts a uid's processes over the whole machine, so the limit serves only where a uid is the jail's own
    # and no control group counts better.
    processes = 0 if grouped or os.getuid() != 0 else confinement.processes + confinement.threads + 8
    limits = {
        "--cpu-seconds": confinement.cpu_seconds,
        "--address-space": address_space,
        "--file-size": confinement.file_size,
        "--open-files": 1024,
        "--stack": confinement.stack,
        "--threads": confinement.threads,
        "--processes": processes,
        "--chdir": confinement.folder,
    }
    arguments = [part for name, value in limits.items() for part in (name, str(value))]
    # Without a jail the candidate's uid could not reach the folder it was built in.
    if os.getuid() == 0 and kind != "none":
        arguments += ["--uid", str(confinement.uid), "--gid", str(confinement.uid)]
    if confinement.fork:
        arguments.append("--allow-fork")
    if confinement.show_processes:
        arguments.append("--show-processes")
    return arguments


@functools.cache
def _has_cgroup() -> bool:
    from outpace.judge.cgroup import Cgroup

    group = Cgroup.create(memory=64 * MIB, processes=8)
    if group is not None:
        group.remove()
    return group is not None


def _environment(confinement: Confinement) -> Mapping[str, str]:
    threads = str(confinement.threads)
    base = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
    }
    return base | dict(confinement.environment)


def _system_layout() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The system's folders that exist here: (bound ones, symbolic links such as /bin -> usr/bin)."""
    bound, links = [], []
    for name in (*_SYSTEM, *_SYSTEM_FILES):
        path = Path(name)
        if path.is_symlink() and name in _SYSTEM:
            links.append((str(path.readlink()), name))
        elif path.exists():
            bound.append((name, name))
    return bound, links


def _bubblewrap_outer(confinement: Confinement) -> list[str]:
    arguments = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += ["--die-with-parent", "--new-session", "--clearenv", "--hostname", "jail", "--cap-drop", "ALL"]
    if os.getuid() == 0:
        # Real root builds the mounts, so that the candidate's uid need not be able to reach them on this machine;
        # the launcher then gives up these last capabilities together with the uid.
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            arguments += ["--cap-add", capability]
    else:
        arguments += ["--unshare-user", "--disable-userns"]
    for name, value in _environment(confinement).items():
        arguments += ["--setenv", name, value]
    bound, links = _system_layout()
    for parent in _parents(
        ["/outpace/launch", "/dev/null", *(target for _, target in bound), *(bind.target for bind in confinement.binds)]
    ):
        # bwrap makes missing parents for root's eyes only; the candidate's uid must be able to pass through them.
        arguments += ["--perms", "0755", "--dir", parent]
    for source, target in bound:
        arguments += ["--ro-bind", source, target]
    for source, target in links:
        arguments += ["--symlink", source, target]
    for name in confinement.hidden:
        arguments += ["--size", "4096", "--tmpfs", name, "--remount-ro", name]
    arguments += ["--proc", "/proc", "--remount-ro", "/proc"]
    # Of the devices no more than these: pseudo-terminals are everybody's, and their inodes keep what is noted on them.
    for name in _DEVICES:
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        arguments += ["--symlink", f"/proc/self/fd{target}", f"/dev/{name}"]
    arguments += ["--perms", "1777", "--size", str(confinement.disk), "--tmpfs", "/tmp"]
    arguments += ["--ro-bind", str(launcher_path()), "/outpace/launch"]
    for bind in confinement.binds:
        arguments += ["--bind" if bind.writable else "--ro-bind", str(bind.source), bind.target]
    return [*arguments, "--remount-ro", "/", "--chdir", "/"]


def _parents(targets: list[str]) -> list[str]:
    """The folders above these, outermost first, without those that the system or the private temp bring."""
    parents = dict.fromkeys(parent for target in targets for parent in reversed(Path(target).parents))
    given = [Path(top) for top in (*_SYSTEM, "/tmp")]
    return [
        str(parent)
        for parent in parents
        if parent != Path("/") and not any(parent.is_relative_to(top) for top in given)
    ]


def _fallback_spec(confinement: Confinement) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = [("userns", "0" if os.getuid() == 0 else "1")]
    bound, links = _system_layout()
    lines += [("ro", source, target) for source, target in bound]
    lines += [("symlink", source, target) for source, target in links]
    lines += [("tmpfs", name, "4096") for name in confinement.hidden]
    lines += [("proc",), ("dev",), ("tmpfs", "/tmp", str(confinement.disk))]
    lines += [("rw" if bind.writable else "ro", str(bind.source), bind.target) for bind in confinement.binds]
    return lines
