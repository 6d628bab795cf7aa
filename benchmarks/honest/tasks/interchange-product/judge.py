from outpace.task import Output


def make_input(rng):
    n = int(rng.integers(90, 110))
    return {"a": rng.random((n, n)), "b": rng.random((n, n)), "c": Output((n, n), "float64"), "n": n}
