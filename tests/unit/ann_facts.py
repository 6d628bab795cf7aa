"""What the tests of the index share: sets with clusters, true answers by brute force, and how good an answer is."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[Any]


def centres(seed: int, count: int, dimension: int) -> Floats:
    return np.random.default_rng(seed).standard_normal((count, dimension))


def clustered(seed: int, count: int, around: Floats, spread: float = 0.4) -> npt.NDArray[np.float32]:
    """Vectors in clusters, as embeddings lie; the same `around` with another seed gives more of the same kind."""
    random = np.random.default_rng(seed)
    chosen = around[random.integers(0, len(around), count)]
    return (chosen + spread * random.standard_normal(chosen.shape)).astype(np.float32)


def all_distances(vectors: Rows, queries: Rows, metric: str) -> Floats:
    """By definition, in double precision: one row per query, one column per vector."""
    x, q = vectors.astype(np.float64), np.atleast_2d(queries).astype(np.float64)
    if metric == "cosine":
        x, q = x / np.linalg.norm(x, axis=1, keepdims=True), q / np.linalg.norm(q, axis=1, keepdims=True)
    products = q @ x.T
    if metric == "cosine":
        return 1 - products
    if metric == "ip":
        return -products
    middle = x.mean(axis=0)  # moved there, squares do not swallow small distances
    x, q = x - middle, q - middle
    return np.maximum((q * q).sum(axis=1)[:, None] + (x * x).sum(axis=1)[None] - 2 * (q @ x.T), 0)


def recall_of(truth: Floats, columns: npt.NDArray[np.int64], tolerance: float = 1e-3) -> float:
    """The mean share of the nearest that were found; a vector as near as the last of them is as good.

    `truth` is infinite where a vector may not be an answer; `columns` are answers, -1 where there is none.
    """
    columns = np.atleast_2d(columns)
    k = columns.shape[1]
    shares = []
    for row, found in zip(np.atleast_2d(truth), columns, strict=True):
        nearest = np.sort(row)[:k]
        possible = int(np.isfinite(nearest).sum())
        if not possible:
            continue
        limit = nearest[possible - 1] + tolerance * abs(nearest[possible - 1])
        hits = len({c for c in found.tolist() if c >= 0 and row[c] <= limit})
        shares.append(min(hits, possible) / possible)
    return float(np.mean(shares))
