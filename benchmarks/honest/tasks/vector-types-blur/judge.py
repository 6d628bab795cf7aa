from outpace.task import Output


def make_input(rng):
    height, width = int(rng.integers(190, 220)), 8 * int(rng.integers(24, 28))
    image = rng.random((height, width), dtype="float32")
    return {"in": image, "out": Output((height, width), "float32"), "height": height, "width": width}
