"""What strangers wrote can always be shown, and nothing in it stays unseen."""

from hypothesis import given
from hypothesis import strategies as st

from outpace.shown import hides, set_off, shown, shown_text, told_after


@given(st.text())
def test_whatever_is_shown_can_be_seen_and_written(text: str) -> None:
    told = shown_text(text)
    told.encode()
    assert told.replace("\n", "").replace("\t", "").isprintable()
    assert (hides(text) == []) == (told == text.replace("\r\n", "\n"))


@given(st.text(st.characters() | st.sampled_from("\n\r\x85\u2028 \t;")))
def test_no_line_of_a_stranger_is_taken_for_one_of_ours(text: str) -> None:
    assert len(shown(text).splitlines()) <= 1
    assert all(line.startswith("  |") for line in set_off(text).splitlines())
    first, *others = told_after("ours:", text).splitlines()
    assert first.startswith("ours:") and all(line.startswith("  |") for line in others)
    assert not others or first == "ours:"


def test_an_error_of_several_lines_can_still_be_read() -> None:
    assert told_after("crashed:", "SIGSEGV\n") == "crashed: SIGSEGV"
    assert told_after("build_failed:", "a.c:1: error\n  1 | x\n\n    ^\n") == (
        "build_failed:\n  | a.c:1: error\n  |   1 | x\n  |\n  |     ^"
    )
    assert shown("a.c:1: error;\n\n  red\n") == "a.c:1: error; red"


def test_each_unseen_character_is_spelt_out() -> None:
    assert shown_text("a\x1b[31m\u202eb\u200b\r\nc\td") == "a⟨U+001B⟩[31m⟨U+202E⟩b⟨U+200B⟩\nc\td"
    assert hides("a\x1b\x1b\u2066") == ["⟨U+001B⟩", "⟨U+2066⟩"]


def test_text_in_any_script_stays_as_it_is() -> None:
    assert shown_text("größer, 数, שלום, 👍🏽\n") == "größer, 数, שלום, 👍🏽\n"


def test_letters_and_marks_that_draw_nothing_are_spelt_out() -> None:
    for blank in "\u034f\u115f\u1160\u17b4\u2800\u3164\ufe0f\uffa0\U000e0101":
        assert shown(f"a{blank}b") == f"a⟨U+{ord(blank):04X}⟩b"
        assert hides(f"a{blank}b") == [f"⟨U+{ord(blank):04X}⟩"]
    assert shown("é 中 한 ✓") == "é 中 한 ✓" and hides("é 中 한 ✓") == []
