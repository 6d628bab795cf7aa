from outpace.task import Output


def make_input(rng):
    n = 16 * int(rng.integers(4, 8))
    a, b = rng.random((2, n, n), dtype="float32")
    return {"a": a, "b": b, "c": Output((n, n), "float32"), "n": n}
