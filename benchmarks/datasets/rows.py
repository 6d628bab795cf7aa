"""Rows: drop duplicate vectors, give them unit length, and hold queries out so that none is in train."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from datasets.workshop import SEED

Rows = npt.NDArray[Any]


def hashes(rows: Rows) -> Iterator[bytes]:
    """One hash per row; rows that compare equal have equal hashes."""
    rows = np.ascontiguousarray(rows)
    if rows.dtype.kind == "f":
        rows = rows + rows.dtype.type(0)  # -0.0 becomes 0.0, which it equals
    for row in rows:
        yield hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def distinct(rows: Rows) -> npt.NDArray[np.int64]:
    """Positions of the first occurrence of each row, ascending."""
    seen: set[bytes] = set()
    first = []
    for position, key in enumerate(hashes(rows)):
        if key not in seen:
            seen.add(key)
            first.append(position)
    return np.array(first, np.int64)


def unit(rows: Rows) -> Rows:
    """float32 rows of length one, computed in float64; rows of length zero have no direction and are dropped."""
    rows = np.asarray(rows, np.float32)
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    keep = length > 1e-12
    directions: Rows = (rows[keep] / length[keep, None]).astype(np.float32)
    return directions


def given(train: Rows, test: Rows) -> tuple[Rows, Rows]:
    """A split that exists already, without duplicates, and without the queries that are in train."""
    train, test = train[distinct(train)], test[distinct(test)]
    seen = set(hashes(train))
    return train, test[np.array([key not in seen for key in hashes(test)], bool)]


def held_out(rows: Rows, queries: int) -> tuple[Rows, Rows]:
    """Train and test: distinct rows in random order, the first of them held out."""
    order = np.random.default_rng(SEED).permutation(distinct(rows))
    return rows[order[queries:]], rows[order[:queries]]


def held_out_by_group(rows: Rows, queries: int, groups: npt.NDArray[Any]) -> tuple[Rows, Rows]:
    """The same, but with queries from groups (images, recordings) that give nothing to train.

    Neighbouring frames or patches of one source are near copies, which would make a query too easy.
    """
    keep = distinct(rows)
    rng = np.random.default_rng(SEED)
    groups = np.asarray(groups)[keep]
    names = rng.permutation(np.unique(groups))
    size = Counter(groups.tolist())
    held: list[int] = []
    total = 0
    # Twice the queries and a twentieth of the groups: enough to choose from, spread over many sources.
    for name in names.tolist():
        if total >= 2 * queries and len(held) >= max(2, len(names) // 20):
            break
        held.append(name)
        total += size[name]
    is_held = np.isin(groups, held)
    test = rng.permutation(keep[is_held])[:queries]
    return rows[rng.permutation(keep[~is_held])], rows[test]
