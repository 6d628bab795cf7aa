"""Memory: whether a build will fit, asked before it begins rather than when the system ends the process."""

from pathlib import Path

GIB = 1 << 30
MEMINFO = Path("/proc/meminfo")
# A container's own limit, in either version of control groups.
LIMITS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


def free_bytes(meminfo: Path = MEMINFO, limits: tuple[tuple[Path, Path], ...] = LIMITS) -> int | None:
    """What this process can still take, as far as the system tells; None where it does not."""
    known = []
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        known.append(int(lines["MemAvailable"].split()[0]) * 1024)
    except (OSError, KeyError, ValueError, IndexError):
        pass
    for limit, used in limits:
        try:
            known.append(int(limit.read_text()) - int(used.read_text()))
        except (OSError, ValueError):  # not there, or "max": no limit
            continue
    return max(min(known), 0) if known else None


def check_fits(needed: int, free: int | None) -> None:
    """Raises MemoryError, with what to do, where a build would take more than there is."""
    if free is not None and needed > free:
        raise MemoryError(
            f"the build would take about {needed / GIB:.1f} GiB and {free / GIB:.1f} GiB are free; free some, build "
            "from fewer vectors, or use profile='compact', which needs no graph"
        )
