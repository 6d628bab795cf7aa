"""Arguments: what a Python function is called with, as the bytes that its worker reads (`wire.unpack`)."""

from __future__ import annotations

import os
from typing import Any

from outpace.judge import wire
from outpace.judge.blocks import laid_down


def pack(value: Any) -> bytes:
    """The bytes of arguments, as many as a multiple of 64; only plain types and arrays, nothing lazy gets through."""
    rest, found = wire.apart_from(value)
    blocks, lies = laid_down([array for _, array in found])
    starts, parts, end = [], [b"", b"", b""], 0
    for block in blocks:
        # Chance behind each: arrays that lay side by side could be taken for one, which no caller's are.
        gap = -len(block) % wire.ALIGN + wire.ALIGN
        parts += (block, os.urandom(gap))
        starts.append(end)
        end += len(block) + gap
    described = []
    for (path, array), place in zip(found, lies, strict=True):
        # The short form serves an array right under a name; one without elements has no place in the bytes.
        short = len(path) == 1 and array.size
        start = starts[place.block] + place.offset if array.size else 0
        described.append((path[0] if short else path, array.dtype.str, start, array.shape, place.strides))
    body = wire.marshalled((rest, described))
    first = wire.aligned(wire.HEADER.size + len(body))
    parts[:3] = wire.HEADER.pack(len(body), first + end), body, bytes(first - wire.HEADER.size - len(body))
    return b"".join(parts)
