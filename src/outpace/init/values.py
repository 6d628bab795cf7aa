"""Values for a Python function's parameters: what draws each kind, as wide as Python has it and then less and less so.

What a reference takes, its users may give it: a candidate that packs small numbers or knows ASCII alone is wrong. Only
where the reference itself fails are values narrower, which `widening.py` finds out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from outpace.init import forms
from outpace.init.forms import Form
from outpace.init.judge_text import variable
from outpace.init.kinds import LISTS, OPTION
from outpace.init.python_inputs import PythonFunction

TIED = ("member", "near word", "piece")
FLOATS = ("floats", "real matrix", "points", "array", "table", "real", "weights")
# Bits of whole numbers, beyond what 64 hold at first; powers of ten of others; letters by the first that is left out.
_BITS = (94, 62, 31, 10)
_DIGITS = (300, 150, 70, 30, 9)
_LETTERS = (
    ("0x110000", "letters of one to four bytes in UTF-8"),
    ("0x10000", "letters of one to three bytes in UTF-8"),
    ("0x100", "the letters of Latin-1"),
    ("0x80", "all of ASCII"),
)


@dataclass(frozen=True)
class Width:
    """An expression that draws a value, and what it draws in a few words."""

    made: str
    told: str


def _wide(form: str, *narrow: tuple[str, str]) -> tuple[Width, ...]:
    """The form with wider values first, and what is left where all of these fail."""
    found: list[tuple[str, str]] = []
    if "BITS" in form:
        found = [(form.replace("BITS", str(bits)), f"whole numbers of up to {bits} bits") for bits in _BITS]
    elif "DIGITS" in form:
        found = [(form.replace("DIGITS", str(digits)), f"numbers up to 1e{digits}") for digits in _DIGITS]
        zeros = [(re.sub(r"make_floats\([^()]*\)", r"with_zeros(rng, \g<0>)", made), said) for made, said in found]
        found = [*((made, f"zeros and {said}") for made, said in zeros), *found]
    elif "LETTERS" in form:
        found = [(form.replace("LETTERS", most), told) for most, told in _LETTERS]
    return tuple(Width(*each) for each in (*found, *narrow))


def _number(usual: str) -> tuple[Width, ...]:
    """A number that may count something: where a large one takes for ever it is as small as what it counts."""
    return (
        Width(f"widely(rng, {usual}, 94)", "whole numbers of up to 94 bits and either sign"),
        Width(f"1 + abs(widely(rng, {usual}, 94))", "positive whole numbers of up to 94 bits"),
        Width(f"1 + abs(widely(rng, {usual}, 31))", "positive whole numbers of up to 31 bits"),
        Width(usual, "small positive numbers"),
    )


def _option(default: bool | int) -> tuple[Width, ...]:
    """The default in half of the calls, and at last alone, where it need not be given at all."""
    alone = Width(repr(default), f"its default {default!r}")
    if isinstance(default, bool):
        return (Width("bool(rng.integers(0, 2))", "both"), alone)
    most = 2 * abs(default) + 10
    ladder = [
        Width(
            f"{default} if rng.random() < 0.5 else int(rng.integers({least}, {most + 1}))",
            f"numbers from {least} to {most}",
        )
        for least in (0, 1)
    ]
    return (*ladder, alone)


_WORD = "make_words(rng, 1, {}, {})[0]"
_ENTRIES = "dict(zip(make_words(rng, size, {}, {}), {}))"
_PLAIN_WORDS = "words of three letters or more, a to j"
_TEXT = ("make_text(rng, size)", "ASCII text")

# Each kind with the expressions that make one, widest first; `size` is drawn once, braces name other parameters.
KINDS: Mapping[str, tuple[Width, ...]] = {
    "text": _wide("foreign(rng, make_text(rng, size), LETTERS)", _TEXT),
    "numbers": (
        Width("make_numbers(rng, size, 30)", "numbers of up to 30 digits"),
        Width("make_numbers(rng, size, 18)", "numbers of up to 18 digits"),
        Width("make_numbers(rng, size)", "numbers of up to 9 digits"),
    ),
    "json": (
        Width("make_any_json(rng, size, 94, 300, 0x110000)", "JSON of any form"),
        Width("make_records(rng, size, 94, 300, 0x110000)", "JSON with numbers and letters of all kinds"),
        Width("make_records(rng, size, 62, 30, 0x80)", "JSON with 64-bit numbers and ASCII"),
        Width("make_json(rng, size)", "JSON with small numbers and English words"),
    ),
    "word": (
        Width(_WORD.format(0, "0x110000"), "words of any length and any letters"),
        Width(_WORD.format(1, "0x110000"), "words of any letters, none of them empty"),
        Width(_WORD.format(1, "0x100"), "words of the letters of Latin-1, none of them empty"),
        Width(_WORD.format(1, "0x80"), "words of ASCII, none of them empty"),
        Width(_WORD.format(3, "0"), _PLAIN_WORDS),
    ),
    "words": (
        Width("make_words(rng, size, 0, 0x110000)", "words of any length and any letters"),
        Width("make_words(rng, size, 1, 0x110000)", "words of any letters, none of them empty"),
        Width("make_words(rng, size, 1, 0x100)", "words of the letters of Latin-1, none of them empty"),
        Width("make_words(rng, size, 1, 0x80)", "words of ASCII, none of them empty"),
        Width("make_words(rng, size, 3, 0)", _PLAIN_WORDS),
    ),
    "lines": _wide(
        "foreign(rng, make_text(rng, 8 * size), LETTERS).splitlines()",
        ("make_text(rng, 8 * size).splitlines()", "lines of ASCII"),
    ),
    "bytes": _wide("", ("make_bytes(rng, size).tobytes()", "all bytes")),
    "ints": _wide("make_ints(rng, size, BITS)"),
    "naturals": _wide("[abs(each) for each in make_ints(rng, size, BITS)]"),
    "sorted": _wide("sorted(make_ints(rng, size, BITS))"),
    "floats": _wide(
        "make_floats(rng, size, DIGITS)", ("rng.normal(0.0, 100.0, size).tolist()", "numbers of about 100")
    ),
    "flags": _wide("", ("(rng.random(size) < 0.5).tolist()", "both")),
    "matrix": _wide(
        "in_rows(make_ints(rng, rows * columns, BITS), columns)",
        ("rng.integers(-9, 10, (rows, columns)).tolist()", "whole numbers from -9 to 9"),
    ),
    "real matrix": _wide(
        "in_rows(make_floats(rng, rows * columns, DIGITS), columns)",
        ("rng.normal(size=(rows, columns)).tolist()", "numbers of about 1"),
    ),
    "points": _wide(
        "in_rows(make_floats(rng, 2 * size, DIGITS), 2)",
        ("rng.normal(0.0, 100.0, (size, 2)).tolist()", "numbers of about 100"),
    ),
    "array": _wide("np.array(make_floats(rng, size, DIGITS))", ("rng.normal(size=size)", "numbers of about 1")),
    "whole array": (
        Width("np.array(make_ints(rng, size, 62))", "whole numbers of up to 62 bits"),
        Width("np.array(make_ints(rng, size, 31))", "whole numbers of up to 31 bits"),
        Width("np.array(make_ints(rng, size, 10))", "whole numbers of up to 10 bits"),
    ),
    "table": _wide(
        "np.array(make_floats(rng, rows * columns, DIGITS)).reshape(rows, columns)",
        ("rng.normal(size=(rows, columns))", "numbers of about 1"),
    ),
    "count": _number("int(rng.integers(1, size + 1))"),
    "few": _number("int(rng.integers(1, 10))"),
    "integer": _wide("make_ints(rng, 1, BITS)[0]"),
    "real": (
        Width("make_floats(rng, 1, 300)[0]", "numbers up to 1e300 and of either sign"),
        Width("abs(make_floats(rng, 1, 300)[0])", "positive numbers up to 1e300"),
        Width("abs(make_floats(rng, 1, 30)[0])", "positive numbers up to 1e30"),
        Width("abs(make_floats(rng, 1, 3)[0])", "positive numbers up to 1e3"),
        Width("float(rng.uniform(0.1, 2.0))", "numbers from 0.1 to 2"),
    ),
    "flag": _wide("", ("bool(rng.integers(0, 2))", "both")),
    "counts": (
        Width(_ENTRIES.format(0, "0x110000", "map(abs, make_ints(rng, size, 94))"), "any words and large numbers"),
        Width(_ENTRIES.format(1, "0x110000", "map(abs, make_ints(rng, size, 62))"), "any words and 64-bit numbers"),
        Width(_ENTRIES.format(1, "0x80", "map(abs, make_ints(rng, size, 31))"), "words of ASCII, 32-bit numbers"),
        Width(_ENTRIES.format(3, "0", "rng.integers(0, 1001, size).tolist()"), "plain words and small numbers"),
    ),
    "weights": (
        Width(_ENTRIES.format(0, "0x110000", "make_floats(rng, size, 300)"), "any words and numbers up to 1e300"),
        Width(_ENTRIES.format(1, "0x110000", "map(abs, make_floats(rng, size, 70))"), "any words, numbers up to 1e70"),
        Width(_ENTRIES.format(1, "0x80", "map(abs, make_floats(rng, size, 9))"), "words of ASCII, numbers up to 1e9"),
        Width(_ENTRIES.format(3, "0", "rng.random(size).tolist()"), "plain words and numbers below 1"),
    ),
    "texts by word": (
        Width(
            "{word: foreign(rng, make_text(rng, 40), 0x110000) for word in make_words(rng, size, 0, 0x110000)}",
            "any words and texts",
        ),
        Width(
            "{word: foreign(rng, make_text(rng, 40), 0x80) for word in make_words(rng, size, 1, 0x80)}",
            "words and texts of ASCII",
        ),
        Width("{word: make_text(rng, 40) for word in make_words(rng, size, 3, 0)}", "plain words and ASCII texts"),
    ),
    "member": _wide("", ("pick(rng, {list})", "members")),
    "near word": _wide("", ("misspelt(rng, {list})", "words nearly there")),
    "piece": _wide("", ("make_piece(rng, {text})", "pieces")),
}


@dataclass(frozen=True)
class Values:
    """A function's parameters, the kind chosen for each, and how many steps below the widest each is drawn."""

    function: PythonFunction
    chosen: Mapping[str, str]
    steps: Mapping[str, int]
    form: Form = field(default_factory=Form)

    def ladder(self, name: str) -> tuple[Width, ...]:
        """All ways to draw a parameter, widest first."""
        if self._kind(name) == OPTION:
            return _option(next(each.default for each in self.function.parameters if each.name == name))
        return KINDS[self._kind(name)]

    def lowest(self) -> dict[str, int]:
        """The steps of the narrowest values, of each parameter that has any choice."""
        found = {name: len(self.ladder(name)) - 1 for name in self.chosen}
        return {name: step for name, step in found.items() if step}

    def shaped(self, form: Form) -> Values:
        """The same in this form."""
        return replace(self, form=form)

    def at(self, steps: Mapping[str, int]) -> Values:
        """The same with these parameters drawn so many steps below the widest."""
        return replace(self, steps={**self.steps, **steps})

    def forms(self) -> dict[str, tuple[str, ...]]:
        """For each matter in which these parameters leave a choice of form: all choices, widest first."""
        return forms.ladders(self._kinds())

    def unasked(self, matter: str) -> str:
        """What the form of now does not ask."""
        return forms.told(matter, self.form.choice(matter), self._kinds())

    @property
    def given(self) -> list[str]:
        """The parameters that the function is called with: all but those that keep their default."""
        return [each.name for each in self.function.parameters if not self._left_out(each.name)]

    @property
    def floats(self) -> bool:
        """Whether any number may be a float."""
        return any(kind in FLOATS for kind in self.chosen.values())

    def told(self, name: str) -> str:
        """What a parameter is drawn from now."""
        return self.ladder(name)[self.steps.get(name, 0)].told

    def lines(self) -> list[str]:
        """The statements of make_input; one that raises where nobody can guess a parameter."""
        order = sorted(self.function.parameters, key=lambda each: self.chosen.get(each.name) in TIED)
        lines: list[str] = []
        before: dict[str, str] = {}
        for each in order:
            name = variable(each.name)
            if self._left_out(each.name):
                continue
            if each.name not in self.chosen:
                such = f", such as {each.example[:60]}" if each.example else ""
                lines.append(f"raise NotImplementedError({f'fill in: {name} = ...{such}'!r})")
                continue
            made, kind = self.ladder(each.name)[self.steps.get(each.name, 0)].made, self._kind(each.name)
            tied = {"list": variable(self._first(LISTS)), "text": variable(self._first(("text",)))}
            made = made.format(**tied) if kind in TIED else forms.formed(kind, before, self.form, made)
            lines += [*forms.sizes(kind, [*before.values()], self.form), f"{name} = {made}"]
            before[name] = kind
        return lines

    def _left_out(self, name: str) -> bool:
        return self.chosen.get(name) == OPTION and self.steps.get(name, 0) == self.lowest()[name]

    def _kinds(self) -> dict[str, str]:
        return {name: self._kind(name) for name in self.chosen}

    def _first(self, kinds: tuple[str, ...]) -> str:
        return next((name for name, kind in self.chosen.items() if kind in kinds), "")

    def _kind(self, name: str) -> str:
        kind = self.chosen[name]
        if (kind in ("member", "near word") and not self._first(LISTS)) or (
            kind == "piece" and not self._first(("text",))
        ):
            return {"member": "integer"}.get(kind, "word")
        return kind


def choices(function: PythonFunction, most: int = 8) -> list[Values]:
    """Kinds for all parameters, likeliest first: then with one of them at its second or third choice."""
    base = {each.name: each.kinds[0] for each in function.parameters if each.kinds}
    found = [base]
    for rank in (1, 2, 3):
        for each in function.parameters:
            if len(each.kinds) > rank:
                found.append({**base, each.name: each.kinds[rank]})
    return [Values(function, chosen, {}) for chosen in found[:most]]
