"""How a C or C++ function is called: by its own declaration, or by a wrapper whose arguments can cross the jail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from outpace.init.c_inputs import Guess, guess_c
from outpace.init.c_source import CFunction, CParameter
from outpace.init.judge_text import drawn
from outpace.judge.abi import C_TYPES

NAME = "outpace_entry"


@dataclass(frozen=True)
class CPlan:
    """How a C function is judged: the declaration that is called, a wrapper where one is needed, and its inputs."""

    declaration: str
    glue: str
    guess: Guess
    # Whether the wrapper is built without the source, as a library of its own.
    apart: bool = False


def plan_c(
    function: CFunction, source: str, *, cpp: bool, header: bool = False, variant: str = "", apart: bool = True
) -> CPlan:
    """The plan for one function in `source`; not `apart` where it cannot be declared without that."""
    unclear = [each for each in function.parameters if not each.plain and not (each.container and each.c_type)]
    rows = any(each.stars > 1 for each in function.parameters)
    # C++ knows no rows whose length is an argument.
    rows_unknown = cpp and any(not dim.isdigit() for each in function.parameters for dim in each.dims[1:])
    if (
        unclear
        or rows_unknown
        or function.member
        or (not function.returns and not function.returns_stars)
        or function.returns_stars > 1
        or (function.returns_container and function.returns_stars)
    ):
        return _by_hand(function, source, unclear, cpp)
    if function.returns_container or any(each.container for each in function.parameters):
        return _containers(function, source, variant, apart and not header and not _bound(function))
    if function.returns_stars:
        return _returned_pointer(function, source, cpp, variant)
    guess = guess_c(function, variant)
    if function.static or not function.c_linkage or rows or header:
        call = _call(function)
        body = f"{call};" if function.returns == "void" else f"return {call};"
        declared = _declaration(NAME, function.returns, function.parameters)
        why = "takes rows" if rows else "is static" if function.static else "is C++" if cpp else "is in a header"
        gives = "this takes them as one array" if rows else "this gives it a C name"
        return CPlan(declared, _glue(source, declared, [body], cpp, f"{function.name} {why}: {gives}."), guess)
    return CPlan(_declaration(function.name, function.returns, function.parameters), "", guess)


def _call(function: CFunction) -> str:
    return f"{function.scope}{function.name}({', '.join(map(_argument, function.parameters))})"


def _argument(parameter: CParameter) -> str:
    if parameter.stars <= 1:
        return parameter.name
    rows = "".join(f"[{dim}]" for dim in parameter.dims[1:])
    return f"({'const ' if parameter.const else ''}{parameter.c_type} (*){rows}){parameter.name}"


def _returned_pointer(function: CFunction, source: str, cpp: bool, variant: str) -> CPlan:
    """A pointer means nothing outside its process: hand back where it points to, or the text it points to."""
    guess = guess_c(function, "" if variant == "in place" else variant)
    call = _call(function)
    base = next((each for each in function.parameters if each.stars and each.c_type == function.returns), None)
    if base is not None and variant != "in place":
        declared = _declaration(NAME, "int64_t", function.parameters)
        body = [f"const {function.returns} *found = {call};", f"return found ? (int64_t)(found - {base.name}) : -1;"]
        return CPlan(
            declared, _glue(source, declared, body, cpp, "A place inside an argument is told by its offset."), guess
        )
    if function.returns not in ("char", "unsigned char"):
        return _by_hand(function, source, [], cpp)
    text = CParameter("outpace_text", "char", 1, False, (), "")
    declared = _declaration(NAME, "int64_t", (*function.parameters, text, _number("outpace_room")))
    body = [
        f"const char *made = (const char *){call};",
        "int64_t length = 0;",
        "if (!made) return -1;",
        "for (; made[length]; length++) {",
        "    if (length < outpace_room) outpace_text[length] = made[length];",
        "}",
        "return length;",
    ]
    guess.values |= {"outpace_text": f'Output({guess.room}, "int8")', "outpace_room": guess.room}
    return CPlan(declared, _glue(source, declared, body, cpp, "The text that is returned is copied out."), guess)


def _bound(function: CFunction) -> bool:
    """Whether nothing but its own source can call it."""
    return function.static or bool(re.search(r"\b(?:inline|constexpr|template)\b", function.head))


def _containers(function: CFunction, source: str, variant: str, apart: bool) -> CPlan:
    """Vectors and strings cross the jail as arrays with their lengths; what copying costs weighs on both sides."""
    given: list[CParameter] = []  # what the guesser makes values for
    outputs: dict[str, tuple[CParameter, str]] = {}
    before, arguments, after = [], [], []
    body = function.body
    sizes = []
    for each in function.parameters:
        name, element = each.name, each.c_type
        if not each.container:
            given.append(each)
            arguments.append(_argument(each))
            continue
        local = f"{name}_given"
        kind = _kind(each.container, element)
        arguments.append(local)
        if not each.const and re.search(rf"\b{name}\s*\.\s*(?:push_back|emplace_back|resize|clear|assign)\b", body):
            # Filled from nothing.
            before.append(f"{kind} {local};")
            outputs[name] = CParameter(name, element, 1, False, (), ""), "room"
            outputs[f"{name}_room"] = _number(f"{name}_room"), "capacity"
            limit = f"{name}_room"
        else:
            before.append(f"{kind} {local}({name}, {name} + {name}_size);")
            given += [CParameter(name, element, 1, each.const, (), ""), _number(f"{name}_size")]
            sizes.append(f"{name}_size")
            body = re.sub(
                rf"(?:static_cast<[\w:\s]+>\s*\(|\(\s*[\w:\s]+\)\s*)\s*{name}\s*\.\s*(?:size|length)\s*\(\s*\)\)?",
                f"{name}_size",
                body,
            )
            body = re.sub(rf"\b{name}\s*\.\s*(?:size|length)\s*\(\s*\)", f"{name}_size", body)
            limit = f"{name}_size"
        if not each.const:
            outputs[f"{name}_count"] = CParameter(f"{name}_count", "int64_t", 1, False, (), ""), "one"
            after.append(f"*{name}_count = (int64_t){local}.size();")
            after.append(f"for (int64_t i = 0; i < *{name}_count && i < {limit}; ++i) {name}[i] = {local}[(size_t)i];")
    call = f"{function.scope}{function.name}({', '.join(arguments)})"
    returns = function.returns
    if function.returns_container:
        outputs["outpace_out"] = CParameter("outpace_out", function.returns, 1, False, (), ""), "room"
        outputs["outpace_room"] = _number("outpace_room"), "capacity"
        returns = "int64_t"
        made = _kind(function.returns_container, function.returns)
        lines = [
            *before,
            f"static {made} kept;",
            f"{made} fresh;",
            f"if (outpace_glue != 2) fresh = {call};",
            "if (outpace_glue == 1) kept = fresh;",
            f"const {made} &made = outpace_glue == 2 ? kept : fresh;",
            "const int64_t count = (int64_t)made.size();",
            "for (int64_t i = 0; i < count && i < outpace_room; ++i) outpace_out[i] = made[(size_t)i];",
            *after,
            "return count;",
        ]
    elif returns == "void":
        lines = [*before, f"if (outpace_glue != 2) {call};", *after]
    else:
        lines = [*before, f"static {returns} made;", f"if (outpace_glue != 2) made = {call};", *after, "return made;"]
    flat = replace(function, parameters=tuple(given), body=body, returns=returns, returns_container="")
    guess = guess_c(flat, variant, sizes)
    for name, (parameter, what) in outputs.items():
        dtype = np.dtype(C_TYPES[parameter.c_type]).name
        guess.values[name] = {
            "room": f'Output({guess.room}, "{dtype}")',
            "capacity": guess.room,
            "one": f'Output(1, "{dtype}")',
        }[what]
    kinds = {parameter.c_type for parameter, _ in outputs.values()}
    guess.tolerance = max(guess.tolerance, 1e-4 if "float" in kinds else 1e-9 if "double" in kinds else 0.0)
    declared = _declaration(NAME, returns, (*given, *(parameter for parameter, _ in outputs.values())))
    why = "Vectors and strings are made from arrays and copied out again."
    if apart:
        why += "\n// Declared as the reference is: a candidate of another form is none that its callers could call."
        first = [*_STANDARD, *_declared(function), *_SWITCH]
        return CPlan(declared, _wrapper(why, first, declared, lines, True), guess, True)
    # Before the candidate's text: what is in use can no longer be given another meaning.
    before = [f"template class {kind};" for kind in _kinds(function) if kind != "std::vector<bool>"]
    head = re.sub(r"\b(?:static|inline|constexpr|extern)\b\s*", "", function.head)
    same = re.sub(rf"\b{re.escape(function.name)}\s*\(", "(*const outpace_called)(", head, count=1)
    after = [f"[[maybe_unused]] static {same} = &{function.scope}{function.name};", ""]
    text = _wrapper(why, [*_STANDARD, *before, f'#include "{source}"', *after, *_SWITCH], declared, lines, True)
    return CPlan(declared, text, guess)


_STANDARD = ("#include <stddef.h>", "#include <stdint.h>", "#include <string>", "#include <vector>", "")


# How the judge learns what all this takes without the function: what it takes is not the candidate's to save.
_SWITCH = (
    "// 1: keep the answer; 2: do not call the function, but use the answer that was kept.",
    'extern "C" { int outpace_glue = 0; }',
    "",
)


def _kind(container: str, element: str) -> str:
    return "std::string" if container == "string" else f"std::vector<{element}>"


def _kinds(function: CFunction) -> list[str]:
    """The containers that it takes and returns."""
    found = [(each.container, each.c_type) for each in function.parameters]
    found.append((function.returns_container, function.returns))
    return list(dict.fromkeys(_kind(*each) for each in found if each[0]))


def _declared(function: CFunction) -> list[str]:
    spaces = [name for name in function.scope.split("::") if name]
    opened = "".join(f"namespace {name} {{ " for name in spaces)
    return ["using std::string;", "using std::vector;", f"{opened}{function.head};{' }' * len(spaces)}", ""]


def _number(name: str) -> CParameter:
    return CParameter(name, "int64_t", 0, False, (), "")


def _by_hand(function: CFunction, source: str, unclear: Sequence[CParameter], cpp: bool) -> CPlan:
    """A wrapper with one line missing: only a person knows how its arguments are made from bytes and numbers."""
    given = CParameter("text", "char", 1, True, (), ""), _number("bytes")
    declared = _declaration(NAME, "int64_t", given)
    if function.member:
        what = "it is a method or a template"
    elif unclear:
        what = "it takes " + ", ".join(f"'{each.text}'" for each in unclear)
    else:
        what = "it takes or returns what is no number"
    missing = (
        f'#error "fill in: make the arguments of {function.name} from text and bytes, call it, '
        f'return a number that depends on its answer ({what})"'
    )
    guess = Guess()
    guess.lines.append(drawn("size"))
    guess.lines.append("text = make_text(rng, size).encode()")
    guess.values = {"text": "text", "bytes": "len(text)"}
    why = f"{function.head}"
    return CPlan(declared, _glue(source, declared, [missing], cpp, why), guess)


def _glue(source: str, declared: str, body: Sequence[str], cpp: bool, why: str) -> str:
    first = ["#include <stddef.h>", "#include <stdint.h>", f'#include "{source}"', ""]
    return _wrapper(why, first, declared, body, cpp)


def _wrapper(why: str, first: Sequence[str], declared: str, body: Sequence[str], cpp: bool) -> str:
    linkage = 'extern "C" ' if cpp else ""
    # Declared before it is defined, for -Wmissing-prototypes.
    lines = [f"// {why}", *first, f"{linkage}{declared};", f"{linkage}{declared} {{"]
    lines += [f"{'' if line.startswith('#') else '    '}{line}" for line in body]
    return "\n".join([*lines, "}"]) + "\n"


def _declaration(name: str, returns: str, parameters: Sequence[CParameter]) -> str:
    declared = ", ".join(
        f"{'const ' if each.const and each.stars else ''}{each.c_type} {'*' if each.stars else ''}{each.name}"
        for each in parameters
    )
    return f"{returns} {name}({declared or 'void'})"
