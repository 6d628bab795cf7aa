"""The skeleton of a task: source text and a function's name become a task folder's files, with gaps marked."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from outpace.errors import TaskError
from outpace.init import judge_text
from outpace.init.c_inputs import variants
from outpace.init.c_source import CFunction, blanked, defined_functions, find_function, says_cpp
from outpace.init.glue import plan_c
from outpace.init.judge_text import constant, judge_file, variable
from outpace.init.kinds import OPTION
from outpace.init.python_inputs import PythonFunction, defined_python, find_python
from outpace.init.ranges import Limits, Range, constants, limited, together
from outpace.init.values import Values, choices
from outpace.task.lines import lines

C_SUFFIXES = (".c",)
CPP_SUFFIXES = (".cc", ".cpp", ".cxx", ".c++", ".hpp", ".hh")
# Included, and never compiled by themselves. What ends in .h may be C or C++.
HEADER_SUFFIXES = (".h", ".hpp", ".hh")
FILL_IN = "fill in: "
_GLUE = "outpace_glue"
_FINITE = "no number is NaN or infinite: a candidate may treat those otherwise"


@dataclass(frozen=True)
class Source:
    """What a task is made from; `files` holds the main file and all it needs, by the names they get in the folder."""

    main: str
    files: Mapping[str, bytes]
    # Further C files to compile, folders to include from, Python distributions to make visible.
    units: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    # The dotted name to import the main file by, where it is part of a package and cannot stand alone.
    module: str = ""

    @property
    def suffix(self) -> str:
        """What tells the language."""
        return PurePosixPath(self.main).suffix

    @property
    def cpp(self) -> bool:
        """Whether it is C++; a header is looked into."""
        return self.suffix in CPP_SUFFIXES or (self.suffix == ".h" and says_cpp(self.text(self.main)))

    def text(self, name: str) -> str:
        """A file's text, as far as it is text."""
        return self.files[name].decode("utf-8", "replace")


@dataclass(frozen=True)
class Gap:
    """A line that somebody has to write; `line` counts from 1."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@dataclass(frozen=True)
class Skeleton:
    """The files of a task folder; it is ready to be tried where there are no gaps."""

    name: str
    files: Mapping[str, bytes]
    gaps: tuple[Gap, ...]
    # What is called, in a few words.
    entry: str
    # What the arguments of a Python function are drawn from.
    values: Values | None = None
    # What the numbers and texts of a C function may be drawn from at most.
    ranges: Mapping[str, Range] = field(default_factory=dict)
    # Why some of these go less far.
    narrowed: Mapping[str, str] = field(default_factory=dict)

    def sized(self, size: int) -> Skeleton:
        """The same with inputs of another size."""
        return self._with(judge_text.resized(self.judge, size))

    def edged(self, sizes: Sequence[int]) -> Skeleton:
        """The same with edge inputs of these sizes."""
        return self._with(judge_text.edged(self.judge, sizes))

    def roomier(self, factor: int) -> Skeleton:
        """The same with so many times the room for answers of unknown length."""
        return self._with(judge_text.roomier(self.judge, factor))

    def patterned(self, share: float) -> Skeleton:
        """The same with patterns in what is read in so many of the calls."""
        return self._with(judge_text.patterned(self.judge, share))

    def drawn(self, values: Values) -> Skeleton:
        """The same with its arguments drawn from these values."""
        judge = judge_text.resized(_python_judge(self.name, values), self.size)
        return replace(self._with(judge), values=values)

    def limited(self, limits: Mapping[str, Limits], most: float) -> Skeleton:
        """The same with the numbers and texts of a C function going so far, and all at once up to `most`."""
        return self._with(together(limited(self.judge, limits), most))

    @property
    def unasked(self) -> tuple[str, ...]:
        """What no input asks of the reference, each in a sentence."""
        if "make_matrix(rng, " in self.judge:
            return (_FINITE, "matrices have a diagonal that outweighs the rest: a candidate may leave pivoting out")
        values = self.values
        floats = any(each.kind.startswith("f") for each in self.ranges.values()) if values is None else values.floats
        return (*((_FINITE,) if floats else ()), *(() if values is None else values.function.unasked))

    @property
    def size(self) -> int:
        """The size up to which inputs are drawn."""
        return int(constant(self.judge, "SIZE"))

    @property
    def judge(self) -> str:
        """The text of judge.py."""
        return self.files["judge.py"].decode()

    def _with(self, judge: str) -> Skeleton:
        return replace(self, files={**self.files, "judge.py": judge.encode()})

    def line(self, file: str, start: str, what: str) -> Gap:
        """The line of a file that starts so, for something found wrong with it later."""
        rows = lines(self.files[file].decode())
        return Gap(file, next(at for at, text in enumerate(rows, 1) if text.startswith(start)), what)


def skeletons(source: Source, function: str, *, name: str, glue: bool = False) -> list[Skeleton]:
    """Task folders to try, likeliest first; `glue` wraps a Python function so that its answer is plain."""
    if source.suffix == ".py":
        found = _python(source, function)
        return [_python_skeleton(source, found, chosen, name, glue) for chosen in choices(found)]
    if source.suffix not in (*C_SUFFIXES, *CPP_SUFFIXES, *HEADER_SUFFIXES):
        known = ", ".join(dict.fromkeys((".py", *C_SUFFIXES, *CPP_SUFFIXES, *HEADER_SUFFIXES)))
        raise TaskError(f"{source.main} is neither C, C++ nor Python: its name should end with one of {known}")
    found_c = _c(source, function)
    made = [
        _c_skeleton(source, found_c, name, variant, apart) for variant in variants(found_c) for apart in (True, False)
    ]
    return [each for at, each in enumerate(made) if each.files not in [earlier.files for earlier in made[:at]]]


# C


def _c(source: Source, function: str) -> CFunction:
    text = source.text(source.main)
    others = [source.text(name) for name in source.files if name != source.main]
    found = find_function(function, text, others, cpp=source.cpp)
    if found is None:
        named = re.search(rf"\b{re.escape(function)}\s*\(", blanked(text)) is not None
        raise _unknown(source.main, function, defined_functions(text), named=named)
    return found


def _c_skeleton(source: Source, function: CFunction, name: str, variant: str, apart: bool) -> Skeleton:
    cpp, header = source.cpp, source.suffix in HEADER_SUFFIXES
    plan = plan_c(function, source.main, cpp=cpp, header=header, variant=variant, apart=apart)
    files = dict(source.files)
    wrapper = f"{_GLUE}.cpp" if cpp else f"{_GLUE}.c"
    if plan.glue:
        files[wrapper] = plan.glue.encode()
    unit = wrapper if plan.glue and not plan.apart else source.main
    flags = ["-O2", *(f"-I{folder}" for folder in source.includes)]
    build = [
        "[build]",
        f'compiler = "{"c++" if cpp else "cc"}"',
        f"sources = {_toml([unit, *source.units])}",
        *([f"glue = {_toml([wrapper])}"] if plan.apart else []),
        f"flags = {_toml(flags)}",
        'flag_choices = [["-O2", "-O3"], ["", "-march=native"]]',
    ]
    entry = ["[entry]", 'kind = "c"', f"function = {_toml(plan.declaration)}"]
    checking = ["[checking]", f"tolerance = {plan.guess.tolerance:g}"] if plan.guess.tolerance else []
    description = _comment_above(source.text(source.main), function.line) or function.head
    given = constants(plan.guess.ranges, function.literals)
    files["judge.py"] = judge_file(name, plan.guess.lines, plan.guess.values, given).encode()
    made = _finish(name, source, files, description, [build, entry, checking], plan.declaration)
    return replace(made, ranges=plan.guess.ranges)


def _comment_above(text: str, line: int) -> str:
    """The comment that ends right above a definition, without its marks."""
    above = [each.strip() for each in lines(text)[: line - 1]]
    taken: list[str] = []
    while above and above[-1].startswith("//"):
        taken.insert(0, above.pop())
    if not taken and above and above[-1].endswith("*/"):
        while above:
            taken.insert(0, above.pop())
            if "/*" in taken[0]:
                break
    words = re.sub(r"^[/*\s]+|[*/\s]+$", "", " ".join(re.sub(r"^(?://+|/\*+|\*+/?)", "", each) for each in taken))
    # Rulers and licences say nothing about the function.
    return "" if len(words) > 800 or not re.search(r"[a-z]{3}", words) else " ".join(words.split())


# Python


def _python(source: Source, function: str) -> PythonFunction:
    text = source.text(source.main)
    try:
        found = find_python(function, text)
    except SyntaxError as error:
        raise TaskError(f"{source.main}:{error.lineno}: this is not Python of this version: {error.msg}") from None
    if found is None:
        raise _unknown(source.main, function, defined_python(text))
    if found.asynchronous:
        raise TaskError(f"{function} is asynchronous: write a plain function around it and give that one")
    return found


def _python_skeleton(source: Source, function: PythonFunction, drawn: Values, name: str, glue: bool) -> Skeleton:
    files = dict(source.files)
    module, called = source.main, function.name
    if glue or source.module or function.positional or function.generator:
        module, called = f"{_GLUE}.py", "call"
        files[module] = _python_glue(source, function).encode()
    files["judge.py"] = _python_judge(name, drawn).encode()
    entry = ["[entry]", 'kind = "python"', f"module = {_toml(module)}", f"function = {_toml(called)}"]
    environment = ["[environment]", f"packages = {_toml(list(source.packages))}"] if source.packages else []
    checking = ["[checking]", "tolerance = 1e-9"]
    description = function.docstring.split(">>>")[0].strip() or f"The Python function {function.name}."
    signature = f"{function.name}({', '.join(each.name for each in function.parameters)})"
    made = _finish(name, source, files, description[:800], [entry, environment, checking], signature)
    return replace(made, values=drawn)


def _python_judge(name: str, drawn: Values) -> str:
    function, lines = drawn.function, drawn.lines()
    if not function.parameters:
        what = (
            "takes its arguments by position"
            if function.variadic
            else "takes no argument, so its answer cannot depend on one"
        )
        lines = [
            f"raise NotImplementedError({f'{FILL_IN}{function.name} {what}: wrap it in a function with parameters'!r})"
        ]
    judge = judge_file(name, lines, {name: variable(name) for name in drawn.given})
    return judge_text.patterned(judge, judge_text.PATTERNS)


def _python_glue(source: Source, function: PythonFunction) -> str:
    if source.module:
        load = f"from {source.module} import {function.name} as function"
        imports = ""
    else:
        # By its path: the standard library may have a module of the same name, loaded already.
        imports = "import importlib.util\nfrom pathlib import Path\n"
        load = (
            f"path = Path(__file__).parent / {source.main!r}\n"
            "spec = importlib.util.spec_from_file_location(path.stem, path)\n"
            "module = importlib.util.module_from_spec(spec)\n"
            "spec.loader.exec_module(module)\n"
            f"function = module.{function.name}"
        )
    arguments = ", ".join(
        each.name if each.name in function.positional else f"{each.name}={each.name}" for each in function.parameters
    )
    names = ", ".join(each.name for each in function.parameters)
    taken = ", ".join(
        f"{each.name}={each.default!r}" if OPTION in each.kinds else each.name for each in function.parameters
    )
    return f'''"""Calls {function.name} and makes its answer plain; what this costs weighs on both sides alike."""

{imports}
{load}


def call({taken}):
    answer = function({arguments})
    # A function that returns nothing may have changed its arguments.
    return plain([{names}] if answer is None else answer)


def plain(value):
    """What can leave the jail: None, numbers, texts and lists; all else under the name of what it is."""
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    if isinstance(value, dict):
        return {{"dict": [[plain(key), plain(item)] for key, item in value.items()]}}
    if isinstance(value, (set, frozenset)):
        return {{"set": sorted((plain(item) for item in value), key=repr)}}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "__next__"):
        return {{"iterator": [plain(item) for item in value]}}
    if hasattr(value, "tolist"):
        items = value.tolist()
        return {{"array": items}} if isinstance(items, list) else items
    return {{"object": repr(value)}}
'''


# Both


def _finish(
    name: str, source: Source, files: dict[str, bytes], description: str, tables: Sequence[Sequence[str]], entry: str
) -> Skeleton:
    head = [f"name = {_toml(name)}", f"description = {_toml(description)}", f"editable = {_toml([source.main])}"]
    text = "\n\n".join("\n".join(table) for table in [head, *tables, ["[limits]", "seconds = 5"]] if table)
    files["task.toml"] = f"{text}\n".encode()
    files["README.md"] = _readme(name, source.main, entry).encode()
    return Skeleton(name, files, tuple(_gaps(files)), entry)


def _gaps(files: Mapping[str, bytes]) -> list[Gap]:
    found = []
    for name in files:
        if name != "judge.py" and not name.startswith(_GLUE):
            continue
        for number, line in enumerate(lines(files[name].decode()), 1):
            if FILL_IN in line and ("NotImplementedError" in line or line.startswith("#error")):
                found.append(Gap(name, number, re.sub(r"(?<!\\)[\"']\)?$", "", line.partition(FILL_IN)[2])))
    return found


def _readme(name: str, main: str, entry: str) -> str:
    return f"""# {name}

`{entry}` in `{main}`, to be made faster.

The inputs in `judge.py` were guessed from the source. Read them through: the speed that counts is the speed on
these inputs, and whatever they do not exercise may be broken unnoticed. Add `edge_inputs()` for cases that must
stay right, and `check(input, output, expected)` where an answer may differ from the reference's.

    outpace try .
    outpace run .

Without a model `outpace run` tries compiler flags and the variation points that the source marks; a model or a coding
agent changes the code itself (`--policy openai`, `outpace mcp .`).
"""


def _unknown(file: str, function: str, known: list[str], *, named: bool = False) -> TaskError:
    if named and function not in known:
        return TaskError(
            f"{file} names '{function}' and holds no plain definition of it: give the file that has its body, or "
            "write a plain function around it"
        )
    # Of names that differ in case alone, too, one is meant.
    lower = {name.lower(): name for name in reversed(known)}
    near = [lower[each] for each in difflib.get_close_matches(function.lower(), lower, 3, 0.6)]
    if near:
        return TaskError(f"{file} defines no function '{function}'; did you mean {' or '.join(near)}?")
    return TaskError(f"{file} defines no function '{function}'; it defines {', '.join(known[:8]) or 'none at all'}")


def _toml(value: str | list[str]) -> str:
    # JSON's strings and lists are TOML's, but for the escaped pairs of surrogates and the character DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
