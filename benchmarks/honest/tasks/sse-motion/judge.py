def make_input(rng):
    height, width = rng.integers(80, 100, 2).tolist()
    return {
        "picture": rng.integers(0, 256, (height, width), dtype="uint8"),
        "height": height,
        "width": width,
        "block": rng.integers(0, 256, (16, 16), dtype="uint8"),
    }
