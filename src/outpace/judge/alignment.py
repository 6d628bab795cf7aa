"""Alignment: arrays of a C call begin where malloc lets them begin, and now and then where their elements may.

A caller's array may be part of a larger one. Were all of them to begin on cache lines, code that may only be called
with such would be right here and crash elsewhere, and wide vectors would be faster here than anywhere else.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

# What malloc aligns to, and in how many arrays one is not even that.
LINE, MALLOC, ODD_EVERY = 64, 16, 8


def shift(dtype: np.dtype[Any], align: int = 0) -> int:
    """How many bytes behind a cache line an array of these elements begins: a multiple of `align`, if that is given."""
    unit = max(dtype.alignment, align)
    odd, place = os.urandom(2)
    step = min(max(unit, MALLOC) if odd % ODD_EVERY else unit, LINE)
    return place % (LINE // step) * step
