def make_input(rng):
    n, m = rng.integers(60, 70, 2).tolist()
    return {"a": rng.random((n, 3)), "b": rng.random((m, 3))}
