"""Lines: texts cut at newlines alone, as compilers cut them.

`str.splitlines` also cuts at form feeds, vertical tabs, U+0085, U+2028 and others, which to a compiler are part of the
line: a rule that saw two lines where the compiler sees one comment has been fooled with that.
"""

from __future__ import annotations

import re

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LONE_RETURN = re.compile(r"\r(?!\n)")


def with_ends(text: str) -> list[str]:
    """The lines, each with its newline; the last may lack one. Together they are the text."""
    return _LINE.findall(text)


def lines(text: str) -> list[str]:
    """The lines without their newlines; a carriage return before a newline stays."""
    return [line.removesuffix("\n") for line in with_ends(text)]


def has_lone_return(text: str) -> bool:
    """Whether a carriage return stands elsewhere than before a newline: gcc, clang and Python end a line there."""
    return _LONE_RETURN.search(text) is not None
