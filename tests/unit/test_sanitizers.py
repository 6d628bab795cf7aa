"""Sanitizers: an error of the reference by one element is seen and told in a sentence with what to change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outpace.init.sanitizers import Checked, missing, sentence
from outpace.init.skeleton import Source, skeletons
from outpace.judge.jail import JailKind, bubblewrap_works, fallback_works
from outpace.task import Output
from outpace.task.file import make_task

Report = Callable[..., str]


@pytest.fixture
def jail() -> JailKind:
    why = bubblewrap_works() and fallback_works()
    if why:
        pytest.skip(f"no jail: {why}")
    return "fallback" if bubblewrap_works() else "bubblewrap"


@pytest.fixture
def report(jail: JailKind, tmp_path: Path) -> Report:
    """What the sanitizers say to calls of `f` in a source."""
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.owner() == tmp_path.owner() and folder.name.startswith("pytest-"):
            folder.chmod(0o755)
    if why := missing("cc", jail, tmp_path):
        pytest.skip(f"no sanitizers: {why}")

    def of(text: str, *inputs: dict[str, Any], name: str = "code.c") -> str:
        made = skeletons(Source(name, {name: text.encode()}), "f", name="small")[0]
        return Checked(make_task(Path("small"), dict(made.files)), jail, tmp_path).report(inputs)

    return of


X = np.arange(10, dtype=np.int32)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("int s = 0; for (int i = 0; i < n; i++) s ^= x[i]; return s;", ""),
        (
            "int s = 0; for (int i = 0; i <= n; i++) s ^= x[i]; return s;",
            "code.c:1 reads 4 bytes past the end of 'x', which has 40 bytes",
        ),
        ("return x[n - 11];", "code.c:1 reads 4 bytes before the start of 'x'"),
        ("return (x[n - 1] + 2147483640) * 2;", "code.c:1: signed integer overflow"),
        ("return 1 << (x[n - 1] + 30);", "code.c:1: shift exponent 39"),
        ("int a[4] = {0}; return a[x[5]];", "code.c:1: index 5 out of bounds"),
        ("return x[n - 1] / (n - 10);", "code.c:1: division by zero"),
        ("for (;;) if (n != 10) return x[0]; else __builtin_trap();", "ends the process"),
    ],
)
def test_an_error_of_the_reference_is_told_with_its_place(report: Report, body: str, told: str) -> None:
    found = report(f"int f(const int *x, int n) {{ {body} }}", {"x": X, "n": 10})
    assert told in found and bool(found) == bool(told)


def test_an_output_is_exactly_as_large_as_it_says(report: Report) -> None:
    text = "void f(const int *x, int n, int *out) { for (int i = 0; i < n; i++) out[i] = x[i]; }"
    assert report(text, {"x": X, "n": 10, "out": Output(10, "int32")}) == ""
    found = report(text, {"x": X, "n": 10, "out": Output(9, "int32")})
    assert "writes 4 bytes past the end of 'out', which has 36 bytes" in found and "make_input" in found


def test_a_text_is_followed_by_its_zero_byte_and_by_no_other(report: Report) -> None:
    text = "int f(const char *text) { int n = 0; while (text[n]) n++; return n; }"
    assert report(text, {"text": b"hello"}) == ""
    assert "past the end of 'text'" in report(text.replace("return n;", "return text[n + 1];"), {"text": b"hello"})


def test_memory_that_was_never_written_to_shows_in_the_answer(report: Report) -> None:
    head = "#include <stdlib.h>\nint f(const int *x, int n) { int *p = malloc(40); int s = x[n - 1] + "
    assert "has not written to" in report(head + "p[3]; free(p); return s & 255; }", {"x": X, "n": 10})
    assert report(head + "0 * n; free(p); return s & 255; }", {"x": X, "n": 10}) == ""


def test_an_output_that_is_read_first_is_no_output(report: Report) -> None:
    loop = "for (int i = 0; i < n; i++) out[i] = out[i] / 2 + (unsigned)x[i];"
    text = f"void f(const int *x, int n, unsigned *out) {{ {loop} }}"
    assert "not an Output" in report(text, {"x": X, "n": 10, "out": Output(10, "uint32")})
    assert report(text, {"x": X, "n": 10, "out": np.ones(10, np.uint32)}) == ""


def test_an_output_may_stay_unwritten_in_part(report: Report) -> None:
    text = "void f(const int *x, int n, int *out) { out[0] = x[n - 1]; }"
    assert report(text, {"x": X, "n": 10, "out": Output(10, "int32")}) == ""


def test_cpp_is_checked_with_its_own_compiler(report: Report) -> None:
    text = "#include <vector>\nint f(const std::vector<int>& x) { return x[x.size()]; }"
    found = report(text, {"x": X, "x_size": 10}, name="code.cpp")
    assert "code.cpp:2 reads 4 bytes past the end of a block that it allocated" in found


def test_a_compiler_without_sanitizers_is_named_with_its_reason(jail: JailKind, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert missing("no-such-compiler", jail, tmp_path)


def test_a_program_that_ends_early_without_a_report_is_no_success() -> None:
    assert sentence("outpace-call: 0\noutpace-end\nstatus 0") == ""
    assert "ends the process" in sentence("outpace-call: 0\nstatus 0")
    assert "Killed" in sentence("outpace-call: 0\nKilled\nstatus 137")
