"""Text of the bank in a wanted number of tokens."""

from __future__ import annotations

import re

import pytest

from skill_effectiveness.studies.placebo_prose import Prose, tokens_in
from tests.support.placebos import BANK, of_the_bank


def prose(use: str = "x") -> Prose:
    return Prose(BANK, bytes(32), use)


def independent(text: str) -> int:
    """Tokens by the table of controls.md section 5, counted another way."""
    return len(re.findall(r"[A-Za-z0-9_]+", text)) + len(re.sub(r"[A-Za-z0-9_\s]", "", text))


@pytest.mark.parametrize("tokens", [*range(1, 40), 500])
def test_any_number(tokens: int) -> None:
    """S7: whole pieces of the bank, of exactly this many tokens."""
    for made in (prose().sentences(tokens), prose().heading(tokens)):
        assert independent(made) == tokens_in(made) == tokens
        assert of_the_bank(made)


def test_the_same_text_for_the_same_seed_and_use() -> None:
    """S7: same bytes for the same input."""
    assert prose().sentences(200) == prose().sentences(200)
    assert prose().sentences(200) != prose("y").sentences(200)
    assert prose().sentences(200) != Prose(BANK, b"\1" * 32, "x").sentences(200)


def test_what_is_owed_is_made_up() -> None:
    """S7: what one place could not have, the next ones have."""
    made = prose()
    made.owe(-6)
    assert [tokens_in(made.sentences(size)) for size in (4, 3, 10, 5)] == [1, 1, 9, 5]
    made.owe(4)
    assert tokens_in(made.heading(1)) == 5
