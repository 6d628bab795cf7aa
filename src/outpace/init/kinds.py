"""Kinds of values: which of them a Python annotation or a value in a doctest stands for, and what else it may mean."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

# What to try where the first choice fails in the jail: of a guess from names and uses, anything;
OTHERWISE: Mapping[str, tuple[str, ...]] = {
    "ints": ("naturals", "floats", "words"),
    "floats": ("naturals", "points"),
    "integer": ("count", "few"),
    "count": ("few",),
    "text": ("numbers", "bytes", "words", "ints"),
    "words": ("lines", "ints"),
    "matrix": ("real matrix",),
    "word": ("text",),
    "array": ("table",),
    "real": ("count",),
}
# of what an annotation or a doctest says, the same type alone: a candidate must be right for what callers pass.
WITHIN: Mapping[str, tuple[str, ...]] = {
    "ints": ("naturals", "sorted"),
    "integer": ("count", "few"),
    "count": ("few",),
    "member": ("integer", "count", "few"),
    "text": ("numbers", "json", "word"),
    "word": ("text",),
    "piece": ("text",),
    "words": ("lines",),
    "real matrix": ("points",),
    "array": ("table",),
    "table": ("array",),
}
# A flag or a whole number that has a default.
OPTION = "option"
LISTS = ("words", "lines", "ints", "naturals", "sorted", "floats")


_SCALARS: Mapping[str, str] = {
    "str": "text",
    "int": "count",
    "float": "real",
    "bool": "flag",
    "bytes": "bytes",
    "ArrayLike": "array",
    "Any": "",
    "object": "",
}


# Elements of annotated arrays, by what stands in the annotation: without any, floats.
_ELEMENTS: Mapping[str, str] = {
    **dict.fromkeys(("", "Any", "number", "floating", "float64", "float_", "double", "float"), "array"),
    **dict.fromkeys(("integer", "signedinteger", "int64", "int_", "intp", "int"), "whole array"),
}


def unknown(annotation: ast.expr | None) -> bool:
    """Whether this names a type that nobody here can draw: a name or a use would only suggest another one."""
    return annotation is not None and last_name(annotation) not in ("Any", "object", "dict", "Dict", "Mapping")


def annotated(annotation: ast.expr | None, named: list[str]) -> list[str]:
    """The kinds an annotation allows, of which `named` are those that the parameter's name suggests."""
    if annotation is None:
        return []
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return []
    if isinstance(annotation, ast.BinOp):
        return [*annotated(annotation.left, named), *annotated(annotation.right, named)]
    base = last_name(annotation.value if isinstance(annotation, ast.Subscript) else annotation)
    inner = annotation.slice if isinstance(annotation, ast.Subscript) else None
    parts = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner] if inner is not None else []
    if base in ("ndarray", "NDArray"):
        return _array(parts, named)
    if base in ("Optional", "Union", "Annotated", "Final"):
        return [kind for part in parts for kind in annotated(part, named)][: 1 if base == "Annotated" else None]
    scalar = _SCALARS.get(base)
    if scalar is not None:
        near = {
            "text": ("word", "piece", "text", "json"),
            "count": ("few", "member", "count"),
        }.get(scalar, ())
        return [kind for kind in named if kind in near] or ([scalar] if scalar else [])
    if base in (
        "list",
        "List",
        "Sequence",
        "Iterable",
        "Collection",
        "tuple",
        "Tuple",
        "MutableSequence",
        "Reversible",
    ):
        element = annotated(parts[0], []) if parts else []
        known = {
            "count": "ints",
            "real": "floats",
            "text": "words",
            "flag": "flags",
            "ints": "matrix",
            "floats": "real matrix",
        }
        if element and element[0] in known:
            kind = known[element[0]]
            return [*([each for each in named if each == "sorted"] if kind == "ints" else []), kind]
        found = [kind for kind in named if kind in (*LISTS, "matrix", "points")]
        # A list of nobody knows what may be one of anything.
        return [*found, *(("ints", *OTHERWISE["ints"]) if not element else ())]
    if base in ("dict", "Dict", "Mapping", "MutableMapping") and len(parts) == 2:
        key, value = (annotated(part, []) for part in parts)
        return (
            {"count": ["counts"], "real": ["weights"], "text": ["texts by word"]}.get((value or [""])[0], [])
            if key[:1] == ["text"]
            else []
        )
    return []


def _array(parts: list[ast.expr], named: list[str]) -> list[str]:
    """The kind of an array with this between its brackets: a dtype, perhaps behind a shape."""
    dtype = parts[-1] if parts else None
    if isinstance(dtype, ast.Subscript):
        dtype = dtype.slice
    kind = _ELEMENTS.get("" if dtype is None else last_name(dtype), "")
    return ["table"] if kind == "array" and "matrix" in named else [kind] if kind else []


def shown(value: Any, named: list[str]) -> str:
    """The kind of a doctest's value."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int):
        return next((kind for kind in named if kind in ("few", "member", "count")), "integer" if value < 0 else "count")
    if isinstance(value, float):
        return "real"
    if isinstance(value, str):
        return next((kind for kind in named if kind in ("word", "piece", "text", "json")), "text")
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, list | tuple) and value:
        return _list_shape(value, named)
    if isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
        kinds = {type(item) for item in value.values()}
        return (
            "counts"
            if kinds == {int}
            else "weights"
            if kinds <= {int, float}
            else "texts by word"
            if kinds == {str}
            else ""
        )
    return ""


def _list_shape(value: Sequence[Any], named: list[str]) -> str:
    kinds = {type(item) for item in value}
    if kinds == {int}:
        return "sorted" if "sorted" in named else "naturals" if min(value) >= 0 and len(value) > 3 else "ints"
    if kinds <= {int, float}:
        return "floats"
    if kinds == {str}:
        return "words"
    if kinds == {bool}:
        return "flags"
    if (
        kinds <= {list, tuple}
        and len({len(row) for row in value}) == 1
        and all(isinstance(item, int | float) for row in value for item in row)
    ):
        if "points" in named or (len(value[0]) == 2 and len(value) != 2):
            return "points"
        return "matrix" if all(isinstance(item, int) for row in value for item in row) else "real matrix"
    return ""


def last_name(node: ast.expr) -> str:
    """The name at the end of a dotted one."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
