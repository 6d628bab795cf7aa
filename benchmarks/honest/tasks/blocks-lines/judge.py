import numpy as np


def make_input(rng):
    letters = rng.integers(97, 123, int(rng.integers(3_000_000, 3_500_000)), dtype="uint8")
    letters[rng.random(len(letters)) < 0.15] = ord(" ")
    letters[rng.random(len(letters)) < 0.02] = ord("\n")
    return {"stdin": np.append(letters, np.uint8(10)).tobytes()}
