"""The doctor: what this machine can and cannot vouch for, and the command that mends it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from outpace import machine
from outpace.errors import JailError
from outpace.judge import jail
from outpace.judge.cgroup import Cgroup

State = Literal["good", "weak", "missing"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `fix` is a command or a setting, empty where there is nothing to do."""

    subject: str
    state: State
    detail: str
    fix: str = ""


def examine() -> list[Finding]:
    """Everything worth knowing before trusting a figure from this machine."""
    return [*_jail(), _cgroup(), _identity(), *_compilers(), *_clock()]


def _jail() -> list[Finding]:
    try:
        bubblewrap, fallback = jail.bubblewrap_works(), jail.fallback_works()
    except JailError as error:
        return [Finding("jail", "missing", str(error), "in the folder of its source: pip install --force-reinstall .")]
    install = "apt-get install bubblewrap (or your system's package manager)"
    allow = (
        "sysctl -w kernel.unprivileged_userns_clone=1 (Debian) or "
        "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), or run as root"
    )
    if not bubblewrap:
        return [Finding("jail", "good", "bubblewrap: own namespaces, no network, read-only system, system-call filter")]
    if not fallback:
        return [
            Finding(
                "jail",
                "weak",
                f"the launcher's own namespaces serve, because {bubblewrap}; same walls, less examined code",
                install,
            )
        ]
    return [
        Finding(
            "jail",
            "missing",
            f"{bubblewrap}; {fallback}: `outpace run` refuses unless told --no-jail",
            f"{install}; {allow}",
        )
    ]


def _cgroup() -> Finding:
    group = Cgroup.create(memory=64 << 20, processes=8)
    if group is None:
        detail = "no control groups: memory is capped per process (RLIMIT_AS), not for the whole tree"
        return Finding(
            "memory cap",
            "weak",
            detail,
            "run as root, or in a delegated cgroup (systemd-run --user --scope -p Delegate=yes)",
        )
    group.remove()
    return Finding("memory cap", "good", f"control groups v{group.version} cap memory and processes of the whole tree")


def _identity() -> Finding:
    if os.getuid() == 0:
        return Finding("identity", "good", f"candidates run as uid {jail.JAIL_UID}, which owns nothing")
    return Finding(
        "identity",
        "good",
        "candidates run as your own uid inside a user namespace, which sees only what is bound",
    )


def _compilers() -> list[Finding]:
    found = []
    for name, language, package in (("cc", "C", "gcc"), ("c++", "C++", "g++")):
        path = shutil.which(name)
        if path is None:
            found.append(
                Finding(
                    f"{language} compiler",
                    "missing",
                    f"no {name}: {language} tasks cannot be built",
                    f"apt-get install {package}",
                )
            )
        else:
            found.append(Finding(f"{language} compiler", "good", path))
    return found


def _clock() -> list[Finding]:
    facts, now = machine.describe(), machine.load()
    found = []
    if Path("/proc/self/schedstat").exists():
        found.append(Finding("clocks", "good", "CPU clock and run delay of every worker can be read"))
    else:
        found.append(
            Finding(
                "clocks",
                "weak",
                "the kernel has no schedstat: waiting for a core counts as the candidate's time",
                "sysctl -w kernel.sched_schedstats=1",
            )
        )
    if facts.cores < 2:
        found.append(
            Finding(
                "cores",
                "weak",
                "one core: other work on this machine shares it with every timing",
                "give the machine a second core",
            )
        )
    else:
        found.append(Finding("cores", "good", f"{facts.cores} cores, timing on core {max(os.sched_getaffinity(0))}"))
    busy = now.load_average > facts.cores
    found.append(
        Finding(
            "load",
            "weak" if busy else "good",
            f"load average {now.load_average:.1f} on {facts.cores} cores",
            "stop other work while a run times" if busy else "",
        )
    )
    if facts.governor in ("powersave", "ondemand", "conservative", "schedutil"):
        found.append(
            Finding(
                "governor",
                "weak",
                f"'{facts.governor}' changes the clock rate during timings",
                "cpupower frequency-set -g performance",
            )
        )
    return found
