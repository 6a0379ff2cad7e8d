"""Canaries among the votes of a study, by the journal alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.calibration.canary import CanaryAnswer, watch
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.canaries import as_pair, drawn_canaries, void_votes, votes_of, watched
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.state import StudyState, VoteState
from tests.support.examinations import INPUTS

if TYPE_CHECKING:
    from collections.abc import Sequence

CHANCE = Chance(bytes(32))
RULE = INPUTS.policy.canary_rule
LICENCE, OTHER = 32 * "a", 32 * "b"


def vote(
    number: int, state: str | None = "valid", *, licence: str = LICENCE, canary: bool = False
) -> VoteState:
    """A vote on a pair of its own."""
    return VoteState(f"vote-{licence[0]}{number}", licence, f"{'c' if canary else 'p'}{number}", 0, "", state)


def state_of(votes: Sequence[VoteState], answers: Sequence[bool] = ()) -> StudyState:
    """A state with these votes, and with these answers to canaries of the first licence."""
    state = StudyState(votes={one.vote_id: one for one in votes})
    state.canaries[LICENCE] = [rows.Canary(licence_id=LICENCE, right=right, e=1.0) for right in answers]
    return state


@pytest.mark.parametrize("showings", [0, 1, 18, 19, 20, 38, 400])
def test_one_vote_in_twenty_is_a_canary(showings: int) -> None:
    """S39: one in each stretch of twenty, whatever there is to vote on."""
    places = sorted(drawn_canaries(INPUTS.bank, RULE, CHANCE, LICENCE, showings))
    assert [place // 20 for place in places] == list(range(len(places)))
    # Enough for every vote: a ballot with as many pairs ends before the last stretch does.
    assert len(places) * 19 >= showings


def test_canaries_are_drawn_from_the_seed_for_each_licence() -> None:
    """S39: the opened seed draws them again, and nobody without it can."""
    drawn = drawn_canaries(INPUTS.bank, RULE, CHANCE, LICENCE, 100)
    again = drawn_canaries(INPUTS.bank, RULE, CHANCE, LICENCE, 400)
    assert {place: again[place] for place in drawn} == drawn
    assert drawn_canaries(INPUTS.bank, RULE, CHANCE, OTHER, 100) != drawn
    assert drawn_canaries(INPUTS.bank, RULE, Chance(bytes([1]) * 32), LICENCE, 100) != drawn


def test_a_canary_looks_like_a_pair() -> None:
    """S39: the same form of id and texts; nothing of the bank beside its texts."""
    canary = next(iter(drawn_canaries(INPUTS.bank, RULE, CHANCE, LICENCE, 20).values()))
    shown = as_pair(canary, "note.txt")
    assert shown.pair_id.startswith("pair-")
    assert len(shown.pair_id) == 69
    assert shown.shown_a == f"note.txt:\n{canary.shown_a}"
    assert as_pair(canary, None).shown_b == canary.shown_b
    assert canary.showing.case_id not in "".join((*shown.texts().values(), shown.pair_id))


def test_places_are_counted_over_the_votes_of_a_licence() -> None:
    """S39: canaries without a verdict are passed over, votes of others are not counted."""
    votes = [
        vote(0),
        vote(1, canary=True),
        vote(0, licence=OTHER),
        vote(2, "invalid", canary=True),
        vote(3),
        vote(4, canary=True),
        vote(5, None, canary=True),
    ]
    state = state_of(votes, [True, False])
    seen = watched(state, LICENCE, {"c1", "c2", "c4", "c5"}, RULE)
    assert seen == watch(RULE, [CanaryAnswer(1, right=True), CanaryAnswer(4, right=False)])
    assert [one.vote_id for one in votes_of(state, OTHER)] == ["vote-b0"]


@pytest.mark.parametrize(
    ("answers", "void"),
    [
        ([False, False, False], None),
        ([False] * 4, [0, 2, 4, 6]),
        ([True, False, False, False, False], [2, 4, 6, 8]),
        ([True, True, False, False, False, False], None),
    ],
)
def test_votes_after_the_last_right_canary_are_void(answers: Sequence[bool], void: list[int] | None) -> None:
    """S39: known answers of the rule, canaries standing at every second place."""
    canaries = {f"c{2 * number + 1}" for number in range(len(answers))}
    votes = [vote(place, canary=place % 2 == 1) for place in range(2 * len(answers))]
    seen = watched(state_of(votes, answers), LICENCE, canaries, RULE)
    assert seen.revoked is (void is not None)
    assert void_votes(votes, seen, canaries) == tuple(f"vote-a{place}" for place in void or ())
