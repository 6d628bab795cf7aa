"""Text of strangers made fit to show: candidates, replies, receipts and compilers may hold any character.

Inside our own text it never begins a line: it is on one line (`shown`), or each of its lines stands behind a bar
(`set_off`, `told_after`). `shown_text` is for text that stands alone, such as a patch, or in a box of its own.
"""

from __future__ import annotations

import re

# Plain ASCII is passed over quickly; of the rest each character is asked whether it can be seen.
_DOUBTFUL = re.compile(r"[^\n\t -~]")
# Letters and marks that draw nothing, though Python calls them printable: fillers, blanks and variation selectors.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


_BAR = "  | "


def shown(text: str) -> str:
    """The text on one line, its lines joined by semicolons, with every unseen character spelt out."""
    clean = shown_text(text)
    if "\n" not in clean:
        return clean
    return "; ".join(line.strip().rstrip(";") for line in clean.split("\n") if line.strip())


def set_off(text: str) -> str:
    """The text with each of its lines behind a bar, so that none can be taken for one of ours."""
    return "\n".join(f"{_BAR}{line}".rstrip() for line in shown_text(text).rstrip().split("\n"))


def told_after(head: str, text: str) -> str:
    """The text behind words of ours: on their line if it is one line, else below them and set off."""
    clean = shown_text(text).strip("\n").rstrip()
    return f"{head}\n{set_off(clean)}" if "\n" in clean else f"{head} {clean}".rstrip()


def shown_text(text: str) -> str:
    """The text with every unseen character spelt out, such as ⟨U+202E⟩, and its lines as they are.

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
