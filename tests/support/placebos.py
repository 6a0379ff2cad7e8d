"""The words a generated placebo may hold."""

from __future__ import annotations

import re

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.placebo_sentences import load_placebo_sentences

BANK = load_placebo_sentences(RealFs())
WORDS = frozenset(
    word
    for text in (*BANK.fragments, *BANK.headings, *BANK.sentences)
    for word in text.removesuffix(".").split()
)


def letters(text: str) -> set[str]:
    """Every run of letters, of whatever script."""
    return set(re.findall(r"[^\W\d_]+", text))


def of_the_bank(text: str) -> bool:
    """Whether a line is whole pieces of the bank, one blank between two."""
    pieces = "|".join(re.escape(each) for each in (*BANK.sentences, *BANK.headings, *BANK.fragments))
    return re.fullmatch(rf"(?:{pieces})(?: (?:{pieces}))*", text) is not None
