def make_input(rng):
    n = int(rng.integers(12_000, 15_000))
    return {"values": rng.integers(0, 2**32, n, dtype="uint32"), "n": n}
