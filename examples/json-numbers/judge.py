"""Judge of json-numbers: records drawn one by one from long texts, digits redrawn and sometimes a byte broken."""

import json
from functools import cache

import numpy as np

from outpace.task import Output


@cache
def stock(indent: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Many records as text, where each starts, and which bits of its bytes may change.

    Writing records one by one costs more than reading them, so it is done once. Flipping the lowest bits of a
    digit gives another digit: three bits below 8, one bit for 8 and 9. A digit that begins a number stays,
    since a number must not begin with a 0. A digit of an escape becomes another one, which is as good.
    """
    rng = np.random.default_rng(indent or 0)
    letters = rng.integers(97, 123, 1 << 16, dtype=np.uint8).tobytes().decode()

    def word(low: int, high: int) -> str:
        start = int(rng.integers(0, 60000))
        return letters[start : start + int(rng.integers(low, high))]

    records = []
    for number in range(3000):
        record: dict[str, object] = {
            "id": int(rng.integers(1, 10 ** int(rng.integers(1, 12)))),
            "name": f"{word(3, 12)} {word(2, 14)}",
            "place": [round(float(x), int(rng.integers(1, 7))) for x in rng.uniform(-180, 180, 2)],
            "price": round(float(rng.lognormal(3, 1.5)), 2),
            "active": number % 3 != 0,
        }
        if number % 4 == 0:
            record["readings"] = rng.standard_normal(int(rng.integers(0, 9))).tolist()
        if number % 5 == 0:
            record["owner"] = {
                "mail": f"{word(2, 9)}@{word(3, 9)}.org",
                "age": int(rng.integers(1, 100)),
                "next": None,
            }
        if number % 7 == 0:
            record["note"] = f'{word(3, 30)} "{word(2, 8)}"\n\t\\ {word(1, 60)} \u00e9\u4e2d {number}'
        if number % 11 == 0:
            record["tiny"] = float(rng.random() * 10.0 ** int(rng.integers(-90, 91)))
            record["none"] = [[], {}, [[0], -0.0, 0]]
        records.append(json.dumps(record, indent=indent, separators=None if indent else (",", ":")) + ",")
    text = np.frombuffer("".join(records).encode(), np.uint8)
    starts = np.cumsum([0, *map(len, records)])
    digit = (text >= ord("0")) & (text <= ord("9"))
    inside = digit & np.roll(digit | (text == ord(".")), 1)
    return text, starts, np.where(inside, np.where(text < ord("8"), 7, 1), 0).astype(np.uint8)


def make_input(rng: np.random.Generator) -> dict:
    text, starts, bits = stock(2 if rng.random() < 0.3 else None)
    # In an order of their own: of a stretch of the long text, whoever knows that by heart would know all records.
    records = rng.integers(0, len(starts) - 1, 3000)
    ends = np.cumsum(starts[records + 1] - starts[records])
    count = int(np.searchsorted(ends, int(rng.integers(40_000, 120_000)))) + 1
    first, ends = starts[records[:count]], ends[:count]
    lengths = np.diff(ends, prepend=0)
    part = np.arange(ends[-1]) + np.repeat(first - ends + lengths, lengths)
    noise = rng.integers(0, 1 << 64, (len(part) + 7) // 8, dtype=np.uint64).view(np.uint8)
    body = (text[part] ^ (bits[part] & noise[: len(part)]))[:-1]
    if rng.random() < 0.2:
        # Late, so that a broken text costs nearly as much as a sound one.
        at = int(rng.integers(0.8 * len(body), len(body)))
        body[at] = rng.choice(np.frombuffer(b'",:]}[{\\x-.e0\n', np.uint8))
    return document(b"[" + body.tobytes() + b"]")


def document(text: bytes) -> dict:
    return {"text": text, "bytes": len(text), "numbers": Output(len(text) // 2 + 1, "float64")}


def check(input: dict, output: dict, expected: dict) -> str | None:
    count = expected["return"]
    if output["return"] != count:
        return f"returned {output['return']} instead of {count}"
    if count <= 0:
        return None
    # As bits, which tells -0 from 0 and needs no word on NaN.
    got, right = (answer["numbers"][:count].view(np.int64) for answer in (output, expected))
    wrong = np.flatnonzero(got != right)
    if wrong.size:
        i = wrong[0]
        return f"number {i} is {float(output['numbers'][i])!r} instead of {float(expected['numbers'][i])!r}"
    return None


def edge_inputs() -> list[dict]:
    sound = [
        b"0", b" -0 ", b"1", b'""', b"[]", b"{}", b"\t\r\n null \n", b"true",
        b'"\\u00Af\\"\\\\\\/\\b\\f\\n\\r\\t"', b'{"a":{"b":[1,2,[3]],"":4},"a":5}',
        b"[1,-2.5e+3,1E5,0e0,-0.0,0.1,1e-7,123456789012345678]",
        b"[2.2250738585072014e-308,5e-324,1.7976931348623157e308,9007199254740993,0.30000000000000004]",
        b"[9007199254740992.999999999999999999999,179769313486231570000000000000e270,1e22,1e23,8.5e-23]",
        b"[1.00000000000000011102230246251565404236316680908203125,1.00000000000000011102230246251565404]",
        b"[0.000000000000000000000000000000000001,0.1234567,12345678.5,123456789.5,123456789012.5]",
        b"[0.123456789012345,0.1234567890123456,1.2345678901234567,123456789012345,1234567890123456]",
        b"[" * 128 + b"]" * 128, b'"' + bytes(range(128, 256)) + b'"', b'"\x7f' + b"long enough " * 9 + b'"',
    ]  # fmt: skip
    broken = [
        b"", b" ", b"-", b"01", b"1.", b".5", b"1e", b"1e+", b"+1", b"0x1", b"1 2", b"1e5.5", b"1\x0b",
        b"-01", b"--1", b"[1,]", b"[,1]", b"[1 2]", b"[1", b"1]", b"[1}", b'{"a":1]', b'{"a"}', b'{"a":}',
        b'{"a":1,}', b'{"a":1 "b":2}', b"{a:1}", b"{1:2}", b'"', b'"\\', b'"\\"', b'"\\x"', b'"\\u12g4"',
        b'"\\u12', b'"\n"', b'"a\0"', b"[1]\0", b"nul", b"nulll", b"truefalse", b"NaN", b"Infinity",
        b"-Infinity", b"'a'", b"/**/1", b"\xef\xbb\xbf1", b"[" * 129 + b"]" * 129,
        b'"' + b"long enough " * 9 + b'\x1f"',
    ]  # fmt: skip
    return [document(text) for text in sound + broken]
