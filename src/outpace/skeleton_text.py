"""The text of a generated judge.py: helpers that make values, and make_input put together from statements."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping, Sequence

SIZE = 256
# Names that mean something else in judge.py.
TAKEN = {*dir(builtins), *keyword.kwlist, "rng", "np", "Output", "SIZE", "SIDE"}

_SIDE = "# The side of a square of SIZE values.\nSIDE = max(2, round(SIZE**0.5))"
_WORDS = """WORDS = (
    "the of and to in is that for it as was with be by on not his but at are this have from or had an they which one "
    "you were all there would their we him been has when who will more no if out so said what up its about into than "
    "them can only other new some could time these two may then do first any now such like our over even most made "
    "after also did many before must through years where much your way well down should because each just those "
    "people how too little state good very make world still own see men work long get here between both life being"
).split()
JOINS = (" ", " ", " ", " ", " ", ", ", ". ", "; ", "\\n", " - ", " 42 ", "! ")"""
_TEXT = '''def make_text(rng: np.random.Generator, size: int) -> str:
    """Words and punctuation, exactly `size` characters."""
    words = rng.integers(0, len(WORDS), size // 4 + 2).tolist()
    joins = rng.integers(0, len(JOINS), size // 4 + 2).tolist()
    text = "".join([WORDS[word] + JOINS[join] for word, join in zip(words, joins, strict=True)])
    return text[:size].ljust(size, "a")'''
_JSON = '''def make_json(rng: np.random.Generator, size: int) -> str:
    """A list of small records, padded with spaces to exactly `size` characters."""
    form = '{"id": %d, "name": "%s",\\n  "ok": true, "xs": [%d.5, -2e3, null]}'
    numbers = rng.integers(0, 1000000, size // 96).tolist()
    records = [form % (number, WORDS[number % len(WORDS)], number % 1000) for number in numbers]
    return f"[{', '.join(records)}]".ljust(size)'''
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
    ("SIDE", _SIDE),
    ("WORDS", _WORDS),
    ("make_text", _TEXT),
    ("make_json", _JSON),
    ("make_piece", _PIECE),
    ("make_words", _MAKE_WORDS),
    ("misspelt", _MISSPELT),
    ("pick", _PICK),
)


def variable(name: str) -> str:
    """A name for the value of a parameter that hides nothing judge.py needs."""
    return f"{name}_" if name in TAKEN or name.startswith("make_") or name in ("size", "pick", "misspelt") else name


def judge_file(task: str, lines: Sequence[str], values: Mapping[str, str]) -> str:
    """A judge.py whose make_input runs these statements and returns these expressions."""
    items = [f"        {name!r}: {value},".replace("'", '"', 2) for name, value in values.items()]
    statements = list(lines)
    drawn = "size = int(rng.integers(SIZE // 2, SIZE + 1))"
    if any(re.search(r"\bsize\b", text) for text in (*lines, *values.values())) and not any(
        line.startswith("size = ") for line in lines
    ):
        statements.insert(0, drawn)
    body = "\n".join(
        [
            "def make_input(rng: np.random.Generator) -> dict:",
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
    functions = [text for text in helpers if text.startswith("def ")]
    imports = "import numpy as np\n" + ("\nfrom outpace.task import Output\n" if "Output(" in body else "")
    head = "\n".join(
        [
            f'"""Judge of {task}, with inputs guessed from the source: read them, they decide what faster means."""',
            "",
            imports,
            "# Sizes are drawn up to this. A call should take between 20 us and 50 ms.",
            f"SIZE = {SIZE}",
            *constants,
        ]
    )
    return "\n\n\n".join([head, *functions, body]) + "\n"


def resized(judge: str, size: int) -> str:
    """The same judge.py with another SIZE."""
    return re.sub(r"^SIZE = \d+$", f"SIZE = {size}", judge, count=1, flags=re.MULTILINE)
