"""What a reader sees of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.controls.reading import as_read, readings, reads_alike, shows


class TestShows:
    @pytest.mark.parametrize("sign", ["a", " ", "\n", "\t", "\u00e9", "\u6a21", "\u2028", "\U0001f600"])
    def test_letters_and_gaps_do(self, sign: str) -> None:
        assert shows(sign)

    @pytest.mark.parametrize(
        "sign",
        [
            "\u00ad",
            "\u200b",
            "\u200d",
            "\ufeff",
            "\u202e",
            "\ufe0f",
            "\u034f",
            "\u3164",
            "\uffa0",
            "\U000e0041",
        ],
    )
    def test_ignorable_signs_do_not(self, sign: str) -> None:
        assert not shows(sign)


class TestReadings:
    def test_plain_text_is_read_once_in_small_letters(self) -> None:
        assert list(readings("A Bc")) == [("a bc", [0, 1, 2, 3])]

    def test_a_letter_that_grows_keeps_its_place(self) -> None:
        assert list(readings("a\u00dfB\ufb01")) == [("assbfi", [0, 1, 1, 2, 3, 3])]

    def test_signs_that_do_not_show_are_read_twice(self) -> None:
        assert list(readings("a\u200b\U000e0041b")) == [("a\u200bab", [0, 1, 2, 3]), ("ab", [0, 3])]

    @given(st.text())
    def test_every_letter_comes_from_a_place_of_the_line(self, line: str) -> None:
        for letters, places in readings(line):
            assert len(letters) == len(places)
            assert places == sorted(places)
            assert set(places) <= set(range(len(line)))


class TestAlike:
    @pytest.mark.parametrize(
        "other",
        [
            "- One.\n\n- Two.",
            "- One.\r\n\r\n- Two.\r\n",
            "\ufeff- One.\n- Two.",
            "-\tOne. \u00a0- T\u200bwo. ",
        ],
    )
    def test_gaps_line_ends_and_invisible_signs_do_not_count(self, other: str) -> None:
        assert reads_alike("- One.\n\n- Two.", other)

    def test_composed_and_decomposed_letters_are_one(self) -> None:
        assert reads_alike("caf\u00e9", "cafe\u0301")

    @pytest.mark.parametrize("other", ["- one.\n\n- Two.", "- One\n\n- Two.", "- Two.\n\n- One.", ""])
    def test_words_and_signs_count(self, other: str) -> None:
        assert not reads_alike("- One.\n\n- Two.", other)

    def test_a_sign_that_does_not_show_keeps_no_accent_off(self) -> None:
        assert reads_alike("caf\u00e9", "cafe\u200b\u0301")

    @given(st.text())
    def test_reading_again_changes_nothing(self, text: str) -> None:
        assert as_read(as_read(text)) == as_read(text)
