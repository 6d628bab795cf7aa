"""Ground truth: the exact nearest rows of train for every query, ties going to the lower row number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from datasets.errors import DataError

Metric = Literal["euclidean", "angular"]
NEIGHBOURS = 100  # kept per query
SPARE = 64  # more candidates than neighbours, so that float32 errors seldom matter
BLOCK = 1 << 16  # rows of train per matrix product: 1000 x 65536 float32 scores are 250 MiB
QUERY_BLOCK = 1000

Truth = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]


def ground_truth(
    train: npt.NDArray[Any],
    test: npt.NDArray[Any],
    metric: Metric,
    *,
    k: int = NEIGHBOURS,
    block: int = BLOCK,
    say: Callable[[str], None] = lambda _: None,
) -> Truth:
    """Row numbers and distances (L2, or 1 - cosine of unit rows) of the k nearest rows, nearest first.

    float32 matrix products pick k + SPARE candidates, which are ranked again in float64. A query is accepted only
    if no row outside its candidates can belong to the answer, given a bound of the float32 error; any other query
    is done again wholly in float64.
    """
    if len(train) < k:
        raise DataError(f"{k} neighbours were asked for, but train has {len(train)} rows; give it at least {k}")
    squares = np.einsum("ij,ij->i", train, train, dtype=np.float64)
    neighbours = np.empty((len(test), k), np.int32)
    distances = np.empty((len(test), k), np.float32)
    again = 0
    for start in range(0, len(test), QUERY_BLOCK):
        queries = np.ascontiguousarray(test[start : start + QUERY_BLOCK], dtype=np.float32)
        scores, candidates = _candidates(train, squares, queries, k + SPARE, block)
        for row, query in enumerate(queries.astype(np.float64)):
            ids = np.sort(candidates[row])  # ascending, so that the stable sort below settles ties
            squared = ((train[ids].astype(np.float64) - query) ** 2).sum(1)
            order = np.argsort(squared, kind="stable")[:k]
            own = query @ query
            # The error of a float32 score is of order |q||x| eps; the factor is generous.
            error = 4 * np.finfo(np.float32).eps * (np.sqrt(train.shape[1]) + 4) * (own + squares[ids].max())
            if len(ids) < len(train) and squared[order[-1]] - own + error >= scores[row].max():
                again += 1
                squared = _squared_distances(train, query, block)
                ids = np.arange(len(train))
                order = np.argsort(squared, kind="stable")[:k]
            neighbours[start + row] = ids[order]
            # For unit rows |a - b|^2 / 2 is 1 - cosine, without its cancellation.
            distances[start + row] = squared[order] / 2 if metric == "angular" else np.sqrt(squared[order])
        say(f"  ground truth: {start + len(queries)}/{len(test)} queries")
    if again:
        say(f"  {again} queries done again in float64 (candidates too close to call)")
    return neighbours, distances


def _candidates(
    train: npt.NDArray[Any],
    squares: npt.NDArray[np.float64],
    queries: npt.NDArray[np.float32],
    count: int,
    block: int,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """Scores |x|^2 - 2qx (smaller is nearer) and row numbers of the `count` best rows per query, in no order."""
    best = np.empty((len(queries), 0), np.float32)
    ids = np.empty((len(queries), 0), np.int32)
    for start in range(0, len(train), block):
        part = np.asarray(train[start : start + block], np.float32)
        scores = queries @ part.T
        scores *= -2
        scores += squares[start : start + len(part)].astype(np.float32)
        some = min(count, len(part))
        chosen = np.argpartition(scores, some - 1, axis=1)[:, :some]
        best = np.concatenate([best, np.take_along_axis(scores, chosen, 1)], 1)
        ids = np.concatenate([ids, chosen.astype(np.int32) + np.int32(start)], 1)
        if best.shape[1] > count:
            chosen = np.argpartition(best, count - 1, axis=1)[:, :count]
            best = np.take_along_axis(best, chosen, 1)
            ids = np.take_along_axis(ids, chosen, 1)
    return best, ids


def _squared_distances(train: npt.NDArray[Any], query: npt.NDArray[np.float64], block: int) -> npt.NDArray[np.float64]:
    """To every row, in float64; in blocks, as a float64 copy of train would not fit everywhere."""
    squared = np.empty(len(train))
    for start in range(0, len(train), block):
        part = train[start : start + block].astype(np.float64)
        squared[start : start + block] = ((part - query) ** 2).sum(1)
    return squared
