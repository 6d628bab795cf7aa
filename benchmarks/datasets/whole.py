"""Whole files: a file appears under its name complete, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which becomes `path` if the block ends well."""
    _sweep(path)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def kept(path: Path, make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The array stored at `path`; made and stored where it is not there yet."""
    if not path.exists():
        made = make()
        # A handle, not a name: np.save appends .npy to names that end otherwise.
        with whole(path) as temporary, temporary.open("wb") as file:
            np.save(file, made)
    return np.load(path)  # type: ignore[no-any-return]


def _sweep(path: Path) -> None:
    """Remove what processes that were killed left behind; a large set leaves hundreds of megabytes."""
    for left in path.parent.glob(f"{path.name}.*.tmp"):
        number = left.name.removeprefix(f"{path.name}.").removesuffix(".tmp")
        if number.isdigit() and not _alive(int(number)):
            left.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
