"""The machine: facts that a figure depends on, without names that would tell whose machine it is."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """What does not change between two trials."""

    cpu: str
    architecture: str
    cores: int
    flags: tuple[str, ...]
    governor: str
    kernel: str
    compiler: str
    python: str
    memory_mb: int

    @property
    def key(self) -> str:
        """Verdicts are comparable between machines with equal keys."""
        facts = {name: value for name, value in asdict(self).items() if name not in ("memory_mb",)}
        return hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Load:
    """What disturbs the machine at this moment."""

    load_average: float
    steal_ticks: int


# The instruction sets that decide how far code can be vectorised; the full list is a page long.
_TELLING_FLAGS = (
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "bmi2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "asimd",
    "sve",
)


def describe() -> Machine:
    """The facts of the machine this runs on."""
    info = _read("/proc/cpuinfo")
    flags = _field(info, "flags") or _field(info, "Features")
    memory = next(
        (int(line.split()[1]) // 1024 for line in _read("/proc/meminfo").splitlines() if line.startswith("MemTotal")),
        0,
    )
    return Machine(
        cpu=_field(info, "model name") or platform.processor() or platform.machine(),
        architecture=platform.machine(),
        # Of the machine, not of this thread, which a judge keeps off the timing cores.
        cores=os.cpu_count() or 1,
        flags=tuple(flag for flag in _TELLING_FLAGS if flag in flags.split()),
        governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or "unknown",
        kernel=".".join(platform.release().split(".")[:2]),
        compiler=_compiler(),
        python=platform.python_version(),
        memory_mb=memory,
    )


def load() -> Load:
    """How busy the machine is now, and how much the hypervisor has taken from it so far."""
    first = _read("/proc/stat").splitlines()[:1]
    fields = first[0].split() if first else []
    return Load(os.getloadavg()[0], int(fields[8]) if len(fields) > 8 else 0)


def _compiler() -> str:
    if shutil.which("cc") is None:
        return "none"
    done = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def _field(info: str, name: str) -> str:
    return next(
        (line.split(":", 1)[1].strip() for line in info.splitlines() if line.split(":")[0].strip() == name),
        "",
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
