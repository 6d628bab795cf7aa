"""Judge of dedupe-lines: log lines with repeats, with their letters and digits exchanged."""

from functools import cache

import numpy as np

LETTERS = b"abcdefghijklmnopqrstuvwxyz"
DIGITS = b"0123456789"


@cache
def stock() -> list[bytes]:
    """Different log lines, many of which begin alike; made once, since making is slow."""
    rng = np.random.default_rng(1)
    letters = rng.integers(97, 123, 1 << 16, dtype=np.uint8).tobytes()
    starts = rng.integers(0, 60_000, (20_000, 2)).tolist()
    sizes = rng.integers((3, 0), (20, 60), (20_000, 2)).tolist()
    common = rng.integers(0, 40, 20_000).tolist()
    return [
        b"%s request %d served %s %s" % (letters[10 * c : 10 * c + 12], number, letters[a : a + m], letters[b : b + n])
        if number % 5
        else b"%s %d" % (letters[c : c + 3], number)
        for number, ((a, b), (m, n), c) in enumerate(zip(starts, sizes, common, strict=True))
    ]


def make_input(rng: np.random.Generator) -> dict:
    lines = stock()
    count = int(rng.integers(3_000, 8_000))
    different = int(rng.uniform(0.1, 1.2) * count)
    first = int(rng.integers(0, len(lines) - different))
    # Some lines come often and others once.
    picks = first + (different * rng.random(count) ** 1.5).astype(np.int64)
    letters = rng.permutation(np.frombuffer(LETTERS, np.uint8)).tobytes()
    digits = rng.permutation(np.frombuffer(DIGITS, np.uint8)).tobytes()
    text = b"\n".join([lines[i] for i in picks.tolist()]).translate(bytes.maketrans(LETTERS + DIGITS, letters + digits))
    return {"stdin": text + b"\n" if rng.random() < 0.7 else text}


def edge_inputs() -> list[dict]:
    texts = [
        b"", b"\n", b"\n\n\n", b"a", b"a\n", b"a\na", b"a\n\na\n\nb", b"a\r\na\n", b"a \na\n a\n",
        b"\0\n\0\n\0\0\n", bytes(range(256)) * 20, b"x" * 300_000 + b"\n" + b"x" * 300_000,
        b"".join(b"%d\n" % i for i in range(50_000)), b"same line\n" * 20_000,
        b"".join(b"%d\n" % (i * i % 1009) for i in range(50_000)),
    ]  # fmt: skip
    return [{"stdin": text} for text in texts]
