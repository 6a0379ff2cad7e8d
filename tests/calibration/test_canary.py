from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.calibration.canary import CanaryAnswer, CanaryWatch, factors, watch
from skill_effectiveness.protocol.policy import CanaryRule
from tests.support.examinations import INPUTS

RULE = INPUTS.policy.canary_rule


def answers(text: str, first: int = 0) -> list[CanaryAnswer]:
    """`r` and `w`, every second vote a canary."""
    return [CanaryAnswer(first + 2 * place, letter == "r") for place, letter in enumerate(text)]


def test_the_frozen_rule() -> None:
    """R38: times 0.625 for a right, times 2.5 for a wrong answer."""
    assert (RULE.rate, RULE.p0, RULE.p1, RULE.limit) == (0.05, 0.8, 0.5, 20)
    assert factors(RULE) == (Fraction(5, 8), Fraction(5, 2))


@pytest.mark.parametrize(
    ("text", "evidence", "revoked"),
    [
        ("", 1.0, False),
        ("r", 0.625, False),
        ("w", 2.5, False),
        ("www", 15.625, False),
        ("wwww", 39.0625, True),
        ("rwww", 9.765625, False),
        ("rwwww", 24.4140625, True),
        ("rrwwww", 15.2587890625, False),
    ],
)
def test_known_answers(text: str, evidence: float, revoked: bool) -> None:  # noqa: FBT001 - a column
    """R38: four wrong in a row from the start revoke, three do not, right then four wrong do."""
    found = watch(RULE, answers(text))
    assert (float(found.evidence), found.revoked) == (evidence, revoked)


def test_exactly_the_limit_revokes() -> None:
    """R38: at e >= 20, not above it; thresholds are the decimals that were written."""
    rule = CanaryRule(rate=0.05, p0=0.8, p1=0.5, limit=15.625)
    assert watch(rule, answers("www")).revoked_at == 4
    assert not watch(rule, answers("ww")).revoked


def test_votes_after_the_last_right_canary_are_void() -> None:
    """R38: the vote at the right canary counts, those behind it do not, nor any later one."""
    found = watch(RULE, answers("rrrwwwwwww"))
    assert (found.last_right, found.revoked_at) == (4, 14)
    assert [position for position in range(30) if found.counts(position)] == [0, 1, 2, 3, 4]


def test_without_a_right_canary_every_vote_is_void() -> None:
    """R38: nobody can say that it ever was the licensed reviewer."""
    found = watch(RULE, answers("wwww"))
    assert not any(found.counts(position) for position in range(30))


def test_while_the_licence_stands_every_vote_counts() -> None:
    """R38: three wrong in a row void nothing."""
    found = watch(RULE, answers("rwww"))
    assert all(found.counts(position) for position in range(30))


def test_a_revocation_is_final() -> None:
    """R38: right canaries afterwards bring nothing back."""
    found = watch(RULE, answers("rwwwwrrrrrrrr"))
    assert found == CanaryWatch(Fraction(5**5, 2**7), 0, 8)


@given(st.text("rw", max_size=40), st.integers(0, 40))
def test_going_on_is_the_same_as_going_through(text: str, cut: int) -> None:
    """R38: a study that was resumed comes to the same."""
    every = answers(text)
    begun = watch(RULE, every[:cut])
    assert watch(RULE, every[cut:], begun) == watch(RULE, every)


@pytest.mark.parametrize("positions", [(1, 1), (2, 1), (-1,)])
def test_canaries_come_in_order(positions: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="order"):
        watch(RULE, [CanaryAnswer(position, right=True) for position in positions])
