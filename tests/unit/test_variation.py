"""Variation: points are read strictly from a task, leniently from a candidate, and set without a trace."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.errors import TaskError
from outpace.task import Build, Entry, Task, variation
from outpace.task.candidate import Candidate, forbidden_change, reference
from outpace.task.file import load_task

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/task.toml"))

SOURCE = """int before;
// outpace: choose 1 2 4
#define UNROLL 4
void f() {
    // outpace: alternatives
    // outpace: option plain
    one();

      two();
    // outpace: option blocked
    //~ three();
    //~
//~   four();
    // outpace: end alternatives
}
"""


def make(text: str = SOURCE, build: Build | None = None, name: str = "k.c") -> Task:
    return Task("made", "", Path("made"), (name,), {name: text.encode()}, Entry("c"), build or Build())


def fault(text: str, name: str = "k.c") -> str:
    with pytest.raises(TaskError) as caught:
        variation.points(make(text, name=name))
    return str(caught.value)


def every(points: tuple[variation.Point, ...]) -> list[variation.Settings]:
    return list(itertools.product(*(range(len(each.options)) for each in points)))


def test_points_are_found_with_their_place_and_setting() -> None:
    task = make()
    points = variation.points(task)
    assert [(each.kind, each.name, each.options, each.where) for each in points] == [
        ("choose", "UNROLL", ("1", "2", "4"), "k.c:2"),
        ("alternatives", "alternatives", ("plain", "blocked"), "k.c:5"),
    ]
    assert variation.settings(points, reference(task)) == (2, 0)
    assert variation.size(points) == 6


def test_an_option_is_switched_line_by_line() -> None:
    task = make()
    changed = variation.apply(variation.points(task), reference(task), (0, 1)).files["k.c"]
    assert "#define UNROLL 1\n" in changed
    assert "    //~ one();\n\n    //~   two();\n" in changed
    assert "    three();\n\n  four();\n" in changed


def test_every_way_to_the_same_settings_gives_the_same_text() -> None:
    build = Build(flags=("-O2", "-g"), flag_choices=(("-O2", "-O3"), ("", "-march=native")))
    task = make(build=build)
    points, own = variation.points(task), reference(task)
    for first, second in itertools.product(every(points), repeat=2):
        detour = variation.apply(points, variation.apply(points, own, first), second)
        assert detour == variation.apply(points, own, second)
        assert variation.settings(points, detour) == second
    assert variation.apply(points, own, variation.settings(points, own)) == own


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_s_points_can_all_be_set_and_set_back(path: Path) -> None:
    task = load_task(path.parent)
    points, own = variation.points(task), reference(task)
    home = variation.settings(points, own)
    assert None not in home
    for at, point in enumerate(points):
        for option in range(len(point.options)):
            wanted = (*home[:at], option, *home[at + 1 :])
            changed = variation.apply(points, own, wanted)
            assert variation.settings(points, changed) == wanted
            assert forbidden_change(task, changed) == ""
            assert variation.frame(points, changed) == variation.frame(points, own)
            assert variation.apply(points, changed, home) == own


def test_windows_line_ends_are_kept() -> None:
    task = make(SOURCE.replace("\n", "\r\n"))
    points, own = variation.points(task), reference(task)
    changed = variation.apply(points, own, (0, 1))
    assert changed.files["k.c"].count("\n") == changed.files["k.c"].count("\r\n")
    assert variation.apply(points, changed, (2, 0)) == own


@pytest.mark.parametrize(
    ("tokens", "line", "setting"),
    [
        ("< <=", "while (a <= b)", 1),
        ("1 -1", "step = -1;", 1),
        ("5 25", "x = 25;", 1),
        ("0.5 0.25", "x = 0.5;", 0),
        ("5 0.5", "x = 0.5;", 1),
        ("int long", "point_t a; long b;", 1),
        ("a.b c", "x = a.b;", 0),
        ("4 8", "v4[8] = x4;", 1),
    ],
)
def test_a_token_is_not_found_inside_another(tokens: str, line: str, setting: int) -> None:
    task = make(f"// outpace: choose {tokens}\n{line}\n")
    assert variation.settings(variation.points(task), reference(task)) == (setting,)


BODY = "// outpace: option a\nx\n// outpace: option b\n//~ y\n// outpace: end alternatives\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("x\n// outpace: choose 1 2\nint y = 3;\n", 2, "exactly one of 1, 2, it holds none"),
        ("// outpace: choose 1 2\nint y = 1 + 2;\n", 1, "it holds 1, 2"),
        ("// outpace: choose 1 2\nint y = 1 + 1;\n", 1, "it holds 1, 1"),
        ("// outpace: choose 1\nint y = 1;\n", 1, "two or more different tokens"),
        ("// outpace: choose 1 1\nint y = 1;\n", 1, "two or more different tokens"),
        ("// outpace: choose 1 2", 1, "not followed by a line"),
        ("// outpace: alternatives\n// outpace: end alternatives\n", 1, "these have none"),
        ("// outpace: alternatives\n// outpace: option a\nx\n", 1, "has no 'outpace: end alternatives'"),
        ("// outpace: alternatives\nz\n" + BODY, 2, "belong to none"),
        ("// outpace: alternatives\n" + BODY.replace("//~ ", ""), 1, "active are a, b"),
        ("// outpace: alternatives\n" + BODY.replace("x", "//~ x"), 1, "active are none"),
        ("// outpace: alternatives\n" + BODY.replace("option b", "option a"), 1, "different names"),
        ("// outpace: alternatives\n" + BODY.replace("option b", "option"), 4, "a name of one word"),
        ("// outpace: alternatives\n" + BODY.replace("//~ y\n", ""), 4, "option b is empty"),
        ("// outpace: alternatives\n" + BODY.replace("//~ y", "//~ y\nz"), 4, "1 of 2 lines"),
        (
            "// outpace: alternatives\n" + BODY.replace("x", "// outpace: choose 1 2\n1"),
            3,
            "may not stand inside",
        ),
        (BODY, 1, "stands outside"),
        ("// outpace: chose 1 2\nint y = 1;\n", 1, "is no marker"),
        ("/* outpace: choose 1 2 */\nint y = 1;\n", 1, "line comment"),
    ],
)
def test_a_malformed_point_is_refused_with_its_line(text: str, line: int, reason: str) -> None:
    told = fault(text)
    assert told.startswith(f"made/k.c:{line}: ")
    assert reason in told


def test_only_points_inside_editable_regions_count() -> None:
    point = "// outpace: choose 1 2\nint y = 1;\n"
    task = make(f"// outpace: choose garbled\n{point}// outpace: begin\n{point}// outpace: end\n{point}")
    points = variation.points(task)
    assert [each.where for each in points] == ["k.c:5"]


def test_python_sources_use_their_own_comments() -> None:
    text = (
        "# outpace: alternatives\n# outpace: option a\nx = 1\n# outpace: option b\n#~ x = 2\n"
        "# outpace: end alternatives\n"
    )
    task = make(text, name="k.py")
    changed = variation.apply(variation.points(task), reference(task), (1,))
    assert "\n#~ x = 1\n" in changed.files["k.py"]
    assert "\nx = 2\n" in changed.files["k.py"]


def test_a_candidate_without_the_marker_has_no_setting_there_and_keeps_its_text() -> None:
    task = make()
    points = variation.points(task)
    foreign = Candidate({"k.c": SOURCE.replace("// outpace: choose 1 2 4\n", "")})
    assert variation.settings(points, foreign) == (None, 0)
    changed = variation.apply(points, foreign, (0, 1))
    assert "#define UNROLL 4" in changed.files["k.c"]
    assert variation.settings(points, changed) == (None, 1)


def test_of_twins_that_are_no_longer_two_none_is_taken_for_the_other() -> None:
    twin = "// outpace: choose 1 2\nint y = 1;\n"
    task = make(twin + twin)
    points = variation.points(task)
    both = variation.apply(points, reference(task), (0, 1))
    assert variation.settings(points, both) == (0, 1)
    assert variation.settings(points, Candidate({"k.c": twin})) == (None, None)


def test_code_changed_by_somebody_else_survives_a_switch() -> None:
    task = make()
    points = variation.points(task)
    foreign = Candidate({"k.c": SOURCE.replace("one();", "uno();")})
    there = variation.apply(points, foreign, (2, 1))
    assert "//~ uno();" in there.files["k.c"]
    assert variation.apply(points, there, (2, 0)) == foreign
    assert variation.frame(points, foreign) != variation.frame(points, reference(task))
    assert variation.frame(points, there) == variation.frame(points, foreign)


def test_flags_take_the_reference_s_places() -> None:
    build = Build(flags=("-O2", "-std=c++20"), flag_choices=(("-O2", "-O3"), ("", "-static", "-pie")))
    task = make("int x;\n", build)
    points = variation.points(task)
    assert variation.apply(points, reference(task), (1, 2)).flags == ("-O3", "-std=c++20", "-pie")
    shuffled = Candidate(reference(task).files, ("-pie", "-std=c++20", "-O3"))
    assert variation.apply(points, shuffled, (0, 0)) == reference(task)


def test_a_group_the_reference_has_no_member_of_is_unset_at_first() -> None:
    task = make("int x;\n", Build(flags=("-g",), flag_choices=(("-O2", "-O3"),)))
    points = variation.points(task)
    assert variation.settings(points, reference(task)) == (None,)
    assert variation.apply(points, reference(task), (1,)).flags == ("-g", "-O3")


@pytest.mark.parametrize("groups", [(("-O2", "-O3"), ("-O3", "")), (("-O2",),), (("", ""),)])
def test_flag_choices_that_overlap_or_leave_no_choice_are_refused(
    groups: tuple[tuple[str, ...], ...],
) -> None:
    with pytest.raises(TaskError, match="flag_choices"):
        variation.points(make("int x;\n", Build(flag_choices=groups)))


LINES = [
    *SOURCE.split("\n"),
    "// outpace: begin",
    "// outpace: end",
    "// outpace:",
    "/* outpace: option plain",
    "#~ x",
    "\t//~",
    "\r",
    "#define UNROLL 4 // not 2",
]


@given(st.lists(st.sampled_from(LINES), max_size=30).map("\n".join))
def test_no_text_of_a_candidate_makes_reading_or_setting_fail(text: str) -> None:
    points = variation.points(make())
    candidate = Candidate({"k.c": text})
    found = variation.settings(points, candidate)
    assert variation.apply(points, candidate, found) == candidate
    for wanted in every(points):
        changed = variation.apply(points, candidate, wanted)
        expected = tuple(None if old is None else new for old, new in zip(found, wanted, strict=True))
        assert variation.settings(points, changed) == expected
        assert variation.frame(points, changed) == variation.frame(points, candidate)
