"""Sources: a file and what it needs of its own project, under names that a task folder can keep."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from outpace.errors import TaskError
from outpace.init.c_source import find_function
from outpace.init.python_inputs import imported_modules
from outpace.init.skeleton import C_SUFFIXES, CPP_SUFFIXES, Source

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
# How many folders above the source an include may be looked for, and how much may be copied.
_ANCESTORS = 4
_LIMIT = 3 << 20


def gather(path: Path, *, installed: Mapping[str, Sequence[str]]) -> Source:
    """The source with its own headers or modules; `installed` names the distributions of each top-level module."""
    if not path.is_file():
        raise TaskError(f"{path} is no file: give the source file that defines the function")
    try:
        path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path} cannot be read as UTF-8 text: {error}") from None
    path = path.resolve()
    return _gather_python(path, installed) if path.suffix == ".py" else _gather_c([path])


def add_unit(source: Source, path: Path, symbol: str) -> Source | None:
    """The same with the neighbouring file compiled in that defines a missing symbol, or None where there is none."""
    main = path.resolve()
    root = main
    for _ in Path(source.main).parts:
        root = root.parent
    units = [root / name for name in source.units]
    for other in sorted(main.parent.iterdir()):
        if other.suffix not in (*C_SUFFIXES, *CPP_SUFFIXES[:4]) or other in (main, *units):
            continue
        text = other.read_text(encoding="utf-8", errors="replace")
        found = find_function(symbol, text, cpp=other.suffix in CPP_SUFFIXES) if symbol in text else None
        if found is not None and not found.static:
            return _gather_c([main, *units, other])
    return None


def _gather_c(units: list[Path]) -> Source:
    """Follow `#include "..."` from file to file; what is not found is left to the compiler."""
    wanted, paths, searched = list(units), dict[Path, None](), dict[Path, None]()
    while wanted:
        path = wanted.pop(0)
        if path in paths:
            continue
        paths[path] = None
        for name in _INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
            beside = (path.parent / name).resolve()
            if beside.is_file():
                wanted.append(beside)
                continue
            for folder in _folders(units[0].parent):
                if (folder / name).is_file():
                    wanted.append((folder / name).resolve())
                    searched[folder] = None
                    break
    root = Path(os.path.commonpath([*(path.parent for path in paths), *searched]))
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    _refuse_large(files, units[0])
    return Source(
        units[0].relative_to(root).as_posix(),
        files,
        units=tuple(path.relative_to(root).as_posix() for path in units[1:]),
        includes=tuple(folder.relative_to(root).as_posix() for folder in searched),
    )


def _folders(start: Path) -> list[Path]:
    above = [start, *start.parents][:_ANCESTORS]
    return [folder / part for folder in above for part in (".", "include", "src", "lib") if (folder / part).is_dir()]


def _gather_python(path: Path, installed: Mapping[str, Sequence[str]]) -> Source:
    try:
        names, relative = imported_modules(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise TaskError(f"{path.name}:{error.lineno}: this is not Python of this version: {error.msg}") from None
    package = path.parent.name if (path.parent / "__init__.py").is_file() else ""
    if (relative or package in names) and package:
        return _gather_package(path, installed)
    source = Source(path.name, {path.name: path.read_bytes()})
    wanted = sorted(names)
    while wanted:
        name = wanted.pop(0)
        own = path.parent / f"{name}.py"
        if name in sys.stdlib_module_names or f"{name}.py" in source.files:
            continue
        if own.is_file() and own != path:
            source = replace(source, files={**source.files, own.name: own.read_bytes()})
            wanted += sorted(imported_modules(own.read_text(encoding="utf-8", errors="replace"))[0])
        elif name in installed:
            source = replace(source, packages=tuple(dict.fromkeys([*source.packages, installed[name][0]])))
    _refuse_large(dict(source.files), path)
    return source


def _gather_package(path: Path, installed: Mapping[str, Sequence[str]]) -> Source:
    top = path.parent
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    files = {
        each.relative_to(top.parent).as_posix(): each.read_bytes()
        for each in sorted(top.rglob("*.py"))
        if "tests" not in each.relative_to(top).parts
    }
    _refuse_large(files, path)
    names = {name for each in files.values() for name in _imports(each)}
    packages = [
        installed[name][0]
        for name in sorted(names - {top.name})
        if name in installed and name not in sys.stdlib_module_names
    ]
    main = path.relative_to(top.parent)
    return Source(
        main.as_posix(), files, packages=tuple(dict.fromkeys(packages)), module=".".join(main.with_suffix("").parts)
    )


def _imports(content: bytes) -> set[str]:
    try:
        return imported_modules(content.decode("utf-8", "replace"))[0]
    except SyntaxError:
        return set()


def _refuse_large(files: Mapping[str, bytes], path: Path) -> None:
    total = sum(map(len, files.values()))
    if total > _LIMIT:
        raise TaskError(
            f"{path.name} needs {len(files)} files of {total >> 20} MB, and a task may hold {_LIMIT >> 20} MB: "
            "cut the function out into a smaller file"
        )
