"""The three tables of a study, from its journal and files alone (studies.md section 7).

`build_tables(evidence)` is pure over a reader of files, so that a report builds them from the study's folder
and a stranger from a bundle. It needs no key: which outcome sat where is in the blinding mappings, what a
reviewer was asked and said in the files of its votes.

A pair is in the table of pairs when it was blinded or refused for a leak, under the first by letters of the
ids of its two showings (of a leak, the id in its file). The position of a judgement is the treated side's: 0
where it was shown as A, 1 where as B. A canary keeps the position it was asked under, which means nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.studies.analysis.consistency import for_treatment
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.pairing import planned_pairs, preference_of, shown_text
from skill_effectiveness.studies.tables import JudgementRow, PairRow, Tables
from skill_effectiveness.studies.trial_rows import StudyEvidence, moment, trial_rows
from skill_effectiveness.studies.voting import VOTES, VoteDocument, read_vote, vote_hash, vote_name
from skill_effectiveness.trials.blinding import (
    FOLDER,
    JUDGE,
    LEAKS,
    MAPPINGS,
    JudgeInput,
    LeakDocument,
    PairMapping,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeVar

    from skill_effectiveness.protocol.document import FrozenModel
    from skill_effectiveness.studies.evidence_reading import StudyReader
    from skill_effectiveness.studies.pairing import PlannedPair
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.state import StudyState, VoteState
    from skill_effectiveness.studies.tables import TrialRow

    M = TypeVar("M", bound=FrozenModel)

_ENDING = ".json"


@dataclass(frozen=True, slots=True)
class BlindedPair:
    """A pair that was blinded, or refused for a leak.

    Attributes:
        pair_id: what the tables call it.
        pair: the two slots.
        seats: for each showing, by its id, the side on which the treatment is shown: 0 for A, 1 for B; empty
            after a leak.
    """

    pair_id: str
    pair: PlannedPair
    seats: Mapping[str, int]


def build_tables(evidence: StudyEvidence) -> Tables:
    """All three tables.

    Raises:
        StudyError: `row_invalid`, `vote_invalid`: a file is not what the journal says, or is no file of this
            study.
        TableError: what was found fits no table.
        RootError, FileError: a file cannot be read.
    """
    trials = trial_rows(evidence)
    pairs = blinded_pairs(evidence)
    judgements = _judgements(evidence, pairs)
    return Tables(trials, _pairs(pairs, trials, judgements), judgements)


# Pairs.


def blinded_pairs(evidence: StudyEvidence) -> tuple[BlindedPair, ...]:
    """Every pair that has mappings or a leak file, by task and sample.

    Raises:
        StudyError: `vote_invalid`.
        RootError, FileError: a file cannot be read.
    """
    planned = planned_pairs(evidence.plan, evidence.slots)
    by_trial = {name: pair for pair in planned for name in (pair.treatment, pair.comparator)}
    seats: dict[PlannedPair, dict[str, int]] = defaultdict(dict)
    for mapping in _documents(evidence.reader, MAPPINGS, PairMapping):
        pair = by_trial.get(mapping.mapping.A)
        if pair is None or {mapping.mapping.A, mapping.mapping.B} != {pair.treatment, pair.comparator}:
            raise _foreign(f"{FOLDER}/{MAPPINGS}/{mapping.pair_id}{_ENDING}")
        seats[pair][mapping.pair_id] = int(pair.treatment == mapping.mapping.B)
    found = {pair: BlindedPair(min(held), pair, held) for pair, held in seats.items()}
    for leak in _documents(evidence.reader, LEAKS, LeakDocument):
        pair = by_trial.get(leak.leaks[0].outcome_id)
        if pair is not None and pair not in found:
            found[pair] = BlindedPair(leak.pair_id, pair, {})
    return tuple(found[pair] for pair in planned if pair in found)


def _documents(reader: StudyReader, kind: str, model: type[M]) -> Iterable[M]:
    for name in reader.names(f"{FOLDER}/{kind}"):
        where = f"{FOLDER}/{kind}/{name}"
        data = reader.read(where)
        try:
            found = None if data is None else parse(model, data, Profile.DOCUMENT, canonical=Canonical.LINE)
        except EvidenceError as error:
            raise _foreign(where) from error
        named = getattr(found, "pair_id", None)
        if found is None or (kind != LEAKS and f"{named}{_ENDING}" != name):
            raise _foreign(where)
        yield found


def _pairs(
    pairs: Sequence[BlindedPair], trials: Iterable[TrialRow], judgements: Iterable[JudgementRow]
) -> tuple[PairRow, ...]:
    by_trial = {row.trial_id: row for row in trials}
    votes: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for vote in judgements:
        if vote.state == "valid" and vote.for_treatment is not None:
            votes[vote.pair_id][vote.licence_id].append(vote.for_treatment)
    rows = []
    for one in pairs:
        treated, compared = by_trial.get(one.pair.treatment), by_trial.get(one.pair.comparator)
        if treated is None or compared is None:
            continue
        given = votes[one.pair_id]
        safety = treated.safety_failure is True
        rows.append(
            PairRow(
                pair_id=one.pair_id,
                task_id=one.pair.task_id,
                sample=one.pair.sample,
                treatment=one.pair.treatment,
                comparator=one.pair.comparator,
                treatment_value=treated.value,
                comparator_value=compared.value,
                difference=_difference(treated.value, compared.value),
                preference=preference_of(given, safety=safety),
                votes=sum(map(len, given.values())),
                safety=safety,
            )
        )
    return tuple(rows)


def _difference(treated: float | None, compared: float | None) -> float | None:
    return None if treated is None or compared is None else treated - compared


# Judgements.


def reviewer_names(plan: StudyPlan) -> dict[str, str]:
    """What the tables call the reviewer of a licence: its family, with the licence where two share one."""
    families = [reviewer.family for reviewer in plan.reviewers]
    return {
        reviewer.licence_id: reviewer.family
        if families.count(reviewer.family) == 1
        else f"{reviewer.family}/{reviewer.licence_id[:8]}"
        for reviewer in plan.reviewers
    }


def vote_documents(state: StudyState, reader: StudyReader) -> dict[str, VoteDocument]:
    """The files of all votes that the journal has ended with one, by vote id.

    Raises:
        StudyError: `vote_invalid`: one is missing, or is another than the journal names.
        RootError, FileError: a file cannot be read.
    """
    found = {}
    for vote in state.votes.values():
        if vote.vote_hash is not None:
            found[vote.vote_id] = _vote(vote, reader)
    return found


def _vote(vote: VoteState, reader: StudyReader) -> VoteDocument:
    where = f"{VOTES}/{vote_name(vote.vote_id)}"
    data = reader.read(where)
    if data is None:
        sentence = "the journal names this vote and its file is missing; restore the study's folder."
        raise StudyError(StudyCode.VOTE_INVALID, where, sentence)
    found = read_vote(data, vote.vote_id)
    said = (vote.vote_hash, vote.licence_id, vote.pair_id, vote.position, vote.state)
    if said != (vote_hash(found), found.licence_id, found.pair_id, found.position, found.state):
        sentence = "this vote is not the one of the journal; restore the study's folder."
        raise StudyError(StudyCode.VOTE_INVALID, where, sentence)
    return found


def _judgements(evidence: StudyEvidence, pairs: Sequence[BlindedPair]) -> tuple[JudgementRow, ...]:
    names = reviewer_names(evidence.plan)
    shown = {showing: one for one in pairs for showing in one.seats}
    documents = vote_documents(evidence.state, evidence.reader)
    lengths = _Lengths(evidence.reader)
    rows = []
    for vote in evidence.state.votes.values():
        if vote.licence_id not in names:
            raise _foreign(f"{VOTES}/{vote_name(vote.vote_id)}")
        document, pair = documents.get(vote.vote_id), shown.get(vote.pair_id)
        if (document is not None and (document.canary is not None) is (pair is not None)) or (
            document is None and vote.state == "valid"
        ):
            raise _foreign(f"{VOTES}/{vote_name(vote.vote_id)}")
        known = _Known(vote, document, pair, names[vote.licence_id])
        rows.append(_judgement(evidence.state, known, lengths))
    return tuple(sorted(rows, key=lambda row: row.vote_id))


class _Known(NamedTuple):
    """All that is known of one vote."""

    vote: VoteState
    document: VoteDocument | None
    pair: BlindedPair | None
    reviewer: str


def _judgement(state: StudyState, of: _Known, lengths: _Lengths) -> JudgementRow:
    vote, document, pair, reviewer = of
    position = vote.position if pair is None else pair.seats[vote.pair_id]
    verdict = None if document is None or document.verdict is None else str(document.verdict)
    usage = None if document is None else document.usage
    canary = None if document is None else document.canary
    chars = (document.chars_a, document.chars_b) if document is not None else lengths.of(vote.pair_id)
    guess = state.guesses.get((vote.licence_id, vote.pair_id, vote.position))
    told = [] if usage is None else [usage.input_tokens, usage.output_tokens]
    known = [tokens for tokens in told if tokens is not None]
    return JudgementRow(
        vote_id=vote.vote_id,
        pair_id=vote.pair_id if pair is None else pair.pair_id,
        position=position,
        reviewer=reviewer,
        licence_id=vote.licence_id,
        canary=pair is None,
        truth=None if canary is None else str(canary.truth),
        state="void" if vote.void else vote.state or "provider_error",
        verdict=verdict,
        for_treatment=None if pair is None or verdict is None else for_treatment(verdict, position),
        guess=guess if vote.state == "valid" else None,
        chars_a=chars[0],
        chars_b=chars[1],
        tokens=sum(known) if len(known) == 2 else None,  # noqa: PLR2004 - in and out
        cost_units=None if usage is None else usage.cost_units,
        latency_ms=None if usage is None else usage.latency_ms,
        voted_at=moment(vote.started_at if document is None else document.voted_at),
    )


class _Lengths:
    """How long the two texts of a showing are, where no vote says so; 0 where nothing lies there."""

    def __init__(self, reader: StudyReader) -> None:
        self._reader = reader

    def of(self, pair_id: str) -> tuple[int, int]:
        where = f"{FOLDER}/{JUDGE}/{pair_id}{_ENDING}"
        data = self._reader.read(where)
        if data is None:
            return 0, 0
        try:
            shown = parse(JudgeInput, data, Profile.DOCUMENT, canonical=Canonical.LINE)
        except EvidenceError as error:
            raise _foreign(where) from error
        return len(shown_text(shown.A)), len(shown_text(shown.B))


def _foreign(where: str) -> StudyError:
    sentence = "this file is none of the study's as it was written; restore the study's folder."
    return StudyError(StudyCode.VOTE_INVALID, where, sentence)
