"""How far the numbers and texts of a generated judge.py go: the constants and helpers in it, and changes of them.

A candidate may be wrong wherever no input ever is, so each number goes as far as the reference can take it: `rungs` is
what is tried, and `outpace.widths` finds out.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from outpace.init.c_literals import Literals
from outpace.judge.abi import C_TYPES

# The lowest and highest value, and the smallest magnitude; 0 there means that zeros are drawn too.
Limits = tuple[int | float, int | float, int | float]
# Where all numbers go far at once they may keep to less.
TOGETHER = (1e300, 1e100, 1e30, 1e12, 1e6, 1e3, 1e1, 0.0)

_TOPS = {
    "f8": (1e300, 1e100, 1e30, 1e10, 1e6, 1e3, 1e2, 1e1, 3.0, 1.0),
    "f4": (1e30, 1e12, 1e6, 1e3, 1e2, 1e1, 3.0, 1.0),
}
# Texts with any bytes, or with those alone that are characters everywhere.
_TEXTS: tuple[Limits, ...] = ((1, 255, 0), (1, 127, 0))
_WHOLE_TOPS = (1 << 62, 1 << 48, 1 << 40, 1 << 31, 10**9, 10**6, 1 << 16, 10**4, 10**3, 255, 100, 63, 31, 15)

_HEAD = "# How far these may go: lowest and highest, and the smallest magnitude (0: zeros too). Others stay ordinary."
_LEAVING = '''def leaving(rng: np.random.Generator) -> dict:
    """What leaves the ordinary in this call, and how far: in half of the calls nothing, else one name or all."""
    chance = rng.random()
    if chance < 0.5 or not LIMITS:
        return {}
    if chance < 0.6 and TOGETHER:
        return dict.fromkeys(LIMITS, TOGETHER)
    return {list(LIMITS)[int(rng.integers(len(LIMITS)))]: np.inf}'''
_SPREAD = '''def spread(rng: np.random.Generator, far: dict, name: str, ordinary):
    """The ordinary numbers, or where `name` goes far others: of all magnitudes, whole, zeros, and KNOWN ones."""
    if name not in LIMITS:
        return ordinary
    low, high, least = LIMITS[name]
    # Beside a 1 and a -1 no tiny numbers: where those cancel, the order of a sum decides what is left.
    size, whole, marked = np.size(ordinary), isinstance(high, int), rng.random() < 0.5
    if name not in far:
        values = np.atleast_1d(ordinary if low < 0 else np.abs(ordinary))
        values = values if whole else np.clip(values, low, high)
    elif whole:
        tops = [min(top, far[name]) for top in (high, -low)]
        positive, negative = (
            rng.integers(0, int(max(top, 0)), size, dtype=np.uint64, endpoint=True)
            >> rng.integers(0, int(max(top, 1)).bit_length(), size, dtype=np.uint64)
            for top in tops
        )
        below = (low < 0) & (rng.random(size) < 0.5)
        values = np.where(below, -negative.astype(np.int64), positive.astype(np.int64)) if low < 0 else positive
    else:
        # Tiny numbers are not as tiny as large ones are large, or products of two would vanish.
        below = (low < 0) & (rng.random(size) < rng.random())
        tops = np.log2(np.maximum(np.where(below, -low, high), 1e-9).clip(max=far[name]))
        powers = rng.uniform(0 if marked else -0.4, 1, size if rng.random() < 0.7 else 1)
        powers *= 10 ** min(rng.uniform(-2.5, 1.5), 0)
        values = np.exp2(tops * powers) * rng.uniform(0.1, 1, size) * np.where(below, -1, 1)
        values[rng.integers(0, max(size, 1), size // 4)] //= 1
    if name in far:
        marks = [each + step for each in (0, *KNOWN) for step in (-1, 0, 1)]
        marks += [low, high] if whole else [each * step for each in KNOWN for step in (1 - 2e-7, 1 + 2e-7)]
        marks = [int(each) if whole else each for each in marks if low <= each <= high and abs(each) <= far[name]]
        places = rng.random(size) < (0.1 if size > 1 else 0.4)
        if marks and (whole or marked):
            values[places] = rng.choice(np.array(marks, values.dtype), int(places.sum()))
    if size > 1 and rng.random() < 0.2:
        values = rng.choice(values[: int(rng.integers(1, size + 1))], size)  # many of them equal
    values = patterned(rng, values)
    if least:
        values = np.where(np.abs(values) < least, np.array(least, values.dtype), values)
    return values.astype(ordinary.dtype) if isinstance(ordinary, np.ndarray) else values[0].item()'''
_STREWN = '''def strewn(rng: np.random.Generator, far: dict, name: str, text: bytes) -> bytes:
    """The text, or where `name` goes far with CHARS and any other bytes in few or in many places."""
    if name not in far:
        return text
    raw = np.frombuffer(text, np.uint8)
    chars, others = np.frombuffer(CHARS, np.uint8), rng.integers(1, LIMITS[name][1] + 1, raw.size, dtype=np.uint8)
    others = np.where(rng.random(raw.size) < 0.7, rng.choice(chars, raw.size), others)
    return patterned(rng, np.where(rng.random(raw.size) < 10 ** rng.uniform(-3, -0.3), others, raw)).tobytes()'''
_PATTERNED = '''def patterned(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """The values, or in some calls the same sorted, mirrored, one or some repeated, or a stretch of them twice."""
    size, at = len(values), np.arange(len(values))
    if size < 2 or rng.random() >= PATTERNS:
        return values
    start, to = rng.integers(0, size, 2)
    mirrored, again = np.minimum(at, at[::-1]), at % int(size ** rng.random())
    twice, ordered = np.where(at < to, at, (at - to + start) % size), np.argsort(values)[:: rng.choice((-1, 1))]
    extreme = np.full(size, rng.choice((values.argmin(), values.argmax())))
    return values[(mirrored, again, twice, ordered, extreme)[rng.integers(5)]]'''

HELPERS = (
    ("leaving", _LEAVING),
    ("patterned", _PATTERNED),
    ("spread", _SPREAD),
    ("strewn", _STREWN),
)


@dataclass(frozen=True)
class Range:
    """What is tried for one argument: as far as its type goes first, and nothing but ordinary values last."""

    # "f4", "i8" and the like for numbers, "text" for texts.
    kind: str
    # Where the ordinary values say how far it goes, those alone are tried.
    low: int = 0
    high: int = 0

    def above(self) -> list[Limits]:
        """Limits without negative numbers, widest first."""
        if self.kind == "text":
            return [*_TEXTS]
        if self.kind in _TOPS:
            tops = _TOPS[self.kind]
            return [(0.0, top, 0.0) for top in tops] + [(_least(top), top, _least(top)) for top in tops]
        if self.high:
            return [(0, self.high, 0)]
        most = int(np.iinfo(np.dtype(self.kind)).max)
        # One number at the very end may be one too many, as in a division by it and 1.
        whole: list[int] = [most, most - 1, most >> 1, *(top for top in _WHOLE_TOPS if top < most >> 1)]
        return [(least, top, least) for least in (0, 1) for top in whole]

    def below(self, limits: Limits) -> list[Limits]:
        """The same with negative numbers, widest first."""
        _, high, least = limits
        if self.kind == "text" or (self.kind not in _TOPS and (np.dtype(self.kind).kind == "u" or self.low > -1)):
            return []
        if self.kind in _TOPS:
            return [(-top, high, least) for top in _TOPS[self.kind]]
        if self.high:
            return [(self.low, self.high, 0)]
        lowest = int(np.iinfo(np.dtype(self.kind)).min)
        bottoms = (lowest, lowest + 1, lowest >> 1, *(-top for top in _WHOLE_TOPS if -top > lowest >> 1), -1)
        return [(bottom, high, least) for bottom in bottoms]

    @property
    def widest(self) -> Limits:
        """As far as the type goes."""
        first = self.above()[0]
        return next(iter(self.below(first)), first)


def number(c_type: str) -> Range:
    """The range of a number of this C type."""
    kind = np.dtype(C_TYPES[c_type]).str[1:]
    return Range(kind, low=-1)


def constants(ranges: Mapping[str, Range], named: Literals) -> list[str]:
    """The constants of a judge.py whose inputs have these ranges."""
    if not ranges:
        return []
    found = [
        limited(f"{_HEAD}\nLIMITS = {{\n}}", {name: each.widest for name, each in ranges.items()}),
        "# How far they go where all of them do at once.\nTOGETHER = 1e+300",
    ]
    if any(each.kind != "text" for each in ranges.values()):
        numbers = textwrap.fill(repr(named.numbers), 110, subsequent_indent="    ", break_on_hyphens=False)
        found.append(f"# Numbers that the source names.\nKNOWN = {numbers}")
    if any(each.kind == "text" for each in ranges.values()):
        found.append(f"# Characters that the source names, and those next to them.\nCHARS = {named.chars or b' '!r}")
    return found


def limits(judge: str) -> dict[str, Limits]:
    """How far the arguments of a generated judge.py go."""
    found = _LIMITS.search(judge)
    made: dict[str, Limits] = ast.literal_eval(found[1]) if found else {}
    return made


def limited(judge: str, given: Mapping[str, Limits]) -> str:
    """The same judge.py with these limits; what has none keeps to its ordinary values."""
    lines = "".join(f'    "{name}": {each!r},\n' for name, each in given.items())
    return _LIMITS.sub(lambda _: f"LIMITS = {{\n{lines}}}", judge)


def together(judge: str, most: float) -> str:
    """The same judge.py with everything going so far at once."""
    return re.sub(r"^TOGETHER = .*$", f"TOGETHER = {most!r}", judge, count=1, flags=re.MULTILINE)


_LIMITS = re.compile(r"^LIMITS = (\{\n.*?^\})", re.DOTALL | re.MULTILINE)


def _least(top: float) -> float:
    return float(f"1e{-max(1, int(0.4 * np.log10(top)))}")


def told(limit: Any) -> str:
    """A limit as a person writes it."""
    return f"{limit:g}" if isinstance(limit, float) else str(limit)
