from outpace.task import Output


def make_input(rng):
    n = 2 * int(rng.integers(180, 220))
    words = {name: rng.integers(0, 2**32, n, dtype="uint32") for name in ("a", "b")}
    return {**words, "out": Output(2 * n, "uint32"), "n": n}
