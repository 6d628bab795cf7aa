"""Inputs for a Python function: what its annotations, doctests, uses and names say about its parameters."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outpace.init.kinds import LISTS, OPTION, OTHERWISE, WITHIN, annotated, last_name, shown, unknown

# Numbers beyond this say no more than that there is no limit.
_LARGEST_DEFAULT = 1 << 40

# The last word of a parameter's name, by the kind it suggests; the first kind that fits is taken.
_NAMES: Sequence[tuple[str, str]] = (
    ("sorted", r"\w*sorted\w*"),
    ("json", r"json\w*"),
    ("piece", "pattern|needle|sub|substring|substr|prefix|suffix|pat"),
    ("word", r"(?:word|name|token|term)\d*"),
    ("words", "words|names|strings|possibilities|choices|tokens|terms|keys|vocabulary"),
    ("lines", "lines"),
    ("text", r"(?:text|string|str|s|content|sentence|paragraph|document|doc|message|msg|html|markup|source)\d*"),
    ("text", r"(?:line|haystack|txt|phrase|title|plaintext)\d*"),
    ("bytes", "bytes|buf|buffer|blob|payload|raw|b"),
    ("matrix", r"(?:matrix|grid|board|mat|image|table)(?:_?[ab12])?"),
    ("points", "points|coords|coordinates|vertices"),
    ("floats", "data|values|samples|weights|prices|scores|xs|ys|series|signal|observations|measurements"),
    ("ints", "items|nums|numbers|arr|array|lst|list|seq|sequence|collection|elements|iterable|it|integers"),
    ("ints", "ints|src|unsorted|heights|profits|coins|costs"),
    ("count", r"n|num|number|size|count|limit|length|total|amount|max_\w+|num_\w+|nth|capacity|maximum"),
    ("few", "k|m|width|depth|base|degree|order|digits|step|chunk_?size|window|batch"),
    ("member", "target|value|val|key|item|elem|element"),
    ("real", "x|y|z|alpha|beta|eps|epsilon|rate|ratio|temperature|radius|cutoff|threshold"),
    ("flag", r"reverse|is_\w+|has_\w+|use_\w+|strict|flag"),
)
_TEXT_METHODS = {
    "split",
    "lower",
    "upper",
    "strip",
    "lstrip",
    "rstrip",
    "startswith",
    "endswith",
    "splitlines",
    "isalpha",
    "isdigit",
    "isspace",
    "isupper",
    "islower",
    "casefold",
    "title",
    "encode",
    "find",
    "expandtabs",
    "translate",
    "replace",
    "partition",
}


@dataclass(frozen=True)
class PythonParameter:
    """One parameter, and the kinds of value it may take, likeliest first; none where nothing tells."""

    name: str
    kinds: tuple[str, ...]
    # The value it has in a doctest, as text, for a person who must fill it in.
    example: str = ""
    # The default of one that callers may leave out, whose kind is OPTION.
    default: bool | int = 0


@dataclass(frozen=True)
class PythonFunction:
    """A top-level function; `positional` holds the names that may not be given by keyword."""

    name: str
    parameters: tuple[PythonParameter, ...]
    positional: tuple[str, ...]
    # `*args` and the like, which nothing is passed to.
    variadic: bool
    line: int
    docstring: str
    asynchronous: bool
    generator: bool
    # What no input asks of it, each in a sentence.
    unasked: tuple[str, ...] = ()


def find_python(name: str, source: str) -> PythonFunction | None:
    """The top-level function of this name."""
    tree = ast.parse(source)
    found = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    ]
    if not found:
        return None
    node = found[-1]
    wanted = _required(node.args)
    examples = _examples(node, tree)
    parameters = tuple(
        PythonParameter(
            each.arg,
            _kinds(each, node, examples.get(each.arg, [])),
            repr(examples[each.arg][0]) if each.arg in examples else "",
        )
        for each in wanted
    )
    options = tuple(
        PythonParameter(name, (OPTION,), default=default)
        for name, default in _options(node.args).items()
        if wanted and name not in {each.arg for each in wanted}
    )
    inside = [each for each in ast.walk(node) if isinstance(each, ast.Yield | ast.YieldFrom)]
    return PythonFunction(
        name,
        (*_related(parameters), *options),
        tuple(each.arg for each in node.args.posonlyargs),
        node.args.vararg is not None,
        node.lineno,
        ast.get_docstring(node) or "",
        isinstance(node, ast.AsyncFunctionDef),
        bool(inside),
        _unasked(node, {each.name for each in (*parameters, *options)}),
    )


def defined_python(source: str) -> list[str]:
    """The names of the top-level functions."""
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def imported_modules(source: str) -> tuple[set[str], bool]:
    """The top-level names a module imports, and whether it imports from its own package."""
    names: set[str] = set()
    relative = False
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            relative = relative or node.level > 0
            if node.module and not node.level:
                names.add(node.module.split(".")[0])
    return names, relative


def _unasked(node: ast.FunctionDef | ast.AsyncFunctionDef, given: set[str]) -> tuple[str, ...]:
    """What a candidate may leave out because no input asks for it: other values than defaults, and exceptions."""
    arguments = node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names = [repr(name) for name in names if name not in given]
    raised = sorted({each.lineno for each in ast.walk(node) if isinstance(each, ast.Raise)})
    found = []
    if names:
        found.append(
            f"{', '.join(names)} always {'has its default' if len(names) == 1 else 'have their defaults'}: let "
            "make_input give other values too where callers do"
        )
    if raised:
        found.append(
            f"what is raised in line{'s' if len(raised) > 1 else ''} {', '.join(map(str, raised))} is never asked "
            "for, because an exception is no answer: a candidate may leave that out"
        )
    return tuple(found)


def _required(arguments: ast.arguments) -> list[ast.arg]:
    """The parameters without a default; where all have one, the first."""
    plain = [*arguments.posonlyargs, *arguments.args]
    needed = plain[: len(plain) - len(arguments.defaults)]
    needed += [
        each for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    ]
    return needed or plain[:1]


def _options(arguments: ast.arguments) -> dict[str, bool | int]:
    """The parameters whose default is a flag or a whole number, but for those that cannot be given alone."""
    plain = [*arguments.posonlyargs, *arguments.args]
    with_default = [
        *zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    found = {}
    for each, value in with_default:
        if value is None:
            continue
        try:
            default = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError):
            continue
        if isinstance(default, int) and abs(default) < _LARGEST_DEFAULT and each not in arguments.posonlyargs:
            found[each.arg] = default
    return found


def _examples(node: ast.FunctionDef | ast.AsyncFunctionDef, tree: ast.Module) -> dict[str, list[Any]]:
    """The literal values that doctests call the function with, by parameter."""
    constants = {
        target.id: statement.value
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    found: dict[str, list[Any]] = {}
    for text in _doctest_sources(ast.get_docstring(node) or ""):
        try:
            calls = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call)]
        except SyntaxError:
            continue
        for call in calls:
            if not (isinstance(call.func, ast.Name) and call.func.id == node.name):
                continue
            given = dict(zip(names, call.args, strict=False)) | {
                each.arg: each.value for each in call.keywords if each.arg
            }
            for name, value in given.items():
                value = constants.get(value.id, value) if isinstance(value, ast.Name) else value
                try:
                    found.setdefault(name, []).append(ast.literal_eval(value))
                except (ValueError, TypeError, SyntaxError):
                    continue
    return {name: values for name, values in found.items() if values}


def _doctest_sources(docstring: str) -> list[str]:
    try:
        return [example.source for example in doctest.DocTestParser().get_examples(docstring)]
    except ValueError:
        return []


def _kinds(parameter: ast.arg, node: ast.FunctionDef | ast.AsyncFunctionDef, examples: list[Any]) -> tuple[str, ...]:
    named = [kind for kind, words in _NAMES if re.fullmatch(rf"(?:\w*_)?(?:{words})", parameter.arg, re.IGNORECASE)][:1]
    said = [*annotated(parameter.annotation, named), *(shown(value, named) for value in examples)]
    if not any(said) and unknown(parameter.annotation):
        return ()
    used = _used(parameter.arg, node)
    # A name alone is weak, but it is what tells an index from a size where an annotation only says int.
    firm = [kind for kind in said if kind]
    guessed = firm or [*(kind for kind in named if not used or kind in used or _fits(kind, used)), *used, *named]
    chosen = list(dict.fromkeys(guessed))
    otherwise = WITHIN if firm else OTHERWISE
    return tuple(dict.fromkeys([*chosen, *(other for kind in chosen for other in otherwise.get(kind, ()))]))


def _fits(kind: str, used: list[str]) -> bool:
    """A thing that is looped over or measured may well be what its name says."""
    return any(use == "ints" for use in used) and kind in (
        *LISTS,
        "text",
        "points",
        "bytes",
        "matrix",
        "piece",
        "word",
    )


_CALLED_WITH: Mapping[str, Sequence[str]] = {
    "range": ("count",),
    "ord": ("text",),
    "sum": ("floats",),
    **dict.fromkeys(("len", "enumerate", "sorted", "min", "max", "set", "list", "iter"), ("ints",)),
}


def _used(name: str, node: ast.AST) -> list[str]:
    """What the body does with a parameter."""
    found: list[str] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and _is(each.value, name):
            if each.attr in ("shape", "dtype", "ndim", "T", "mean", "sum", "astype"):
                found.append("array")
            elif each.attr == "decode":
                found.append("bytes")
            elif each.attr in ("items", "keys", "values", "get"):
                found.append("counts")
            elif each.attr in _TEXT_METHODS:
                found.append("text")
            elif each.attr in ("append", "sort", "extend", "insert", "pop", "remove"):
                found.append("ints")
        elif isinstance(each, ast.Subscript) and isinstance(each.value, ast.Subscript) and _is(each.value.value, name):
            found.append("matrix")
        elif isinstance(each, ast.Call) and any(_is(argument, name) for argument in each.args):
            found += _CALLED_WITH.get(last_name(each.func), ())
        elif isinstance(each, ast.For | ast.comprehension) and _is(each.iter, name):
            found.append("ints")
        elif isinstance(each, ast.BinOp) and (_is(each.left, name) or _is(each.right, name)):
            other = each.right if _is(each.left, name) else each.left
            whole = isinstance(each.op, ast.Mod | ast.FloorDiv | ast.LShift | ast.RShift | ast.BitAnd)
            number = isinstance(other, ast.Constant) and isinstance(other.value, int)
            if (whole and _is(each.left, name)) or number:
                found.append("count")
    order = ["text", "bytes", "array", "matrix", "counts", "count", "floats", "ints"]
    return [kind for kind in order if kind in found]


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _related(parameters: tuple[PythonParameter, ...]) -> tuple[PythonParameter, ...]:
    """A word beside a list of words is one of them, nearly; a pattern beside a text is found in it."""
    first = {each.name: each.kinds[0] for each in parameters if each.kinds}
    lists = [name for name, kind in first.items() if kind in LISTS]
    words = [name for name, kind in first.items() if kind in ("words", "lines")]
    texts = [name for name, kind in first.items() if kind == "text"]
    unclear = [ast.literal_eval(each.example) for each in parameters if not each.kinds and each.example]
    related = []
    for each in parameters:
        kinds = each.kinds
        if each.example and any(_holds(whole, ast.literal_eval(each.example)) for whole in unclear):
            # A key of what nobody can guess, such as a node of a graph: whoever fills in one fills in the other.
            kinds = ()
        elif kinds[:1] in (("word",), ("text",)) and words:
            kinds = ("near word", *kinds)
        elif kinds[:1] == ("piece",):
            kinds = ("piece", "word", *kinds[1:]) if texts else ("text", "word")
        elif kinds[:1] == ("member",) or (
            lists and re.search("target|value|^x$|^key$|item", each.name) and kinds[:1] in (("count",), ("integer",))
        ):
            kinds = tuple(kind for kind in kinds if kind != "member")
            # A number that is said to be one is no member of a list of words.
            of_words = words[:1] == lists[:1] and "integer" in kinds
            kinds = ("member", *kinds) if lists and not of_words else ("integer", *kinds)
        related.append(PythonParameter(each.name, tuple(dict.fromkeys(kinds)), each.example))
    return tuple(related)


def _holds(whole: Any, part: Any) -> bool:
    return isinstance(whole, dict | list | tuple | set) and isinstance(part, str | int) and part in whole
