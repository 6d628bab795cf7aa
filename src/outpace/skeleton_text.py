"""The text of a generated judge.py: helpers that make values, and make_input put together from statements."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping, Sequence

SIZE = 256
# Small inputs, which loops by blocks and borders get wrong; those that the reference cannot take are left out.
EDGES = (0, 1, 2, 3, 4, 6, 9, 12, 17, 25, 33, 64, 100)
# How much longer than what is read an answer may be, to begin with.
ROOM = 2
# Names that mean something else in judge.py.
TAKEN = {*dir(builtins), *keyword.kwlist, "rng", "np", "Output", "SIZE", "EDGES", "ROOM", "most", "side"}

_ROOM = (
    "# The room of an answer whose length is not known beforehand, as a multiple of what is read: an answer that is\n"
    "# cut off would not be checked to its end."
)
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
    numbers = (rng.uniform(-1, 1, count) * 10.0 ** rng.integers(1, digits + 1, count)).astype(int).tolist()
    joins = rng.integers(0, 3, count).tolist()
    text = "".join([str(number) + ", \\n"[join] for number, join in zip(numbers, joins, strict=True)])
    return text[:size]'''
_BYTES = '''def make_bytes(rng: np.random.Generator, size: int) -> np.ndarray:
    """All bytes, most of them alone, some in long runs."""
    runs = np.where(rng.random(size) < 0.01, rng.integers(2, 700, size), 1)
    return np.repeat(rng.integers(0, 256, size, dtype=np.uint8), runs)[:size]'''
_MATRIX = '''def make_matrix(rng: np.random.Generator, side: int) -> np.ndarray:
    """A symmetric matrix whose diagonal outweighs the rest, row by row: it can be factored and solved."""
    drawn = rng.standard_normal((side, side))
    return ((drawn + drawn.T) / 2 + 2 * side * np.eye(side)).reshape(-1)'''
_TIGHT = '''def tight(rng: np.random.Generator, room: int, most: int) -> int:
    """All the room there is; in edge inputs often less than the answer needs, which has to be noticed."""
    return room if most == SIZE else int(rng.integers(0, room + 1))'''
_PIECE = '''def make_piece(rng: np.random.Generator, text):
    """A short part of `text`, often changed in one place so that it is not found."""
    size = min(int(rng.integers(2, 9)), len(text))
    start = int(rng.integers(0, len(text) - size + 1))
    piece = text[start : start + size]
    other = b"q" if isinstance(text, bytes) else "q"
    return piece if rng.random() < 0.5 else piece[:-1] + other'''
_MAKE_WORDS = '''def make_words(rng: np.random.Generator, count: int) -> list[str]:
    """Words of a few letters, many of them alike."""
    letters = rng.integers(97, 107, 10 * count + 10, dtype=np.uint8).tobytes().decode()
    sizes = rng.integers(3, 10, count).tolist()
    return [letters[10 * at : 10 * at + size] for at, size in enumerate(sizes)]'''
_MISSPELT = '''def misspelt(rng: np.random.Generator, words: list[str]) -> str:
    """One of the words with one letter replaced."""
    word = words[int(rng.integers(0, len(words)))]
    at = int(rng.integers(0, len(word)))
    return word[:at] + "abcdefghij"[int(rng.integers(0, 10))] + word[at + 1 :]'''
_PICK = '''def pick(rng: np.random.Generator, items: list):
    """One of the items, or now and then the next number after one of them."""
    item = items[int(rng.integers(0, len(items)))]
    return item if isinstance(item, str) or rng.random() < 0.8 else item + 1'''

# A helper, the name it is known by, and what it needs itself.
_HELPERS: Sequence[tuple[str, str]] = (
    ("WORDS", _WORDS),
    ("make_text", _TEXT),
    ("make_json", _JSON),
    ("make_numbers", _NUMBERS),
    ("make_bytes", _BYTES),
    ("make_matrix", _MATRIX),
    ("tight", _TIGHT),
    ("make_piece", _PIECE),
    ("make_words", _MAKE_WORDS),
    ("misspelt", _MISSPELT),
    ("pick", _PICK),
)


def variable(name: str) -> str:
    """A name for the value of a parameter that hides nothing judge.py needs."""
    return (
        f"{name}_"
        if name in TAKEN or name.startswith("make_") or name in ("size", "square", "pick", "misspelt")
        else name
    )


def drawn(name: str, most: str = "most") -> str:
    """The statement that draws a size: none is known beforehand, for a candidate could be made for that one."""
    return f"{name} = int(rng.integers(({most} + 1) // 2, {most} + 1))"


def judge_file(task: str, lines: Sequence[str], values: Mapping[str, str]) -> str:
    """A judge.py whose make_input runs these statements and returns these expressions."""
    items = [f"        {name!r}: {value},".replace("'", '"', 2) for name, value in values.items()]
    statements = list(lines)
    for name, statement in (
        ("size", drawn("size")),
        ("square", drawn("square", "side")),
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
    constants = [text for text in helpers if not text.startswith("def ")]
    if re.search(r"\bROOM\b", body):
        constants.insert(0, f"{_ROOM}\nROOM = {ROOM}")
    functions = [text for text in helpers if text.startswith("def ")]
    imports = "import numpy as np\n" + ("\nfrom outpace.task import Output\n" if "Output(" in body else "")
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
    rng = np.random.default_rng(1)
    return [make_input(rng, most) for most in EDGES for _ in range(3)]"""


def resized(judge: str, size: int) -> str:
    """The same judge.py with another SIZE."""
    return _changed(judge, "SIZE", str(size))


def edged(judge: str, sizes: Sequence[int]) -> str:
    """The same judge.py with these sizes as its edge inputs."""
    return _changed(judge, "EDGES", f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})")


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
