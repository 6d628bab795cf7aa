"""Judge of word-count: texts cut from a long one, with their letters exchanged."""

from functools import cache

import numpy as np

LETTERS = b"abcdefghijklmnopqrstuvwxyz"


@cache
def stock() -> tuple[bytes, list[bytes]]:
    """A long text in Latin-1 and its words, the frequent ones first; made once, since making is slow."""
    rng = np.random.default_rng(1)
    letters = rng.integers(97, 123, 40_000, dtype=np.uint8)
    letters[rng.random(len(letters)) < 0.02] = ord("é".encode("latin-1"))
    lengths = np.clip(rng.poisson(5, 4000) + 1, 1, 16)
    words = [part.tobytes() for part in np.split(letters[: lengths.sum()], np.cumsum(lengths)[:-1])]
    words[50::40] = [word + b"'" + word[:2] for word in words[50::40]]
    words[60::40] = [word + b"-" + word[1:] for word in words[60::40]]
    forms = [b"%s "] * 5 + [b"%s, ", b"%s.\n", b"(%s) ", b'"%s," ', b"%s!?\r\n\n", b"-- %s: ", b"%s\t"]
    count = 150_000
    weights = 1.0 / np.arange(5, len(words) + 5)
    picks = rng.choice(len(words), count, p=weights / weights.sum())
    shapes = rng.integers(0, len(forms), count)
    # One in eight begins with a capital.
    capital = rng.random(count) < 0.125
    return b"".join(
        [
            forms[f] % (words[w].capitalize() if c else words[w])
            for w, f, c in zip(picks.tolist(), shapes.tolist(), capital.tolist(), strict=True)
        ]
    ), words


def make_input(rng: np.random.Generator) -> dict:
    text, words = stock()
    size = int(rng.integers(15_000, 50_000))
    start = int(rng.integers(0, len(text) - size))
    order = rng.permutation(np.frombuffer(LETTERS, np.uint8)).tobytes()
    exchange = bytes.maketrans(LETTERS + LETTERS.upper(), order + order.upper())
    common = rng.permutation(60)[: int(rng.integers(0, 30))].tolist()
    return {
        "text": text[start : start + size].translate(exchange).decode("latin-1"),
        "ignore": [words[w].translate(exchange).decode("latin-1") for w in common],
    }


def edge_inputs() -> list[dict]:
    return [
        {"text": "", "ignore": []},
        {"text": " \n\t ", "ignore": ["a"]},
        {"text": "...  -- !?", "ignore": []},
        {"text": "a A a. (a) 'a' a-a a'a -a- _a_", "ignore": []},
        {"text": "Don't stop, don't! DON'T", "ignore": ["stop", "missing", "stop"]},
        {"text": "É é état. x\u00a0y x\u0085y x\x1cy «é» ÿ µ ß", "ignore": ["é"]},
        {"text": "1,000 3.14 $5 50% a+b [x] {y} <z> `q` ~", "ignore": ["x", "3.14"]},
        {"text": "w" * 5000, "ignore": []},
    ]
