"""Precision: the narrowest kind of number that holds vectors without loss, or without losing their neighbours."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[Any]

HALF_LARGEST = 65504.0
# Rounding may cost half of the misses that a recall of 0.999 has; the other half is for the search.
KEPT = 0.9995
# Where half precision was asked for, it may cost more, but not as much as a recall is promised to.
MUCH_KEPT = 0.99
QUERIES = 300
# Kept neighbours are counted for each of these numbers of them: so few are lost that the nearest ten alone tell little.
NEIGHBOURS = range(5, 41)
CHUNK = 16 << 20  # bytes of a part as float64, or of its distances to the queries


def largest(data: Rows) -> float:
    """The largest magnitude; NaN and infinity are left to the check that names them."""
    return max((float(np.abs(part.astype(np.float32)).max()) for part in chunks(data)), default=0.0)


def narrowest(vectors: Rows) -> Rows:
    """Floats that are all small whole numbers, as pixels and histograms are, as bytes; others as they are."""
    for kind in (np.uint8, np.int8):
        if all(whole_in(part, kind) for part in chunks(vectors)):
            return vectors.astype(kind)
    return vectors


def whole_in(vectors: Rows, kind: type[np.integer[Any]]) -> bool:
    """Whether bytes of this kind hold the numbers without loss."""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    return bool(((vectors >= low) & (vectors <= high) & (vectors == np.floor(vectors))).all())


def holder(vectors: Rows, stored: str, metric: str) -> str:
    """The kind of number that an index must store to hold these vectors beside its own; often what it stores."""
    # Numbers that are not finite are told by the check that names them, and normalised vectors fit everywhere.
    if metric == "cosine" or stored == "float32" or not np.isfinite(vectors).all():
        return stored
    if stored in ("int8", "uint8"):
        if vectors.dtype == stored or whole_in(vectors.astype(np.float32), getattr(np, stored)):
            return stored
        return "float32" if vectors.dtype == np.float32 else "float16"  # which holds all bytes
    return stored if vectors.dtype != np.float32 or largest(vectors) <= HALF_LARGEST else "float32"


def half_is_enough(data: Rows, metric: str, seed: int) -> bool:
    """Whether half precision keeps the neighbours."""
    return kept_by_half(data, metric, seed) >= KEPT


def kept_by_half(data: Rows, metric: str, seed: int) -> float:
    """The share of neighbours that rows rounded to half precision keep, as far as a sample can tell."""
    if metric != "cosine" and data.dtype != np.float32:
        return 1.0  # bytes and float16 are stored without loss
    if metric != "cosine" and not largest(data) <= HALF_LARGEST:
        return 0.0
    # float32 products lose small distances far from the origin, which moving the origin does not change under l2.
    origin = data[: min(len(data), 1000)].astype(np.float64).mean(axis=0) if metric == "l2" else 0.0
    chosen = np.random.default_rng(seed).choice(len(data), min(QUERIES, len(data)), replace=False)
    queries = in_space(data[chosen], metric)
    near = nearest(data, queries - origin, metric, origin)
    kept = [overlap(queries[i], in_space(data[near[i]], metric), metric) for i in range(len(queries))]
    return float(np.mean(kept))


def warn_of_loss(data: Rows, metric: str, seed: int) -> None:
    """Says so where half precision, which was asked for, loses neighbours: the index itself could not see it."""
    kept = kept_by_half(data, metric, seed)
    if kept < MUCH_KEPT:
        warnings.warn(
            f"half precision loses {1 - kept:.1%} of the neighbours of these vectors, and the recall that is measured "
            "does not show it; subtract their mean, scale them to about 1, or use precision='full', profile='fast'",
            stacklevel=3,
        )


def chunks(data: Rows) -> list[Rows]:
    rows = max(CHUNK // (8 * max(data.shape[1], QUERIES)), 1)
    return [data[at : at + rows] for at in range(0, len(data), rows)]


def in_space(data: Rows, metric: str) -> npt.NDArray[np.float64]:
    """Rows as the index compares them."""
    wide = data.astype(np.float64)
    if metric != "cosine":
        return wide
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(norms > 0, norms, 1.0)


def distances(query: npt.NDArray[np.float64], data: npt.NDArray[np.float64], metric: str) -> npt.NDArray[np.float64]:
    if metric == "l2":
        return np.asarray(((data - query) ** 2).sum(axis=1))
    return np.asarray(-(data @ query))


def nearest(data: Rows, queries: npt.NDArray[np.float64], metric: str, origin: Any) -> npt.NDArray[np.int64]:
    """The rows that could be among each query's neighbours, from products in single precision."""
    wanted = min(len(data), NEIGHBOURS.stop * 3 // 2)
    narrow = queries.astype(np.float32)
    best = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    first = 0
    for part in chunks(data):
        moved = (in_space(part, metric) - origin).astype(np.float32)
        found = -2 * (narrow @ moved.T)
        if metric == "l2":
            found += (moved * moved).sum(axis=1)
        best = np.concatenate([best, found], axis=1)
        rows = np.concatenate([rows, np.broadcast_to(np.arange(first, first + len(part)), found.shape)], axis=1)
        first += len(part)
        order = np.argpartition(best, min(wanted, best.shape[1] - 1), axis=1)[:, :wanted]
        best, rows = np.take_along_axis(best, order, axis=1), np.take_along_axis(rows, order, axis=1)
    return rows


def overlap(query: npt.NDArray[np.float64], data: npt.NDArray[np.float64], metric: str) -> float:
    """The share of a query's neighbours that are as near after rounding as the true ones."""
    true = distances(query, data, metric)
    rounded = distances(query, data.astype(np.float16).astype(np.float64), metric)
    found = true[np.lexsort((-true, rounded))]  # what rounding made equal comes in the worst order
    limits = np.sort(true)
    counts = [min(count, len(data)) for count in NEIGHBOURS]
    return float(np.mean([(found[:count] <= limits[count - 1]).mean() for count in counts]))
