"""Alone: one command at a time searches in a folder, since two that time on one machine disturb each other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from outpace.errors import OutpaceError


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """The folder for this process until it ends, however it ends; whoever comes second is told who is first."""
    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise OutpaceError(f"{path} cannot be written ({error.strerror}): name another --folder") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read(20).strip() or "unknown"
            raise OutpaceError(
                f"{folder} is in use by another run, process {owner}: wait until it has ended, stop it with "
                f"`kill {owner}`, or give this one a --folder of its own"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        # The file stays: one that were removed could be locked once more under the same name.
        yield
