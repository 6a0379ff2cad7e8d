"""Known answers among the votes of a study (studies.md section 5; calibration.md section 9).

Where canaries stand and what they show is drawn by a key from the plan's seed, so that whoever has the opened
seed draws the same. A study knows a reviewer's licence and not its examination; of the showings of the bank
none is therefore put behind the others. A place is counted over the votes of a licence as they were started,
canaries included, from 0. A canary whose answer is no verdict says neither right nor wrong.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.canary import CanaryAnswer, CanaryWatch, draw, watch
from skill_effectiveness.studies.pairing import ShownPair

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from skill_effectiveness.calibration.canary import Canary
    from skill_effectiveness.protocol.cases import Bank
    from skill_effectiveness.protocol.policy import CanaryRule
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.state import StudyState, VoteState


def drawn_canaries(
    bank: Bank, rule: CanaryRule, chance: Chance, licence_id: str, showings: int
) -> dict[int, Canary]:
    """The canaries among the votes of a licence, by place.

    Args:
        bank: the judged bank.
        rule: of the licence.
        chance: of the plan.
        licence_id: whose votes they are.
        showings: how many votes on pairs there are besides.
    """
    # One more stretch than can be needed: what stands behind the last pair is never asked.
    most = showings + ceil((showings + 1) * rule.rate / (1 - rule.rate)) + ceil(1 / rule.rate)
    key = chance.key({"use": "canaries"})
    drawn = draw(bank, rule, key=key, licence_id=licence_id, votes=most, examined=())
    return {canary.position: canary for canary in drawn}


def as_pair(canary: Canary, name: str | None) -> ShownPair:
    """A canary as a reviewer sees it: like any other pair.

    Args:
        canary: that was drawn.
        name: of the file that the pairs of the study begin with; None where they have no files.
    """
    first, second = canary.shown_a, canary.shown_b
    if name is not None:
        first, second = (f"{name}:\n{text}" for text in (first, second))
    return ShownPair(
        pair_id=canary.pair_id,
        position=int(canary.showing.swapped),
        task=canary.task,
        rubric=canary.rubric,
        shown_a=first,
        shown_b=second,
    )


def watched(state: StudyState, licence_id: str, canaries: Collection[str], rule: CanaryRule) -> CanaryWatch:
    """What the canaries of a licence say, by the journal alone.

    Args:
        state: of the journal.
        licence_id: of the licence.
        canaries: ids of the showings that are canaries.
        rule: of the licence.
    """
    return watch(rule, _answers(votes_of(state, licence_id), state, licence_id, canaries))


def _answers(
    votes: Sequence[VoteState], state: StudyState, licence_id: str, canaries: Collection[str]
) -> Iterator[CanaryAnswer]:
    asked = [place for place, vote in enumerate(votes) if vote.pair_id in canaries and vote.state == "valid"]
    for place, row in zip(asked, state.canaries.get(licence_id, ()), strict=False):
        yield CanaryAnswer(place, row.right)


def votes_of(state: StudyState, licence_id: str) -> tuple[VoteState, ...]:
    """The votes of a licence in the order in which they were started."""
    return tuple(vote for vote in state.votes.values() if vote.licence_id == licence_id)


def void_votes(votes: Iterable[VoteState], seen: CanaryWatch, canaries: Collection[str]) -> tuple[str, ...]:
    """Ids of the votes that a revocation makes void; empty while the licence stands.

    Canaries are no votes on anything and stay what they are: the record of why the licence went.
    """
    return tuple(
        vote.vote_id
        for place, vote in enumerate(votes)
        if vote.pair_id not in canaries and not seen.counts(place)
    )
