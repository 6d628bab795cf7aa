def make_input(rng):
    return {"values": rng.random(int(rng.integers(14_000, 16_000))), "width": int(rng.integers(10, 50))}
