import numpy as np

from outpace.task import Output


def make_input(rng):
    n, m = int(rng.integers(400, 500)), int(rng.integers(3_000, 3_300))
    return {
        "sorted": np.sort(rng.integers(0, 10_000, n, dtype="int32")),
        "n": n,
        "wanted": rng.integers(0, 10_000, m, dtype="int32"),
        "out": Output(m, "int32"),
        "m": m,
    }
