"""What a text looks like to a reader, and where in it that stands."""

from __future__ import annotations

import html
import time
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.trials.readings import cased, folded, readings

NAME = "profile-full"
# Where a terminal's escape sequence may begin.
SEQUENCES = "\x1b\x9b"

DISGUISES = {
    "capitals": "PROFILE-Full",
    "full width": "ｐｒｏｆｉｌｅ－ｆｕｌｌ",  # noqa: RUF001 - the disguise
    "mathematical": "\U0001d4c5\U0001d4c7ℴ\U0001d4bb\U0001d4be\U0001d4c1ℯ-full",  # noqa: RUF001 - likewise
    "ligature": "pro\ufb01le-full",
    "accents, composed": "pr\u00f3f\u00efl\u00e9-full",
    "accents, apart": "pro\u0301fi\u0308le\u0301-full",
    "struck through": "p\u0336r\u0336ofile-full",
    "cyrillic": "\u0440r\u043efil\u0435-full",
    "greek": "\u03c1r\u03bffile-full",
    "strokes": "pr\u00f8f\u0268\u0142e-ful\u0142",
    "hooks": "p\u027eo\u0192ile-full",
    "lisu": "\ua4d1\ua4e3\ua4f3\ua4dd\ua4f2\ua4e1\ua4f0-full",
    "cherokee": "\u13e2rofi\u13dee-full",
    "outlined": "".join(chr(0x1CCD6 + ord(letter) - ord("A")) for letter in "PROFILE") + "-full",
    "dash": "profile\u2013full",
    "bullet": "profile\u2043full",
    "double hyphen": "profile\u30a0full",
    "no-break hyphen": "profile\u2011full",
    "zero width": "pro\u200bfi\u200cle\u200d-\u2060full\ufeff",
    "soft hyphen": "pro\u00adfile-full",
    "bidirectional": "\u202eprofile\u202c-full",
    "tags": "profile\U000e0061-full",
    "variation selector": "p\ufe0frofile-full",
    "filler": "pro\u3164file-full",
    "control": "pro\x00file\x08-full",
    "colour": "\x1b[31mprofile\x1b[0m-full",
    "small capitals": "\u1d18\u0280\u1d0f\u0493\u026a\u029f\u1d07-\ua730\u1d1c\u029f\u029f",
    "discs": "\U0001f15f\U0001f161\U0001f15e\U0001f155\U0001f158\U0001f15b\U0001f154-full",
    "squares": "profile-\U0001f175\U0001f184\U0001f17b\U0001f17b",
    "halves of flags": "\U0001f1f5\U0001f1f7\U0001f1f4\U0001f1eb\U0001f1ee\U0001f1f1\U0001f1ea-full",
}

ESCAPED = {
    "percent": "%70rofile%2Dfull",
    "percent, all": "".join(f"%{byte:02X}" for byte in NAME.encode()),
    "decimal entity": "&#112;rofile&#45;full",
    "hex entity": "&#x70;rofile-full",
    "named entity": "profile&hyphen;full",
    "entity in entity": "&amp;#112;rofile-full",
    "backslash u": "\\u0070rofile-full",
    "backslash x": "\\x70rofile-full",
    "backslash U": "\\U00000070rofile-full",
    "braces": "\\u{70}rofile-full",
}


class TestDisguises:
    @pytest.mark.parametrize("name", DISGUISES)
    def test_looks_like_what_it_looks_like(self, name: str) -> None:
        """T32: no disguise by other characters changes the first reading."""
        assert folded(DISGUISES[name]) == NAME

    @pytest.mark.parametrize("name", ESCAPED)
    def test_escapes_are_decoded(self, name: str) -> None:
        """T32: the decoded reading is what the escapes stand for."""
        assert readings(ESCAPED[name])[2].folded == NAME

    def test_three_deep(self) -> None:
        """T32: escapes of escapes, up to three."""
        text = "\u00e9-full"
        for _ in range(3):
            text = quote(text)
        assert readings(text)[2].folded == "e-full"
        assert readings(quote(text))[2].folded != "e-full"

    def test_invisible_characters_may_be_spaces(self) -> None:
        """T32: the second reading takes them as white space."""
        first, second, *_ = readings("always\u200bwrite\u200btests")
        assert (first.folded, second.folded) == ("alwayswritetests", "always write tests")

    def test_tag_characters_are_shown(self) -> None:
        """T32: they spell what a model reads and nobody sees; in the other readings they are nothing."""
        hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "%70rofile-full")
        text = f"Done.{hidden}"
        *others, shown = readings(text)
        assert [reading.folded for reading in others] == ["done.", "done." + " " * len(hidden)] * 2
        assert shown.folded == "done.profile-full"
        at = shown.folded.index(NAME)
        assert shown.span(at, at + len(NAME)) == (5, len(hidden))

    def test_escaped_white_space_separates(self) -> None:
        """T32: JSON within a text does not glue words together."""
        assert readings("always\\nwrite\\ttests")[2].folded == "always write tests"

    @given(st.text(st.characters(exclude_characters=SEQUENCES)))
    def test_normal_forms_read_alike(self, text: str) -> None:
        """T32: composed and decomposed forms have one reading.

        Not so behind the start of a terminal's escape sequence, which a decomposed letter may end.
        """
        for form in ("NFC", "NFD"):
            assert folded(unicodedata.normalize(form, text)) == folded(text)

    @given(st.text())
    def test_case_and_no_case_are_one_for_one(self, text: str) -> None:
        for reading in readings(text):
            assert len(reading.folded) == len(reading.cased) == len(reading.starts) == len(reading.ends)

    def test_case_is_kept_beside(self) -> None:
        assert cased("S1 \u0405\uff11") == "S1 S1"

    def test_a_letter_that_folds_to_two(self) -> None:
        only = readings("Stra\u00dfe")[0]
        assert (only.folded, only.cased) == ("strasse", "Stra\u00df\u00dfe")


class TestPlaces:
    @pytest.mark.parametrize("disguised", [*DISGUISES.values(), *ESCAPED.values()])
    def test_a_name_stands_where_it_stands(self, disguised: str) -> None:
        """T33: offset and length are those of the text as it was given, disguise and all."""
        text = f"before {disguised} after"
        found = 0
        for reading in readings(text):
            at = reading.folded.find(NAME)
            if at >= 0:
                found += 1
                offset, length = reading.span(at, at + len(NAME))
                assert text[offset : offset + length].strip("\ufeff\x1b[0m31") in disguised
                assert readings(text[offset : offset + length])[2].folded == NAME
        assert found

    def test_plain_text_stands_for_itself(self) -> None:
        only, *others = readings("Plain\ttext\n")
        assert only.folded == "plain\ttext\n"
        assert only.span(0, 5) == (0, 5)
        assert all(other is only for other in others)

    @given(st.text(st.characters(codec="ascii")))
    def test_html_escapes_of_plain_text(self, text: str) -> None:
        """T32: what HTML makes of a text reads as the text does."""
        plain = text.replace("\\", "").replace("%", "").replace("&", "")
        assert readings(html.escape(plain))[2].folded == readings(plain)[2].folded


def test_effort_is_linear() -> None:
    """T32: four times the text takes about four times as long, nested escapes included."""

    def seconds(size: int) -> float:
        text = "&amp;" * size + "\u00e9%25" * size + "\x1b[" * size
        began = time.process_time()
        readings(text)
        return time.process_time() - began

    seconds(1_000)
    assert seconds(40_000) < 16 * max(seconds(10_000), 0.005)
