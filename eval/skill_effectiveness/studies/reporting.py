"""The effect behind `study report`: arms become known once, then everything is built from what lies there.

| step | durable before the next |
|---|---|
| `slots_closed`, where a person gives open slots up, and `unblinded` | one append |
| tables, results and page in `report/` | `results.json` last |
| `analysed`, where these results are not the last ones | one append |

Whoever is killed in between is taken up by the same call: the rows that are there are not written again, and
the same evidence gives the same bytes. Source: studies.md, sections 2, 6 and 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.licensing import claimed_licence
from skill_effectiveness.evidence.envelope import read_envelope
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.amendments import effective_reviewers
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.chronicle import REPORT as REPORTED
from skill_effectiveness.studies.chronicle import read_chronicle
from skill_effectiveness.studies.derivation import derive
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.evidence_reading import RootReader
from skill_effectiveness.studies.pairing import planned_pairs, shown_text
from skill_effectiveness.studies.plan_seal import PLAN_SEAL
from skill_effectiveness.studies.report import PairTexts, PlanSeal
from skill_effectiveness.studies.report_files import REPORT, RESULTS, publish_report, report_files
from skill_effectiveness.studies.roster import may_be_shown
from skill_effectiveness.studies.trial_rows import StudyEvidence
from skill_effectiveness.trials.binding import OUTCOME
from skill_effectiveness.trials.store import TRIALS
from skill_effectiveness.trials.trial_facts import JUDGE_PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.studies.evidence_reading import StudyReader
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.root import StudyJournal, StudyRoot
    from skill_effectiveness.studies.tables import Tables

RESULTS_PATH: Final = f"{REPORT}/{RESULTS}"


def report_study(study: StudyRoot, journal: StudyJournal, *, abandon: str | None = None) -> Results:
    """Make arms known, analyse, and write `report/`.

    Args:
        study: open, under its lock.
        journal: of the study, open.
        abandon: why slots that have not ended, or reviewers that have not voted, are given up; None gives
            nothing up.

    Raises:
        StudyError: `slots_open`, `votes_open`: something is open and not given up; `plan_changed`,
            `row_invalid`, `vote_invalid`: what lies there is not what was written.
        TableError, DocumentError: what lies there makes no report.
        JournalError, LockError, EvidenceError: something cannot be read or written.
    """
    slots, seed = study.slots(), study.seed()
    if journal.state.unblinded is None:
        _demand_done(study, journal, abandon)
        _unblind(study, journal, abandon)
    told = read_chronicle(journal.journal.rows())
    reader = RootReader(study.root)
    evidence = StudyEvidence(study.plan, study.frozen().tasks, slots, journal.state, reader)
    derived = derive(evidence, frozen_licences(study), Chance(seed), told)
    texts = dict(_texts(derived.tables, reader))
    seal = PlanSeal(_signer(study.root.read(PLAN_SEAL)), told.planned_at or study.plan.created_at)
    publish_report(study.root, report_files(derived.results, study.plan, derived.tables, texts, seal))
    if journal.state.results_digest != derived.results.results_digest:
        journal.append(rows.Analysed(results_digest=derived.results.results_digest))
    return derived.results


def frozen_licences(study: StudyRoot) -> tuple[LicencePredicate, ...]:
    """The licences of the plan, as they were frozen.

    Raises:
        StudyError: `plan_changed`.
        LicenceRefused: `licence_unreadable`.
    """
    return tuple(
        claimed_licence(
            study.licence(reviewer.licence_id, f"/reviewers/{index}/licence_hash", reviewer.licence_hash)
        )
        for index, reviewer in enumerate(study.plan.reviewers)
    )


def _demand_done(study: StudyRoot, journal: StudyJournal, abandon: str | None) -> None:
    """Refuse while something could still be run or asked, because nothing is once arms are known."""
    if abandon is not None:
        return
    if not journal.state.complete(study.plan.allocation.slots):
        sentence = "slots have not ended yet; run the study to its end, or give them up with --abandon."
        raise StudyError(StudyCode.SLOTS_OPEN, "/allocation/slots", sentence)
    if _votes_open(study, journal):
        sentence = "a reviewer has not voted yet; let the study be judged, or give votes up with --abandon."
        raise StudyError(StudyCode.VOTES_OPEN, "/reviewers", sentence)


def _votes_open(study: StudyRoot, journal: StudyJournal) -> bool:
    """Whether a reviewer was never asked although there is a pair to ask about."""
    state = journal.state
    asked = {vote.licence_id for vote in state.votes.values()} | state.revoked
    silent = [one for one in effective_reviewers(study.plan, state) if one.licence_id not in asked]
    return bool(silent) and any(
        may_be_shown(state, pair.treatment_slot) and may_be_shown(state, pair.comparator_slot)
        for pair in planned_pairs(study.plan, study.slots())
    )


def _unblind(study: StudyRoot, journal: StudyJournal, abandon: str | None) -> None:
    closed: list[rows.StudyRow] = []
    planned = study.plan.allocation.slots
    if not journal.state.complete(planned):
        closed.append(rows.SlotsClosed(reason="abandoned", slots=planned - journal.state.ended()))
    journal.append(*closed, rows.Unblinded(reason=abandon or REPORTED))


def _texts(tables: Tables, reader: StudyReader) -> Iterator[tuple[str, PairTexts]]:
    """What both sides of every pair handed in."""
    for row in tables.pairs:
        yield row.pair_id, PairTexts(handed_in(row.treatment, reader), handed_in(row.comparator, reader))


def handed_in(trial: str, reader: StudyReader) -> str | None:
    """What a trial handed in, as reviewers and readers are shown it; None where there is nothing.

    Args:
        trial: its path as the tables have it.
        reader: of the study's files.

    Raises:
        StudyError: `row_invalid`.
        RootError, FileError: it cannot be read.
    """
    data = reader.read(f"{TRIALS}/{trial}/{OUTCOME}")
    if data is None:
        return None
    try:
        outcome = read_json(data, Profile.DOCUMENT, want_object=True)
    except EvidenceError as error:
        sentence = "an outcome is not as it was written; restore the study's folder."
        raise StudyError(StudyCode.ROW_INVALID, f"{TRIALS}/{trial}/{OUTCOME}", sentence) from error
    payload = outcome.get(JUDGE_PAYLOAD) if isinstance(outcome, dict) else None
    return None if payload is None else shown_text(payload)


def _signer(seal: bytes) -> str:
    """Who is said to have sealed the plan; `StudyRoot.open` has looked at the seal."""
    return read_envelope(seal, own=True).signatures[0].keyid
