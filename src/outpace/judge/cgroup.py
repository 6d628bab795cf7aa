"""Control groups: caps on memory and processes that hold for a whole process tree, where we may create them."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_serial = itertools.count()


# Kernel memory of a group below this is not worth the time it takes to give back.
_REMEMBERED_MOST = 16 << 20
# How long a killed process may take to be gone.
_DYING_SECONDS = 10.0


@dataclass(frozen=True)
class Cgroup:
    """One group, as the folders of the hierarchies it lives in (one under v2, two under v1)."""

    folders: tuple[Path, ...]
    version: int

    @staticmethod
    def create(*, memory: int, processes: int) -> Cgroup | None:
        """A new group with these caps, or None where the machine does not let us have one."""
        name = f"outpace-{os.getpid()}-{next(_serial)}"
        made: list[Path] = []
        try:
            if (ROOT / "cgroup.controllers").exists():
                folder = _v2_parent() / name
                _make(folder, made)
                (folder / "memory.max").write_text(str(memory))
                with contextlib.suppress(OSError):  # absent where swap accounting is off
                    (folder / "memory.swap.max").write_text("0")
                (folder / "pids.max").write_text(str(processes))
                return Cgroup((folder,), 2)
            memory_folder, pids_folder = _v1_parent("memory") / name, _v1_parent("pids") / name
            _make(memory_folder, made)
            _make(pids_folder, made)
            (memory_folder / "memory.limit_in_bytes").write_text(str(memory))
            (pids_folder / "pids.max").write_text(str(processes))
            return Cgroup((memory_folder, pids_folder), 1)
        except OSError:
            for folder in made:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            return None

    def entrance(self, command: list[str]) -> list[str]:
        """The command that enters the group, then becomes `command`; entering after its start would race its forks."""
        joins = "".join(f'echo $$ > "${number}" && ' for number in range(1, len(self.folders) + 1))
        # A shell remembers where it was started, and what it starts need not know.
        script = f'{joins}shift {len(self.folders)} && unset PWD OLDPWD && exec "$@"'
        return [
            "/bin/sh",
            "-c",
            script,
            "sh",
            *(str(folder / "cgroup.procs") for folder in self.folders),
            *command,
        ]

    def out_of_memory(self) -> bool:
        """Whether the kernel killed something in this group for its memory."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        with contextlib.suppress(OSError):
            for line in (self.folders[0] / name).read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1]) > 0
        return False

    def held(self) -> int:
        """Bytes of memory that its processes fill, mapped or not, and that the kernel holds for them; 0 if unknown."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            rows = dict(line.split() for line in (self.folders[0] / "memory.stat").read_text().splitlines())
            if self.version == 2:
                return sum(int(rows.get(name, 0)) for name in ("anon", "shmem", "kernel", "sock"))
            kernel = int((self.folders[0] / "memory.kmem.usage_in_bytes").read_text())
            return int(rows["rss"]) + int(rows["shmem"]) + kernel
        return 0

    def empty(self) -> bool:
        """Kill whatever is left inside; whether nothing is, as far as can be seen."""
        until = time.monotonic() + _DYING_SECONDS
        while any(_kill_members(folder) for folder in self.folders):
            if time.monotonic() > until:
                return False
            time.sleep(0.002)
        return True

    def remove(self) -> None:
        """Kill whatever is left inside and remove the folders."""
        self._give_back()
        for folder in self.folders:
            for _ in range(200):
                with contextlib.suppress(FileNotFoundError):
                    try:
                        folder.rmdir()
                    except OSError:
                        _kill_members(folder)
                        time.sleep(0.002)  # the kernel needs a moment to let go of the dead
                        continue
                break

    def _give_back(self) -> None:
        """Let the kernel drop what it remembers of the group's look-ups, if that is much.

        A name that does not exist is remembered for as long as its file system is mounted: a candidate could look up
        millions of them, and leave gigabytes behind.
        """
        folder = self.folders[0]
        with contextlib.suppress(OSError, ValueError, KeyError):
            if self.version == 2:
                rows = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                held = int(rows["slab_reclaimable"])
                if held > _REMEMBERED_MOST:
                    (folder / "memory.reclaim").write_text(str(held))
            elif int((folder / "memory.kmem.usage_in_bytes").read_text()) > _REMEMBERED_MOST:
                (folder / "memory.force_empty").write_text("0")


def remove_stale() -> None:
    """Remove the empty groups of judges that were killed before they could."""
    parents = {_v2_parent()} if (ROOT / "cgroup.controllers").exists() else {_v1_parent("memory"), _v1_parent("pids")}
    for parent in parents:
        for folder in parent.glob("outpace-*-*"):
            owner = folder.name.split("-")[1]
            # Only rmdir, which leaves what has members: an owner we cannot see may live in another container.
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _kill_members(folder: Path) -> int:
    """How many there were."""
    members: list[str] = []
    with contextlib.suppress(OSError):
        members = (folder / "cgroup.procs").read_text().split()
        for line in members:
            # 0 stands for a process of another pid namespace; to kill that would be to kill our own group.
            with contextlib.suppress(ProcessLookupError):
                if int(line) > 0:
                    os.kill(int(line), 9)
    return len(members)


def _make(folder: Path, made: list[Path]) -> None:
    folder.mkdir()
    made.append(folder)


def _v2_parent() -> Path:
    # A group that holds processes cannot hand controllers to children, so groups go beside ours, under the root.
    with contextlib.suppress(OSError):
        (ROOT / "cgroup.subtree_control").write_text("+memory +pids")
    return ROOT


def _v1_parent(controller: str) -> Path:
    own = "/"
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if controller in names.split(","):
                own = path
    folder = ROOT / controller / own.strip("/")
    return folder if folder.is_dir() else ROOT / controller
