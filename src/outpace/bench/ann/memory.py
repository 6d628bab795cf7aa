"""Memory: what a process holds now and at most held, as the kernel counts it."""

from __future__ import annotations

import ctypes
import gc
import resource
from pathlib import Path


def resident() -> int:
    """Bytes this process holds in memory, after giving back what is free."""
    gc.collect()
    # A loader's scratch space would otherwise be counted as index.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return _kilobytes("VmRSS") * 1024


def peak() -> int:
    """The most bytes this process, or the largest of its children, ever held."""
    usage = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(usage, _kilobytes("VmHWM")) * 1024


def available() -> int:
    """Bytes that the machine can still give without swapping."""
    return _field(Path("/proc/meminfo"), "MemAvailable") * 1024


def stored(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _kilobytes(name: str) -> int:
    return _field(Path("/proc/self/status"), name)


def _field(path: Path, name: str) -> int:
    return next((int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(f"{name}:")), 0)
