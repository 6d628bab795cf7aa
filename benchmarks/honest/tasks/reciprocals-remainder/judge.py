from outpace.task import Output


def make_input(rng):
    n = int(rng.integers(60_000, 70_000))
    values = rng.integers(0, 2**32, n, dtype="uint32")
    return {"values": values, "out": Output(n, "uint32"), "divisor": int(rng.integers(3, 2**31)), "n": n}
