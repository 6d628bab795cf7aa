"""Recall: how many true neighbours the answers miss, ties counted as true and repeated answers once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outpace.bench.ann.datasets import Floats, Ids

# Of the k-th distance; the rounding of float32 coordinates is far below it, a wrong neighbour far above.
_SLACK = 1e-6
_CHUNK = 256


def missed(answers: Ids, train: Floats, queries: Floats, neighbors: Ids, k: int) -> npt.NDArray[np.int64]:
    """For each query, how many of its k answers are farther away than the true k-th neighbour.

    Distances are computed anew for the answers and for the true neighbours alike, so a library that returns another
    vector at the same distance is right, as it is in ann-benchmarks, and one that returns the same vector twice is not.
    """
    counts = np.zeros(len(answers), dtype=np.int64)
    for begin in range(0, len(answers), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        asked = queries[rows].astype(np.float64)
        limit = _squared(neighbors[rows, k - 1 : k], train, asked)
        given = answers[rows, :k]
        real = (given >= 0) & (given < len(train)) & _first_of_its_kind(given)
        near = _squared(np.where(real, given, 0), train, asked) <= limit * (1 + _SLACK) + 1e-12
        counts[rows] = k - (near & real).sum(axis=1)
    return counts


def recall(answers: Ids, train: Floats, queries: Floats, neighbors: Ids, k: int) -> float:
    """The share of neighbours that were found."""
    return found(missed(answers, train, queries, neighbors, k), k)


def found(counts: npt.NDArray[np.int64], k: int) -> float:
    """Recall, from what was missed for each query."""
    return float(len(counts) * k - counts.sum()) / (len(counts) * k) if len(counts) else float("nan")


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
