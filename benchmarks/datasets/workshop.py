"""Workshop: where downloads and slow intermediate results are kept, and what the makers of sets are lent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SEED = 20240229  # of every random choice


def _silent(_: str) -> None:
    """Says nothing."""


@dataclass(frozen=True)
class Workshop:
    """One folder for all sets: a second run takes up what the first one left in it."""

    folder: Path
    threads: int = 1
    say: Callable[[str], None] = _silent
    pause: Callable[[float], None] = time.sleep

    def path(self, *parts: str) -> Path:
        """A path in the folder, whose parent exists."""
        path = self.folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
