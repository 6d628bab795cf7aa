def make_input(rng):
    return {"wave": rng.random(4096), "times": int(rng.integers(20, 60))}
