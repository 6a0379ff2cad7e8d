"""Words that would tell a selector what it must not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.controls.candidates import check_candidates, freeze_candidate
from skill_effectiveness.controls.documents import ScopeContents
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.reserved_words import ReservedWord, reserved_words
from tests.support.controls import TEXTS, brief, candidate, constraints, contents

if TYPE_CHECKING:
    from collections.abc import Callable

ANYWHERE = [
    "ccl-skills:",
    "agents.md",
    "session-start.md",
    "held-out",
    "held_out",
    "grader_truth",
    "expected_output",
    "ccl_layer",
    "controller_state",
    "generation_evidence",
]
WHOLE = ["provenance", "provider", "model", "author", "commitment", "attestation"]


def found(text: str) -> list[ReservedWord]:
    return list(reserved_words(text))


class TestWords:
    @pytest.mark.parametrize("word", ANYWHERE)
    def test_some_count_anywhere(self, word: str) -> None:
        """A3: inside of other text and in any case."""
        for text in (word, f"xx{word}yy", word.upper(), word.title()):
            assert [hit.word for hit in found(text)] == [word]

    @pytest.mark.parametrize("word", WHOLE)
    def test_others_count_as_whole_words(self, word: str) -> None:
        """A3: between spaces, signs, underscores and line ends, in any case."""
        for text in (word, f"The {word}.", f"({word})", f"my_{word}_x", word.upper(), f"a\n{word}\nb"):
            assert [hit.word for hit in found(text)] == [word]
        for text in (f"{word}ing", f"re{word}", f"{word}9", f"9{word}", f"é{word}", f"{word}s"):
            assert found(text) == []

    @pytest.mark.parametrize("text", ["remodel", "authority", "providers", "heldout", "agents, md", ""])
    def test_words_that_pass(self, text: str) -> None:
        """A3: longer words that hold a whole-word one."""
        assert found(text) == []

    def test_line_and_column_count_the_text_as_it_was_written(self) -> None:
        """A3: also after letters that folding makes longer."""
        assert found("a\nßß the MODEL\r\nAGENTS.md") == [
            ReservedWord(2, 8, "model"),
            ReservedWord(3, 1, "agents.md"),
        ]

    def test_letters_that_fold_into_a_word_are_found(self) -> None:
        """A3: a long s folds into s."""
        assert found("agent\u017f.md") == [ReservedWord(1, 1, "agents.md")]

    @pytest.mark.parametrize(
        "text",
        [
            "mo\u200bdel",  # zero width space
            "\ufeffmodel",  # byte order mark
            "mod\u00adel",  # soft hyphen
            "m\u2060o\u200cd\u200de\u202el",
            "mode\ufe0fl",  # variation selector
            "\uff2d\uff4f\uff44\uff45\uff4c",  # wide
            "\U0001d426\U0001d428\U0001d41d\U0001d41e\U0001d425",  # mathematical bold
            "m\u043edel",  # Cyrillic o
            "\u039cODEL",  # Greek capital mu
            "\U000e006d\U000e006f\U000e0064\U000e0065\U000e006c",  # tags, which show nothing at all
        ],
    )
    def test_words_in_disguise_are_found(self, text: str) -> None:
        """A3: a reader takes them for the word."""
        assert found(f"It is a {text} of it") == [ReservedWord(1, 10 if text[0] == "\ufeff" else 9, "model")]

    @pytest.mark.parametrize(
        "text", ["the\u200bmodel", "\u200bmodel\u200b", "(\u00admodel)", "re\u200bmodel"]
    )
    def test_what_does_not_show_may_also_part_words(self, text: str) -> None:
        """A3: a gap to some readers; each find is told once."""
        assert found(text) == [ReservedWord(1, text.index("m") + 1, "model")]

    @pytest.mark.parametrize("sign", ["\u2010", "\u2011", "\u2013", "\u2212", "\uff0d"])
    def test_any_hyphen_joins(self, sign: str) -> None:
        """A3: as texts spell it that a word processor wrote."""
        assert found(f"held{sign}out") == [ReservedWord(1, 1, "held-out")]

    @pytest.mark.parametrize(
        "text",
        [
            "\u043c\u043e\u0434\u0435\u043b\u044c",  # the Russian word for a model
            "\u03b1\u03c5\u03c4\u03cc\u03c2",
            "\u6a21\u578b",
            "mod\u00e8le",
            "auth\u200bo\u200brity",
            "pro\u00advider\u00ads",
        ],
    )
    def test_other_scripts_and_longer_words_pass(self, text: str) -> None:
        """A3: words of other languages, and hyphenated longer ones."""
        assert found(text) == []


def in_subagent(word: str) -> None:
    texts = ScopeContents(subagent=f"{TEXTS['one']}\n{word}", main=TEXTS["one-main"])
    freeze_candidate(brief(), texts, commitment=b"c", attestation=b"a")


def in_main(word: str) -> None:
    texts = ScopeContents(subagent=TEXTS["one"], main=f"{TEXTS['one-main']}\n{word}")
    freeze_candidate(brief(), texts, commitment=b"c", attestation=b"a")


def in_brief(word: str) -> None:
    asked = brief(instruction=f"Write it.\n{word}")
    freeze_candidate(asked, contents("one"), commitment=b"c", attestation=b"a")


class TestRefusal:
    @pytest.mark.parametrize("word", [*ANYWHERE, *WHOLE])
    @pytest.mark.parametrize(
        ("place", "where", "line"),
        [
            (in_subagent, "candidate#/scope_contents/subagent", 5),
            (in_main, "candidate#/scope_contents/main", 5),
            (in_brief, "brief#/instruction", 2),
        ],
    )
    def test_it_names_scope_line_column_and_word(
        self, place: Callable[[str], None], where: str, line: int, word: str
    ) -> None:
        """A3: every word, in each scope and in the brief."""
        with pytest.raises(ControlError) as caught:
            place(f"The {word} it is")
        assert (caught.value.code, caught.value.where) == (ControlCode.RESERVED_WORD, where)
        assert f"line {line}, column 5 holds the reserved word '{word}'" in caught.value.sentence

    def test_candidates_made_elsewhere_are_read_again(self) -> None:
        """A3: a word that came past freezing is found at the preparation."""
        made = candidate("one")
        texts = ScopeContents(subagent=f"{TEXTS['one']} held-out", main=TEXTS["one-main"])
        sneaked = made.model_copy(update={"scope_contents": texts})
        with pytest.raises(ControlError) as caught:
            check_candidates(brief(), constraints(), [sneaked, candidate("two")])
        assert caught.value.where == "candidate 1#/scope_contents/subagent"
