"""Judge of string-search: texts of three kinds, and patterns cut from them or nearly so."""

from functools import cache

import numpy as np

from outpace.task import Output

CAPACITY = 8192
LETTERS = b"abcdefghijklmnopqrstuvwxyz"
KINDS = ("prose", "log", "sequence")


@cache
def stock(kind: str) -> bytes:
    """A long text to cut from: making text costs more than searching it, so it is made once."""
    rng = np.random.default_rng(KINDS.index(kind))
    if kind == "sequence":
        text = np.frombuffer(b"acgt", np.uint8)[rng.integers(0, 4, 1 << 20)]
        # Repeats, as genes have them: without any, long patterns would occur once.
        for start in rng.integers(0, len(text) - 400, 3000):
            text[start : start + 60] = text[:60]
        return text.tobytes()
    weights = 1.0 / np.arange(2, 28)
    alphabet = np.frombuffer(b"etaoinshrdlcumwfgypbvkjxqz", np.uint8)
    letters = rng.choice(alphabet, 30000, p=weights / weights.sum())
    lengths = np.clip(rng.poisson(4, 3000) + 1, 1, 14)
    words = [part.tobytes() for part in np.split(letters[: lengths.sum()], np.cumsum(lengths)[:-1])]
    weights = 1.0 / np.arange(5, len(words) + 5)
    picks = rng.choice(len(words), 120_000, p=weights / weights.sum()).tolist()
    if kind == "prose":
        ends = rng.choice(np.array([b" ", b" ", b" ", b" ", b" ", b", ", b".\n"]), len(picks))
        return b"".join([words[w] + end for w, end in zip(picks, ends.tolist(), strict=True)])
    numbers = rng.integers(0, 100_000, (20_000, 2)).tolist()
    levels = rng.choice(np.array([b"info", b"info", b"debug", b"error"]), len(numbers)).tolist()
    return b"".join(
        [
            b"12:%02d:%05d %s %s.%s took %d us\n" % (a % 60, b, level, words[v], words[w], a)
            for (a, b), level, v, w in zip(numbers, levels, picks, picks[20_000:], strict=False)
        ]
    )


def make_input(rng: np.random.Generator) -> dict:
    kind = KINDS[int(rng.integers(0, len(KINDS)))]
    source = stock(kind)
    size = int(rng.integers(40_000, 110_000))
    start = int(rng.integers(0, len(source) - size))
    order = rng.permutation(np.frombuffer(LETTERS, np.uint8)).tobytes()
    text = source[start : start + size].translate(bytes.maketrans(LETTERS, order))
    low, high = (6, 20) if kind == "sequence" else (3, 12)
    patterns: list[bytes] = []
    for _ in range(int(rng.integers(4, 17))):
        at, length, how = rng.integers((0, low, 0), (size - high, high, 6)).tolist()
        pattern = text[at : at + length]
        if how == 0:  # one that nearly matches
            pattern = pattern[:-1] + bytes([pattern[-1] ^ 1])
        elif how == 1 and patterns:  # one that begins like, or contains, an earlier one
            pattern = (patterns[-1] + pattern)[:high]
        patterns.append(pattern)
    # Often fewer than there are occurrences, of which there may be some hundreds.
    return search(text, patterns, int(2 ** rng.uniform(4, 13)))


def search(text: bytes, patterns: list[bytes], capacity: int = CAPACITY) -> dict:
    return {
        "text": text,
        "bytes": len(text),
        "patterns": b"".join(patterns),
        "starts": np.cumsum([0, *map(len, patterns)]).astype(np.int32),
        "count": len(patterns),
        "where": Output(capacity, "int32"),
        "which": Output(capacity, "int32"),
        "capacity": capacity,
    }


def check(input: dict, output: dict, expected: dict) -> str | None:
    if output["return"] != expected["return"]:
        return f"found {output['return']} occurrences instead of {expected['return']}"
    listed = min(expected["return"], input["capacity"])
    for name in ("where", "which"):
        wrong = np.flatnonzero(output[name][:listed] != expected[name][:listed])
        if wrong.size:
            i = wrong[0]
            return f"{name}[{i}] is {output[name][i]} instead of {expected[name][i]}"
    return None


def edge_inputs() -> list[dict]:
    return [
        search(b"", [b"a"]),
        search(b"a", [b"a", b"aa", b"b"]),
        search(b"a" * 500, [b"a", b"aa", b"aaa", b"aa"]),
        search(b"a" * 5000, [b"a", b"aa", b"a" * 100]),
        search(b"abcabcab", [b"abcabc", b"cab", b"bca", b"abcabcab", b"abcabcabc", b"b"]),
        search(b"x" * 3000 + b"needle", [b"needle", b"needles", b"eedle", b"dle", b"e"]),
        search(bytes(range(256)) * 3, [b"\0", b"\0\1", b"\xff\0", b"\xff", b"\x7f\x80\x81"]),
        search(b"ab\0", [b"b\0\0", b"b\0", b"\0"]),
        search(b"the end of a text" * 9, [bytes([b]) + b"e" for b in range(64, 128)]),
    ]
