from outpace.task import Output


def make_input(rng):
    n = int(rng.integers(20_000, 24_000))
    return {"x": rng.random(n) * 100, "out": Output(n, "float64"), "n": n}
