"""The C ABI: a declaration as text becomes a signature, and a signature a shim that the launcher can call."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from outpace.errors import TaskError

# C type -> NumPy dtype, for the 64-bit Linux data model (LP64).
C_TYPES = {
    "char": "i1", "signed char": "i1", "unsigned char": "u1", "bool": "b1", "_Bool": "b1",
    "int8_t": "i1", "uint8_t": "u1", "int16_t": "i2", "uint16_t": "u2", "int32_t": "i4", "uint32_t": "u4",
    "int64_t": "i8", "uint64_t": "u8", "short": "i2", "unsigned short": "u2", "int": "i4", "unsigned": "u4",
    "unsigned int": "u4", "long": "i8", "unsigned long": "u8", "long long": "i8", "unsigned long long": "u8",
    "long int": "i8", "size_t": "u8", "ssize_t": "i8", "ptrdiff_t": "i8", "intptr_t": "i8", "uintptr_t": "u8",
    "float": "f4", "double": "f8", "void": "u1",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One parameter; `output` tells a pointer through which the function may write."""

    name: str
    c_type: str
    pointer: bool
    output: bool

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(C_TYPES[self.c_type])


@dataclass(frozen=True)
class Signature:
    """A C function as the judge calls it; `returns` is "void" or the C type of a number."""

    name: str
    returns: str
    parameters: tuple[Parameter, ...]


def parse_declaration(text: str) -> Signature:
    """The signature of one C function declaration, or a TaskError that says which part is not understood."""
    match = re.fullmatch(r"\s*(.*?)(\w+)\s*\(([^()]*)\)\s*;?\s*", text, re.DOTALL)
    if match is None:
        raise TaskError(f"'{text}' is not a C function declaration such as 'double sum(const double *x, int64_t n)'")
    returns, name, inside = match.groups()
    returned = _clean_type(returns, text)
    if returned not in C_TYPES:
        raise TaskError(
            f"'{text}': a return type of '{returns.strip()}' is not supported; "
            "write a wrapper that returns a number or void"
        )
    pieces = [] if inside.strip() in ("", "void") else inside.split(",")
    parameters = tuple(_parse_parameter(piece, text) for piece in pieces)
    names = [parameter.name for parameter in parameters]
    if len(set(names)) != len(names) or "return" in names:
        raise TaskError(f"'{text}': parameter names must differ from each other")
    return Signature(name, returned, parameters)


def _parse_parameter(piece: str, whole: str) -> Parameter:
    match = re.fullmatch(
        r"\s*([\w\s:]*?)\s*(\*?)\s*((?:(?:restrict|__restrict__|__restrict)\b)?)\s*(\w+)\s*(\[\s*\w*\s*\])?\s*",
        piece,
    )
    if match is None:
        raise TaskError(
            f"'{whole}': the parameter '{piece.strip()}' is not a number or a pointer to numbers; write a wrapper"
        )
    kind, star, _, name, brackets = match.groups()
    pointer = bool(star or brackets)
    c_type = _clean_type(kind, whole)
    if c_type not in C_TYPES or (c_type == "void" and not pointer):
        raise TaskError(
            f"'{whole}': the type of '{piece.strip()}' is not among {', '.join(sorted(C_TYPES))}; write a wrapper"
        )
    return Parameter(name, c_type, pointer, output=pointer and "const" not in kind.split())


def _clean_type(text: str, whole: str) -> str:
    if "*" in text:
        raise TaskError(f"'{whole}': a returned pointer cannot cross the jail; write into a parameter instead")
    dropped = ("const", "extern", '"C"', "static", "inline", "struct")
    words = [word.removeprefix("std::") for word in text.split() if word not in dropped]
    # `unsigned long int` and `long` name types by several words; the int among them says nothing.
    if "int" in words and len(words) > 1 and words != ["unsigned", "int"]:
        words.remove("int")
    return " ".join(words)


def shim(entry: Signature, setup: Signature | None) -> str:
    """C source of `outpace_call` and `outpace_setup`, which unpack 64-bit slots into real arguments."""
    parts = [
        "#include <stdbool.h>",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "#include <string.h>",
        "#include <sys/types.h>",
    ]
    parts.append(_shim_function("outpace_call", entry))
    if setup is not None:
        parts.append(_shim_function("outpace_setup", setup))
    return "\n".join(parts) + "\n"


def _shim_function(name: str, signature: Signature) -> str:
    declared = ", ".join(
        f"{'' if parameter.output or not parameter.pointer else 'const '}{parameter.c_type} "
        f"{'*' if parameter.pointer else ''}{parameter.name}"
        for parameter in signature.parameters
    )
    lines = [
        f"{signature.returns} {signature.name}({declared or 'void'});",
        f"void {name}(const uint64_t* slots, uint64_t* result) {{",
    ]
    arguments = []
    for position, parameter in enumerate(signature.parameters):
        if parameter.pointer:
            arguments.append(f"(void*)(uintptr_t)slots[{position}]")
        elif parameter.c_type in ("float", "double"):
            lines.append(
                f"    {parameter.c_type} a{position}; memcpy(&a{position}, &slots[{position}], sizeof a{position});"
            )
            arguments.append(f"a{position}")
        else:
            arguments.append(f"({parameter.c_type})slots[{position}]")
    call = f"{signature.name}({', '.join(arguments)})"
    if signature.returns == "void":
        lines += [f"    {call};", "    (void)result;"]
    else:
        lines += [
            f"    {signature.returns} value = {call};",
            "    *result = 0;",
            "    memcpy(result, &value, sizeof value);",
        ]
    if not signature.parameters:
        lines.append("    (void)slots;")
    lines.append("}")
    return "\n".join(lines)
