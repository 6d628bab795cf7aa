"""Judge of kmeans: overlapping clusters, labels compared exactly and centres closely."""

import numpy as np

from outpace.task import Output

TOLERANCE = 1e-9


def make_input(rng: np.random.Generator) -> dict:
    count, dim, k = rng.integers((300, 3, 8), (701, 21, 33)).tolist()
    clumps = rng.standard_normal((int(rng.integers(3, 2 * k)), dim), dtype=np.float32) * np.float32(1.5)
    points = rng.standard_normal((count, dim), dtype=np.float32)
    points += clumps[rng.integers(0, len(clumps), count)]
    # Starting from points of the data, often of one clump, leaves far to go, so that no round can be skipped.
    first = int(rng.integers(0, count - k))
    centres = points[first : first + k].copy()
    ties = near_ties(centres)
    points[rng.permutation(count)[: len(ties)]] = ties
    return clusters(points, centres, int(rng.integers(4, 9)))


def near_ties(centres: np.ndarray) -> np.ndarray:
    """Points halfway between a centre and its nearest neighbour but for float32's rounding.

    Distances in float32 mistake the side of many. Exact ties are left out: there the order of a sum would
    decide.
    """
    squared = ((centres[:, None] - centres) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    others = centres[squared.argmin(axis=1)]
    halfway = (centres + others) / 2
    exact = halfway.astype(np.float64)
    gap = ((exact - centres) ** 2 - (exact - others) ** 2).sum(axis=1)
    return halfway[np.abs(gap) > 1e-9]


def clusters(points: np.ndarray, centres: np.ndarray, rounds: int) -> dict:
    return {
        "points": points.astype(np.float32),
        "count": points.shape[0],
        "dim": points.shape[1],
        "centres": centres.astype(np.float64),
        "k": centres.shape[0],
        "labels": Output(points.shape[0], "int32"),
        "rounds": rounds,
    }


def check(input: dict, output: dict, expected: dict) -> str | None:
    wrong = np.flatnonzero(output["labels"] != expected["labels"])
    if wrong.size:
        got, right = output["labels"][wrong[0]], expected["labels"][wrong[0]]
        return f"{wrong.size} labels differ: labels[{wrong[0]}] is {got} instead of {right}"
    error = np.abs(output["centres"] - expected["centres"])
    # Written so that a NaN is outside.
    if not (error <= TOLERANCE * np.abs(input["points"]).max()).all():
        return f"a centre is off by {error.max()}"
    return None


def edge_inputs() -> list[dict]:
    rng = np.random.default_rng(1)
    grid = np.stack(np.meshgrid(np.arange(-3, 4), np.arange(-3, 4)), axis=-1).reshape(-1, 2)
    return [
        clusters(np.array([[2.5]]), np.array([[1.0]]), 1),
        clusters(np.array([[2.5]]), np.array([[1.0], [4.0], [3.0]]), 3),
        # Whole numbers, so that ties are ties in every way to compute them: the first centre wins.
        clusters(grid, np.array([[-1, 0], [1, 0], [0, -1], [0, 1], [1, 0]]), 1),
        clusters(np.repeat(grid, 3, axis=0), grid[:9], 1),
        clusters(rng.standard_normal((64, 5)), rng.standard_normal((64, 5)), 5),
        clusters(rng.standard_normal((1000, 1)), rng.standard_normal((33, 1)), 9),
        clusters(rng.standard_normal((7, 100)) * 1e-3, rng.standard_normal((5, 100)) + 50, 2),
    ]
