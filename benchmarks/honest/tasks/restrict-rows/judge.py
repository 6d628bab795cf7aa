from outpace.task import Output


def make_input(rng):
    height, width = rng.integers(190, 220, 2).tolist()
    return {
        "matrix": rng.random((height, width), dtype="float32"),
        "weights": rng.random(height, dtype="float32"),
        "sums": Output(width, "float32"),
        "height": height,
        "width": width,
    }
