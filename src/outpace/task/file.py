"""The task file: a folder with a task.toml becomes a Task, or an error that names the key to mend."""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from outpace import task as parts
from outpace.errors import TaskError
from outpace.judge.abi import parse_declaration
from outpace.task.candidate import BEGIN, END, closes_region, has_regions, opens_region
from outpace.task.faults import fault, placed
from outpace.task.lines import has_lone_return, lines

# A task's folder holds sources, not data: inputs are made by judge.py from a seed.
_FOLDER_LIMIT = 4 << 20
# What Linux takes as a name, and as a path below a build's folder.
_NAME_LIMIT, _PATH_LIMIT = 255, 1000
# Bytes that arrays may be promised to be aligned to.
_ALIGNMENTS = (1, 2, 4, 8, 16, 32, 64)
_SKIPPED = {"__pycache__", ".outpace", ".git", "build"}
_DEFAULT_COMPILERS = {".c": "cc", ".cpp": "c++", ".cc": "c++", ".cxx": "c++"}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """What task.toml may hold; the tables are the dataclasses of task.py."""

    name: str
    editable: list[str]
    entry: dict[str, Any]
    description: str = ""
    build: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    checking: dict[str, Any] = {}
    timing: dict[str, Any] = {}


def load_task(folder: Path) -> parts.Task:
    """The task in this folder; raises TaskError with what to mend."""
    path = folder / "task.toml"
    if folder.is_file():
        raise TaskError(
            f"{folder} is a file, and a task is a folder: `outpace init {folder} FUNCTION` makes one of a source file"
        )
    if not path.is_file():
        raise TaskError(f"{folder} has no task.toml; `outpace init` writes one from a source file and a function name")
    return make_task(folder, read_files(folder))


def make_task(folder: Path, files: dict[str, bytes]) -> parts.Task:
    """The task of these files, which may come from a folder or from a receipt."""
    name = str(folder / "task.toml")
    try:
        text = files["task.toml"].decode()
        raw = _converted(name, text, tomllib.loads(text), _File, "")
        task = parts.Task(
            name=raw.name,
            description=raw.description.strip(),
            folder=folder,
            editable=tuple(raw.editable),
            files=files,
            entry=_converted(name, text, raw.entry, parts.Entry, "entry"),
            build=_converted(name, text, raw.build, parts.Build, "build"),
            limits=_converted(name, text, raw.limits, parts.Limits, "limits"),
            environment=_converted(name, text, raw.environment, parts.Environment, "environment"),
            checking=_converted(name, text, raw.checking, parts.Checking, "checking"),
            timing=_converted(name, text, raw.timing, parts.Timing, "timing"),
        )
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TaskError(f"{name}: {error}") from None
    task = _with_defaults(task)
    problem = _name_problem(files) or _problem(task)
    if problem:
        raise TaskError(placed(name, text, problem))
    return task


def read_files(folder: Path) -> dict[str, bytes]:
    """Every file of the folder by its relative name; hidden and built ones left out."""
    files: dict[str, bytes] = {}
    total = 0
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if (
            not path.is_file()
            or path.is_symlink()
            or any(part in _SKIPPED or part.startswith(".") for part in relative.parts)
        ):
            continue
        total += path.stat().st_size
        if total > _FOLDER_LIMIT:
            raise TaskError(
                f"{folder} holds more than {_FOLDER_LIMIT >> 20} MB; "
                "keep data out of it, make_input makes inputs from a seed"
            )
        files[relative.as_posix()] = path.read_bytes()
    return files


def _converted(name: str, text: str, values: dict[str, Any], kind: type[Any], section: str) -> Any:
    # What stands above all sections has no defaults of its own to name, and msgspec refuses it.
    known = tuple(kind.__dataclass_fields__) if section else tuple(values)
    for key in values:
        if key not in known:
            raise TaskError(placed(name, text, f"[{section}] {key} is no key; it may have {', '.join(known)}"))
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise TaskError(fault(name, text, section, str(error))) from None


def _with_defaults(task: parts.Task) -> parts.Task:
    build = task.build
    if task.entry.kind != "python" and not build.command:
        sources = build.sources or tuple(name for name in task.editable if Path(name).suffix in _DEFAULT_COMPILERS)
        cpp = any(_DEFAULT_COMPILERS.get(Path(name).suffix) == "c++" for name in sources)
        compiler = build.compiler or ("c++" if cpp else "cc")
        build = dataclasses.replace(build, compiler=compiler, sources=sources, flags=build.flags or ("-O2",))
    return dataclasses.replace(task, build=build)


def _name_problem(files: Iterable[str]) -> str:
    """Why files of these names cannot be laid out in one folder; they may come from a stranger's receipt."""
    known = set(files)
    for name in sorted(known):
        steps = PurePosixPath(name).parts
        if name.startswith("/") or ".." in steps:
            return f"its folder holds a file that lies elsewhere: {name[:200]!r}"
        if not steps or name != "/".join(steps) or not name.isprintable():
            return f"its folder holds a file without a plain name: {name[:200]!r}"
        if len(name.encode()) > _PATH_LIMIT or any(len(part.encode()) > _NAME_LIMIT for part in steps):
            return f"its folder holds a file whose name is too long, {len(name)} characters: {name[:80]!r}..."
        above = [each for each in map(str, PurePosixPath(name).parents) if each in known]
        if above:
            return f"its folder holds a file below another file: {name[:200]!r} below {above[0][:200]!r}"
    return ""


def _problem(task: parts.Task) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", task.name):
        return f"name '{task.name}' may hold letters, digits, dots, dashes and underscores, 64 at most"
    if not task.editable:
        return "editable names no file"
    for name in (*task.editable, *task.build.sources, *task.build.glue, task.checking.file):
        if name not in task.files:
            return f"file '{name}' is not in the folder"
    private = {"task.toml", task.checking.file, *task.build.glue} & set(task.editable)
    if private:
        return f"{private.pop()} may not be editable: it decides what is right"
    if task.build.glue and (task.entry.kind != "c" or task.build.command):
        return "[build] glue is for C functions that are built without a command"
    return _region_problem(task) or _entry_problem(task) or _place_problem(task) or _number_problem(task)


def _place_problem(task: parts.Task) -> str:
    places = [*task.environment.paths, *([task.environment.python] if task.environment.python else [])]
    for place in places:
        if not Path(place).is_absolute() or not Path(place).exists():
            return f"[environment] '{place}' must be an absolute path that exists on this machine"
    return ""


def _region_problem(task: parts.Task) -> str:
    for name in task.editable:
        try:
            text = task.text(name)
        except UnicodeDecodeError:
            return f"editable file '{name}' is not UTF-8 text"
        if BEGIN in text and has_lone_return(text):
            return (
                f"'{name}' has regions, and a carriage return without a newline after it; end its lines with newlines"
            )
        if not has_regions(text):
            continue
        rows = lines(text)
        marks = [BEGIN if opens_region(line) else END for line in rows if opens_region(line) or closes_region(line)]
        if marks != [BEGIN, END] * (len(marks) // 2):
            return f"'{name}': every '{BEGIN}' needs an '{END}' after it"
    return ""


def _entry_problem(task: parts.Task) -> str:
    entry = task.entry
    if entry.align and entry.kind != "c":
        return "[entry] align is for C functions"
    if entry.kind == "c":
        if not entry.function:
            return "[entry] function needs the C declaration, such as 'double sum(const double *x, int64_t n)'"
        if why := _declaration_problem("function", entry.function):
            return why
        if entry.align not in (0, *_ALIGNMENTS):
            return f"[entry] align = {entry.align} must be one of {', '.join(map(str, _ALIGNMENTS))}, or 0"
        if entry.setup and (why := _declaration_problem("setup", entry.setup)):
            return why
        if not task.build.command and not task.build.sources:
            return "[build] sources names no file to compile"
        if task.build.command and not task.build.product:
            return "[build] product must name the shared library that the command makes"
        return ""
    if entry.kind == "python":
        if entry.module not in task.files:
            return f"[entry] module '{entry.module}' is not in the folder"
        for name in (entry.function, entry.setup or "setup"):
            if not name.isidentifier():
                return f"[entry] '{name}' is not a Python name"
        return ""
    if entry.setup:
        return "[entry] setup is for functions; a command starts anew with every call"
    return "" if entry.command else "[entry] command is empty"


def _declaration_problem(key: str, declaration: str) -> str:
    try:
        parse_declaration(declaration)
    except TaskError as error:
        return f"[entry] {key} = {error}"
    return ""


def _number_problem(task: parts.Task) -> str:
    limits, timing = task.limits, task.timing
    for each in dataclasses.fields(limits):
        value = getattr(limits, each.name)
        if not 0 < value < math.inf:
            return f"[limits] {each.name} = {value} must be above 0"
    if limits.processes > 1 and task.entry.kind != "command":
        return (
            "[limits] processes above 1 are for commands; "
            "a function may use threads, which are stopped and counted with it"
        )
    if not 1.0 <= timing.margin <= 2.0:
        return f"[timing] margin = {timing.margin} must lie between 1.0 and 2.0"
    if not 1.0 <= timing.sample_ms <= 1000.0:
        return f"[timing] sample_ms = {timing.sample_ms} must lie between 1 and 1000"
    if not 1 <= timing.bundle <= 65536:
        return f"[timing] bundle = {timing.bundle} must lie between 1 and 65536"
    if timing.bundle > 1 and task.entry.kind == "command":
        return "[timing] bundle is for functions; each call of a command is a process of its own"
    if timing.lifetime < 0:
        return f"[timing] lifetime = {timing.lifetime} must be a number of calls, or 0"
    if not 0 <= task.checking.tolerance < 1:
        return f"[checking] tolerance = {task.checking.tolerance} must be from 0 to below 1: 1 lets any zero pass"
    if not 0 <= task.checking.floor < math.inf:
        return f"[checking] floor = {task.checking.floor} must be a number from 0 up"
    return ""
