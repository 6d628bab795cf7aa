def make_input(rng):
    words = [f"word{number}" for number in rng.integers(0, 600, int(rng.integers(900, 1_100))).tolist()]
    return {"words": words}
