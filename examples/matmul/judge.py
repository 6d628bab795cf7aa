"""Judge of matmul: matrices of odd sizes and mixed scales, checked relative to their rows and columns."""

import numpy as np

from outpace.task import Output

# Float32 sums of 170 terms stay below 1e-6 in any order; half precision leaves some 3e-5.
TOLERANCE = 4e-6


def make_input(rng: np.random.Generator) -> dict:
    m, k, n = rng.integers(70, 171, 3).tolist()
    a = rng.random((m, k), dtype=np.float32) - np.float32(0.5)
    b = rng.random((k, n), dtype=np.float32) - np.float32(0.5)
    # Scales apart by a thousand: one tolerance for the whole matrix would hide the small rows.
    a *= np.exp2(rng.integers(-5, 6, (m, 1))).astype(np.float32)
    b *= np.exp2(rng.integers(-5, 6, n)).astype(np.float32)
    return product(a, b)


def product(a: np.ndarray, b: np.ndarray) -> dict:
    (m, k), n = a.shape, b.shape[1]
    return {"a": a, "b": b, "c": Output((m, n), "float32"), "m": m, "k": k, "n": n}


def check(input: dict, output: dict, expected: dict) -> str | None:
    rows = np.sqrt(np.einsum("ij,ij->i", input["a"], input["a"]))
    columns = np.sqrt(np.einsum("ij,ij->j", input["b"], input["b"]))
    error = np.abs(output["c"].reshape(expected["c"].shape) - expected["c"])
    # Written so that a NaN is outside.
    outside = ~(error <= TOLERANCE * np.outer(rows, columns))
    if outside.any():
        i, j = np.argwhere(outside)[0]
        return f"c[{i}, {j}] is {output['c'][i, j]} instead of {expected['c'][i, j]}"
    return None


def edge_inputs() -> list[dict]:
    rng = np.random.default_rng(1)
    shapes = [(1, 1, 1), (1, 150, 1), (150, 1, 150), (1, 17, 33), (33, 17, 1), (64, 64, 64), (129, 255, 7)]
    return [
        product(rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32))
        for m, k, n in shapes
    ] + [product(np.zeros((9, 5), np.float32), np.zeros((5, 9), np.float32))]
