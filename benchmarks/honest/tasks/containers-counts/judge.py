def make_input(rng):
    n = int(rng.integers(4_000, 5_000))
    return {"values": rng.integers(0, 500, n, dtype="uint32"), "n": n}
