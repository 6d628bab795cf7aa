"""Text of strangers made fit to show: candidates, replies, receipts and compilers may hold any character."""

from __future__ import annotations

import re

# Plain ASCII is passed over quickly; of the rest each character is asked whether it can be seen.
_DOUBTFUL = re.compile(r"[^\n\t -~]")


def shown(text: str) -> str:
    """The text with every unseen character spelt out, such as ⟨U+202E⟩.

    Unseen are controls, which steer a terminal; zero-width characters; marks that turn the direction of writing, by
    which source can be made to read otherwise than it compiles; and halves of surrogate pairs, which UTF-8 cannot hold.
    Tabs and line ends stay.
    """
    return _DOUBTFUL.sub(_spelt, text.replace("\r\n", "\n"))


def hides(text: str) -> list[str]:
    """Which unseen characters a text has, spelt out, each once; an honest text has none."""
    found = (_spelt(each) for each in _DOUBTFUL.finditer(text.replace("\r\n", "\n")) if not each[0].isprintable())
    return list(dict.fromkeys(found))


def _spelt(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else f"⟨U+{ord(found[0]):04X}⟩"
