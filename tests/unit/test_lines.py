"""Lines end at newlines alone, whatever else some call the end of a line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import python_task
from outpace import answer
from outpace.cli.export import diff
from outpace.edits import Edit, apply
from outpace.errors import TaskError
from outpace.init.skeleton import _comment_above
from outpace.task import Task
from outpace.task.candidate import Candidate, fixed_text, forbidden_change, has_regions, reference
from outpace.task.file import make_task
from outpace.task.lines import has_lone_return, lines, with_ends

# Where str.splitlines cuts and compilers do not: vertical tab, form feed, the separators, NEL, U+2028 and U+2029.
NO_ENDS = ["\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
SOURCE = "int before;\n// outpace: begin\nint inside;\n// outpace: end\nint after;\n"
TOML = b'name = "a"\neditable = ["a.c"]\n[entry]\nkind = "c"\nfunction = "int f(int x)"\n'
JUDGE = b"def make_input(rng):\n    return {'x': 1}\n"


def task(text: str = SOURCE) -> Task:
    return make_task(Path("folder"), {"task.toml": TOML, "judge.py": JUDGE, "a.c": text.encode()})


def refused(text: str, of: str = SOURCE) -> str:
    made = task(of)
    return forbidden_change(made, Candidate({"a.c": text}, reference(made).flags))


@given(st.text(st.sampled_from(["a", "\n", "\r", *NO_ENDS])))
def test_lines_put_together_are_the_text(text: str) -> None:
    assert "".join(with_ends(text)) == text
    assert all(line.count("\n") == line.endswith("\n") for line in with_ends(text))
    assert all(line.endswith("\n") for line in with_ends(text)[:-1])
    assert lines(text) == (text.removesuffix("\n").split("\n") if text else [])
    assert has_lone_return(text) == ("\r" in text.replace("\r\n", ""))


@pytest.mark.parametrize("mark", NO_ENDS)
def test_nothing_but_a_newline_ends_a_fixed_line(mark: str) -> None:
    assert "outside" in refused(SOURCE.replace("end\n", f"end{mark}"))
    assert "outside" in refused(SOURCE.replace("before;\n", f"before;{mark}"))
    assert "outside" in refused(SOURCE.replace("int after;", f"int after;{mark}"))


@pytest.mark.parametrize("mark", NO_ENDS)
def test_inside_a_region_they_are_text_like_any_other(mark: str) -> None:
    assert refused(SOURCE.replace("inside;", f"inside; // {mark}")) == ""
    assert refused(SOURCE.replace("inside;", f"inside; // outpace: end{mark}int more;")) == ""


@pytest.mark.parametrize("place", ["int inside;", "int before;", "// outpace: end"])
def test_a_carriage_return_alone_is_refused_where_there_are_regions(place: str) -> None:
    for text in (f"{place}\rint x;", f"{place}\r\r"):
        assert "carriage return" in refused(SOURCE.replace(place, text))
    with pytest.raises(TaskError, match="carriage return"):
        task(SOURCE.replace("\n", "\r"))
    plain = task("int f(int x);\rint y;\n")
    assert forbidden_change(plain, Candidate({"a.c": "int f(int x);\r"}, plain.build.flags)) == ""


def test_carriage_returns_before_newlines_may_go_and_may_not_come() -> None:
    windows = SOURCE.replace("\n", "\r\n")
    assert has_regions(windows)
    assert fixed_text(windows) == tuple(f"{line}\r" for line in fixed_text(SOURCE))
    assert refused(windows.replace("inside", "other"), windows) == ""
    assert refused(SOURCE.replace("inside", "other"), windows) == ""
    assert "outside" in refused(SOURCE.replace("after", "other"), windows)
    assert "outside" in refused(windows)
    assert "outside" in refused(SOURCE.replace("before;\n", "before;\r\n"))


def test_a_missing_last_newline_changes_nothing_that_is_fixed() -> None:
    assert refused(SOURCE.removesuffix("\n")) == ""
    assert refused(SOURCE, SOURCE.removesuffix("\n")) == ""


@pytest.mark.parametrize("blank", [" ", "\t", "\f", "\v", " */", " -->", "\r"])
def test_a_mark_may_be_followed_by_blanks(blank: str) -> None:
    marked = SOURCE.replace("begin", f"begin{blank}").replace("end\n", f"end{blank}\n")
    assert has_regions(marked)
    assert "outside" in refused(marked.replace("after", "other"), marked)
    assert refused(marked.replace("inside", "other"), marked) == ""
    assert "outside" in refused(SOURCE.replace("int inside;", f"// outpace: end{blank}\nint more;"))


@pytest.mark.parametrize("mark", NO_ENDS)
def test_edits_patches_and_comments_see_the_same_lines(mark: str) -> None:
    text = f"one{mark}two\nthree\n"
    assert apply(text, [Edit(("three",), ("3",))]) == f"one{mark}two\n3\n"
    assert f"-one{mark}two\n+one\n" in diff({"a": text}, {"a": "one\nthree\n"})
    # The number of a line is the compiler's, so that the comment above line 3 is the one that stands there.
    assert _comment_above(f"// {mark} the first\n// the second one\nint f;\n", 3).endswith("the second one")


def test_a_reply_with_a_form_feed_after_a_mark_is_unusable() -> None:
    made = task()
    reply = (
        "## Performance Analysis\n\nThe last line takes all of the time there is.\n\n## Code Implementation\n\n"
        "### FILE: a.c\n```c\n" + SOURCE.replace("end\n", "end\f") + "```\n"
    )
    parsed = answer.parse(reply, made, {}, reference(made))
    assert isinstance(parsed, answer.Unusable) and "outside" in parsed.reason


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("# coding: unicode_escape", False),
        ("# -*- coding: utf-7 -*-", False),
        ("#!x\n# vim: set fileencoding=latin-1 :", False),
        ("# coding: nothing-at-all", False),
        ("\n\n# coding: unicode_escape", True),
        ("# coding: utf-8", True),
        ("x = 'coding: utf-7'", True),
    ],
)
def test_no_source_of_python_is_read_otherwise_than_it_is_shown(line: str, allowed: bool) -> None:
    made = python_task("def solve(x):\n    return x\n", "def make_input(rng):\n    return {'x': 1}\n")
    (name,) = made.editable
    said = forbidden_change(made, Candidate({name: f"{line}\ndef solve(x):\n    return x\n"}))
    assert (said == "") == allowed and ("encoding" in said) == (not allowed)
