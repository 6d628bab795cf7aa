"""What strangers wrote can always be shown, and nothing in it stays unseen."""

from hypothesis import given
from hypothesis import strategies as st

from outpace.shown import hides, shown


@given(st.text())
def test_whatever_is_shown_can_be_seen_and_written(text: str) -> None:
    told = shown(text)
    told.encode()
    assert told.replace("\n", "").replace("\t", "").isprintable()
    assert (hides(text) == []) == (told == text.replace("\r\n", "\n"))


def test_each_unseen_character_is_spelt_out() -> None:
    assert shown("a\x1b[31m\u202eb\u200b\r\nc\td") == "a⟨U+001B⟩[31m⟨U+202E⟩b⟨U+200B⟩\nc\td"
    assert hides("a\x1b\x1b\u2066") == ["⟨U+001B⟩", "⟨U+2066⟩"]


def test_text_in_any_script_stays_as_it_is() -> None:
    assert shown("größer, 数, שלום, 👍🏽\n") == "größer, 数, שלום, 👍🏽\n"


def test_letters_and_marks_that_draw_nothing_are_spelt_out() -> None:
    for blank in "\u034f\u115f\u1160\u17b4\u2800\u3164\ufe0f\uffa0\U000e0101":
        assert shown(f"a{blank}b") == f"a⟨U+{ord(blank):04X}⟩b"
        assert hides(f"a{blank}b") == [f"⟨U+{ord(blank):04X}⟩"]
    assert shown("é 中 한 ✓") == "é 中 한 ✓" and hides("é 中 한 ✓") == []
