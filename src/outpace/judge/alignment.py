"""Alignment: now and then an array of a C call begins where its elements may, and no better.

A caller's array may be part of a larger one. Were all of them to begin on cache lines, code that may only be called
with such would be right here, and crash or be slower elsewhere.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

# Arrays begin on cache lines, but for one in so many: whoever allocates his own arrays gets aligned ones.
LINE, ODD_EVERY = 64, 8


def shift(dtype: np.dtype[Any], align: int = 0) -> int:
    """How many bytes behind a cache line an array of these elements begins: a multiple of `align`, if that is given."""
    unit = max(dtype.alignment, align)
    odd, place = os.urandom(2)
    return 0 if odd % ODD_EVERY or unit >= LINE else place % (LINE // unit) * unit
