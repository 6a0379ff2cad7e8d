"""Whether the votes of a study count by its own evidence (studies.md section 8, check 11).

Everything is judged again from journal, vote files, licences and the opened seed: that a licence was live
when a vote began and had not been revoked, that the canaries are the drawn ones, what they come to, and which
votes that makes void. Who signed a licence is for whoever has its key.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.canary import CanaryAnswer, watch
from skill_effectiveness.calibration.licence import LicenceRefused, read_time
from skill_effectiveness.calibration.standing import demand_one_world
from skill_effectiveness.studies.analysis.misclassification import KnownAccuracy
from skill_effectiveness.studies.canaries import drawn_canaries, void_votes, votes_of
from skill_effectiveness.studies.table_building import vote_documents
from skill_effectiveness.studies.trial_rows import moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skill_effectiveness.calibration.canary import Canary, CanaryWatch
    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.protocol.cases import Bank
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.state import StudyState, VoteState
    from skill_effectiveness.studies.trial_rows import StudyEvidence
    from skill_effectiveness.studies.voting import VoteDocument


def vote_faults(
    evidence: StudyEvidence, licences: Sequence[LicencePredicate], bank: Bank, chance: Chance
) -> tuple[str, ...]:
    """Everything that is wrong with the votes, one sentence each without its end; empty when nothing is.

    Args:
        evidence: of the study.
        licences: those of the plan, as they were frozen.
        bank: the judged bank.
        chance: of the opened seed.

    Raises:
        StudyError: `vote_invalid`: a vote's file is missing or another than the journal names.
        RootError, FileError: a file cannot be read.
    """
    documents = vote_documents(evidence.state, evidence.reader)
    faults = list(_worlds(licences, synthetic=evidence.plan.synthetic))
    known = {licence.licence_id for licence in licences}
    faults += [
        f"{vote.vote_id} is a vote of no licence of the plan"
        for vote in evidence.state.votes.values()
        if vote.licence_id not in known
    ]
    for licence in licences:
        faults += _of_licence(licence, evidence.state, documents, bank, chance)
    return tuple(faults)


def _worlds(licences: Sequence[LicencePredicate], *, synthetic: bool) -> Iterator[str]:
    try:
        demand_one_world(licences, driver_simulated=synthetic)
    except LicenceRefused:
        yield "a synthetic licence stands beside what is real"
    if synthetic and not all(licence.synthetic for licence in licences):
        yield "a real reviewer stands beside a simulated driver"


def _of_licence(
    licence: LicencePredicate,
    state: StudyState,
    documents: Mapping[str, VoteDocument],
    bank: Bank,
    chance: Chance,
) -> Iterator[str]:
    votes = votes_of(state, licence.licence_id)
    asked = len({vote.pair_id for vote in votes})
    drawn = {
        canary.pair_id: canary
        for canary in drawn_canaries(bank, licence.canary_rule, chance, licence.licence_id, asked).values()
    }
    answers = []
    for place, vote in enumerate(votes):
        document = documents.get(vote.vote_id)
        yield from _of_vote(licence, vote, document, drawn.get(vote.pair_id))
        if document is not None and document.right is not None:
            answers.append(CanaryAnswer(place, document.right))
    seen = watch(licence.canary_rule, answers)
    yield from _of_canaries(licence, state, answers)
    yield from _of_revocation(licence, state, votes, seen, frozenset(drawn))


def _of_vote(
    licence: LicencePredicate, vote: VoteState, document: VoteDocument | None, canary: Canary | None
) -> Iterator[str]:
    began = moment(vote.started_at)
    if not read_time(licence.issued_at) <= began < read_time(licence.expires_at):
        yield f"{vote.vote_id} was started while its licence was not live"
    if document is None:
        return
    said = (document.executable_hash, document.cli_version, document.model)
    reviewer = licence.reviewer
    if said != (reviewer.provider_executable_hash, reviewer.provider_cli_version, reviewer.model):
        yield f"{vote.vote_id} was answered by another program or model than the licensed one"
    if vote.usage != document.usage.as_journalled():
        yield f"{vote.vote_id} used something else than the journal says"
    if (document.canary is None) is not (canary is None):
        yield f"{vote.vote_id} is a canary where none was drawn, or none where one was"
    elif canary is not None and document.canary is not None:
        told = (document.canary.case_id, document.canary.swapped, document.canary.truth)
        if told != (canary.showing.case_id, canary.showing.swapped, canary.truth):
            yield f"{vote.vote_id} is not the canary that was drawn"


def _of_canaries(
    licence: LicencePredicate, state: StudyState, answers: Sequence[CanaryAnswer]
) -> Iterator[str]:
    rows = state.canaries.get(licence.licence_id, [])
    if [row.right for row in rows] != [answer.right for answer in answers]:
        yield f"the canaries of the licence {licence.licence_id} are not those of its votes"
        return
    for number, row in enumerate(rows, start=1):
        evidence = watch(licence.canary_rule, answers[:number]).evidence
        if not math.isclose(row.e, float(evidence), rel_tol=1e-12):
            yield f"canary {number} of the licence {licence.licence_id} has another e than follows"


def _of_revocation(
    licence: LicencePredicate,
    state: StudyState,
    votes: Sequence[VoteState],
    seen: CanaryWatch,
    canaries: frozenset[str],
) -> Iterator[str]:
    name = licence.licence_id
    if seen.revoked is not (name in state.revoked):
        yield f"whether the licence {name} is revoked is not what its canaries say"
    if seen.revoked_at is not None and len(votes) > seen.revoked_at + 1:
        yield f"votes of the licence {name} were started after it was revoked"
    void = {vote.vote_id for vote in votes if vote.void}
    if void != set(void_votes(votes, seen, canaries)):
        yield f"the void votes of the licence {name} are not those that its canaries make void"


def pooled_accuracy(licences: Sequence[LicencePredicate]) -> KnownAccuracy | None:
    """How far the verdicts of all reviewers together can be trusted; None without a reviewer.

    Judgements are pooled. All reviewers were examined with the same cases, so their number stays that of one:
    more reviewers narrow nothing.
    """
    if not licences:
        return None
    decided = [(licence.metrics.decided, licence.metrics.repeat_count) for licence in licences]
    hits = sum(found.hits for found, _ in decided)
    rejections = sum(found.rejections for found, _ in decided)
    return KnownAccuracy(
        sensitivity=hits / sum(found.n1 * runs for found, runs in decided),
        sensitivity_cases=min(found.n1 for found, _ in decided),
        specificity=rejections / sum(found.n0 * runs for found, runs in decided),
        specificity_cases=min(found.n0 for found, _ in decided),
    )
