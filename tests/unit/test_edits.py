"""Edits: where a SEARCH text is found, when it is refused, and that writing is the inverse of reading."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace import edits
from outpace.edits import Edit, EditError

SOURCE = """int sum(const int *x, int n) {
    int total = 0;
    for (int i = 0; i < n; i++) {
        total += x[i];
    }
    return total;
}
"""

LINES = st.lists(
    st.sampled_from(["", "a", "    a", "\tb", "}", "=======", "<<<<<<< SEARCH", ">>>>>>> REPLACE", "========"])
    | st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12),
    max_size=8,
).map(tuple)


def one(search: str, replace: str) -> list[Edit]:
    return [Edit(tuple(search.split("\n")), tuple(replace.split("\n")))]


def refusal(text: str, found: list[Edit]) -> str:
    with pytest.raises(EditError) as caught:
        edits.apply(text, found)
    return str(caught.value)


def test_an_exact_match_is_replaced_and_the_rest_is_kept() -> None:
    after = edits.apply(SOURCE, one("        total += x[i];", "        total += 2 * x[i];"))
    assert after == SOURCE.replace("+= x[i]", "+= 2 * x[i]")


def test_a_match_in_the_middle_of_a_line_is_no_match() -> None:
    assert "not in the file" in refusal("int alpha_beta_gamma = first_value;\n", one("beta", "x"))


def test_later_edits_see_what_earlier_ones_wrote() -> None:
    assert edits.apply("a\n", one("a", "b") + one("b", "c")) == "c\n"


def test_an_empty_replacement_deletes_the_lines() -> None:
    assert edits.apply("a\nb\nc\n", [Edit(("b",), ())]) == "a\nc\n"


def test_several_exact_matches_are_refused_with_their_number_and_lines() -> None:
    reason = refusal("x\ny\nx\nx\n", one("x", "z"))
    assert "matches 3 places; include more lines" in reason
    assert "1, 3, 4" in reason


def test_overlapping_matches_count_as_several() -> None:
    assert "matches 2 places" in refusal("}\n}\n}\n", one("}\n}", "}"))


def test_more_lines_make_an_ambiguous_search_certain() -> None:
    assert edits.apply("x\ny\nx\nz\n", one("x\nz", "w\nz")) == "x\ny\nw\nz\n"


def test_white_space_at_line_ends_is_ignored() -> None:
    assert edits.apply("a  \nb\t\nc\n", one("a\nb ", "d")) == "d\nc\n"


def test_the_replacement_is_indented_as_the_file_is() -> None:
    found = one("total += x[i];", "if (x[i]) {\n    total += x[i];\n}")
    assert "        if (x[i]) {\n            total += x[i];\n        }\n    }\n" in edits.apply(SOURCE, found)


def test_the_replacement_is_moved_out_where_the_search_was_indented_too_far() -> None:
    found = one("        a\n            b", "        c\n            d\n    e")
    assert edits.apply("    a\n        b\n", found) == "    c\n        d\ne\n"


def test_spaces_in_the_reply_become_the_tabs_of_the_file() -> None:
    found = one("for x:\n    go()", "for y:\n    run()\n\n    stop()")
    assert edits.apply("\tfor x:\n\t\tgo()\n", found) == "\tfor y:\n\t\trun()\n\n\t\tstop()\n"


def test_the_place_of_the_same_shape_wins_over_one_indented_otherwise() -> None:
    text = "if a:\n    if b:\n    go()\nif a:\n    if b:\n        go()\n"
    found = one("  if a:\n      if b:\n          go()", "  pass")
    assert edits.apply(text, found) == "if a:\n    if b:\n    go()\npass\n"


def test_places_that_differ_in_indentation_alone_are_refused() -> None:
    assert "matches 2 places" in refusal("  go()\n    go()\n", one("go()", "stop()"))


def test_the_one_close_match_is_taken() -> None:
    found = one("    for (int i = 0; i < n; ++i) {\n        total += x[i]", "    for (;;) {\n        break;")
    assert "    for (;;) {\n        break;\n    }" in edits.apply(SOURCE, found)


def test_two_places_equally_close_are_refused() -> None:
    text = "alpha = compute(first_argument)\nmiddle\nalpha = compute(first_argument)\n"
    reason = refusal(text, one("alpha = compute(first_argumant)", "x"))
    assert "lines 1 and 3 are both like it" in reason


def test_a_rival_clearly_worse_does_not_hinder_the_closest() -> None:
    text = "alpha = compute(first_argument)\nalpha = compute(second_arg, 12)\n"
    assert edits.apply(text, one("alpha = compute(first_argumant)", "x")).startswith("x\nalpha")


def test_a_search_unlike_anything_is_refused_with_its_text_and_the_closest_line() -> None:
    reason = refusal(SOURCE, one("    while (n--) {\n        total += *x++;", "x"))
    assert "while (n--) {" in reason
    assert "closest place is line 3" in reason
    assert "for (int i = 0; i < n; i++) {" in reason


def test_a_place_less_than_85_percent_alike_is_refused() -> None:
    assert "line 1 (80% alike)" in refusal("abcdefghij\n", one("abcdefghxy", "z"))


def test_a_search_longer_than_the_file_is_refused_with_the_closest_line() -> None:
    assert "closest place is line 1" in refusal("a = 1\n", one("a = 1\nb = 2\nc = 3", "x"))


def test_an_empty_search_is_refused_unless_the_file_is_empty() -> None:
    for blank in ((), ("",), ("  ", "")):
        assert "SEARCH text is empty" in refusal("a\n", [Edit(blank, ("b",))])
        assert edits.apply("", [Edit(blank, ("b", "c"))]) == "b\nc\n"


def test_blank_lines_alone_never_count_as_close() -> None:
    assert "closest place" in refusal("\n\n", one("\n\n\nx", "y"))


def test_carriage_returns_of_the_file_are_kept_and_given_to_new_lines() -> None:
    assert edits.apply("a\r\nb\r\nc\r\n", one("b", "d\ne")) == "a\r\nd\r\ne\r\nc\r\n"


def test_a_missing_final_newline_stays_missing() -> None:
    assert edits.apply("a\nb", one("b", "c\nd")) == "a\nc\nd"


def test_form_feeds_do_not_break_lines() -> None:
    assert edits.apply("a\x0cb\u2028c\nd\n", one("d", "e")) == "a\x0cb\u2028c\ne\n"


def test_too_many_edits_are_refused() -> None:
    assert "at most 200" in refusal("a\n", one("a", "a") * 201)


def test_no_close_match_is_looked_for_beyond_the_limits() -> None:
    long_file = "".join(f"line number {i}\n" for i in range(edits.CLOSE_FILE_LINES + 1))
    assert "too many to look for" in refusal(long_file, one("line numbr 7", "x"))
    long_search = "\n".join(f"lin number {i}" for i in range(edits.CLOSE_SEARCH_LINES + 1))
    assert "too many to look for" in refusal("line number 1\n" * 500, one(long_search, "x"))


def test_work_on_inexact_edits_is_bounded() -> None:
    # Each line matches only roughly and costs a whole table of difflib; a budget ends it.
    rng = random.Random(1)
    lines = ["".join(rng.choices("ab", k=2000)) for _ in range(40)]
    found = [Edit((line[:-1] + "c",), (line,)) for line in lines]
    assert "only roughly" in refusal("\n".join(lines) + "\n", found)


def test_the_costs_of_inexact_edits_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    found = one("a", "b") + one("c", "d")
    text = "a \nc \n"
    monkeypatch.setattr(edits, "WORK", 8)
    assert edits.apply(text, found) == "b\nd\n"
    monkeypatch.setattr(edits, "WORK", 7)
    assert "edit 2 of 2: too much" in refusal(text, found)


def test_marker_rows_may_be_followed_by_spaces_and_surrounded_by_remarks() -> None:
    block = "k.c\n<<<<<<< SEARCH \na\n======= \nb\n>>>>>>> REPLACE\t\nand\n"
    block += "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n"
    assert edits.read(block) == (Edit(("a",), ("b",)), Edit((), ()))


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ("<<<<<<< SEARCH\na\n=======\nb\n", "not closed"),
        ("<<<<<<< SEARCH\na\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE\n", "open when the next begins"),
        ("<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", "0 rows"),
        ("<<<<<<< SEARCH\nTitle\n=======\n=======\nb\n>>>>>>> REPLACE\n", "2 rows"),
        ("a\n=======\nb\n>>>>>>> REPLACE\n", "outside"),
    ],
)
def test_a_malformed_block_is_refused_rather_than_guessed_at(block: str, part: str) -> None:
    with pytest.raises(EditError, match=part):
        edits.read(block)


@settings(deadline=None)
@given(st.lists(st.builds(Edit, LINES, LINES), max_size=3).map(tuple))
def test_written_edits_are_read_back_whatever_markers_they_hold(found: tuple[Edit, ...]) -> None:
    assert edits.read(edits.write(found)) == found


@settings(deadline=None)
@given(LINES, LINES, st.booleans())
def test_edits_between_two_texts_lead_from_one_to_the_other(
    old: tuple[str, ...], new: tuple[str, ...], end: bool
) -> None:
    before, after = ("\n".join(lines) + "\n" * end for lines in (old, new))
    found = edits.between(before, after)
    assert not found or edits.apply(before, found) == after


def test_a_small_change_in_a_long_file_becomes_a_small_edit() -> None:
    old = "".join(f"x{i} = {i}\n" for i in range(1000))
    (edit,) = edits.between(old, old.replace("x500 = 500", "x500 = 0"))
    assert len(edit.search) == 5


def test_repeated_surroundings_get_more_context() -> None:
    old = "".join(f"a{i}\n" + "b\n" * 7 for i in range(10))
    lines = old.split("\n")
    lines[44] = "c"
    found = edits.between(old, "\n".join(lines))
    assert found and edits.apply(old, found) == "\n".join(lines)


@settings(deadline=None)
@given(st.text("ab \t\r\n}", max_size=40), LINES, LINES)
def test_any_edit_of_any_text_is_applied_or_refused(text: str, search: tuple[str, ...], new: tuple[str, ...]) -> None:
    try:
        edits.apply(text, [Edit(search, new)])
    except EditError as error:
        assert str(error).startswith("edit 1 of 1: ")


def test_a_quoted_line_is_short_and_free_of_control_characters() -> None:
    quoted = edits.quoted("\x1b[31m\tred" + "x" * 500)
    assert quoted.isprintable()
    assert len(quoted) < 120
