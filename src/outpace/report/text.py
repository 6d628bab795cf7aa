"""Text of strangers made fit to show: candidates, replies and compilers may hold any character."""

from __future__ import annotations

import re

# Characters that a reader cannot see: controls, zero-width ones, marks that turn the direction of writing (by which
# source can be made to read otherwise than it compiles), and halves of surrogate pairs, which UTF-8 cannot hold.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def shown(text: str) -> str:
    """The text with every unseen character spelt out, such as ⟨U+202E⟩."""
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n"))


def brief(text: str, length: int) -> str:
    """The text on one line, cut to `length` characters."""
    line = " ".join(shown(text[: 4 * length]).split())
    return line if len(line) <= length and len(text) <= 4 * length else line[: length - 1].rstrip() + "…"


def cut(text: str, length: int) -> str:
    """The text with its lines, cut to `length` characters, and saying so."""
    if len(text) <= length:
        return shown(text)
    return f"{shown(text[:length])}… ({len(text) - length:,} more characters)"
