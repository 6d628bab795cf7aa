"""Inputs for a C function: which pointer has which length, what is filled, and what values the numbers take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from outpace.c_source import CFunction, CParameter, loop_bounds, unbound
from outpace.judge.abi import C_TYPES
from outpace.skeleton_text import TAKEN

GLUE_NAME = "outpace_entry"
# What differs between two attempts at the same function; the jail tells which of them works.
VARIANTS = ("", "in place", "small values")

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
_PATTERN = re.compile(r"pat|needle|sub|search|find|prefix|suffix|delim|sep|accept|reject|key|word", re.IGNORECASE)


@dataclass
class Guess:
    """The body of make_input as it grows."""

    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    tolerance: float = 0.0


@dataclass(frozen=True)
class CPlan:
    """How a C function is judged: the declaration that is called, a wrapper where one is needed, and its inputs."""

    declaration: str
    glue: str
    guess: Guess


def plan_c(function: CFunction, source: str, *, cpp: bool, variant: str = "") -> CPlan:
    """The plan for one function in `source`."""
    unclear = [parameter for parameter in function.parameters if not parameter.plain]
    if (
        unclear
        or function.member
        or (not function.returns and not function.returns_stars)
        or function.returns_stars > 1
    ):
        return _by_hand(function, source, unclear, cpp)
    if function.returns_stars:
        return _returned_pointer(function, source, cpp, variant)
    guess = guess_c(function, variant)
    if function.static or not function.c_linkage:
        call = f"{function.scope}{function.name}({', '.join(each.name for each in function.parameters)})"
        body = f"{call};" if function.returns == "void" else f"return {call};"
        declared = _declaration(GLUE_NAME, function.returns, function.parameters)
        why = "static" if function.static else "C++"
        return CPlan(
            declared, _glue(source, declared, [body], cpp, f"{function.name} is {why}: this gives it a C name."), guess
        )
    return CPlan(_declaration(function.name, function.returns, function.parameters), "", guess)


def _returned_pointer(function: CFunction, source: str, cpp: bool, variant: str) -> CPlan:
    """A pointer means nothing outside its process: hand back where it points to, or the text it points to."""
    guess = guess_c(function, "")
    arguments = ", ".join(each.name for each in function.parameters)
    call = f"{function.scope}{function.name}({arguments})"
    base = next((each for each in function.parameters if each.stars and each.c_type == function.returns), None)
    if base is not None and variant == "":
        declared = _declaration(GLUE_NAME, "int64_t", function.parameters)
        body = [f"const {function.returns} *found = {call};", f"return found ? (int64_t)(found - {base.name}) : -1;"]
        return CPlan(
            declared, _glue(source, declared, body, cpp, "A place inside an argument is told by its offset."), guess
        )
    if function.returns not in ("char", "unsigned char"):
        return _by_hand(function, source, [], cpp)
    text = CParameter("outpace_text", "char", 1, False, 0, "char *outpace_text")
    declared = _declaration(GLUE_NAME, "int64_t", (*function.parameters, text))
    body = [
        f"const char *made = (const char *){call};",
        "int64_t length = 0;",
        "if (!made) return -1;",
        "for (; made[length] && length < 65536; length++) outpace_text[length] = made[length];",
        "return length;",
    ]
    guess.values["outpace_text"] = 'Output(65536, "int8")'
    return CPlan(declared, _glue(source, declared, body, cpp, "The text that is returned is copied out."), guess)


def _by_hand(function: CFunction, source: str, unclear: Sequence[CParameter], cpp: bool) -> CPlan:
    """A wrapper with one line missing: only a person knows how its arguments are made from bytes and numbers."""
    given = CParameter("text", "char", 1, True, 0, ""), CParameter("bytes", "int64_t", 0, False, 0, "")
    declared = _declaration(GLUE_NAME, "int64_t", given)
    if function.member:
        what = "it is a method or a template"
    elif unclear:
        what = "it takes " + ", ".join(f"'{each.text}'" for each in unclear)
    else:
        what = "it returns what is no number"
    missing = (
        f'#error "fill in: make the arguments of {function.name} from text and bytes, call it, '
        f'return a number that depends on its answer ({what})"'
    )
    guess = Guess()
    guess.lines.append("size = int(rng.integers(SIZE // 2, SIZE + 1))")
    guess.lines.append("text = make_text(rng, size).encode()")
    guess.values = {"text": "text", "bytes": "len(text)"}
    why = f"{function.head}"
    return CPlan(declared, _glue(source, declared, [missing], cpp, why), guess)


def _glue(source: str, declared: str, body: Sequence[str], cpp: bool, why: str) -> str:
    lines = [f"// {why}", "#include <stdint.h>", f'#include "{source}"', ""]
    linkage = 'extern "C" ' if cpp else ""
    # Declared before it is defined, for -Wmissing-prototypes.
    lines += [f"{linkage}{declared};", f"{linkage}{declared} {{"]
    lines += [f"{'' if line.startswith('#') else '    '}{line}" for line in body]
    return "\n".join([*lines, "}"]) + "\n"


def _declaration(name: str, returns: str, parameters: Sequence[CParameter]) -> str:
    declared = ", ".join(
        f"{'const ' if each.const and each.stars else ''}{each.c_type} {'*' if each.stars else ''}{each.name}"
        for each in parameters
    )
    return f"{returns} {name}({declared or 'void'})"


def guess_c(function: CFunction, variant: str = "") -> Guess:
    """Lines that make arguments for a function whose parameters are numbers and pointers to numbers."""
    renamed = {each.name: f"{each.name}_" for each in function.parameters if each.name in TAKEN}
    body = re.sub(r"[A-Za-z_]\w*", lambda word: renamed.get(word[0], word[0]), function.body)
    parameters = tuple(replace(each, name=renamed.get(each.name, each.name)) for each in function.parameters)
    guess = _CGuesser(replace(function, body=body, parameters=parameters), variant).guess()
    original = {new: old for old, new in renamed.items()}
    guess.values = {original.get(name, name): value for name, value in guess.values.items()}
    return guess


class _CGuesser:
    def __init__(self, function: CFunction, variant: str) -> None:
        self.function, self.variant, self.body = function, variant, function.body
        self.pointers = [each for each in function.parameters if each.stars]
        self.integers = [
            each for each in function.parameters if not each.stars and np.dtype(C_TYPES[each.c_type]).kind in "iu"
        ]
        self.names = {each.name for each in self.integers}
        self.bounds = {name: bound for name, bound in loop_bounds(self.body).items() if name not in self.names}
        self.extents = {each.name: self._extent(each) for each in self.pointers}
        self.capacities: dict[str, str] = {}
        self.lengths = self._lengths()
        self.made = Guess()

    def guess(self) -> Guess:
        made = self.made
        if self.pointers and not self.lengths:
            made.lines.append("size = int(rng.integers(SIZE // 2, SIZE + 1))")
        square = any("*" in extent for extent in self.extents.values()) or self._flat_matrix()
        for name in self.lengths:
            # A square of values takes as long as a line of as many.
            most = "SIDE" if square else "SIZE"
            made.lines.append(f"{name} = int(rng.integers({most} // 2, {most} + 1))")
        inputs = [each for each in self.pointers if not self._filled(each)]
        for each in sorted(inputs, key=lambda one: bool(self._is_text(one) and _PATTERN.search(one.name))):
            self._array(each)
        for each in self.pointers:
            if self._filled(each):
                made.values[each.name] = f'Output({self._output_length(each)}, "{np.dtype(C_TYPES[each.c_type]).name}")'
        for each in self.function.parameters:
            if not each.stars and each.name not in self.lengths:
                made.values[each.name] = self._number(each)
        for name in self.lengths:
            made.values[name] = name
        made.values = {each.name: made.values[each.name] for each in self.function.parameters}
        kinds = [each.c_type for each in self.pointers if not each.const] + [self.function.returns]
        made.tolerance = 1e-4 if "float" in kinds else 1e-9 if "double" in kinds else 0.0
        return made

    # Which number is a length, and whose

    def _lengths(self) -> dict[str, None]:
        if not self.pointers:
            return {}
        used = {
            word
            for extent in [*self.extents.values(), *self.bounds.values()]
            for word in re.findall(r"[A-Za-z_]\w*", extent)
        }
        found: dict[str, None] = {}
        for each in self.integers:
            if self._is_text_mark(each) or self._cases(each.name) or _FLAG.search(each.name):
                continue
            # A capacity belongs to what is filled, and follows from the lengths of what is read.
            if (
                _CAPACITY.search(each.name)
                and _LENGTH.search(each.name)
                and any(self._filled(one) for one in self.pointers)
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
        return found

    def _length_of(self, pointer: CParameter) -> str:
        if pointer.fixed:
            return str(pointer.fixed)
        if extent := self.extents[pointer.name]:
            return extent
        if not self.lengths:
            return "size"
        if self._flat_matrix():
            return " * ".join(self.lengths)
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
        found = []
        for index in re.findall(rf"\b{re.escape(pointer.name)}\s*\[([^\[\]]+)\]", self.body):
            extent = unbound(index, self.bounds, self.names)
            if extent is None or set(re.findall(r"[A-Za-z_]\w*", extent)) - self.names:
                return ""
            found.append(extent)
        # Numbers alone (`x[0]`) are the first few elements of something longer.
        named = [extent for extent in dict.fromkeys(found) if re.search(r"[A-Za-z_]", extent)]
        if not named or re.search(rf"\b{re.escape(pointer.name)}\s*(?:\+|\+\+|--|,|\))", self.body):
            return ""
        plain = [extent.removesuffix(" + 1") for extent in named]
        return max(named, key=len) if len(set(plain)) == 1 or len(named) == 1 else f"max({', '.join(named)})"

    # Arrays

    def _filled(self, pointer: CParameter) -> bool:
        """Whether a pointer is written and never read: an Output."""
        if pointer.const or self.variant == "in place":
            return False
        name = re.escape(pointer.name)
        uses = len(re.findall(rf"\b{name}\b", self.body))
        writes = len(re.findall(rf"\b{name}\s*\[[^\]]*\]\s*=(?!=)|\*\s*{name}\s*(?:\+\+)?\s*=(?!=)", self.body))
        return bool(uses and uses == writes) or bool(_OUTPUT.search(pointer.name) and not self._read_first(name))

    def _read_first(self, name: str) -> bool:
        return bool(re.search(rf"\b{name}\s*\[[^\]]*\]\s*(?:[-+*/|&^]|<<|>>)=", self.body))

    def _output_length(self, pointer: CParameter) -> str:
        name = re.escape(pointer.name)
        if pointer.fixed or self.extents[pointer.name]:
            return self._length_of(pointer)
        if not re.search(rf"\b{name}\s*(?:\[|\+)|\({name}|,\s*{name}\b", self.body) and re.search(
            rf"\*\s*{name}\s*=", self.body
        ):
            return "1"
        # Encoders lengthen what they read; room that is not written to costs nothing and is the same for both.
        return self._room()

    def _room(self) -> str:
        base = " + ".join(self.lengths) or ("size" if self.pointers else "SIZE")
        return f"2 * ({base}) + 64" if "+" in base else f"2 * {base} + 64"

    def _array(self, pointer: CParameter) -> None:
        made, length, name = self.made, self._length_of(pointer), pointer.name
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
                made.lines.append(f"{name} = {maker}(rng, {length}).encode()")
        else:
            made.lines.append(f"{name} = {self._values(pointer, length)}")
        made.values[name] = name

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
            return f"rng.standard_normal({length}){'.astype(np.float32)' if dtype.itemsize == 4 else ''}"
        if dtype.kind == "b":
            return f"rng.integers(0, 2, {length}).astype(bool)"
        if self.variant == "small values" or (dtype.itemsize > 1 and re.search(rf"\[\s*{name}\s*\[", self.body)):
            # Used as indices: anything beyond the arrays would read what nobody gave.
            most = 8 if self.variant == "small values" else f"max({length}, 1)"
            return f"rng.integers(0, {most}, {length}, dtype=np.{dtype.name})"
        if dtype.itemsize == 1:
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
            return f"rng.integers({low}, {high}, {length}, dtype=np.{dtype.name}, endpoint=True)"
        low = 0 if dtype.kind == "u" else -1000
        drawn = f"rng.integers({low}, 1001, {length}, dtype=np.{dtype.name})"
        return (
            f"np.sort({drawn})"
            if re.search(r"sorted|binary_?search|bsearch", f"{self.function.name} {pointer.name}", re.IGNORECASE)
            else drawn
        )

    def _is_text(self, pointer: CParameter) -> bool:
        return pointer.c_type == "char" and not self._filled(pointer)

    def _is_text_mark(self, number: CParameter) -> bool:
        return number.c_type == "char" or bool(re.fullmatch(r"c|ch|chr|delim|delimiter|sep", number.name))

    # Numbers

    def _number(self, number: CParameter) -> str:
        name, dtype = number.name, np.dtype(C_TYPES[number.c_type])
        length = next(iter(self.lengths), "size")
        if name in self.capacities:
            return self._room()
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
            return f"int(rng.integers(1, {f'min(SIZE, {most})' if most < 1 << 20 else 'SIZE'} + 1))"
        if _PLACE.search(name):
            return "0"
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
