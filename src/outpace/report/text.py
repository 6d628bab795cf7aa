"""Text cut to the room that a page has for it, and made fit to show."""

from __future__ import annotations

from outpace.shown import shown_text


def brief(text: str, length: int) -> str:
    """The text on one line, cut to `length` characters."""
    line = " ".join(shown_text(text[: 4 * length]).split())
    return line if len(line) <= length and len(text) <= 4 * length else line[: length - 1].rstrip() + "…"


def cut(text: str, length: int) -> str:
    """The text with its lines, cut to `length` characters, and saying so."""
    if len(text) <= length:
        return shown_text(text)
    return f"{shown_text(text[:length])}… ({len(text) - length:,} more characters)"
