"""Inputs for a C function: which pointer has which length, what is filled, and what values the numbers take."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from outpace.init.c_source import CFunction, CParameter, loop_bounds, unbound
from outpace.init.judge_text import TAKEN, drawn
from outpace.init.ranges import Range
from outpace.init.ranges import number as of_type
from outpace.judge.abi import C_TYPES

# What differs between two attempts at the same function; the jail and the sanitizers tell which of them works. Numbers
# are as large as the function can take without overflowing: in small ones, bits above them could be dropped unnoticed.
_RANGES = ("any values", "large values", "", "naturals", "small values")
_PLACES = ("", "in place")
_SOLVES = re.compile(r"/=?\s*\(?\w+\s*\[|\bsqrtf?\s*\(")

_LENGTH = re.compile(
    r"(?:^|_)(?:[nN]|[mM]|LEN|SIZE|len|length|size|sz|count|cnt|num|bytes|nbytes|total|rows?|cols?|columns|width|height|w|h|d|dim|nmemb|elements?)s?(?:$|_|\d)"
    r"|(?:[Ll]en|[Ll]ength|[Ss]ize|[Cc]ount|[Bb]ytes|len_?\d)$|^(?:num|n|len|size)[A-Z_]|^n(?:el|elem|items|vals|pts|bytes|values)$",
)
_OUTPUT = re.compile(r"out|dst|dest|result|ret(?!ain)|target_buf", re.IGNORECASE)
_CAPACITY = re.compile(r"out|dst|dest|cap|max|avail|buf_?(?:len|size)", re.IGNORECASE)
_FLAG = re.compile(
    r"flag|^(?:is|has|use|do|with|no|want|allow)[_A-Z]|enable|verbose|reverse|invert|final", re.IGNORECASE
)
_SEED = re.compile(r"seed|hash|crc|adler|init|salt|checksum", re.IGNORECASE)
_PLACE = re.compile(r"start|begin|offset|^pos|index|^idx|^from$|^left$|^low$|^lo$|^l$|^first$", re.IGNORECASE)
_END = re.compile(r"^(?:end|right|high|hi|r|last|stop|to)$", re.IGNORECASE)
# Names that mean something else in judge.py.
_TAKEN = TAKEN | {"far", "leaving", "spread", "strewn", "LIMITS", "TOGETHER", "KNOWN", "CHARS", "patterned", "likened"}
_PATTERN = re.compile(r"pat|needle|sub|search|find|prefix|suffix|delim|sep|accept|reject|key|word", re.IGNORECASE)


@dataclass
class Guess:
    """The body of make_input as it grows."""

    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    tolerance: float = 0.0
    # The number of elements that an answer of unknown length gets.
    room: str = ""
    # What may go far, and how far at most.
    ranges: dict[str, Range] = field(default_factory=dict)


def variants(function: CFunction) -> tuple[str, ...]:
    """The attempts at one function, likeliest first."""
    # What divides by an element or takes a root solves or factors: a matrix of mere chance leads it to infinity.
    solving = ("dominant", "dominant, in place") if _SOLVES.search(function.body) else ()
    ranges = [", ".join(filter(None, (place, values))) for values in _RANGES for place in _PLACES]
    reads_text = any(each.stars and each.c_type == "char" for each in function.parameters)
    numeric = re.search(r"csv|num|digit|parse_?(?:int|float|double)|ato[ifl]|sum", function.name, re.IGNORECASE)
    texts = ("numbers", "numbers, small values") if reads_text else ()
    return (*solving, *(texts if numeric else ()), *ranges, *(() if numeric else texts))


def guess_c(function: CFunction, variant: str = "", containers: Collection[str] | None = None) -> Guess:
    """Lines that make arguments for a function whose parameters are numbers and pointers to numbers.

    `containers` names the numbers that are sizes of containers, and so always the lengths of their arrays; None where
    the function has none.
    """
    renamed = {each.name: f"{each.name}_" for each in function.parameters if each.name in _TAKEN}
    body = re.sub(r"[A-Za-z_]\w*", lambda word: renamed.get(word[0], word[0]), function.body)
    parameters = tuple(replace(each, name=renamed.get(each.name, each.name)) for each in function.parameters)
    guess = _CGuesser(replace(function, body=body, parameters=parameters), variant, containers).guess()
    original = {new: old for old, new in renamed.items()}
    guess.values = {original.get(name, name): value for name, value in guess.values.items()}
    return guess


class _CGuesser:
    def __init__(self, function: CFunction, variant: str, containers: Collection[str] | None) -> None:
        self.function, self.body = function, function.body
        self.variant = tuple(variant.split(", "))
        self.pointers = [each for each in function.parameters if each.stars]
        self.integers = [
            each for each in function.parameters if not each.stars and np.dtype(C_TYPES[each.c_type]).kind in "iu"
        ]
        self.names = {each.name for each in self.integers}
        self.bounds = {name: bound for name, bound in loop_bounds(self.body).items() if name not in self.names}
        self.extents = {each.name: self._extent(each) for each in self.pointers}
        self.capacities: dict[str, str] = {}
        # The size of a container, and the array whose length it is.
        self.measured = {
            f"{each.name}_size": each.name for each in self.pointers if f"{each.name}_size" in (containers or ())
        }
        # Without arrays, what is returned in one is as long as its numbers say.
        self.sized = containers is not None and not self.pointers
        self.lengths: dict[str, None] = {}
        self.lengths = self._lengths()
        self.made = Guess()

    def guess(self) -> Guess:
        made = self.made
        if self.pointers and not self.lengths:
            made.lines.append(drawn("size"))
        square = any("*" in extent for extent in self.extents.values()) or self._flat_matrix()
        for name in self.lengths:
            # A square of values takes as long as a line of as many.
            made.lines.append(drawn(name, "side" if square else "most"))
        for each in self.integers:
            # A number that decides how long an array is, is drawn before the array is made.
            decides = not self.pointers or any(_mentions(extent, each.name) for extent in self.extents.values())
            if each.name not in self.lengths and decides:
                plain = bool(self.pointers) or self.sized
                made.lines.append(f"{each.name} = {self._number(each) if plain else self._far(each)}")
                made.values[each.name] = each.name
        inputs = [each for each in self.pointers if not self._filled(each)]
        for each in sorted(inputs, key=lambda one: bool(self._is_text(one) and _PATTERN.search(one.name))):
            self._array(each)
        for each in self.pointers:
            if self._filled(each):
                made.values[each.name] = f'Output({self._output_length(each)}, "{np.dtype(C_TYPES[each.c_type]).name}")'
        for each in self.function.parameters:
            if not each.stars and each.name not in self.lengths and each.name not in made.values:
                made.values[each.name] = self._far(each)
        for name in self.lengths:
            made.values[name] = name
        for name, pointer in self.measured.items():
            made.values[name] = f"len({pointer})"
        made.values = {each.name: made.values[each.name] for each in self.function.parameters}
        kinds = [each.c_type for each in self.pointers if not each.const] + [self.function.returns]
        made.room = self._room()
        if made.ranges:
            made.lines.insert(0, "far = leaving(rng)")
        made.tolerance = 1e-4 if "float" in kinds else 1e-9 if "double" in kinds else 0.0
        return made

    # Which number is a length, and whose

    def _lengths(self) -> dict[str, None]:
        if not self.pointers:
            return {}
        of_arrays, of_loops = (
            {word for extent in extents for word in re.findall(r"[A-Za-z_]\w*", extent)}
            for extents in (self.extents.values(), self.bounds.values())
        )
        used = of_arrays | of_loops
        found: dict[str, None] = {}
        for each in self.integers:
            if self._is_text_mark(each) or self._cases(each.name) or _FLAG.search(each.name):
                continue
            owner = self.measured.get(each.name)
            if owner is not None and (extent := self.extents[owner]) and not _mentions(extent, each.name):
                continue  # its array is as long as another one
            # A capacity belongs to what is filled, and follows from the lengths of what is read.
            if (
                _CAPACITY.search(each.name)
                and (_LENGTH.search(each.name) or re.search(r"(?:^|_)cap(?:acity)?$", each.name))
                and any(not one.const for one in self.pointers)
            ):
                self.capacities[each.name] = ""
            elif (
                (each.name in used and not _PLACE.search(each.name))
                or _LENGTH.search(each.name)
                or any(_own_length(each.name, one.name) for one in self.pointers)
            ):
                found[each.name] = None
        if not found and self.capacities:
            found = dict.fromkeys(self.capacities)
            self.capacities = {}
        # Small numbers beside a real length, such as the bytes of a pixel, are not lengths themselves.
        small = [
            name
            for name in found
            if re.search(
                r"(?:byte|pixel|char|bit)_?(?:width|size|count|s)|bpp|stride|step|channels", name, re.IGNORECASE
            )
        ]
        for name in small:
            if len(found) > 1:
                del found[name]
        self.lengths = found
        if self._flat_matrix():
            return found
        # Where all arrays say how long they are, everything else is a number; else a loop's bound may be a length too.
        read = [each for each in self.pointers if not self._filled(each)]
        unclear = [each for each in read or self.pointers if not self.extents[each.name]]
        lengths = {word for each in unclear for word in re.findall(r"[A-Za-z_]\w*", self._length_of(each))}
        lengths |= of_arrays | set(self.measured) | (of_loops if unclear else set())
        return {name: None for name in found if name in lengths}

    def _length_of(self, pointer: CParameter) -> str:
        if extent := self.extents[pointer.name]:
            return extent
        if not self.lengths:
            return "size"
        if self._flat_matrix():
            return " * ".join(self.lengths)
        # Beside an array of rows and columns, what is read in a way nobody can tell is one as well.
        products = [extent for extent in self.extents.values() if re.fullmatch(r"\w+( \* \w+)+", extent)]
        if products and re.search(rf"\b{re.escape(pointer.name)}\s*\[[^\]]*\*", self.body):
            return products[0]
        stem = re.sub(r"_?(?:data|buf|ptr|str)$|^p_", "", pointer.name)
        own = [name for name in self.lengths if _own_length(name, pointer.name)]
        own += [name for name in self.lengths if len(stem) > 1 and stem.lower() in name.lower()]
        position = self.function.parameters.index(pointer)
        after = [each.name for each in self.function.parameters[position:] if each.name in self.lengths]
        return (own or after or list(self.lengths))[0]

    def _flat_matrix(self) -> bool:
        """Rows and columns that no index expression ties to the arrays."""
        dims = [
            name
            for name in self.lengths
            if re.fullmatch(r"(?:n_?)?(?:rows?|cols?|columns|width|height|w|h)", name, re.IGNORECASE)
        ]
        return len(dims) >= 2 and not any(self.extents.values())

    def _extent(self, pointer: CParameter) -> str:
        if declared := self._declared(pointer):
            return declared
        found = []
        name = re.escape(pointer.name)
        # Places in it: `x[i]`, and `x + i * n` where a row begins.
        ahead = re.findall(rf"\b{name}\s*\+(?![+=])\s*([^;,\[\])]+)[;,\])]", self.body)
        for index in [*re.findall(rf"\b{name}\s*\[([^\[\]]+)\]", self.body), *ahead]:
            extent = unbound(index, self.bounds, self.names)
            if extent is None or set(re.findall(r"[A-Za-z_]\w*", extent)) - self.names:
                return ""
            found.append(extent)
        # Numbers alone (`x[0]`) are the first few elements of something longer.
        named = [extent for extent in dict.fromkeys(found) if re.search(r"[A-Za-z_]", extent)]
        if not named or re.search(rf"\b{name}\s*(?:\+[+=]|--|-=|,|\))|\+\+\s*{name}\b", self.body):
            return ""
        plain = [extent.removesuffix(" + 1") for extent in named]
        return max(named, key=len) if len(set(plain)) == 1 or len(named) == 1 else f"max({', '.join(named)})"

    def _declared(self, pointer: CParameter) -> str:
        """The extent that brackets in the declaration tell, such as `double a[n][m]`."""
        dims = list(pointer.dims)
        if len(dims) > 1 and not dims[0]:
            rows = [
                unbound(index, self.bounds, self.names)
                for index in re.findall(rf"\b{re.escape(pointer.name)}\s*\[([^\[\]]+)\]\s*\[", self.body)
            ]
            dims[0] = max((each for each in rows if each), key=len, default="")
        if not dims or not all(re.fullmatch(r"[\w\s+*()-]+", each) for each in dims):
            return ""
        if {word for each in dims for word in re.findall(r"[A-Za-z_]\w*", each)} - self.names:
            return ""
        if len(dims) == 1 and dims[0].isdigit():
            return dims[0]
        return " * ".join(each if re.fullmatch(r"\w+", each) else f"({each})" for each in dims)

    # Arrays

    def _filled(self, pointer: CParameter) -> bool:
        """Whether a pointer is written and never read: an Output."""
        if pointer.const or "in place" in self.variant:
            return False
        name = re.escape(pointer.name)
        uses = len(re.findall(rf"\b{name}\b", self.body))
        writes = len(re.findall(rf"\b{name}\s*(?:\[[^\]]*\]\s*)+=(?!=)|\*\s*{name}\s*(?:\+\+)?\s*=(?!=)", self.body))
        return bool(uses and uses == writes) or bool(_OUTPUT.search(pointer.name) and not self._read_first(name))

    def _read_first(self, name: str) -> bool:
        return bool(re.search(rf"\b{name}\s*(?:\[[^\]]*\]\s*)+(?:[-+*/|&^]|<<|>>)=", self.body))

    def _output_length(self, pointer: CParameter) -> str:
        name = re.escape(pointer.name)
        if self.extents[pointer.name]:
            return self._length_of(pointer)
        if not re.search(rf"\b{name}\s*(?:\[|\+)|\({name}|,\s*{name}\b", self.body) and re.search(
            rf"\*\s*{name}\s*=", self.body
        ):
            return "1"
        # Encoders lengthen what they read; room that is not written to costs nothing and is the same for both.
        return self._room()

    def _room(self) -> str:
        own = (each.name for each in self.integers) if self.sized else ()
        base = " + ".join(self.lengths or own) or ("size" if self.pointers else "most")
        return f"ROOM * ({base}) + 64" if "+" in base else f"ROOM * {base} + 64"

    def _array(self, pointer: CParameter) -> None:
        made, length, name = self.made, self._length_of(pointer), pointer.name
        if self.capacities and not pointer.const and not self.extents[name]:
            length = self._room()
        if self._is_text(pointer):
            known = [
                value
                for key, value in made.values.items()
                if key in {each.name for each in self.pointers if self._is_text(each)}
            ]
            if _PATTERN.search(name) and known:
                whole = known[0].split(".")[0]
                made.lines.append(f"{name} = make_piece(rng, {whole})")
                self._set_length(pointer, f"len({name})")
            else:
                maker = "make_json" if re.search("json", f"{self.function.name} {name}", re.IGNORECASE) else "make_text"
                maker = "make_numbers" if "numbers" in self.variant else maker
                # A zero byte follows what is const; a text that may be changed has to bring its own.
                end = "" if pointer.const or self.lengths else ' + b"\\0"'
                digits = ", 3" if maker == "make_numbers" and "small values" in self.variant else ""
                made.ranges[name] = Range("text")
                text = f'strewn(rng, far, "{name}", {maker}(rng, {length}{digits}).encode())'
                made.lines.append(f"{name} = {text if end else self._likened(pointer, text)}{end}")
        else:
            made.lines.append(f"{name} = {self._likened(pointer, self._values(pointer, length))}")
        made.values[name] = name

    def _likened(self, pointer: CParameter, value: str) -> str:
        """The value, which now and then has a part of an earlier one of its type in it."""
        if not value.startswith(("spread(", "strewn(", "patterned(rng, make_bytes(")):
            return value  # places, sorted numbers and matrices to be solved are no longer that with parts of others
        earlier = [each for each in self.pointers if each.c_type == pointer.c_type and each.name in self.made.values]
        first = next((each.name for each in earlier if self.made.values[each.name] == each.name), "")
        names = f', "{first}", "{pointer.name}"' if first in self.made.ranges else ""
        return f"likened(rng, {first}, {value}{names})" if first else value

    def _set_length(self, pointer: CParameter, value: str) -> None:
        """A text that was cut from another one decides its own length."""
        own = self._length_of(pointer)
        others = {self._length_of(each) for each in self.pointers if each is not pointer and not self._filled(each)}
        if own in self.lengths and own not in others:
            self.made.lines.append(f"{own} = {value}")

    def _values(self, pointer: CParameter, length: str) -> str:
        dtype = np.dtype(C_TYPES[pointer.c_type])
        name = re.escape(pointer.name)
        if dtype.kind == "f":
            single = ".astype(np.float32)" if dtype.itemsize == 4 else ""
            square = re.fullmatch(r"(\w+) \* \1", length)
            if "dominant" in self.variant and square:
                return f"make_matrix(rng, {square[1]}){single}"
            made = f"rng.standard_normal({length}){single}"
            return self._spread(pointer.name, Range(dtype.str[1:]), made)
        if dtype.kind == "b":
            return f"patterned(rng, rng.integers(0, 2, {length}).astype(bool))"
        if "small values" in self.variant or (dtype.itemsize > 1 and re.search(rf"\[\s*{name}\s*\[", self.body)):
            # Used as indices: anything beyond the arrays would read what nobody gave.
            most = 8 if "small values" in self.variant else f"max({length}, 1)"
            return f"patterned(rng, rng.integers(0, {most}, {length}, dtype=np.{dtype.name}))"
        if dtype.itemsize == 1:
            return f"patterned(rng, make_bytes(rng, {length}){'' if dtype.kind == 'u' else '.view(np.int8)'})"
        if "any values" in self.variant:
            low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        else:
            high = 1_000_000 if "large values" in self.variant and dtype.itemsize > 2 else 1000
            low = 0 if dtype.kind == "u" or "naturals" in self.variant else -high
        drawn = f"rng.integers({low}, {high}, {length}, dtype=np.{dtype.name}, endpoint=True)"
        drawn = self._spread(pointer.name, Range(dtype.str[1:], low, high), drawn)
        return (
            f"np.sort({drawn})"
            if re.search(r"sorted|binary_?search|bsearch", f"{self.function.name} {pointer.name}", re.IGNORECASE)
            else drawn
        )

    def _spread(self, name: str, values: Range, ordinary: str) -> str:
        self.made.ranges[name] = values
        return f'spread(rng, far, "{name}", {ordinary})'

    def _is_text(self, pointer: CParameter) -> bool:
        return pointer.c_type == "char" and not self._filled(pointer)

    def _is_text_mark(self, number: CParameter) -> bool:
        return number.c_type == "char" or bool(re.fullmatch(r"c|ch|chr|delim|delimiter|sep", number.name))

    # Numbers

    def _far(self, number: CParameter) -> str:
        """A number that goes as far as the function can take it."""
        ordinary = self._number(number)
        if number.name in {*self.capacities, *self.measured} or np.dtype(C_TYPES[number.c_type]).kind == "b":
            return ordinary
        return self._spread(number.name, of_type(number.c_type), ordinary)

    def _number(self, number: CParameter) -> str:
        name, dtype = number.name, np.dtype(C_TYPES[number.c_type])
        length = next(iter(self.lengths), "size")
        if name in self.capacities:
            return f"tight(rng, {self._room()}, most)"
        if dtype.kind == "f":
            return "float(rng.uniform(0.1, 2.0))"
        if dtype.kind == "b" or _FLAG.search(name):
            return "int(rng.integers(0, 2))"
        if cases := self._cases(name):
            return f"int(rng.choice([{', '.join(cases)}]))"
        if self._is_text_mark(number):
            return 'ord(rng.choice(list("etaoin ,")))'
        if _SEED.search(name):
            bits = min(8 * dtype.itemsize - (dtype.kind == "i"), 32)
            return f"int(rng.integers(0, 1 << {bits}))"
        if not self.pointers:
            most = np.iinfo(dtype).max
            return f"int(rng.integers(1, {f'min(most, {most})' if most < 1 << 20 else 'most'} + 1))"
        if _PLACE.search(name):
            return f"int(rng.integers(0, {length} // 4 + 1))"
        if _END.search(name):
            return f"{length} - 1"
        wanted = next(
            (each for each in self.pointers if np.dtype(C_TYPES[each.c_type]) == dtype and not self._filled(each)), None
        )
        if wanted is not None and re.search(r"target|value|val|key|^x$|elem|item|needle", name, re.IGNORECASE):
            return f"int(rng.choice({self.made.values.get(wanted.name, wanted.name)}))"
        return "int(rng.integers(1, 9))"

    def _cases(self, name: str) -> list[str]:
        """The numbers that a switch over this parameter tells apart."""
        match = re.search(rf"switch\s*\(\s*{re.escape(name)}\s*\)", self.body)
        return [] if match is None else list(dict.fromkeys(re.findall(r"\bcase\s+(\d+)\s*:", self.body[match.end() :])))


def _own_length(number: str, pointer: str) -> bool:
    """`nx`, `len_x` and `x_size` are the length of x."""
    word = re.escape(pointer)
    return bool(
        re.fullmatch(rf"(?:n|num|len|size)_?{word}|{word}_?(?:n|num|len|length|size|count|sz)", number, re.IGNORECASE)
    )


def _mentions(expression: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", expression))
