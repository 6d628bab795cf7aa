"""Text of strangers made fit to show: candidates, replies, receipts and compilers may hold any character."""

from __future__ import annotations

import re

# Plain ASCII is passed over quickly; of the rest each character is asked whether it can be seen.
_DOUBTFUL = re.compile(r"[^\n\t -~]")
# Letters and marks that draw nothing, though Python calls them printable: fillers, blanks and variation selectors.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def shown(text: str) -> str:
    """The text with every unseen character spelt out, such as ⟨U+202E⟩.

    Unseen are controls, which steer a terminal; zero-width characters; marks that turn the direction of writing, by
    which source can be made to read otherwise than it compiles; and halves of surrogate pairs, which UTF-8 cannot hold.
    Tabs and line ends stay.
    """
    return _DOUBTFUL.sub(_spelt, text.replace("\r\n", "\n"))


def hides(text: str) -> list[str]:
    """Which unseen characters a text has, spelt out, each once; an honest text has none."""
    found = (_spelt(each) for each in _DOUBTFUL.finditer(text.replace("\r\n", "\n")) if not _seen(each[0]))
    return list(dict.fromkeys(found))


def _seen(letter: str) -> bool:
    return letter.isprintable() and not _BLANK.match(letter)


def _spelt(found: re.Match[str]) -> str:
    return found[0] if _seen(found[0]) else f"⟨U+{ord(found[0]):04X}⟩"
