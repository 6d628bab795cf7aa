def make_input(rng):
    n = int(rng.integers(3_600, 4_000))
    return {"values": rng.integers(0, 2 * n, n, dtype="uint32"), "n": n}
