"""Who may import and write what: judging runs on a bare machine, and only a run writes to the archive."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import outpace
from outpace.archive import Archive, Reading


def imported(*modules: str) -> set[str]:
    """The top-level packages that a fresh interpreter has after importing these."""
    listing = "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    code = f"import sys, {', '.join(modules)}; {listing}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_judging_needs_the_standard_library_and_numpy_alone() -> None:
    names = imported("outpace.judge.judge", "outpace.judge.baseline", "outpace.domains.program", "outpace.task")
    ours = {name for name in names if name not in sys.stdlib_module_names and not name.startswith("_")}
    site = {"sitecustomize", "usercustomize", "distutils-precedence"}
    assert ours - site <= {"outpace", "numpy"}


def test_the_command_line_needs_no_extra() -> None:
    assert not imported("outpace.cli") & {"openai", "mcp", "altair", "vl_convert", "optuna"}


def test_only_a_run_writes_to_the_archive() -> None:
    writing = {name for name, _ in inspect.getmembers(Archive, inspect.isfunction) if name not in dir(Reading)}
    assert {"ask", "answer", "settle", "confirm", "publish", "note"} <= writing
    root = Path(outpace.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in writing:
                owner = ast.unparse(called.value)
                assert "archive" not in owner or path == root / "run.py", f"{path}:{called.lineno} writes to {owner}"
