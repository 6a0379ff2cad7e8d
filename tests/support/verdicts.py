"""Verdicts written as letters, so that a test's table can be read at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from skill_effectiveness.protocol.words import TaskFamily, Verdict
from tests.support.frozen import bank_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.protocol.cases import Bank

_LETTERS = {"A": Verdict.A_WIN, "B": Verdict.B_WIN, "T": Verdict.TIE}


class Judged(NamedTuple):
    """A verdict of a run; any text, because an evaluation checks the word."""

    case_id: str
    verdict: str


class Seen(NamedTuple):
    """A verdict as it was given to a case shown in this orientation."""

    case_id: str
    orientation: int
    verdict: Verdict


def verdicts(letters: str) -> tuple[Verdict, ...]:
    """`"AABT"` as verdicts; blanks are for the eye."""
    return tuple(_LETTERS[letter] for letter in letters.replace(" ", ""))


def answers(letters: str) -> tuple[Verdict | None, ...]:
    """Like `verdicts`, with `-` for no consensus."""
    return tuple(_LETTERS.get(letter) for letter in letters.replace(" ", ""))


def bank_with(letters: str) -> Bank:
    """A bank with these known answers and texts that name their own place."""
    families = list(TaskFamily)
    return bank_of(
        [
            (f"{families[number % 6]}-{number // 6 + 1:02d}", verdict, f"first {number}", f"second {number}")
            for number, verdict in enumerate(verdicts(letters))
        ]
    )


def run(bank: Bank, given: Iterable[str]) -> list[Judged]:
    """A run over the whole bank, in bank order."""
    return [Judged(case_id, verdict) for case_id, verdict in zip(bank.case_ids, given, strict=True)]


def seen(bank: Bank, orientations: Sequence[int], given: Sequence[Verdict]) -> list[Seen]:
    """A sample shown in bank order with these orientations."""
    return [Seen(*row) for row in zip(bank.case_ids, orientations, given, strict=True)]


VERDICTS = st.sampled_from(list(Verdict))
ANSWERS = st.none() | VERDICTS


@st.composite
def examinations(draw: st.DrawFn) -> tuple[list[Verdict], list[list[Verdict]]]:
    """A truth of 1..12 cases and 1..5 runs over it."""
    count = draw(st.integers(1, 12))
    verdict_list = st.lists(VERDICTS, min_size=count, max_size=count)
    return draw(verdict_list), draw(st.lists(verdict_list, min_size=1, max_size=5))
