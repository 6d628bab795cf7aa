def make_input(rng):
    return {"values": rng.integers(0, 256, int(rng.integers(40_000, 50_000)), dtype="int64")}
