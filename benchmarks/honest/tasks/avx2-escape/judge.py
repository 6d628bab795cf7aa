from outpace.task import Output


def make_input(rng):
    n = int(rng.integers(2_000, 2_400))
    return {"x": rng.uniform(-2, 1, n), "y": rng.uniform(-1, 1, n), "steps": Output(n, "int32"), "n": n}
