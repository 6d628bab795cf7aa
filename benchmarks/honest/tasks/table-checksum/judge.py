def make_input(rng):
    n = int(rng.integers(20_000, 24_000))
    return {"data": rng.integers(0, 256, n, dtype="uint8"), "n": n}
