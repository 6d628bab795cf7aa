"""Answers: what a reply may look like, why it is refused, and that rendering is the inverse of parsing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from outpace.answer import MAX_FILE_BYTES, Answer, Unusable, parse, render
from outpace.task import Build, Entry, Task
from outpace.task.candidate import Candidate, reference
from outpace.task.lines import has_lone_return

SOURCE = "int one(void) {\n    return 1;\n}\n"
ANALYSIS = "The loop waits for memory: every load misses the cache."
DESIGN = "Read each line once."


def make_task(files: dict[str, str], editable: tuple[str, ...] = ()) -> Task:
    return Task(
        name="t",
        description="d",
        folder=Path("t"),
        editable=editable or tuple(files),
        files={name: text.encode() for name, text in files.items()},
        entry=Entry("c", "int one(void)"),
        build=Build("cc", flags=("-O2",), flag_choices=(("-O2", "-O3"), ("", "-march=native"))),
    )


TASK = make_task({"k.c": SOURCE})
TWO = make_task({"k.c": SOURCE, "src/h.h": "#define N 4\n"})


def wrap(code: str) -> str:
    return f"## Performance Analysis\n{ANALYSIS}\n## Algorithm Design\n{DESIGN}\n## Code Implementation\n{code}"


def read(reply: str, task: Task = TASK, parents: dict[str, Candidate] | None = None) -> Answer | Unusable:
    return parse(reply, task, parents or {}, reference(task))


def accepted(reply: str, task: Task = TASK, parents: dict[str, Candidate] | None = None) -> Candidate:
    answer = read(reply, task, parents)
    assert isinstance(answer, Answer), answer
    return answer.candidate


def refused(reply: str, task: Task = TASK, parents: dict[str, Candidate] | None = None) -> str:
    answer = read(reply, task, parents)
    assert isinstance(answer, Unusable), answer
    return answer.reason


WHOLE = "### FILE: k.c\n```c\nint one(void) { return 1; }\n```\n"
EDIT = "### EDIT: k.c\n```\n<<<<<<< SEARCH\n    return 1;\n=======\n    return 2;\n>>>>>>> REPLACE\n```\n"


def test_a_whole_file_is_read_with_its_analysis_and_design() -> None:
    answer = read(wrap(WHOLE))
    assert answer == Answer(
        ANALYSIS, DESIGN, Candidate({"k.c": "int one(void) { return 1; }\n"}, ("-O2",)), reference(TASK)
    )


def test_edits_apply_to_the_default_parent() -> None:
    assert accepted(wrap(EDIT)).files["k.c"] == SOURCE.replace("1", "2")


def test_several_blocks_in_one_fence_and_several_fences_all_apply() -> None:
    blocks = "<<<<<<< SEARCH\n    return 1;\n=======\n    return 2;\n>>>>>>> REPLACE\n"
    more = "<<<<<<< SEARCH\nint one(void) {\n=======\nint one() {\n>>>>>>> REPLACE\n"
    last = "<<<<<<< SEARCH\n    return 2;\n=======\n    return 3;\n>>>>>>> REPLACE\n"
    candidate = accepted(wrap(f"### EDIT: k.c\n```\n{blocks}{more}```\nand\n```\n{last}```\n"))
    assert candidate.files["k.c"] == "int one() {\n    return 3;\n}\n"


@pytest.mark.parametrize(
    "headings",
    [
        ("# PERFORMANCE ANALYSIS", "# algorithm design", "# Code implementation"),
        ("### 1. Performance Analysis", "### 2) Algorithm Design", "### 3: Code Implementation"),
        ("**Performance Analysis**", "**Algorithm Design:**", "**Code Implementation**:"),
        ("1. **Performance Analysis**", "2. **Algorithm Design**", "3. **Code Implementation**"),
        ("## **1. Performance  Analysis** ##", "__Algorithm Design__", "  ## Code Implementation:"),
    ],
)
def test_headings_are_known_in_any_dress(headings: tuple[str, str, str]) -> None:
    answer = read(f"{headings[0]}\n{ANALYSIS}\n{headings[1]}\n{DESIGN}\n{headings[2]}\n{WHOLE}")
    assert isinstance(answer, Answer), answer
    assert (answer.analysis, answer.design) == (ANALYSIS, DESIGN)


def test_a_heading_inside_a_fence_is_text() -> None:
    answer = read(wrap(WHOLE).replace(ANALYSIS, f"{ANALYSIS}\n~~~\n## Code Implementation\n~~~"))
    assert isinstance(answer, Answer)
    assert "## Code Implementation" in answer.analysis


def test_a_draft_gives_way_to_the_answer_after_it() -> None:
    assert accepted(wrap(EDIT) + "\n" + wrap(WHOLE)).files["k.c"].startswith("int one(void) { return")


@pytest.mark.parametrize("analysis", ["", "\n \n", "too short", "a b c d e f g h i j"])
def test_a_reply_without_a_real_analysis_is_marked_so(analysis: str) -> None:
    answer = read(
        f"## Performance Analysis\n{analysis}\n## Algorithm Design\n{DESIGN}\n## Code Implementation\n{WHOLE}"
    )
    assert isinstance(answer, Unusable)
    assert answer.missing_analysis
    assert answer.design == DESIGN


def test_the_analysis_may_be_left_out_where_it_is_not_required() -> None:
    answer = parse(f"## Code Implementation\n{WHOLE}", TASK, {}, reference(TASK), require_analysis=False)
    assert isinstance(answer, Answer)


def test_an_unusable_reply_keeps_its_analysis_and_design() -> None:
    answer = read(wrap("nothing here"))
    assert isinstance(answer, Unusable)
    assert (answer.analysis, answer.design, answer.missing_analysis) == (ANALYSIS, DESIGN, False)


def test_a_lone_block_is_the_one_editable_file() -> None:
    assert accepted(wrap("```c\nint x;\n```\n")).files == {"k.c": "int x;\n"}


def test_a_lone_block_of_edits_is_applied() -> None:
    assert accepted(wrap(EDIT.split("\n", 1)[1])).files["k.c"] == SOURCE.replace("1", "2")


def test_a_lone_block_is_refused_where_several_files_are_editable() -> None:
    assert "### FILE: name" in refused(wrap("```c\nint x;\n```\n"), TWO)


def test_two_unnamed_blocks_are_refused() -> None:
    assert "2 code blocks" in refused(wrap("```c\nint x;\n```\n```c\nint y;\n```\n"))


def test_files_not_mentioned_stay_as_the_parent_has_them() -> None:
    candidate = accepted(wrap("### FILE: ./src/h.h\n```\n#define N 8\n```\n"), TWO)
    assert candidate.files == {"k.c": SOURCE, "src/h.h": "#define N 8\n"}


@pytest.mark.parametrize(
    "label", ["**FILE: k.c**", "FILE: k.c", "### File: `k.c`", "#### FILE: ./k.c:", "**FILE:** `k.c`"]
)
def test_file_lines_are_known_in_any_dress(label: str) -> None:
    assert accepted(wrap(f"{label}\n\n```c\nint x;\n```\n"), TWO).files["k.c"] == "int x;\n"


@pytest.mark.parametrize("path", ["../k.c", "/etc/passwd", "src/../k.c"])
def test_paths_that_leave_the_folder_are_refused(path: str) -> None:
    assert "leaves the task's folder" in refused(wrap(f"### FILE: {path}\n```\nx\n```\n"))


@pytest.mark.parametrize("kind", ["FILE", "EDIT"])
def test_a_file_that_is_not_editable_is_refused(kind: str) -> None:
    task = make_task({"k.c": SOURCE, "main.c": "int main;\n"}, editable=("k.c",))
    assert "main.c may not be edited" in refused(wrap(f"### {kind}: main.c\n```\nx\n```\n"), task)


def test_a_change_outside_the_editable_region_is_refused() -> None:
    task = make_task({"k.c": "int fixed;\n// outpace: begin\nint x;\n// outpace: end\n"})
    assert "changed outside" in refused(wrap("```c\nint x;\n```\n"), task)


@pytest.mark.parametrize(
    ("opening", "closing"), [("````c", "````"), ("~~~c", "~~~"), ("`````", "```````"), ("  ````", " ````  ")]
)
def test_longer_and_other_fences_are_respected(opening: str, closing: str) -> None:
    text = "/*\n```\nfoo\n```\n*/\n"
    assert accepted(wrap(f"### FILE: k.c\n{opening}\n{text}{closing}\n")).files["k.c"] == text


def test_code_quoted_within_a_line_opens_no_fence() -> None:
    assert accepted(wrap(f"```gcc k.c``` builds it.\n{WHOLE}")) == accepted(wrap(WHOLE))


def test_an_indented_fence_takes_its_indentation_off_the_code() -> None:
    assert accepted(wrap("  ```c\n  int x;\n    int y;\n int z;\n  ```\n")).files["k.c"] == "int x;\n  int y;\nint z;\n"


def test_a_code_block_that_is_never_closed_is_refused() -> None:
    assert "never closed" in refused(wrap("### FILE: k.c\n```c\nint x;\n"))
    assert "line 3 of the reply is never closed" in refused(wrap(WHOLE).replace("## Algorithm", "~~~\n## Algorithm"))


def test_windows_line_ends_in_the_reply_are_normalised() -> None:
    assert accepted(wrap(WHOLE).replace("\n", "\r\n")) == accepted(wrap(WHOLE))


def test_edits_keep_the_windows_line_ends_of_the_file() -> None:
    task = make_task({"k.c": SOURCE.replace("\n", "\r\n")})
    assert accepted(wrap(EDIT), task).files["k.c"] == SOURCE.replace("1", "2").replace("\n", "\r\n")


def test_flags_replace_those_of_the_parent() -> None:
    assert accepted(wrap("FLAGS: -O3 -march=native\n" + WHOLE)).flags == ("-O3", "-march=native")
    assert accepted(wrap("FLAGS: '' -O3 \"\"\n" + WHOLE)).flags == ("-O3",)
    assert accepted(wrap("**FLAGS:** `-O3`\n" + WHOLE)).flags == ("-O3",)


def test_flags_alone_are_an_answer() -> None:
    assert accepted(wrap("FLAGS: -O3\n")) == Candidate({"k.c": SOURCE}, ("-O3",))


@pytest.mark.parametrize("flags", ["-Ofast", "-O2 -O3", "'-O3", "-O3 " * 2000])
def test_flags_that_are_not_allowed_are_refused(flags: str) -> None:
    assert "flag" in refused(wrap(f"FLAGS: {flags}\n{WHOLE}")).lower()


def test_edits_start_from_the_parent_that_is_named() -> None:
    other = Candidate({"k.c": SOURCE.replace("one", "uno")}, ("-O3",))
    candidate = accepted(wrap(f"PARENT: {other.hash[:6]}\n{EDIT}"), parents={other.hash: other})
    assert candidate == Candidate({"k.c": SOURCE.replace("one", "uno").replace("1", "2")}, ("-O3",))


def test_a_parent_must_be_one_of_those_shown() -> None:
    known = {f"abcdef{digit}" + "0" * 57: reference(TASK) for digit in "01"}
    assert "is not among the candidates shown" in refused(wrap(f"PARENT: 123456\n{EDIT}"), parents=known)
    assert "names 2 of the candidates shown" in refused(wrap(f"PARENT: abcdef\n{EDIT}"), parents=known)
    assert "too short" in refused(wrap(f"PARENT: abcde\n{EDIT}"), parents=known)


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (SOURCE, f"### FILE: k.c\n```c\n{SOURCE}```\n"),
        (SOURCE.replace("\n", "\r\n"), f"### FILE: k.c\n```c\n{SOURCE}```\n"),
        (SOURCE.rstrip(), f"### FILE: k.c\n```c\n{SOURCE}```\n"),
        (SOURCE, EDIT.replace("2", "1")),
        (SOURCE, "FLAGS: -O2\n"),
    ],
)
def test_an_answer_identical_to_its_parent_is_refused(source: str, code: str) -> None:
    assert "changes nothing" in refused(wrap(code), make_task({"k.c": source}))


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("", "no code block"),
        ("### FILE: k.c\nint x;\n", "not followed by a code block"),
        ("### FILE:\n```\nint x;\n```\n", "without its name"),
        (WHOLE + EDIT, "both whole and as edits"),
        (WHOLE + WHOLE.replace("1", "2"), "given 2 times"),
        ("### EDIT: k.c\n```\nint x;\n```\n", "no '<<<<<<< SEARCH' row"),
        (EDIT.replace("=======\n", ""), "k.c: a SEARCH block holds 0 rows"),
        (
            EDIT.replace("    return 1;", "something else entirely"),
            "k.c: edit 1 of 1: the SEARCH text is not in",
        ),
        (EDIT.replace("    return 1;\n", ""), "SEARCH text is empty"),
    ],
)
def test_code_that_cannot_be_read_is_refused_with_the_reason(code: str, part: str) -> None:
    assert part in refused(wrap(code))


def test_a_missing_code_section_is_named() -> None:
    assert "'## Code Implementation' is missing" in refused(f"## Performance Analysis\n{ANALYSIS}\n{WHOLE}")


def test_the_same_file_given_twice_alike_is_accepted() -> None:
    assert accepted(wrap(WHOLE + WHOLE)) == accepted(wrap(WHOLE))


def test_a_file_over_the_limit_is_refused_by_its_bytes() -> None:
    # Two bytes each in UTF-8, so that characters alone stay under the limit.
    assert "bytes" in refused(wrap("### FILE: k.c\n```\n" + "é" * (MAX_FILE_BYTES // 2) + "\n```\n"))
    assert accepted(wrap("### FILE: k.c\n```\n" + "x" * (MAX_FILE_BYTES - 1) + "\n```\n"))


def test_lone_surrogates_become_text_that_can_be_stored() -> None:
    candidate = accepted(wrap("### FILE: k.c\n```\n// \ud83d\n```\n"))
    assert candidate.files["k.c"] == "// \ufffd\n"
    assert candidate.hash


def test_a_reason_is_printable_and_short() -> None:
    reason = refused(wrap("FLAGS: \x1b[31m" + "x" * 3900 + "\n"))
    assert reason.isprintable()
    assert len(reason) < 3100


CANDIDATE_TEXT = st.lists(
    st.sampled_from(
        [
            *(
                "```",
                "````c",
                "~~~",
                "    ```",
                "<<<<<<< SEARCH",
                "=======",
                ">>>>>>> REPLACE",
                "<<<<<<<< SEARCH",
            ),
            *(
                "## Code Implementation",
                "### FILE: k.c",
                "FLAGS: -O3",
                "PARENT: abcdef",
                "x\\",
                "\\r",
                "\\\\",
                "a\r",
            ),
            *("\r", "", " ", "int x;", "    int x;", "}", "\x0c", "\u2028", "\x85"),
        ]
    )
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    max_size=10,
).flatmap(lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines)))


@settings(deadline=None)
@given(
    *[CANDIDATE_TEXT] * 4,
    st.sampled_from([(), ("-O2",), ("-O3",), ("-O2", "-march=native")]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | CANDIDATE_TEXT,
    st.booleans(),
    st.booleans(),
)
def test_a_rendered_candidate_is_parsed_back(
    k: str, h: str, old_k: str, old_h: str, flags: tuple[str, ...], prose: str, with_parent: bool, shown: bool
) -> None:
    candidate = Candidate({"k.c": k, "src/h.h": h}, flags)
    parent = Candidate({"k.c": old_k, "src/h.h": old_h}, ("-O2",))
    assume(candidate != parent)
    other = Candidate({"k.c": "int other;\n", "src/h.h": ""}, ())
    reply = render(candidate, parent if with_parent else None, f"{ANALYSIS}\n{prose}", prose)
    # Regions are not what is tested here: the task's own text is free of them.
    answer = (
        parse(reply, TWO, {parent.hash: parent}, other)
        if with_parent and shown
        else parse(reply, TWO, {}, parent if with_parent else other)
    )
    assume(with_parent or candidate != other)
    if has_lone_return(k) or has_lone_return(h):
        assert isinstance(answer, Unusable)
        return
    assert isinstance(answer, Answer), (answer, reply)
    assert answer.candidate == candidate
    assert answer.candidate.hash == candidate.hash


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SOURCE, SOURCE.replace("\n", "\r\n")),
        (SOURCE.replace("\n", "\r\n"), SOURCE),
        (SOURCE, SOURCE.rstrip()),
        (SOURCE.rstrip(), SOURCE),
        (SOURCE, ""),
        ("", SOURCE),
        ("a\r\nb\n", "a\nb\r\nc"),
        ("=======\nTitle\n=======\n", "=======\nOther\n=======\n"),
    ],
)
def test_a_change_of_line_ends_or_markers_survives_rendering(old: str, new: str) -> None:
    parent, candidate = Candidate({"k.c": old}, ("-O2",)), Candidate({"k.c": new}, ("-O2",))
    answer = parse(render(candidate, parent, ANALYSIS, DESIGN), TASK, {}, parent)
    assert answer == Answer(ANALYSIS, DESIGN, candidate, parent)


def test_headings_and_fences_in_rendered_prose_do_not_divide_the_reply() -> None:
    candidate = Candidate({"k.c": "int x;\n"}, ("-O2",))
    analysis = f"{ANALYSIS}\n## Algorithm Design\n```"
    answer = read(render(candidate, None, analysis, "## Performance Analysis\n~~~"))
    assert answer == Answer(
        f"{ANALYSIS}\n\\## Algorithm Design\n\\```", "\\## Performance Analysis\n\\~~~", candidate, reference(TASK)
    )


def test_rendering_against_a_parent_shows_the_change_and_not_the_file() -> None:
    old = "".join(f"int x{i};\n" for i in range(200))
    parent = Candidate({"k.c": old}, ("-O2",))
    reply = render(replace(parent, files={"k.c": old.replace("x100;", "y;")}), parent, ANALYSIS, DESIGN)
    assert "### EDIT: k.c" in reply
    assert "int y;" in reply
    assert "int x1;" not in reply


def test_ordinary_sources_are_rendered_without_escapes() -> None:
    reply = render(Candidate({"k.c": 'char *s = "a\\n";\n'}), None, ANALYSIS, DESIGN)
    assert '```c\nchar *s = "a\\n";\n```\n' in reply


PIECES = st.sampled_from(
    [
        *(
            "## Performance Analysis\n",
            ANALYSIS + "\n",
            "## Code Implementation\n",
            "### FILE: k.c\n",
            "\ud800",
        ),
        *(
            "### EDIT: k.c\n",
            "```\n",
            "````\n",
            "~~~\n",
            "<<<<<<< SEARCH\n",
            "=======\n",
            ">>>>>>> REPLACE\n",
        ),
        *("    return 1;\n", "return 1;\n", "retrn 1;\n", "int one(void) {\n", "FLAGS: -O3\n", "FLAGS: '\n"),
        *(
            "PARENT: aaaaaaaa\n",
            "PARENT:\n",
            "FILE:\n",
            "EDIT: ..\n",
            "### FILE: \0\n",
            "\r",
            "\r\n",
            "``` escaped\n",
            "\\",
        ),
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES | st.text(max_size=20), max_size=30).map("".join), st.booleans())
def test_no_text_makes_parsing_raise(reply: str, require: bool) -> None:
    answer = parse(reply, TASK, {"aaaaaaaa": reference(TASK)}, reference(TASK), require_analysis=require)
    if isinstance(answer, Answer):
        assert len(answer.candidate.hash) == 64
    else:
        assert answer.reason.replace("\n", "").isprintable()
