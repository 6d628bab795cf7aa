"""What outpace init finds by its name in C and C++ files, headers among them, and what it says where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from outpace.errors import TaskError
from outpace.init.c_source import defined_functions, find_function
from outpace.init.skeleton import Skeleton, Source, skeletons
from outpace.task import Task
from outpace.task.file import make_task


def of(text: str, function: str, name: str = "code.c") -> Skeleton:
    """The likeliest skeleton of one file."""
    return skeletons(Source(name, {name: text.encode()}), function, name="small")[0]


def task(skeleton: Skeleton) -> Task:
    """The task, as the task file's own checks take it."""
    return make_task(Path("small"), dict(skeleton.files))


@pytest.mark.parametrize(
    "text",
    [
        "int f(int n) noexcept(true) { return n; }",
        "int f(int n) throw() { return n; }",
        "int g(int n) { if (n) return n; else FOR_EACH(n) { } return f(n); }\nint f(int n) { return n; }",
        "int f(int n) __attribute__((pure)) { return n; }",
        "struct A { A(int n) : f(n) {} int f; };\nnamespace a { int f(int n) { return n; } }",
    ],
)
def test_what_is_told_to_be_defined_is_found(text: str) -> None:
    names = defined_functions(text)
    assert "f" in names and {"noexcept", "throw", "__attribute__", "FOR_EACH", "A"}.isdisjoint(names)
    assert all(find_function(name, text, cpp=True) is not None for name in names)


def test_a_name_that_differs_in_case_alone_is_offered() -> None:
    with pytest.raises(TaskError, match=r"no function 'z_function'; did you mean Z_function\?"):
        of("int Z_function(int n) { return n; }", "z_function", "code.cpp")


def test_a_function_that_is_declared_only_is_looked_for_elsewhere() -> None:
    with pytest.raises(TaskError, match="names 'f' and holds no plain definition of it: give the file"):
        of("void f(int n);\nint g(int n) { return n; }", "f", "code.h")


@pytest.mark.parametrize(
    ("text", "wrapper"),
    [
        ("double f(const double *x, int n) { return x[n - 1]; }", "outpace_glue.c"),
        ("static inline double f(const double *x, int n) { return x[n - 1]; }", "outpace_glue.c"),
        ("namespace a { inline double f(const double *x, int n) { return x[n - 1]; } }", "outpace_glue.cpp"),
        ("#include <vector>\ndouble f(const std::vector<double> &x) { return x[0]; }", "outpace_glue.cpp"),
        ('extern "C" {\ndouble f(const double *x, int n) { return x[n - 1]; }\n}', "outpace_glue.c"),
    ],
)
def test_a_header_is_included_and_never_compiled_by_itself(text: str, wrapper: str) -> None:
    made = task(of(text, "f", "code.h"))
    assert (made.build.sources, made.build.glue, made.editable) == ((wrapper,), (), ("code.h",))
    assert '#include "code.h"' in made.text(wrapper)
    assert made.build.compiler == ("c++" if wrapper.endswith("pp") else "cc")


def test_rows_of_a_matrix_need_no_wrapper_by_hand() -> None:
    made = of("void f(int n, double a[n][n], double by) { for (int i = 0; i < n; i++) a[i][i] *= by; }", "f")
    assert not made.gaps and "f(n, (double (*)[n])a, by)" in made.files["outpace_glue.c"].decode()
