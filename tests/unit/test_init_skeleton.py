"""Skeletons: what is read off a declaration, what is guessed from it, and where a person is asked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.errors import TaskError
from outpace.init.c_source import find_function
from outpace.init.python_inputs import find_python
from outpace.init.rehearsal import Rehearsed, fit_size
from outpace.init.skeleton import Skeleton, Source, skeletons
from outpace.init.sources import add_unit, gather
from outpace.task import Output, Task
from outpace.task.file import make_task


def of(text: str, function: str, name: str = "code.c", **more: Any) -> Skeleton:
    """The likeliest skeleton of one file."""
    return skeletons(Source(name, {name: text.encode()}), function, name="small", **more)[0]


def task(skeleton: Skeleton) -> Task:
    """The task, as the task file's own checks take it."""
    return make_task(Path("small"), dict(skeleton.files))


def drawn(skeleton: Skeleton, seed: int = 0) -> dict[str, Any]:
    """One input of the generated judge."""
    space: dict[str, Any] = {}
    exec(compile(skeleton.files["judge.py"], "judge.py", "exec"), space)
    made = space["make_input"](np.random.default_rng(seed))
    assert isinstance(made, dict)
    return made


# Reading C


@pytest.mark.parametrize(
    ("text", "returns", "types"),
    [
        ("int f(const unsigned char *x, size_t n) { return 0; }", "int", ["unsigned char", "size_t"]),
        ("double\nf (double x[], long unsigned int n)\n{ return x[0]; }", "double", ["double", "unsigned long"]),
        ("typedef unsigned char BYTE;\nvoid f(const BYTE in[16], BYTE *out) {}", "void", ["unsigned char"] * 2),
        ('#define API(t) __attribute__((visibility("default"))) t\nAPI(void) f(char *s) {}', "void", ["char"]),
        (
            "#define FAR\ntypedef unsigned char Byte;\ntypedef Byte FAR Bytes;\nint API f(const Bytes *b) {}",
            "int",
            ["unsigned char"],
        ),
        ("__attribute__((noinline)) float f(float x) { return x; }", "float", ["float"]),
        ("typedef enum { A, B } mode_t_;\nint f(mode_t_ m) { return m; }", "int", ["int"]),
        ("static inline int f(int a /* , int b */) { return a; }", "int", ["int"]),
        ("int f(void);\nint g(void) { return f(); }\nint f(void) { return 1; }", "int", []),
    ],
)
def test_a_definition_is_found_whatever_stands_around_it(text: str, returns: str, types: list[str]) -> None:
    found = find_function("f", text)
    assert found is not None
    assert (found.returns, [each.c_type for each in found.parameters]) == (returns, types)
    assert all(each.plain for each in found.parameters)


@pytest.mark.parametrize(
    "text",
    [
        "int f(int x);",
        "// int f(int x) { return x; }\n",
        "int g(int x) { return f(x); }",
        'const char *s = "int f(int x) { }";',
        "#define f(x) { x }\n",
        "int g(int x) { if (f(x)) { return 1; } return 0; }",
    ],
)
def test_what_is_no_definition_is_not_taken_for_one(text: str) -> None:
    assert find_function("f", text) is None


@pytest.mark.parametrize(
    "piece", ["struct node *x", "int **x", "int (*compare)(int, int)", "std::vector<int> x", "FILE *x"]
)
def test_a_parameter_that_cannot_cross_the_jail_is_left_to_a_wrapper_with_one_marked_line(piece: str) -> None:
    made = of(f"int f({piece}, int n) {{ return n; }}", "f")
    assert [gap.file for gap in made.gaps] == ["outpace_glue.c"]
    line = made.files["outpace_glue.c"].decode().splitlines()[made.gaps[0].line - 1]
    assert line.startswith("#error") and piece in line
    task(made)


@given(st.text(alphabet="int f(){}*&,;[]\"'/\\#\n<>=x ", max_size=120))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    find_function("f", text, cpp=True)


# Guessing for C


def test_a_pointer_and_the_length_beside_it_belong_together() -> None:
    made = drawn(of("double f(const double *x, int n, const float *y, int ny) { return 0; }", "f"))
    assert (len(made["x"]), len(made["y"])) == (made["n"], made["ny"])
    assert (made["x"].dtype, made["y"].dtype) == (np.float64, np.float32)


def test_a_matrix_is_as_large_as_its_index_says() -> None:
    text = """void f(float *out, float *x, float *w, int n, int d) {
        for (int i = 0; i < d; i++) {
            float sum = 0;
            for (int j = 0; j < n; j++) sum += w[i * n + j] * x[j];
            out[i] = sum; } }"""
    made = drawn(of(text, "f"))
    assert (len(made["w"]), len(made["x"])) == (made["n"] * made["d"], made["n"])
    assert made["out"] == Output(made["d"], "float32")


def test_what_is_only_written_is_an_output_and_what_is_read_is_not() -> None:
    text = "void f(int *a, int *b, int n) { for (int i = 0; i < n; i++) { a[i] = b[i]; b[i] += 1; } }"
    made = drawn(of(text, "f"))
    assert isinstance(made["a"], Output) and isinstance(made["b"], np.ndarray)


def test_an_encoder_has_room_for_more_than_it_reads() -> None:
    loop = "for (int i = 0; i < len; i++) { out[k++] = in[i]; out[k++] = ' '; }"
    text = f"int f(const char *in, int len, char *out) {{ int k = 0; {loop} return k; }}"
    made = drawn(of(text, "f"))
    assert made["out"].shape[0] >= 2 * made["len"]


def test_rows_in_a_declaration_say_how_large_an_array_is() -> None:
    text = "#define WIDE 12\nvoid f(int n, int m, double a[n][m], const int b[][WIDE], float c[m + 1]) {"
    text += " for (int i = 0; i < n; i++) a[i][0] += b[i][1] + c[0]; }"
    skeleton = of(text, "f")
    made = drawn(skeleton)
    assert [len(made[name]) for name in "abc"] == [made["n"] * made["m"], 12 * made["n"], made["m"] + 1]
    assert "(double (*)[m])a, (const int (*)[12])b, c)" in skeleton.files["outpace_glue.c"].decode()


def test_a_loop_below_another_loop_is_bounded_by_it() -> None:
    text = "void f(int n, double *a) { for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++) a[i * n + j] *= 2; }"
    made = drawn(of(text, "f"))
    assert len(made["a"]) >= made["n"] * made["n"]


def test_a_row_that_begins_behind_a_pointer_is_counted() -> None:
    text = "void f(int h, int w, const char *p, int *out) { for (int y = 0; y < h; y++) { const char *q = p + y * w; "
    text += "for (int x = 0; x < w; x++) out[y] += q[x]; } }"
    made = drawn(of(text, "f"))
    assert len(made["p"]) == made["h"] * made["w"]


def test_a_text_to_be_changed_brings_its_own_end() -> None:
    made = drawn(of("void f(char *text) { for (; *text; text++) *text ^= 1; }", "f"))
    assert made["text"].endswith(b"\0")


def test_no_number_is_always_the_same() -> None:
    loop = "for (; start < n; start += k) s ^= x[start];"
    text = f"int f(const int *x, int start, int n, int k) {{ int s = 0; {loop} return s; }}"
    seen = [drawn(of(text, "f"), seed) for seed in range(30)]
    assert all(len({each[name] for each in seen}) > 3 for name in ("start", "n", "k"))


def test_the_first_attempt_sets_every_bit_and_later_ones_are_smaller() -> None:
    source = Source("code.c", {"code.c": b"int f(const int *x, int n) { return x[n - 1]; }"})
    largest = [np.abs(drawn(each)["x"].astype(np.int64)).max() for each in skeletons(source, "f", name="small")]
    bits = [int(each).bit_length() for each in largest]
    assert bits[0] in (31, 32) and bits == sorted(bits, reverse=True) and bits[-1] == 3


def test_vectors_and_strings_cross_the_jail_as_arrays() -> None:
    text = "#include <string>\n#include <vector>\n"
    text += "std::vector<float> f(const std::vector<float>& x, const std::vector<float>& y, std::string s) {\n"
    text += "    std::vector<float> z;\n    for (size_t i = 0; i < x.size(); i++) z.push_back(x[i] + y[i] + s[0]);\n"
    text += "    return z;\n}\n"
    skeleton = of(text, "f", "code.cpp")
    made = drawn(skeleton)
    assert len(made["x"]) == len(made["y"]) == made["x_size"] == made["y_size"]
    assert made["outpace_out"].shape == (made["outpace_room"],) and made["outpace_room"] > made["x_size"]
    assert task(skeleton).checking.tolerance > 0 and isinstance(made["s"], bytes)


def test_a_vector_to_be_filled_is_an_output_with_a_count() -> None:
    text = (
        "#include <vector>\nvoid f(int n, std::vector<int>& found) { for (int i = 0; i < n; i++) found.push_back(i); }"
    )
    made = drawn(of(text, "f", "code.cpp"))
    assert isinstance(made["found"], Output) and made["found_count"] == Output(1, "int64")


def test_room_grows_and_edges_are_set_in_the_text() -> None:
    loop = "for (int i = 0; i < n; i++) out[k++] = in[i];"
    skeleton = of(f"int f(const char *in, int n, char *out) {{ int k = 0; {loop} return k; }}", "f")
    assert drawn(skeleton.roomier(4))["out"].shape[0] > 3 * drawn(skeleton)["out"].shape[0]
    space: dict[str, Any] = {}
    exec(compile(skeleton.edged((0, 3)).files["judge.py"], "judge.py", "exec"), space)
    assert {len(each["in"]) for each in space["edge_inputs"]()} <= {0, 2, 3}


def test_a_text_holds_every_letter_and_mark_and_bytes_come_in_runs_too() -> None:
    text = drawn(of("int f(const char *text) { return text[0]; }", "f").sized(65_536))["text"]
    assert set(range(32, 127)) <= set(text)
    raw = drawn(of("int f(const unsigned char *x, int n) { return x[n - 1]; }", "f").sized(65_536))["x"]
    places = np.flatnonzero(np.diff(raw))
    assert len(set(raw.tolist())) == 256 and np.diff(places).max() > 255 and len(places) > len(raw) // 10


def test_python_matrices_differ_in_size() -> None:
    made = of("def f(matrix):\n    return matrix[0][0]\n", "f", "code.py")
    assert len({len(drawn(made, seed)["matrix"]) for seed in range(20)}) > 3


def test_numbers_are_guessed_from_the_cases_of_a_switch_from_names_and_from_flags() -> None:
    body = "switch (kind) { case 3: return 1; case 7: return 2; } return 0;"
    text = f"int f(const int *x, int n, int kind, int use_cache, int target) {{ {body} }}"
    seen = [drawn(of(text, "f"), seed) for seed in range(20)]
    assert sum(each["kind"] in (3, 7) for each in seen) > 10
    assert sum(each["use_cache"] in (0, 1) for each in seen) > 10
    assert sum(each["target"] in each["x"] for each in seen) > 10


def test_parameters_named_like_python_words_do_no_harm() -> None:
    made = drawn(of("int f(const unsigned char in[], int len, int rng) { return len; }", "f"))
    assert len(made["in"]) == made["len"] and isinstance(made["rng"], int)


def test_a_static_function_gets_a_wrapper_and_the_source_stays_what_is_edited() -> None:
    made = task(of("static int f(const int *x, int n) { return x[n - 1]; }", "f"))
    assert (made.editable, made.build.sources) == (("code.c",), ("outpace_glue.c",))
    assert made.entry.function == "int outpace_entry(const int *x, int n)"


def test_a_cpp_function_in_a_namespace_is_called_by_its_full_name() -> None:
    made = of("namespace deep { namespace er { int f(const int *x, int n) { return x[n - 1]; } } }", "f", "code.cpp")
    glue = made.files["outpace_glue.cpp"].decode()
    assert "return deep::er::f(x, n);" in glue and 'extern "C"' in glue


def test_a_cpp_function_with_c_linkage_needs_no_wrapper() -> None:
    assert "outpace_glue.cpp" not in of('extern "C" int f(int n) { return n; }', "f", "code.cpp").files


def test_a_returned_pointer_into_an_argument_is_told_by_its_offset() -> None:
    made = of("const char *f(const char *text, char c) { return text; }", "f")
    assert "found - text" in made.files["outpace_glue.c"].decode() and not made.gaps


def test_an_unknown_function_is_refused_with_names_that_are_near() -> None:
    with pytest.raises(TaskError, match=r"defines no function 'shell_sort'; did you mean shellSort\?"):
        of("void shellSort(int *x, int n) { }\nint main(void) { return 0; }", "shell_sort")


# Python


@pytest.mark.parametrize(
    ("parameter", "kind"),
    [
        ("text: str", "text"),
        ("xs: list[int]", "ints"),
        ("xs: list[float]", "floats"),
        ("m: list[list[int]]", "matrix"),
        ("n: int", "count"),
        ("b: bytes", "bytes"),
        ("d: dict[str, int]", "counts"),
        ("x: 'Sequence[str]'", "words"),
        ("x: Optional[float]", "real"),
        ("x: str | None", "text"),
        ("a: np.ndarray", "array"),
        ("a: NDArray[np.float64]", "array"),
        ("a: np.ndarray[Any, np.dtype[np.int64]]", "whole array"),
        ("a: NDArray[np.int64]", "whole array"),
        ("matrix: np.ndarray", "table"),
        ("items: Any", "ints"),
        ("matrix", "matrix"),
        ("items", "ints"),
        ("data", "floats"),
        ("words", "words"),
        ("n", "count"),
        ("num_rows", "count"),
    ],
)
def test_annotations_and_names_say_what_a_parameter_is(parameter: str, kind: str) -> None:
    found = find_python("f", f"def f({parameter}):\n    return 1\n")
    assert found is not None and found.parameters[0].kinds[0] == kind


def test_a_doctest_says_what_a_parameter_is() -> None:
    found = find_python("f", 'def f(a, b):\n    """\n    >>> f("one two", [1.5, 2])\n    3\n    """\n    return 3\n')
    assert found is not None and [each.kinds[0] for each in found.parameters] == ["text", "floats"]


def test_what_the_body_does_with_a_parameter_says_what_it_is() -> None:
    found = find_python("f", "def f(a, b, c):\n    return a.lower(), [b[i][0] for i in range(3)], list(range(c))\n")
    assert found is not None and [each.kinds[0] for each in found.parameters] == ["text", "matrix", "count"]


def test_flags_and_whole_numbers_with_defaults_are_drawn_around_them_and_others_are_told() -> None:
    made = of("def f(text, width=70, sep=' ', *, strict=False, at=None):\n    return text\n", "f", "code.py")
    found = [drawn(made, seed) for seed in range(200)]
    assert list(found[0]) == ["text", "width", "strict"] and {each["strict"] for each in found} == {True, False}
    widths = [each["width"] for each in found]
    assert 60 < widths.count(70) < 140 and min(widths) < 20 and 130 < max(widths) <= 150
    (note,) = made.unasked
    assert "'sep', 'at'" in note and "'width'" not in note


def test_an_option_alone_is_no_input() -> None:
    (gap,) = of("def f(*parts, strict=False):\n    return parts\n", "f", "code.py").gaps
    assert "takes its arguments by position" in gap.what


def test_a_default_alone_is_not_given_at_all_and_the_wrapper_knows_it() -> None:
    text = "def f(text, width=70, *, strict=False):\n    yield text\n"
    made = of(text, "f", "code.py")
    assert made.values is not None and made.values.lowest() == {"text": 4, "width": 2, "strict": 1}
    least = made.drawn(made.values.at({"width": 2, "strict": 1}))
    assert list(drawn(least)) == ["text"] and "its default 70" in made.values.at({"width": 2}).told("width")
    space: dict[str, Any] = {}
    glue = made.files["outpace_glue.py"].decode()
    exec(
        compile("def function(**given):\n    return list(given)\n" + glue[glue.index("def call") :], "glue", "exec"),
        space,
    )
    assert space["call"](text="a") == space["call"]("a", 3, True) == ["text", "width", "strict"]


@pytest.mark.parametrize(
    ("annotation", "allowed"),
    [
        ("str", {"text", "numbers", "json", "word"}),
        ("list[int]", {"ints", "naturals", "sorted"}),
        ("list[float]", {"floats"}),
        ("list[str]", {"words", "lines"}),
        ("int", {"count", "few"}),
        ("float", {"real"}),
        ("bytes", {"bytes"}),
        ("np.ndarray", {"array", "table"}),
        ("list[list[int]]", {"matrix"}),
    ],
)
def test_what_is_annotated_or_shown_never_falls_back_to_another_type(annotation: str, allowed: set[str]) -> None:
    found = find_python("f", f"def f(x: {annotation}):\n    return x\n")
    assert found is not None and set(found.parameters[0].kinds) == allowed
    shown = find_python("f", 'def f(a):\n    """\n    >>> f("one two")\n    3\n    """\n    return a\n')
    assert shown is not None and "bytes" not in shown.parameters[0].kinds and "ints" not in shown.parameters[0].kinds
    guessed = find_python("f", "def f(text):\n    return text\n")
    assert guessed is not None and "bytes" in guessed.parameters[0].kinds, "a name alone is no more than a guess"


UNDRAWN = "set[int];frozenset[str];deque;Decimal;complex;bytearray;array.array;Iterator[int];Node;NDArray[np.float32];"
UNDRAWN += "np.ndarray[Any, np.dtype[np.uint8]];dict[int, int];'set[int]';list["


@pytest.mark.parametrize("annotation", UNDRAWN.split(";"))
def test_a_type_that_nobody_can_draw_is_not_replaced_by_what_a_name_suggests(annotation: str) -> None:
    annotation = repr(annotation) if annotation == "list[" else annotation
    made = of(f"def f(values: {annotation}):\n    return len(values)\n", "f", "code.py")
    assert len(made.gaps) == 1 and "values = ..." in made.gaps[0].what


def test_a_number_beside_a_list_of_words_is_none_of_them() -> None:
    made = drawn(of("def f(words: list[str], target: int):\n    return words[target]\n", "f", "code.py"))
    assert isinstance(made["target"], int)


def test_a_list_of_nobody_knows_what_may_be_of_anything() -> None:
    found = find_python("f", "def f(items: list):\n    return items\n")
    assert found is not None and {"ints", "floats", "words"} <= set(found.parameters[0].kinds)


def test_a_word_is_nearly_one_of_the_words_beside_it() -> None:
    made = drawn(of("def f(word: str, words: list[str]):\n    return word in words\n", "f", "code.py"))
    assert any(sum(a != b for a, b in zip(made["word"], each, strict=False)) <= 1 for each in made["words"])


def test_a_parameter_nothing_is_known_of_is_a_marked_line_with_the_doctests_example() -> None:
    text = 'def f(graph, start):\n    """\n    >>> f({"a": [["b", 2]]}, "a")\n    1\n    """\n    return graph[start]\n'
    made = of(text, "f", "code.py")
    lines = made.files["judge.py"].decode().splitlines()
    assert [gap.file for gap in made.gaps] == ["judge.py", "judge.py"], "a node cannot be guessed without its graph"
    assert all("NotImplementedError" in lines[gap.line - 1] for gap in made.gaps)
    assert "[['b', 2]]" in made.gaps[0].what
    with pytest.raises(NotImplementedError, match="fill in: graph"):
        drawn(made)
    task(made)


def test_inputs_differ_from_seed_to_seed_and_grow_with_their_size() -> None:
    made = of("def f(text):\n    return text.split()\n", "f", "code.py")
    assert drawn(made, 1) == drawn(made, 1) != drawn(made, 2)
    assert len(drawn(made.sized(4096))["text"]) > 4 * len(drawn(made)["text"])


def test_the_wrapper_makes_any_answer_plain(tmp_path: Path) -> None:
    text = "def f(items, /):\n    yield {1: frozenset(items)}\n    yield (x for x in items)\n"
    made = of(text, "f", "code.py")
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
    space: dict[str, Any] = {"__file__": str(tmp_path / "outpace_glue.py")}
    exec(compile(made.files["outpace_glue.py"], "outpace_glue.py", "exec"), space)
    assert space["call"](items=[2, 1]) == {"iterator": [{"dict": [[1, {"set": [1, 2]}]]}, {"iterator": [2, 1]}]}
    kinds = ({1: 2}, [[1, 2]], {(1, 2)}, iter([[1, 2]]), np.array([[1, 2]]), object)
    shown = [space["plain"](each) for each in kinds]
    assert len({repr(each) for each in shown}) == len(kinds), "a caller can tell them apart"
    assert space["plain"](np.float64(0.5)) == 0.5 and space["plain"]((1, None)) == [1, None]


# Sources


def test_headers_are_followed_and_keep_their_places(tmp_path: Path) -> None:
    for name, text in {
        "src/code.c": '#include "../inc/a.h"\n#include "no.h"\n',
        "inc/a.h": '#include "b.h"\n',
        "inc/b.h": "\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = gather(tmp_path / "src/code.c", installed={})
    assert (found.main, sorted(found.files)) == ("src/code.c", ["inc/a.h", "inc/b.h", "src/code.c"])


def test_a_missing_symbol_pulls_in_the_file_that_defines_it(tmp_path: Path) -> None:
    (tmp_path / "code.c").write_text("int g(int);\nint f(int n) { return g(n); }\n")
    (tmp_path / "other.c").write_text("int g(int n) { return n + 1; }\n")
    source = gather(tmp_path / "code.c", installed={})
    more = add_unit(source, tmp_path / "code.c", "g")
    assert more is not None and more.units == ("other.c",) and "other.c" in more.files
    assert add_unit(source, tmp_path / "code.c", "nowhere") is None


def test_modules_of_the_same_folder_come_along_and_installed_ones_are_named(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("import json, numpy, near\n\ndef f(n): return near.g(n)\n")
    (tmp_path / "near.py").write_text("def g(n): return n\n")
    found = gather(tmp_path / "code.py", installed={"numpy": ["numpy"]})
    assert (sorted(found.files), found.packages) == (["code.py", "near.py"], ("numpy",))


def test_a_module_of_a_package_comes_with_its_package(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    for name, text in {
        "__init__.py": "",
        "a.py": "from .b import g\n\ndef f(n): return g(n)\n",
        "b.py": "def g(n): return n\n",
    }.items():
        (tmp_path / "pack" / name).write_text(text)
    found = gather(tmp_path / "pack/a.py", installed={})
    assert (found.main, found.module) == ("pack/a.py", "pack.a")
    assert "from pack.a import f as function" in skeletons(found, "f", name="x")[0].files["outpace_glue.py"].decode()


# Sizes


def test_the_size_is_raised_until_a_call_is_long_enough() -> None:
    size, found = fit_size(lambda size: Rehearsed(seconds=size * 1e-7), 256)
    assert found.seconds == size * 1e-7 and 100e-6 <= found.seconds <= 20e-3


def test_the_size_is_lowered_for_what_takes_for_ever() -> None:
    size, found = fit_size(
        lambda size: Rehearsed(problem="too long", slow=True) if size > 20 else Rehearsed(seconds=2.0**size * 1e-7), 256
    )
    assert not found.problem and size <= 20


def test_a_failure_that_is_not_slowness_ends_the_search_at_once() -> None:
    tried: list[int] = []

    def rehearse(size: int) -> Rehearsed:
        tried.append(size)
        return Rehearsed(problem="wrong")

    assert fit_size(rehearse, 256)[1].problem == "wrong" and tried == [256]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_generated_wrapper_compiles_without_a_warning(tmp_path: Path) -> None:
    import subprocess

    made = of("static int f(const int *x, int n) { return x[n - 1]; }\n", "f")
    for name, content in made.files.items():
        (tmp_path / name).write_bytes(content)
    done = subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", "-c", "outpace_glue.c"], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("size", [4, 100, 5000])
def test_what_is_named_json_gets_json_of_the_size_drawn(size: int) -> None:
    skeleton = of("int f(const char *json, int n) { return n; }", "f").limited({}, 0.0)
    made = drawn(skeleton.sized(size))
    assert len(made["json"]) == made["n"] and isinstance(json.loads(made["json"]), list)
