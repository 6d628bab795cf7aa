"""What may be imported where: judging must run on a bare machine."""

import subprocess
import sys


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
