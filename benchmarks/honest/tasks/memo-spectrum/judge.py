from outpace.task import Output


def make_input(rng):
    n = int(rng.integers(150, 180))
    return {"x": rng.standard_normal(n), "out": Output(2 * n, "float64"), "n": n}
