from outpace.task import Output


def make_input(rng):
    n, lags = int(rng.integers(2_000, 2_400)), int(rng.integers(60, 80))
    return {"x": rng.random(n), "n": n, "out": Output(lags, "float64"), "lags": lags}
