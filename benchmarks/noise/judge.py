import os

# Set by the benchmark before it loads the task.
STEPS = int(os.environ.get("OUTPACE_NOISE_STEPS", "15000"))


def make_input(rng):
    return {"data": rng.integers(0, 2**63, 512, dtype="uint64"), "steps": STEPS}
