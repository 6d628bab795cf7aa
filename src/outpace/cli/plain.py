"""Plain text for terminals: one line where one is promised, and no control characters from texts that others wrote."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Sequence

from cyclopts import CycloptsError
from rich.console import Console

# Everything below the space but tab and newline, DEL, the C1 controls, and marks that turn the direction of a line.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


# Without a width of its own: a line that somebody may want to search or copy stays one line.
ERRORS = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def printable(text: str) -> str:
    """The text without what could move the cursor, colour the screen or hide a line."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def flat(text: object) -> str:
    """A text of several lines as one."""
    return "; ".join(line.strip().rstrip(";") for line in printable(str(text)).splitlines() if line.strip())


def shortened(text: str, width: int) -> str:
    """The first line, cut to a width."""
    line = next((each.strip() for each in printable(text).splitlines() if each.strip()), "")
    return line if len(line) <= width else line[: max(width - 3, 0)] + "..."


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = (), widest: int = 40) -> list[str]:
    """Rows as lines with their columns one under another; the last column is as long as it likes."""
    cells = [[" ".join(printable(cell).split()) for cell in row] for row in rows]
    widths = [min(max(len(row[at]) for row in cells), widest) for at in range(len(cells[0]) - 1)]
    lines = []
    for row in cells:
        fixed = [
            shortened(cell, width).rjust(width) if at in right else shortened(cell, width).ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append("  ".join([*fixed, row[-1]]).rstrip())
    return lines


def broken_pipe() -> int:
    """Whoever read our output has gone; the interpreter must not try to write the rest of it as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def usage_error(error: CycloptsError) -> str:
    """A wrong command line, told in one line that ends with where to look."""
    chain = " ".join(["outpace", *(error.command_chain or ())])
    return f"outpace: {flat(error)} See `{chain} --help`."
