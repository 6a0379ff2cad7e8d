from __future__ import annotations

import pytest

from skill_effectiveness.protocol.words import BankName, ProbeKind, Seat, TaskFamily, Verdict


@pytest.mark.parametrize(
    ("given", "turned"),
    [(Verdict.A_WIN, Verdict.B_WIN), (Verdict.B_WIN, Verdict.A_WIN), (Verdict.TIE, Verdict.TIE)],
)
def test_exchanging_seats_turns_a_win_and_leaves_a_tie(given: Verdict, turned: Verdict) -> None:
    assert given.turned() is turned


def test_the_words_are_those_of_the_wire() -> None:
    assert list(Verdict) == ["A win", "B win", "tie"]
    assert list(TaskFamily) == ["implementation", "review", "diagnosis", "plan", "shared_gate", "delegation"]
    assert list(BankName) == ["judged", "bias-probe"]
    assert list(Seat) == ["candidate_a", "candidate_b"]
    assert list(ProbeKind) == [
        "identical",
        "crlf-only",
        "swapped",
        "injected-verdict",
        "truncated",
        "empty-vs-real",
        "authority",
        "confident-wrong",
        "other-language",
        "padded",
        "formatting",
        "self-family",
    ]
