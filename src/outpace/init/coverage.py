"""Coverage: lines of a C or C++ reference that its inputs never reach, for a candidate could leave them out."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from outpace.domains.base import Input
from outpace.domains.recipe import private_files
from outpace.init.sanitizers import driver, laid_out
from outpace.judge import abi
from outpace.judge.build import BuildPlan, build, remove
from outpace.judge.jail import MIB, Bind, JailKind
from outpace.judge.worker import Failed
from outpace.task import Task

_PROGRAM, _INPUTS, _ANSWERS, _REPORT = (
    "outpace-covered",
    "outpace-inputs.bin",
    "outpace-answers.bin",
    "outpace-lines.json",
)
# A way out, such as for memory that cannot be had, is not the work that is to be made faster.
_WAY_OUT = re.compile(
    r"^[\s{}]*(?:(?:return|goto|break|continue|abort|exit|throw)\b[^;]*;?|(?:free|fprintf|printf|perror)\s*\(.*)?[\s{}]*$"
)


def unreached(task: Task, inputs: Sequence[Input], setup: Input | None, jail: JailKind, workspace: Path) -> list[str]:
    """A sentence for each file with lines of work that none of these calls reach; none where gcov is not to be had."""
    entry = abi.parse_declaration(task.entry.function)
    set_up = abi.parse_declaration(task.entry.setup) if task.entry.setup else None
    files = {name: content for name, content in task.files.items() if name not in private_files(task)}
    files |= {
        "outpace-shim.c": abi.shim(entry, set_up).encode(),
        "outpace-driver.c": driver(entry, set_up).encode(),
        _INPUTS: laid_out(task, inputs, setup),
    }
    own = ("outpace-shim.c", "outpace-driver.c")
    # Not optimised: what is merged or moved has no line any more.
    flags = (*(flag for flag in task.build.flags if not flag.startswith("-O")), "-O0", "--coverage")
    objects = tuple(f"{name}.o" for name in own)
    sources = (*task.build.glue, *task.build.sources)
    link = (task.build.compiler or "cc", *flags, "-o", _PROGRAM, *sources, *objects, "-lm", "-lpthread")
    script = (
        f"./{_PROGRAM} {_INPUTS} {_ANSWERS} 165 2>/dev/null; gcov --json-format --stdout *.gcda > {_REPORT} 2>/dev/null"
    )
    commands = (*(("cc", "-O1", "-c", "-o", f"{name}.o", name) for name in own), link, ("sh", "-c", script))
    binds = tuple(Bind(Path(path), path) for path in task.environment.paths)
    disk = 512 * MIB + 4 * len(files[_INPUTS])
    plan = BuildPlan(files, commands, _REPORT, 60 + task.limits.build_seconds, 2048 * MIB, disk, binds)
    folder = Path(tempfile.mkdtemp(prefix="covered-", dir=workspace))
    try:
        build(jail, plan, folder)
        report = (folder / _REPORT).read_text(errors="replace")
    except Failed:
        return []  # without gcov, or with another compiler: nothing is known
    finally:
        remove(folder)
    return idle_lines(report, {name: task.text(name) for name in task.editable})


def idle_lines(report: str, sources: Mapping[str, str]) -> list[str]:
    """A sentence for each of these sources, from gcov's JSON, one document per line."""
    counts: dict[str, dict[int, int]] = {}
    entered: dict[str, set[int]] = {}
    for text in report.splitlines():
        try:
            documents = json.loads(text)["files"]
        except (ValueError, KeyError, TypeError):
            continue
        for file in documents:
            name = next((each for each in sources if Path(each).name == Path(file["file"]).name), None)
            if name is not None:
                _add(file, counts.setdefault(name, {}), entered.setdefault(name, set()))
    found = []
    for name, lines in counts.items():
        source = sources[name].splitlines()
        idle = [
            line
            for line, count in sorted(lines.items())
            if not count and line in entered[name] and line <= len(source) and not _WAY_OUT.match(source[line - 1])
        ]
        if idle:
            found.append(
                f"{Path(name).name}:{idle[0]}: {_numbered(idle)} never run{'s' if len(idle) == 1 else ''} on "
                "these inputs, so that a candidate may leave out what is done there; "
                "let make_input make inputs that get there"
            )
    return found


def _add(file: Mapping[str, Any], counts: dict[int, int], entered: set[int]) -> None:
    for each in file["lines"]:
        number = int(each["line_number"])
        counts[number] = counts.get(number, 0) + int(each["count"])
    # A function that is never called is somebody else's.
    for each in file["functions"]:
        if each["execution_count"]:
            entered.update(range(int(each["start_line"]), int(each["end_line"]) + 1))


def _numbered(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:6])) + (", ..." if len(lines) > 6 else "")
    return f"line{'s' if len(lines) > 1 else ''} {shown}"
