"""The three counts and the tolerance: known answers, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.controls.documents import ScopeContents
from skill_effectiveness.controls.structure import counts, measure_scope, within_tolerance
from skill_effectiveness.protocol.registries import Scope
from tests.support.controls import text_hash

KNOWN = "- Inspect scope carefully.\n- State assumptions clearly.\n\n- Verify evidence before reporting."


def three(text: str) -> tuple[int, int, int]:
    found = counts(text)
    return found.paragraph_count, found.instruction_count, found.token_count


class TestCounts:
    def test_the_known_answer(self) -> None:
        """A10: two paragraphs, three instructions, sixteen tokens."""
        assert three(KNOWN) == (2, 3, 16)

    @given(st.text(alphabet="a- \t\r\n1.\u3000é", max_size=40))
    def test_line_ends_count_alike(self, text: str) -> None:
        """A10: LF, CRLF and CR."""
        plain = text.replace("\r", "")
        assert three(plain.replace("\n", "\r\n")) == three(plain) == three(plain.replace("\n", "\r"))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", 0),
            (" \n\t\n", 0),
            ("a", 1),
            ("\n\na\n\n\n \t \nb\n", 2),
            ("a\nb", 1),
            # Only spaces and tabs make a line blank.
            ("a\n\u00a0\nb", 1),
        ],
    )
    def test_paragraphs(self, text: str, expected: int) -> None:
        """A10: blocks between blank lines."""
        assert counts(text).paragraph_count == expected

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("- a", 1),
            ("* a", 1),
            ("+\ta", 1),
            (" \t12) a", 1),
            ("3. a", 1),
            ("-a", 0),
            ("- ", 0),
            ("-", 0),
            ("a. b", 0),
            ("1: a", 0),
            ("٣. a", 0),
            ("\u00a0- a", 0),
            ("x - a", 0),
            ("- a\n  1. b\n* c", 3),
        ],
    )
    def test_instructions(self, line: str, expected: int) -> None:
        """A10: lines that are list items."""
        assert counts(line).instruction_count == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("foo_bar9 baz", 2),
            ("a-b", 3),
            # Each code point of another script counts, and so does each sign.
            ("検証する", 4),
            ("naïve", 3),
            ("e\u0301", 2),
            ("a\u3000b\u00a0c", 3),
            ("\U0001f600!", 2),
        ],
    )
    def test_tokens(self, text: str, expected: int) -> None:
        """A10: ASCII runs, and each other code point alone."""
        assert counts(text).token_count == expected


class TestTolerance:
    @pytest.mark.parametrize(
        ("owner", "selected", "expected"),
        [
            (20, 17, False),
            (20, 18, True),
            (20, 22, True),
            (20, 23, False),
            (0, 0, False),
            (0, 1, False),
            (1, 1, True),
            (1, 0, False),
            (9, 10, False),
            (10, 9, True),
            (10, 11, True),
            (10**9, 9 * 10**8, True),
            (10**9, 9 * 10**8 - 1, False),
        ],
    )
    def test_a_tenth_both_ends_included(self, owner: int, selected: int, expected: bool) -> None:  # noqa: FBT001 - a table
        """A10: in whole numbers; an owner without any fails."""
        assert within_tolerance(owner, selected) is expected


def test_one_count_out_of_three_fails_the_scope() -> None:
    """A10: all three must hold; what is written are counts and digests."""
    owner = ScopeContents(subagent=KNOWN, main=KNOWN)
    # One list item less, the same paragraphs and tokens.
    selected = ScopeContents(subagent=KNOWN.replace("- State", "; State"), main=KNOWN)
    found = measure_scope(selected, owner, Scope.SUBAGENT)
    assert found.model_dump(mode="json") == {
        "selected_scope_content_hash": text_hash(selected.subagent),
        "owner_scope_content_hash": text_hash(KNOWN),
        "selected": {"paragraph_count": 2, "instruction_count": 2, "token_count": 16},
        "owner": {"paragraph_count": 2, "instruction_count": 3, "token_count": 16},
        "checks": {"paragraph_count": True, "instruction_count": False, "token_count": True},
        "status": "fail",
    }
    assert measure_scope(selected, owner, Scope.MAIN).status == "pass"
