import numpy as np

from outpace.task import Output


def make_input(rng):
    n = int(rng.integers(14_000, 16_000))
    a, b = np.sort(rng.integers(0, 2**31, (2, n), dtype="int32"))
    return {"a": a, "b": b, "out": Output(2 * n, "int32"), "n": n}
