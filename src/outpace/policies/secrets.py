"""Secrets: what the environment holds that no message may show."""

from __future__ import annotations

import re
from collections.abc import Mapping

from outpace.shown import shown_text

_TELLING = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
# A shorter value may stand in a message by chance, and guards nothing.
_SHORTEST = 6
_USER = re.compile(r"(?<=://)[^/@\s]+@")


def redacted(text: str, environment: Mapping[str, str]) -> str:
    """The text without the values of variables that are named like secrets, nor a URL's user and password."""
    values = {value.strip() for name, value in environment.items() if _TELLING.search(name)}
    # The longest first: one secret may begin with another.
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, "***")
    return _USER.sub("***@", text)


def one_line(text: str, environment: Mapping[str, str], length: int = 300) -> str:
    """What another program said, fit for an error message: no secrets, nothing unseen, short."""
    short = " ".join(shown_text(redacted(text, environment)).split())
    return short if len(short) <= length else short[: length - 3] + "..."
