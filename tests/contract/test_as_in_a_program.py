"""What the judge builds costs what it costs in the program that a user builds."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from conftest import c_task
from outpace.domains.recipe import LIBRARY
from outpace.judge.build import remove
from outpace.judge.jail import JailKind
from outpace.judge.judge import Judge
from outpace.judge.verdict import Outcome
from outpace.task import Task
from outpace.task.candidate import reference
from outpace.task.file import make_task

MakeJudge = Callable[[Task, JailKind], Judge]
INPUTS = """
def make_input(rng):
    n = int(rng.integers(20000, 40000))
    return {"x": rng.random(n), "n": n}
"""
THREADS_OWN = """
#include <stdint.h>
int64_t bins[256];
static _Thread_local unsigned char room[200000];
int64_t total(const double *x, int64_t n) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) room[i] = (unsigned char)(x[i] * 8);
    for (int64_t i = 0; i < n; ++i) sum += ++bins[room[i]] > 0;
    return sum;
}
"""


def test_the_modules_of_a_python_command_are_compiled_once(judge_of: MakeJudge, jail: JailKind) -> None:
    toml = """
name = "small"
editable = ["run.py", "help.py"]
[build]
command = ["chmod", "+x", "run.py"]
product = "run.py"
[entry]
kind = "command"
command = ["./run.py"]
"""
    files = {
        "task.toml": toml.encode(),
        "judge.py": b"def make_input(rng):\n    return {'stdin': str(int(rng.integers(9))).encode()}\n",
        "run.py": b"#!/usr/bin/env -S python3 -S\nimport sys\nimport help\nprint(help.twice(int(sys.stdin.read())))\n",
        "help.py": b"def twice(n):\n    return 2 * n\n",
    }
    judge = judge_of(make_task(Path("small"), files), jail)
    folder = judge._build(reference(judge.domain.task))
    assert [path.name.split(".")[0] for path in folder.glob("__pycache__/help.*.pyc")] == ["help"]
    remove(folder)


def test_variables_are_found_as_in_a_program(judge_of: MakeJudge, jail: JailKind) -> None:
    # In a library `_Thread_local` is a call, and a global stands in a table: to leave these out was worth 1.4x here.
    task = c_task(THREADS_OWN, "int64_t total(const double *x, int64_t n)", INPUTS)
    judge = judge_of(task, jail)
    assert judge.judge(reference(task)).outcome in (Outcome.OK, Outcome.TOO_NOISY)
    folder = judge._build(reference(task))
    names = subprocess.run(["nm", "-D", folder / LIBRARY], capture_output=True, text=True, check=True).stdout
    assert "__tls_get_addr" not in names and "bins" not in names
    remove(folder)
