"""Judge of csv-sum: order lists drawn line by line from long ones, with every digit and every letter redrawn."""

from functools import cache

import numpy as np

from outpace.task import Output

CAPACITY = 200
HEADING = b"store,item,quantity,price\n"
LETTERS = b"abcdefghijklmnopqrstuvwxyz"


@cache
def stock(stores: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A long order list, where its lines start, and which bits of its bytes may change.

    Making lines one by one costs more than summing them, so it is done once. Flipping the lowest bits of a
    digit gives another digit: three bits below 8, one bit for 8 and 9.
    """
    rng = np.random.default_rng(stores)
    letters = rng.integers(97, 123, 1 << 16, dtype=np.uint8).tobytes().decode()

    def word(low: int, high: int) -> str:
        start = int(rng.integers(0, 60000))
        return letters[start : start + int(rng.integers(low, high))]

    names: dict[str, None] = {}
    while len(names) < stores:
        name = word(2, 9).capitalize()
        # Names that share a long beginning or an end, so that a glance at a few bytes cannot tell them apart.
        names.update(dict.fromkeys([name, f"{name} Street", f"{name} Street North"][: 1 + len(names) % 3]))
    known = list(names)[:stores]
    items = [f"{word(3, 9)} {word(3, 12)}" for _ in range(150)]
    items += [f'"{word(3, 9)}, {word(2, 9)}"' for _ in range(50)]
    items += [f'"{word(2, 9)} ""{word(3, 8)}"", {word(1, 5)}"' for _ in range(25)]
    quantities = [
        "",
        "-1",
        *(str(int(q)) for q in rng.geometric(0.2, 60)),
        *(str(100 * q) for q in range(1, 9)),
    ]
    prices = ["", "-4.50", "7", "12.5", *(f"{p:.2f}" for p in rng.lognormal(3, 1.2, 300))]

    count = 9000
    # A few stores take most of the orders, as they do in life.
    who = np.minimum(rng.exponential(stores / 3, count), stores * rng.random(count)).astype(int)
    rows = zip(who, *(rng.integers(0, len(x), count) for x in (items, quantities, prices)), strict=True)
    lines = [f"{known[s]},{items[i]},{quantities[q]},{prices[p]}\n" for s, i, q, p in rows]
    text = np.frombuffer("".join(lines).encode(), np.uint8)
    starts = np.cumsum([0, *map(len, lines)])
    digits = (text >= ord("0")) & (text <= ord("9"))
    bits = np.where(digits, np.where(text < ord("8"), 7, 1), 0).astype(np.uint8)
    return text, starts, bits


def make_input(rng: np.random.Generator) -> dict:
    stores = (8, 40, 90, 180)[int(rng.integers(4))]
    text, starts, bits = stock(stores)
    # In an order of their own: of a stretch of the long list, whoever knows that by heart would know all lines.
    lines = rng.integers(0, len(starts) - 1, int(rng.integers(1800, 4500)))
    lengths = starts[lines + 1] - starts[lines]
    ends = np.cumsum(lengths)
    part = np.arange(ends[-1]) + np.repeat(starts[lines] - ends + lengths, lengths)
    # 24 KB of noise, repeated: lines do not repeat with it, and drawing it is a good part of the cost.
    noise = rng.integers(0, 1 << 64, 3 << 10, dtype=np.uint64).view(np.uint8)
    body = text[part] ^ (bits[part] & np.resize(noise, len(part)))
    order = rng.permutation(np.frombuffer(LETTERS, np.uint8)).tobytes()
    body = body.tobytes().translate(bytes.maketrans(LETTERS + LETTERS.upper(), order + order.upper()))
    return orders(HEADING + (body if rng.random() < 0.5 else body[:-1]), int(rng.integers(stores, CAPACITY + 1)))


def orders(text: bytes, capacity: int = CAPACITY) -> dict:
    return {
        "text": text,
        "bytes": len(text),
        "first": Output(capacity, "int64"),
        "units": Output(capacity, "int64"),
        "cents": Output(capacity, "int64"),
        "capacity": capacity,
    }


def edge_inputs() -> list[dict]:
    bodies = [
        b"",
        b"a,,,",
        b"a,,,\n",
        b'a,"",1,1\na,"""",2,1\na,",",3,1\na,""",""",4,1\n',
        b"a,x,1,1\nab,x,1,1\nabc,x,1,1\nb,x,1,1\nab,x,1,1",
        b"a,x,-3,-0.5\na,x,-0,5.0\na,x,007,0.25\na,x,000000001,0000001.9\n",
        b"a,x,999999999,9999999.99\n" * 3 + b"a,x,-999999999,9999999.99\n",
        b"".join(b"s%d,x,%d,1\n" % (i, i) for i in range(CAPACITY)),
        b"".join(b"%s,x,1,1\n" % (b"n" * i) for i in range(1, CAPACITY + 1)),
    ]
    return [orders(HEADING[:-1]), *(orders(HEADING + body) for body in bodies)]
