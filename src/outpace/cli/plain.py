"""Plain text for terminals: lines, and tables of them, with nothing in them that a reader cannot see."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError
from rich.console import Console

from outpace.shown import shown, shown_text

# Without a width of its own: a line that somebody may want to search or copy stays one line.
ERRORS = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def flat(text: object) -> str:
    """Whatever it is, as one line."""
    return shown(str(text))


def shortened(text: str, width: int) -> str:
    """The first line, cut to a width."""
    # Without rows of spaces, which would push what follows to the beginning of a terminal's next line.
    line = " ".join(next((each for each in shown_text(text).splitlines() if each.strip()), "").split())
    return line if len(line) <= width else line[: max(width - 3, 0)] + "..."


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = (), widest: int = 40) -> list[str]:
    """Rows as lines with their columns one under another; the last column is as long as it likes."""
    cells = [[" ".join(shown_text(cell).split()) for cell in row] for row in rows]
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
    what = flat(error)
    if isinstance(error, UnusedCliTokensError):
        what = f"{' '.join(map(flat, error.unused_tokens or ()))} is more than this command takes."
    elif isinstance(error, MissingArgumentError) and error.argument is not None and not error.keyword:
        what = f"{error.argument.name} is missing."
    return f"outpace: {what} See `{chain} --help`."
