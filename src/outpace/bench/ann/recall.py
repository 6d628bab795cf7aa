"""Recall: which of the answers are true neighbours, ties counted as true and repeated answers once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outpace.bench.ann.datasets import Floats, Ids

# Of the k-th distance; the rounding of float32 coordinates is far below it, a wrong neighbour far above.
_SLACK = 1e-6
_CHUNK = 256


def recall(answers: Ids, train: Floats, queries: Floats, neighbors: Ids, k: int) -> float:
    """The share of answers that are no farther away than the true k-th neighbour.

    Distances are computed anew for the answers and for the true neighbours alike, so a library that returns another
    vector at the same distance is right, as it is in ann-benchmarks, and one that returns the same vector twice is not.
    """
    found = 0
    for begin in range(0, len(answers), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        asked = queries[rows].astype(np.float64)
        limit = _squared(neighbors[rows, k - 1 : k], train, asked)
        given = answers[rows, :k]
        real = (given >= 0) & (given < len(train)) & _first_of_its_kind(given)
        near = _squared(np.where(real, given, 0), train, asked) <= limit * (1 + _SLACK) + 1e-12
        found += int((near & real).sum())
    return found / (len(answers) * k) if len(answers) else float("nan")


def _squared(ids: Ids, train: Floats, queries: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    # Under cosine both sides have unit length, where the squared distance orders as the angle does.
    gaps = train[ids].astype(np.float64) - queries[:, None, :]
    return np.asarray(np.einsum("qkd,qkd->qk", gaps, gaps))


def _first_of_its_kind(ids: Ids) -> npt.NDArray[np.bool_]:
    order = np.argsort(ids, axis=1, kind="stable")
    ranked = np.take_along_axis(ids, order, axis=1)
    first = np.ones_like(ranked, dtype=np.bool_)
    first[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    result = np.empty_like(first)
    np.put_along_axis(result, order, first, axis=1)
    return result
