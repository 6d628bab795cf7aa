"""The text of a generated judge.py: helpers that make values, and make_input put together from statements."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping, Sequence

from outpace.init import forms, ranges

SIZE = 256
# Small inputs, which loops by blocks and borders get wrong; those that the reference cannot take are left out.
EDGES = (0, 1, 2, 3, 4, 6, 9, 12, 17, 25, 33, 64, 100)
# In how many calls what is read has a pattern, where that works.
PATTERNS = 0.2
# How much longer than what is read an answer may be, to begin with.
ROOM = 2
# Names that mean something else in judge.py.
TAKEN = {
    *dir(builtins),
    *keyword.kwlist,
    "rng",
    "np",
    "Output",
    "SIZE",
    "EDGES",
    "ROOM",
    "most",
    "side",
    "draw_size",
    "PATTERNS",
}

_ROOM = (
    "# The room of an answer whose length is not known beforehand, as a multiple of what is read: an answer that is\n"
    "# cut off would not be checked to its end."
)
_PATTERNS = """# In this share of the calls a list, array or text is sorted, mirrored, or repeats some of its values.
PATTERNS = 0.0"""
_WORDS = """WORDS = (
    "the of and to in is that for it as was with be by on not his but at are this have from or had an they which one "
    "you were all there would their we him been has when who will more no if out so said what up its about into than "
    "them can only other new some could time these two may then do first any now such like our over even most made "
    "after also did many before must through years where much your way well down should because each just those "
    "people how too little state good very make world still own see men work long get here between both life being "
    "The And NASA Paris I In Zoe KiB"
).split()
# What stands between two words; # becomes a number, @ any letter or mark.
JOINS = (" ", " ", " ", " ", ", ", ". ", "; ", "\\n", " - ", " # ", " #.5 ", "! ", "  ", "\\t", ' "', "&")
JOINS += ("<#>", "@")"""
_TEXT = '''def make_text(rng: np.random.Generator, size: int) -> str:
    """Words and punctuation, exactly `size` characters."""
    count = size // 4 + 2
    words, joins, marks = (
        rng.integers(low, high, count).tolist() for low, high in ((0, len(WORDS)), (0, len(JOINS)), (33, 127))
    )
    numbers = (rng.uniform(-1, 1, count) * 10.0 ** rng.integers(0, 7, count)).astype(int).tolist()
    text = "".join(
        [
            WORDS[word] + JOINS[join].replace("#", str(number)).replace("@", chr(mark))
            for word, join, number, mark in zip(words, joins, numbers, marks, strict=True)
        ]
    )
    return text[:size].ljust(size, "a")'''
_JSON = '''def make_json(rng: np.random.Generator, size: int) -> str:
    """A list of small records, padded with spaces to exactly `size` characters."""
    form = '{"id": %d, "name": "%s",\\n  "ok": true, "xs": [%d.5, -2e3, null]}'
    numbers = rng.integers(0, 1000000, size // 96).tolist()
    records = [form % (number, WORDS[number % len(WORDS)], number % 1000) for number in numbers]
    return f"[{', '.join(records)}]".ljust(size)'''
_NUMBERS = '''def make_numbers(rng: np.random.Generator, size: int, digits: int = 9) -> str:
    """Numbers of up to so many digits, commas, spaces and line ends between them, exactly `size` characters."""
    count = size // 2 + 1
    numbers = (rng.uniform(-1, 1, count) * 10.0 ** rng.integers(1, digits + 1, count)).tolist()
    joins = rng.integers(0, 3, count).tolist()
    text = "".join([str(int(number)) + ", \\n"[join] for number, join in zip(numbers, joins, strict=True)])
    return text[:size]'''
_BYTES = '''def make_bytes(rng: np.random.Generator, size: int) -> np.ndarray:
    """All bytes, most of them alone, some in long runs."""
    runs = np.where(rng.random(size) < 0.01, rng.integers(2, 700, size), 1)
    return np.repeat(rng.integers(0, 256, size, dtype=np.uint8), runs)[:size]'''
_DRAW_SIZE = '''def draw_size(rng: np.random.Generator, most: int, least: int = 100) -> int:
    """A size from the upper half, but in a tenth of the calls a smaller one, down to `least`."""
    half = (most + 1) // 2
    small = half > least and rng.random() < 0.1
    return int(least * (half / least) ** rng.random()) if small else int(rng.integers(half, most + 1))'''
_MATRIX = '''def make_matrix(rng: np.random.Generator, side: int) -> np.ndarray:
    """A matrix whose diagonal outweighs the rest, row by row, half of them symmetric: it can be factored and solved."""
    drawn = rng.standard_normal((side, side))
    drawn = (drawn + drawn.T) / 2 if rng.random() < 0.5 else drawn
    return (drawn + 2 * side * np.diag(rng.uniform(1, 2, side))).reshape(-1)'''
_TIGHT = '''def tight(rng: np.random.Generator, room: int, most: int) -> int:
    """All the room there is; in edge inputs often less than the answer needs, which has to be noticed."""
    return room if most == SIZE else int(rng.integers(0, room + 1))'''
_PIECE = '''def make_piece(rng: np.random.Generator, text):
    """A part of `text`, mostly a short one, often changed in one place so that it is not found."""
    size = int(rng.integers(2, 9)) if rng.random() < 0.7 else int((len(text) + 1) ** rng.random())
    size = min(size, len(text))
    start, at = int(rng.integers(0, len(text) - size + 1)), int(rng.integers(max(size, 1)))
    piece = text[start : start + size]
    other = b"q" if isinstance(text, bytes) else "q"
    return piece if rng.random() < 0.5 else piece[:at] + other + piece[at + 1 :]'''
_LOG_UNIFORM = '''def log_uniform(rng: np.random.Generator, size: int, bits: int) -> list[int]:
    """Whole numbers of either sign and of up to so many bits, few as often as many."""
    numbers = (rng.integers(-(1 << 62), 1 << 62, size) >> rng.integers(max(62 - bits, 0), 63, size)).tolist()
    if bits > 62:
        for at in np.flatnonzero(rng.random(size) < 0.5).tolist():
            numbers[at] *= 3**20  # some 32 bits more than NumPy can draw
    return numbers'''
_INTS = '''def make_ints(rng: np.random.Generator, size: int, bits: int) -> list[int]:
    """Whole numbers of either sign, below 1000 in half of the calls, else of up to so many bits."""
    if rng.random() < 0.5:
        return rng.integers(-1000, 1001, size).tolist()
    return log_uniform(rng, size, int(rng.integers(1, bits + 1)))'''
_FLOATS = '''def make_floats(rng: np.random.Generator, size: int, digits: int) -> list[float]:
    """Numbers of either sign: in half of the calls of about 100, else up to so many powers of ten away from 1.

    In most calls all are of the same order of magnitude, for beside larger ones the smaller may not count. In some they
    are whole, in some many of them are equal.
    """
    scale = 2.0 if rng.random() < 0.5 else rng.uniform(-digits, digits, size if rng.random() < 0.3 else 1)
    values = rng.standard_normal(size) * 10.0**scale
    if rng.random() < 0.25:
        values = np.where(np.abs(values) < 1, values, np.round(values))
    if size and rng.random() < 0.25:
        values = rng.choice(values[: int(rng.integers(1, size + 1))], size)
    return values.tolist()'''
_ZEROS = '''def with_zeros(rng: np.random.Generator, values: list[float]) -> list[float]:
    """The values, in a third of the calls with zeros of either sign among them, few or many."""
    share = rng.choice((0, 0, 0, 0, 0.01, 0.3))
    for at in np.flatnonzero(rng.random(len(values)) < share).tolist():
        values[at] = -0.0 if at % 3 == 0 else 0.0
    return values'''
_ROWS = '''def in_rows(values: list, width: int) -> list[list]:
    """The values in rows."""
    return [values[at : at + width] for at in range(0, len(values), max(width, 1))]'''
_WIDELY = '''def widely(rng: np.random.Generator, number: int, bits: int) -> int:
    """The number, but in a third of the calls another one: 0, or of up to so many bits and of either sign."""
    chance = rng.random()
    return number if chance < 0.67 else 0 if chance < 0.71 else log_uniform(rng, 1, bits)[0]'''
_ODD = """# Cases, digits, marks and blanks that ASCII does not know, and letters of two, three and four bytes.
ODD = np.array(list(map(ord, "ßéİıſǅςжא²٣½Ⅷﬁ日한K😀𝔘𐐨\\0\\r\\x1c\\x85\\xa0\\u0301\\u2003\\u2028\\u3000\\ufeff")))"""
_FOREIGN = '''def foreign(rng: np.random.Generator, text: str, limit: int) -> str:
    """The text, in half of the calls with any letters below the limit among its own: a few, or every other one."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).copy()
    places = np.flatnonzero(rng.random(len(codes)) < rng.choice((0, 0, 0.02, 0.5)))
    # Shifted, so that they take one byte as often as four.
    others = rng.integers(0, limit, len(places)) >> rng.integers(0, limit.bit_length() - 4, len(places))
    others[(others >= 0xD800) & (others < 0xE000)] = 0xE9  # surrogates are no letters
    odd = np.append(ODD[ODD < limit], ord("A"))
    codes[places] = np.where(rng.random(len(places)) < 0.5, rng.choice(odd, len(places)), others)
    return codes.tobytes().decode("utf-32-le")'''
_MAKE_WORDS = '''def make_words(rng: np.random.Generator, count: int, least: int, limit: int) -> list[str]:
    """Words of `least` letters or more, many of them alike, some with any letters below the limit."""
    lengths = least + np.minimum(rng.geometric(0.2, count // 2 + 1) - 1, 40)
    letters = rng.integers(97, 107, lengths.sum(), dtype=np.uint8).tobytes().decode()
    letters = foreign(rng, letters, limit) if limit else letters
    words = [letters[end - each : end] for end, each in zip(lengths.cumsum().tolist(), lengths.tolist(), strict=True)]
    return [words[at] for at in rng.integers(0, len(words), count).tolist()]'''
_RECORDS = '''def make_records(rng: np.random.Generator, size: int, bits: int, digits: int, limit: int) -> str:
    """A list of records in JSON, padded with spaces to at least `size` characters."""
    count = size // 96
    names, numbers = make_words(rng, count, 0, limit), make_ints(rng, count, bits)
    reals, ends = [None, *make_floats(rng, 2 * count, digits)], rng.integers(0, 2 * count + 2, count).tolist()
    sure = (rng.random(count) < 0.5).tolist()
    records = [
        {"name": name, "id": number, "ok": ok, "xs": reals[max(end - number % 4, 0) : end]}
        for name, number, ok, end in zip(names, numbers, sure, ends, strict=True)
    ]
    return json.dumps(records, ensure_ascii=bool(rng.integers(2)), indent=[None, 1][rng.integers(2)]).ljust(size)'''
_ANY_JSON = '''def make_any_json(rng: np.random.Generator, size: int, bits: int, digits: int, limit: int) -> str:
    """JSON of any form: values of all kinds, taken together into lists and objects until one is left."""
    count = size // 50
    values = [*make_words(rng, count, 0, limit), *make_ints(rng, count, bits), *make_floats(rng, count, digits)]
    values += [None, True, False, *make_ints(rng, 1, bits), *make_words(rng, 1, 0, limit)]
    values = [values[at] for at in rng.permutation(len(values))[: 3 * count + 1].tolist()]
    while len(values) > 1:
        left, values = values, []
        keys = iter(make_words(rng, len(left) + 8, 0, limit))
        for width, form in zip(rng.integers(0, 9, len(left)).tolist(), rng.integers(0, 3, len(left)).tolist()):
            some, left = left[:width], left[width:]
            values += [[some], [dict(zip(keys, some))], some[:1] + [some[1:]]][form]
            if not left:
                break
    return json.dumps(values[0], ensure_ascii=bool(rng.integers(2)), indent=[None, 1][rng.integers(2)])'''
_MISSPELT = '''def misspelt(rng: np.random.Generator, words: list[str]) -> str:
    """One of the words with one letter replaced."""
    word = words[int(rng.integers(0, len(words)))]
    at = int(rng.integers(0, max(len(word), 1)))
    return word[:at] + "abcdefghij"[int(rng.integers(0, 10))] + word[at + 1 :]'''
_PICK = '''def pick(rng: np.random.Generator, items: list):
    """One of the items, or now and then the next number after one of them."""
    item = items[int(rng.integers(0, len(items)))]
    return item if isinstance(item, str) or rng.random() < 0.8 else item + 1'''

# A helper and the name it is known by; what it needs itself stands above it.
_HELPERS: Sequence[tuple[str, str]] = (
    ("PATTERNS", _PATTERNS),
    ("draw_size", _DRAW_SIZE),
    *forms.HELPERS,
    ("WORDS", _WORDS),
    ("ODD", _ODD),
    ("foreign", _FOREIGN),
    ("make_text", _TEXT),
    ("make_json", _JSON),
    ("make_numbers", _NUMBERS),
    ("make_bytes", _BYTES),
    ("make_matrix", _MATRIX),
    ("tight", _TIGHT),
    ("make_piece", _PIECE),
    ("make_words", _MAKE_WORDS),
    ("log_uniform", _LOG_UNIFORM),
    ("make_ints", _INTS),
    ("make_floats", _FLOATS),
    ("with_zeros", _ZEROS),
    ("make_records", _RECORDS),
    ("make_any_json", _ANY_JSON),
    ("in_rows", _ROWS),
    ("widely", _WIDELY),
    ("misspelt", _MISSPELT),
    ("pick", _PICK),
    *ranges.HELPERS,
)


def variable(name: str) -> str:
    """A name for the value of a parameter that hides nothing judge.py needs."""
    return (
        f"{name}_"
        if name in TAKEN
        or name.startswith("make_")
        or name
        in ("size", "pick", "misspelt", "foreign", "in_rows", "widely", "log_uniform", "with_zeros", "json", "ODD")
        or name in forms.NAMES
        else name
    )


def drawn(name: str, most: str = "most") -> str:
    """The statement that draws a size: none is known beforehand, for a candidate could be made for that one."""
    # The side of a square is drawn down to that of 100 values.
    return f"{name} = draw_size(rng, {most}{', 10' if most == 'side' else ''})"


def judge_file(task: str, lines: Sequence[str], values: Mapping[str, str], given: Sequence[str] = ()) -> str:
    """A judge.py whose make_input runs these statements and returns these expressions; `given` are its constants."""
    items = [f"        {name!r}: {value},".replace("'", '"', 2) for name, value in values.items()]
    statements = list(lines)
    for name, statement in (
        ("size", drawn("size")),
        ("side", "side = round(most**0.5)  # of a square of `most` values"),
    ):
        known = any(line.startswith(f"{name} = ") for line in statements)
        if not known and any(re.search(rf"\b{name}\b", text) for text in (*statements, *values.values())):
            statements.insert(0, statement)
    body = "\n".join(
        [
            "def make_input(rng: np.random.Generator, most: int = SIZE) -> dict:",
            *(f"    {line}" for line in statements),
            "    return {",
            *items,
            "    }",
        ]
    )
    helpers: list[str] = []
    needed = body
    for name, text in reversed(_HELPERS):
        if re.search(rf"\b{name}\b", needed):
            helpers.insert(0, text)
            needed += text
    constants = [*given, *(text for text in helpers if not text.startswith("def "))]
    if re.search(r"\bROOM\b", body):
        constants.insert(0, f"{_ROOM}\nROOM = {ROOM}")
    functions = [text for text in helpers if text.startswith("def ")]
    imports = "import json\n\n" if any("json." in text for text in functions) else ""
    imports += "import numpy as np\n" + ("\nfrom outpace.task import Output\n" if "Output(" in body else "")
    head = "\n".join(
        [
            f'"""Judge of {task}, with inputs guessed from the source: read them, they decide what faster means."""',
            "",
            imports,
            "# Sizes are drawn up to this. A call should take between 20 us and 50 ms.",
            f"SIZE = {SIZE}",
            "# Sizes that every candidate must get right too, and that are not timed.",
            "EDGES = ()",
            *constants,
        ]
    )
    return "\n\n\n".join([head, *functions, body, _EDGE_INPUTS]) + "\n"


_EDGE_INPUTS = """def edge_inputs() -> list[dict]:
    return [make_input(np.random.default_rng([most, number]), most) for most in EDGES for number in range(3)]"""


def resized(judge: str, size: int) -> str:
    """The same judge.py with another SIZE."""
    return _changed(judge, "SIZE", str(size))


def edged(judge: str, sizes: Sequence[int]) -> str:
    """The same judge.py with these sizes as its edge inputs."""
    return _changed(judge, "EDGES", f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})")


def patterned(judge: str, share: float) -> str:
    """The same judge.py with patterns in so many of the calls."""
    return _changed(judge, "PATTERNS", repr(share))


def roomier(judge: str, factor: int) -> str:
    """The same judge.py with so many times the room for answers of unknown length."""
    return _changed(judge, "ROOM", str(factor * room(judge)))


def room(judge: str) -> int:
    """The room for answers of unknown length, as a multiple of what is read; 0 where no answer is of that kind."""
    return int(constant(judge, "ROOM") or 0)


def constant(judge: str, name: str) -> str:
    """What a constant of a generated judge.py is set to, or ""."""
    found = re.search(rf"^{name} = (.*)$", judge, re.MULTILINE)
    return found[1] if found else ""


def _changed(judge: str, name: str, value: str) -> str:
    return re.sub(rf"^{name} = .*$", f"{name} = {value}", judge, count=1, flags=re.MULTILINE)
