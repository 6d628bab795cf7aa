"""A streamed reply: server-sent events become text and token counts, or the reason to ask again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

# JSON writes a byte as up to six; beside that an event holds names and settings.
_BYTES_PER_BYTE = 6
_EVENT_BYTES = 1 << 16


class Again(Exception):
    """A call that failed in a way that may pass; `wait` is what the server asked for."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass
class Reading:
    """What has come of a reply so far."""

    limit: int
    text: list[str] = field(default_factory=list)
    # Text and reasoning together: both are paid for, and either can be endless.
    size: int = 0
    finish: str = ""
    done: bool = False
    usage: tuple[int, int] | None = None

    def take(self, data: str) -> None:
        """One event of the stream, or the whole of a reply that was not streamed."""
        if data.strip() == "[DONE]":
            self.done = True
            return
        try:
            self._take(json.loads(data))
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            raise Again("the reply is broken JSON") from None

    def _take(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            fault = event["error"]
            said = fault.get("message") if isinstance(fault, dict) else fault
            raise Again(f"the server broke off: {said}")
        self.usage = _usage(event.get("usage")) or self.usage
        for choice in event.get("choices") or ():
            part = choice.get("delta") or choice.get("message") or {}
            # Two names for the same: what a model thinks is counted but is no part of its answer.
            for name in ("content", "reasoning_content", "reasoning"):
                text = part.get(name) or ""
                self.size += len(text.encode("utf-8", "surrogatepass"))
                if name == "content":
                    self.text.append(text)
            self.finish = choice.get("finish_reason") or self.finish
            self.done = self.done or bool(choice.get("message"))
        if self.size > self.limit:
            raise Again(f"the reply had no end after {self.limit} bytes (lower --temperature, or raise --max-tokens)")

    @property
    def complete(self) -> bool:
        return self.done or bool(self.finish)


def events(chunks: Iterable[bytes], limit: int, streamed: bool) -> Iterator[str]:
    """The data of server-sent events, one by one; the whole body where the server does not stream."""
    most = _BYTES_PER_BYTE * limit + _EVENT_BYTES
    pending = bytearray()
    for chunk in chunks:
        pending += chunk
        if streamed and b"\n" in chunk:
            *lines, rest = bytes(pending).split(b"\n")
            pending = bytearray(rest)
            yield from _data(lines)
        if len(pending) > most:
            raise Again(f"the reply passed {most} bytes without an end")
    if streamed:
        yield from _data([bytes(pending)])
    else:
        yield pending.decode("utf-8", "replace")


def _data(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        # Other fields, comments that keep the line open, and blank lines tell nothing here.
        if line.startswith(b"data:"):
            yield line[5:].decode("utf-8", "replace").strip()


def _usage(told: object) -> tuple[int, int] | None:
    if not isinstance(told, dict):
        return None
    counted = told.get("prompt_tokens"), told.get("completion_tokens")
    read, written = counted
    if type(read) is not int or type(written) is not int or read < 0 or written < 0:
        return None
    return read, written
