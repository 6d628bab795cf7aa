"""A small task that the tests of the command line lay out in a folder."""

from __future__ import annotations

import textwrap
from pathlib import Path

FILES = {
    "sum.c": """
        int total(const int *x, int n) {
            int sum = 0;
            for (int i = 0; i < n; i++) sum += x[i];
            return sum;
        }
        """,
    "task.toml": """
        name = "total"
        editable = ["sum.c"]
        build = { flag_choices = [["-O2", "-O3"]] }
        entry = { kind = "c", function = "int total(const int *x, int n)" }
        """,
    "judge.py": """
        import numpy as np

        def make_input(rng):
            n = int(rng.integers(20000, 40000))
            return {"x": rng.integers(-99, 99, n, dtype=np.int32), "n": n}
        """,
}


def lay_out(folder: Path) -> None:
    """Make the folder and write the task's files into it."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(textwrap.dedent(text))
