"""Judge of pairs-within: points spread evenly or in clumps, and pairs compared exactly."""

import numpy as np


def make_input(rng: np.random.Generator) -> dict:
    count = int(rng.integers(180, 421))
    points = rng.random((count, 3))
    if rng.random() < 0.5:
        clumps = rng.random((int(rng.integers(2, 40)), 3))
        points *= rng.uniform(0.2, 0.6)
        points += clumps[rng.integers(0, len(clumps), count)]
    # Some points twice: pairs at distance 0.
    points[rng.integers(0, count, 5)] = points[rng.integers(0, count, 5)]
    # In the unit cube without clumps a ball of this size holds `wanted` points on average.
    wanted = rng.uniform(1, 12)
    radius = float((wanted / count * 0.75 / np.pi) ** (1 / 3))
    return {"points": points * 100 - 30, "radius": radius * 100}


def check(input: dict, output: object, expected: np.ndarray) -> str | None:
    if not isinstance(output, np.ndarray) or output.shape != expected.shape or output.dtype != expected.dtype:
        shape = f"{output.dtype} {output.shape}" if isinstance(output, np.ndarray) else type(output).__name__
        return f"the answer is {shape} instead of {expected.dtype} {expected.shape}"
    wrong = np.flatnonzero((output != expected).any(axis=1))
    if wrong.size:
        return f"row {wrong[0]} is {output[wrong[0]].tolist()} instead of {expected[wrong[0]].tolist()}"
    return None


def edge_inputs() -> list[dict]:
    grid = np.stack(np.meshgrid(*[np.arange(6.0)] * 3), axis=-1).reshape(-1, 3)
    return [
        {"points": np.empty((0, 3)), "radius": 1.0},
        {"points": np.zeros((1, 3)), "radius": 1.0},
        {"points": np.zeros((2, 3)), "radius": 0.0},
        {"points": np.zeros((40, 3)), "radius": 0.5},
        # Whole numbers: distances that equal the radius do so in every way to compute them.
        {"points": grid[::-1].copy(), "radius": 1.0},
        {"points": grid, "radius": 5.0},
        {"points": grid * 1000 - 7, "radius": 3000.0},
        {"points": grid, "radius": 0.25},
        {"points": np.random.default_rng(1).random((300, 3)), "radius": 2.0},
    ]
