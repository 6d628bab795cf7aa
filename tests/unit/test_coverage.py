"""Coverage: code that no input reaches is named, and a way out is not counted as work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from outpace.init.coverage import idle_lines, unreached
from outpace.init.skeleton import Source, skeletons
from outpace.judge.jail import bubblewrap_works, fallback_works
from outpace.task.file import make_task

TEXT = """#include <stdlib.h>
static int other(int n) {
    return n;
}
int f(const int *x, int n) {
    int sum = 0;
    int *kept = malloc(4);
    if (kept == NULL)
        return -1;
    for (int i = 0; i < n; i++) {
        if (x[i] > 100)
            sum += 7;
        sum ^= x[i];
    }
    free(kept);
    return sum;
}
"""


@pytest.mark.skipif(shutil.which("gcov") is None, reason="no gcov")
@pytest.mark.skipif(bool(bubblewrap_works() and fallback_works()), reason="no jail")
@pytest.mark.parametrize(("largest", "told"), [(50, ["code.c:12: line 12 never runs on these inputs"]), (200, [])])
def test_work_that_no_input_reaches_is_named_and_a_way_out_is_not(
    tmp_path: Path, largest: int, told: list[str]
) -> None:
    tmp_path.chmod(0o755)
    made = skeletons(Source("code.c", {"code.c": TEXT.encode()}), "f", name="small")[0]
    inputs = [{"x": np.arange(largest, dtype=np.int32), "n": largest}]
    jail = "fallback" if bubblewrap_works() else "bubblewrap"
    found = unreached(make_task(Path("small"), dict(made.files)), inputs, None, jail, tmp_path)
    assert [each.partition(",")[0] for each in found] == told


def test_lines_of_other_files_and_of_functions_never_called_do_not_count() -> None:
    def lines(*numbers: int) -> list[dict[str, int]]:
        return [{"line_number": number, "count": 0} for number in numbers]

    functions = [
        {"execution_count": 1, "start_line": 1, "end_line": 3},
        {"execution_count": 0, "start_line": 5, "end_line": 9},
    ]
    report = {
        "files": [
            {"file": "code.c", "lines": lines(2, 6), "functions": functions},
            {"file": "/usr/include/c++/vector", "lines": lines(2), "functions": functions},
        ]
    }
    source = "int f(int n) {\n    n += 1;\n}\n\nint g(int n) {\n    n += 2;\n}\n"
    (found,) = idle_lines(f"not json\n{json.dumps(report)}\n", {"code.c": source})
    assert found.startswith("code.c:2: line 2 never runs")
