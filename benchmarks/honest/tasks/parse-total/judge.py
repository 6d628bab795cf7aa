def make_input(rng):
    numbers = rng.integers(0, 10**6, int(rng.integers(500_000, 600_000)))
    return {"stdin": "\n".join(map(str, numbers.tolist())) + "\n"}
