"""Memory: whether a build will fit, asked before it begins rather than when the system ends the process."""

from pathlib import Path

GIB = 1 << 30
MEMINFO = Path("/proc/meminfo")
# A container's own limit, what of it is used, and where it says how much of that is only the cache of files, which
# gives way; in either version of control groups.
LIMITS = tuple(
    (Path(folder) / limit, Path(folder) / used, Path(folder) / "memory.stat")
    for folder, limit, used in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    )
)


def free_bytes(meminfo: Path = MEMINFO, limits: tuple[tuple[Path, Path, Path], ...] = LIMITS) -> int | None:
    """What this process can still take, as far as the system tells; None where it does not."""
    known = []
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        known.append(int(lines["MemAvailable"].split()[0]) * 1024)
    except (OSError, KeyError, ValueError, IndexError):
        pass
    for limit, used, details in limits:
        try:
            known.append(int(limit.read_text()) - int(used.read_text()) + _cached(details))
        except (OSError, ValueError):  # not there, or "max": no limit
            continue
    return max(min(known), 0) if known else None


def _cached(details: Path) -> int:
    try:
        lines = dict(line.split() for line in details.read_text().splitlines())
        return int(lines["inactive_file"])
    except (OSError, KeyError, ValueError):
        return 0


def check_fits(needed: int, free: int | None) -> None:
    """Raises MemoryError, with what to do, where a build would take more than there is."""
    if free is not None and needed > free:
        raise MemoryError(
            f"the build would take about {needed / GIB:.1f} GiB and {free / GIB:.1f} GiB are free; free some, build "
            "from fewer vectors, or use profile='compact', which needs no graph"
        )
