"""C source: one function's definition and the types it uses, read from text that no compiler has seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from outpace.init.c_literals import Literals, literals
from outpace.judge.abi import C_TYPES

_QUALIFIERS = {
    "const",
    "extern",
    "static",
    "inline",
    "register",
    "volatile",
    "restrict",
    "constexpr",
    "struct",
    "enum",
    "auto",
    "__inline",
    "__inline__",
    "__restrict",
    "__restrict__",
    "__extension__",
    "_Noreturn",
    "noexcept",
    "__forceinline",
}
# What parentheses follow too.
_NO_FUNCTIONS = {
    "if",
    "for",
    "while",
    "switch",
    "return",
    "sizeof",
    "catch",
    "defined",
    "noexcept",
    "throw",
    "alignas",
    "decltype",
    "requires",
    "__attribute__",
    "__declspec",
}
# Comments and literals in one expression, so that a quote in a comment or a slash in a string opens nothing.
_SKIPPED = re.compile(r"""//(?:[^\n\\]|\\.)*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_ATTRIBUTE = re.compile(
    r"(?:__attribute__|__declspec|alignas|_Alignas)\s*\(\(?[^()]*(?:\([^()]*\))?[^()]*\)?\)|\[\[.*?\]\]"
)


@dataclass(frozen=True)
class CParameter:
    """One parameter; `c_type` is a key of C_TYPES, or "" where the type is none that crosses the jail."""

    name: str
    c_type: str
    stars: int
    const: bool
    # What stands between the brackets of `T name[n][16]`, constants as numbers; empty without brackets.
    dims: tuple[str, ...]
    text: str
    # "vector" or "string" for the standard C++ containers of numbers, whose element is then `c_type`.
    container: str = ""

    @property
    def plain(self) -> bool:
        """Whether the judge can make it: a number, a pointer to numbers, or an array whose rows have a known length."""
        flat = self.stars <= 1 or (self.stars == len(self.dims) and all(self.dims[1:]))
        return bool(self.c_type) and flat and not self.container and not (self.c_type == "void" and not self.stars)


@dataclass(frozen=True)
class CFunction:
    """A definition; `returns` is "" where the type is none that crosses the jail."""

    name: str
    returns: str
    returns_stars: int
    # "vector" or "string" where it returns one; `returns` is then the type of its elements.
    returns_container: str
    parameters: tuple[CParameter, ...]
    static: bool
    # C linkage by itself: true in C, and in C++ inside extern "C".
    c_linkage: bool
    # `space::` for a function in a namespace; a method or template cannot be called by name alone.
    scope: str
    member: bool
    body: str
    line: int
    head: str
    # What it and all that it uses in these texts name.
    literals: Literals = Literals()


def find_function(name: str, source: str, others: Iterable[str] = (), *, cpp: bool = False) -> CFunction | None:
    """The definition of `name` in `source`; `others` are the headers that its types may come from."""
    code, others = blanked(source), list(others)
    types = Types([source, *others])
    for match, inside_end, brace, head in _definitions(code, re.escape(name)):
        scope, enclosed_c, member = _scope(code, match.start()) if cpp else ("", True, False)
        member = member or head.rstrip().endswith("::") or bool(re.search(r"\btemplate\s*<", head))
        container, element = _container(_unwrapped(head)) if cpp else ("", "")
        returns, stars = types.resolve(element or _unwrapped(head))
        specifiers = types.expanded(_unwrapped(head))
        inside = _ATTRIBUTE.sub(" ", code[match.end() : inside_end - 1])
        pieces = [piece for piece in _split(inside) if piece.strip() not in ("", "void")]
        return CFunction(
            name,
            returns,
            stars,
            container,
            tuple(_parameter(piece, at, types, cpp) for at, piece in enumerate(pieces)),
            static="static" in specifiers or (not cpp and "inline" in specifiers),
            c_linkage=not cpp or enclosed_c or 'extern "C"' in head,
            scope=scope,
            member=member,
            body=code[brace : _closing(code, brace, "{", "}")],
            line=code.count("\n", 0, match.start()) + 1,
            head=" ".join(code[match.start() - len(head) : inside_end].split()),
            literals=literals(name, source, others),
        )
    return None


def defined_functions(source: str) -> list[str]:
    """The names of what looks like function definitions, in order."""
    return list(dict.fromkeys(match[1] for match, *_ in _definitions(blanked(source), r"\w+")))


def says_cpp(source: str) -> bool:
    """Whether a header is one of C++ alone, whose name may be that of a C header."""
    words = r"\bnamespace\b|\btemplate\s*<|\b(?:class|using)\s+\w|\bconstexpr\b|\w\s*::"
    # The standard headers of C++ have names without an end.
    return bool(
        re.search(words, blanked(source)) or re.search(r"^[ \t]*#[ \t]*include[ \t]*<\w+>", source, re.MULTILINE)
    )


def blanked(source: str) -> str:
    """The source with comments, literals and directives blanked out, every other character where it was."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0] == '"C"' else re.sub(r"[^\n]", " ", match[0])

    return _DIRECTIVE.sub(blank, _SKIPPED.sub(blank, source))


class Types:
    """The typedefs and macros of some texts, as far as they lead to numbers."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._known: dict[str, list[str]] = {}
        for text in texts:
            plain = _SKIPPED.sub(" ", text)
            for name, value in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]*([\w \t*]*)$", plain, re.MULTILINE):
                self._known.setdefault(name, []).append(value.strip())
            for base, name in re.findall(r"\btypedef\s+([\w\s*]+?[\s*])(\w+)\s*;", plain):
                self._known.setdefault(name, []).append(base.strip())
            for name in re.findall(r"\btypedef\s+enum\b[^;{]*\{[^}]*\}\s*(\w+)\s*;", plain):
                self._known.setdefault(name, []).append("int")
            for name, base in re.findall(r"\busing\s+(\w+)\s*=\s*([\w\s:*]+);", plain):
                self._known.setdefault(name, []).append(base.strip())

    def resolve(self, text: str) -> tuple[str, int]:
        """The C type that a specifier text comes down to, or "", and how many stars stand after it."""
        found, stars = self._resolve(text.replace("*", " * ").replace("std::", "").split(), 0)
        return found, stars

    def expanded(self, text: str) -> set[str]:
        """The words of a specifier text, macros such as `#define local static` included."""
        words = set(text.split())
        for word in tuple(words):
            words.update(*(value.split() for value in self._known.get(word, ())))
        return words

    def constants(self, text: str) -> str:
        """An expression with macros that stand for numbers replaced by them."""

        def value(word: re.Match[str]) -> str:
            return next((each for each in self._known.get(word[0], ()) if each.isdigit()), word[0])

        return re.sub(r"[A-Za-z_]\w*", value, " ".join(text.split()))

    def _resolve(self, words: list[str], depth: int) -> tuple[str, int]:
        stars = words.count("*")
        left = [word for word in words if word != "*" and word not in _QUALIFIERS and word != '"C"']
        if number := _number_type(left):
            return number, stars
        if depth > 8:
            return "", stars
        for at, word in enumerate(left):
            for value in self._known.get(word, ()):
                if value != word:
                    found, more = self._resolve(
                        [*left[:at], *value.replace("*", " * ").split(), *left[at + 1 :]], depth + 1
                    )
                    if found:
                        return found, stars + more
        # An unknown word in capitals beside a type is an attribute in disguise: API, EXPORT, FAR.
        shorter = [word for word in left if not re.fullmatch(r"_*[A-Z][A-Z0-9_]*|__\w+", word)]
        if shorter and len(shorter) < len(left):
            return self._resolve([*shorter], depth + 1)[0], stars
        return "", stars


def _number_type(words: list[str]) -> str:
    joined = " ".join(words)
    if joined in C_TYPES:
        return joined
    if not words or set(words) - {"unsigned", "signed", "long", "short", "int", "char", "double"}:
        return ""
    # The order of `long unsigned int` is free in C; the ABI knows one spelling of each.
    sign = "unsigned " if "unsigned" in words else ""
    if "char" in words:
        return f"{sign}char"
    if "short" in words:
        return f"{sign}short"
    if "double" in words:
        return "" if "long" in words else "double"
    return f"{sign}{'long' if 'long' in words else 'int'}"


def _parameter(piece: str, position: int, types: Types, cpp: bool) -> CParameter:
    text = " ".join(piece.split())
    piece = re.sub(r"=.*$", "", text)  # a C++ default
    container, element = _container(piece) if cpp else ("", "")
    if container:
        named = re.fullmatch(r".*?(&?)\s*(\w+)\s*", piece)
        c_type, stars = types.resolve(element)
        name = named[2] if named else f"argument{position + 1}"
        # A copy is as good as const: what is done to it is seen by nobody.
        const = bool(re.match(r"\s*const\b", piece)) or named is None or not named[1]
        return CParameter(name, "" if stars else c_type, 0, const, (), text, container)
    match = re.fullmatch(r"([\w\s:*]*?[\s*])?(\w+)\s*((?:\[[^\]]*\]\s*)*)", piece.strip())
    if match is None or not (match[1] or "").strip():
        return CParameter(f"argument{position + 1}", "", 0, False, (), text)
    base, name, brackets = match[1], match[2], match[3]
    c_type, stars = types.resolve(base)
    dims = tuple(types.constants(re.sub(r"\b(?:static|restrict|const)\b", "", each)) for each in _dims(brackets))
    const = "const" in base.split("*")[0].split() or "const" in types.expanded(base.split("*")[0])
    return CParameter(name, c_type, stars + len(dims), const, dims, text)


def _definitions(code: str, name: str) -> Iterator[tuple[re.Match[str], int, int, str]]:
    """Each name that parameters and a body follow: where these end and begin, and what stands before the name."""
    for match in re.finditer(rf"\b({name})\s*\(", code):
        inside_end = _closing(code, match.end() - 1, "(", ")")
        brace = _body_start(code, inside_end)
        head = _head(code, match.start())
        if brace is None or match[1] in _NO_FUNCTIONS or not re.sub(r"extern\s*\"C\"", "", head).strip():
            continue
        if re.search(r"(?:[\w*&>)\]]|::)\s*$", head) and not re.search(r"->\s*$|\b(?:return|else)\s*$", head):
            yield match, inside_end, brace, head


def _dims(brackets: str) -> list[str]:
    return re.findall(r"\[([^\]]*)\]", brackets)


def _container(text: str) -> tuple[str, str]:
    """Which standard container of plain elements a C++ type is, and the type of its elements."""
    text = text.replace("std::", "")
    if found := re.fullmatch(
        r"\s*(?:(?:static|inline|const|constexpr)\s+)*(?:vector|span)\s*<([\w\s]+)>\s*(?:&?\s*\w*)?\s*", text
    ):
        return "vector", found[1].removeprefix("const ").strip()
    if re.fullmatch(r"\s*(?:(?:static|inline|const|constexpr)\s+)*string(?:_view)?\b\s*(?:&?\s*\w*)?\s*", text):
        return "string", "char"
    return "", ""


def _unwrapped(head: str) -> str:
    """`API(void)` means `void`: macros around a return type say how it is exported."""
    return re.sub(r"\w+\s*\(([^()]*)\)", r"\1", _ATTRIBUTE.sub(" ", head))


def _head(code: str, at: int) -> str:
    start = max(code.rfind(mark, 0, at) for mark in ";{}")
    return code[start + 1 : at]


def _body_start(code: str, at: int) -> int | None:
    """Where the body opens after a parameter list, with attributes and the like between them."""
    match = re.compile(
        r"\s*(?:(?:(?:noexcept|throw)\b(?:\s*\([^()]*\))?|const|override|final|[A-Z_][A-Z0-9_]*(?:\([^()]*\))?)\s*|->\s*[\w:]+\s*)*\{"
    ).match(_ATTRIBUTE.sub(lambda m: " " * len(m[0]), code[at : at + 400]))
    return None if match is None else at + match.end() - 1


def _closing(code: str, at: int, opens: str, closes: str) -> int:
    """Just past the bracket that closes the one at `at`."""
    depth = 0
    for match in re.compile(rf"[{re.escape(opens + closes)}]").finditer(code, at):
        depth += 1 if match[0] == opens else -1
        if depth == 0:
            return match.end()
    return len(code)


def _split(inside: str) -> list[str]:
    pieces, depth, start = [], 0, 0
    for at, mark in enumerate(inside):
        depth += (mark in "(<[") - (mark in ")>]")
        if mark == "," and depth == 0:
            pieces.append(inside[start:at])
            start = at + 1
    return [*pieces, inside[start:]]


def _scope(code: str, at: int) -> tuple[str, bool, bool]:
    """The namespaces, extern "C" and class around a place."""
    stack: list[str] = []
    start = 0
    for match in re.compile(r"[;{}]").finditer(code, 0, at):
        if match[0] == "{":
            stack.append(code[start : match.start()])
        elif match[0] == "}" and stack:
            stack.pop()
        start = match.end()
    names = [found[1] for text in stack if (found := re.search(r"\bnamespace\s+([\w:]+)\s*$", text))]
    member = any(re.search(r"\b(?:class|struct)\s+\w[^()]*$", text) for text in stack)
    return "".join(f"{name}::" for name in names), any('"C"' in text for text in stack), member


def unbound(expression: str, bounds: Mapping[str, str], known: Iterable[str]) -> str | None:
    """An index expression with each loop variable at its bound, or None where something else decides it."""
    # What is subtracted only lowers the index.
    expression = re.sub(r"-\s*(?:\w+|\d+)", "", " ".join(expression.split()))
    if not re.fullmatch(r"[\w\s+*()]+", expression) or not expression.strip():
        return None
    names = set(known)
    # A bound may be another loop's variable: `j < i` below `i < n`.
    for _ in range(4):
        for word in set(re.findall(r"[A-Za-z_]\w*", expression)) - names:
            if word not in bounds:
                return None
            bound = bounds[word] if re.fullmatch(r"\w+", bounds[word]) else f"({bounds[word]})"
            expression = re.sub(rf"\b{word}\b", bound, expression)
    if set(re.findall(r"[A-Za-z_]\w*", expression)) - names:
        return None
    # The row `i * n + j` with j below n ends where row i + 1 begins.
    row = re.fullmatch(r"(\w+) ?\* ?(\w+) ?\+ ?(\w+)", expression.strip())
    if row and row[3] in (row[1], row[2]):
        return f"{row[1]} * {row[2]}"
    return expression.strip() if re.fullmatch(r"\w+( ?\* ?\w+)*", expression.strip()) else f"{expression.strip()} + 1"


def loop_bounds(body: str) -> dict[str, str]:
    """What each loop variable stays below, as written; of several bounds the first."""
    bounds: dict[str, str] = {}
    for name, sign, bound in re.findall(r"\b(\w+)\s*(<=|<|!=)\s*([\w\s*+\-().>]+?)\s*(?:;|&&|\)\s*[{;\n]|\)$)", body):
        bound = bound.strip()
        if re.fullmatch(r"\w+(\s*[*+]\s*\w+)*", bound) and not name.isdigit():
            bounds.setdefault(name, f"{bound} + 1" if sign == "<=" else bound)
        elif found := re.match(r"(\w+)\s*-", bound):
            bounds.setdefault(name, found[1])
    # Downwards: `k = degree; k >= 0` begins at its bound.
    for name, bound, less in re.findall(r"\b(\w+)\s*=\s*(\w+)\s*(-\s*1)?\s*;\s*\1\s*(?:>=\s*0|>\s*-\s*1)\s*;", body):
        bounds.setdefault(name, bound if less else f"{bound} + 1")
    return bounds
