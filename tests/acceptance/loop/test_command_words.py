"""Words without a shell: what splits, what is refused, where the prompt goes."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.acceptance.loop.command_words import demand_prompt_word, split_words, with_prompt
from skill_effectiveness.acceptance.loop.errors import LoopRefusedError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("npm test", ("npm", "test")),
        ("  a\tb  ", ("a", "b")),
        ("'a b' \"c d\" e\\ f", ("a b", "c d", "e f")),
        ("a'|'b \"&;\" '<>'", ("a|b", "&;", "<>")),
        ("''", ("",)),
        ('"\\$x \\" \\n"', ('$x " \\n',)),
        ("$HOME *", ("$HOME", "*")),
    ],
)
def test_words(text: str, words: tuple[str, ...]) -> None:
    """L15 L16: quoting as POSIX has it; nothing is expanded."""
    assert split_words(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "a | b",
        "a && b",
        "a; b",
        "a > b",
        "a < b",
        "(a)",
        "a\nb",
        "a `b`",
        '"`b`"',
        "$(a)",
        "'a",
        '"a',
        "a\\",
        " ",
    ],
)
def test_refused(text: str) -> None:
    """L16: an unquoted operator of a shell, an open quote, nothing at all."""
    with pytest.raises(LoopRefusedError):
        split_words(text)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_what_is_quoted_comes_back(words: list[str]) -> None:
    """L16: whatever another library quotes, word by word."""
    assert split_words(shlex.join(words)) == tuple(words)


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("codex", ["exec"]),
        ("codex", ["{{prompt}}", "{{prompt}}"]),
        ("codex", ["-p={{prompt}}"]),
        ("codex", ["{{prompt}}", "x{{prompt}}"]),
        ("{{prompt}}", ["{{prompt}}"]),
        (" ", ["{{prompt}}"]),
        ("a\0b", ["{{prompt}}"]),
    ],
)
def test_bad_places_for_the_prompt(command: str, args: list[str]) -> None:
    """L14: none, two, or a part of a longer word."""
    with pytest.raises(LoopRefusedError):
        demand_prompt_word(command, args)


def test_the_prompt_is_one_word() -> None:
    """L14 L15: whatever it holds."""
    demand_prompt_word("codex", ["exec", "{{prompt}}"])
    assert with_prompt(["exec", "{{prompt}}"], "a 'b' $(c)\n") == ("exec", "a 'b' $(c)\n")
