def make_input(rng):
    n = int(rng.integers(30_000, 40_000))
    return {"a": rng.random(n), "b": rng.random(n), "n": n}
