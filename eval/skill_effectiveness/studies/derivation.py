"""Everything a report says, out of a study's own evidence and nothing else (studies.md sections 6 to 8).

`derive` is what a report is made by and what a stranger with a bundle repeats: a pure judgement over journal,
files and the opened seed. No table is read here, each is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.studies.amendments import effective_reviewers
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.results import SYNTHETIC_TIER, DeviationRecord, StudyVerdict
from skill_effectiveness.studies.results_making import Circumstances, analysis_plan, build_results
from skill_effectiveness.studies.table_building import build_tables
from skill_effectiveness.studies.vote_checks import pooled_accuracy
from skill_effectiveness.trials.gate_words import FailureCode, NotEvaluated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skill_effectiveness.calibration.licence import LicencePredicate
    from skill_effectiveness.studies.chance import Chance
    from skill_effectiveness.studies.chronicle import Chronicle
    from skill_effectiveness.studies.plan import PlanReviewer, StudyPlan
    from skill_effectiveness.studies.results import Results
    from skill_effectiveness.studies.tables import Tables
    from skill_effectiveness.studies.trial_rows import StudyEvidence


@dataclass(frozen=True, slots=True)
class Derived:
    """Tables, and the results that follow from them."""

    tables: Tables
    results: Results


def derive(
    evidence: StudyEvidence, licences: Sequence[LicencePredicate], chance: Chance, told: Chronicle
) -> Derived:
    """Build the tables of a study and analyse them.

    Args:
        evidence: plan, opened run order, state and files.
        licences: of the plan, as they were frozen.
        chance: of the opened seed.
        told: by the same journal.

    Raises:
        StudyError: `row_invalid`, `vote_invalid`: files are not what the journal says; `slots_open`: arms are
            not known yet.
        TableError: what was found fits no table.
        DocumentError: what happened makes no results.
        RootError, FileError: a file cannot be read.
    """
    plan, circumstances = evidence.plan, circumstances_of(evidence, told)
    tables = build_tables(evidence)
    names = {reviewer.licence_id for reviewer in effective_reviewers(plan, evidence.state)}
    accuracy = pooled_accuracy([licence for licence in licences if licence.licence_id in names])
    order = dict.fromkeys(slot.task_id for slot in sorted(evidence.slots, key=lambda slot: slot.slot))
    fixed = analysis_plan(plan, tuple(order), accuracy)
    return Derived(tables, build_results(tables, plan, fixed, chance, circumstances))


def circumstances_of(evidence: StudyEvidence, told: Chronicle) -> Circumstances:
    """What results say beside their tables.

    Raises:
        StudyError: `slots_open`: arms are not known yet.
    """
    if told.unblinded_at is None:
        sentence = "arms are not known yet; make a report first."
        raise StudyError(StudyCode.SLOTS_OPEN, "/allocation/slots", sentence)
    asked = effective_reviewers(evidence.plan, evidence.state)
    return Circumstances(
        study_verdict(evidence.plan, asked),
        told.amendments,
        (*told.deviations, *_silent(evidence, asked)),
        told.unblinded_at,
    )


def study_verdict(plan: StudyPlan, reviewers: Sequence[PlanReviewer]) -> StudyVerdict:
    """What the pilot gate can say of a study.

    A synthetic study is not evaluated and has no tier; one that planned no reviewer is not evaluated. The
    gate derives its reviewers from their examinations, which a study does not hold: without them it fails.

    Args:
        plan: as sealed.
        reviewers: those of the plan that were not taken out.
    """
    nothing: tuple[NotEvaluated, ...] = tuple(NotEvaluated)
    if plan.synthetic:
        return StudyVerdict(
            gate_status="not_evaluated_synthetic",
            verdict_tier=SYNTHETIC_TIER,
            coverage_limitations=(),
            failures=(),
            not_evaluated_checks=nothing,
        )
    missing = (str(FailureCode.LOCAL_EVIDENCE_BUNDLE_REQUIRED),) if reviewers else ()
    return StudyVerdict(
        gate_status="fail" if reviewers else "not_evaluated",
        verdict_tier=None,
        coverage_limitations=(),
        failures=missing,
        not_evaluated_checks=nothing,
    )


def _silent(evidence: StudyEvidence, asked: Sequence[PlanReviewer]) -> Iterator[DeviationRecord]:
    """Reviewers of whom no vote counts; nobody can tell when that began."""
    counting = {
        vote.licence_id for vote in evidence.state.votes.values() if vote.state == "valid" and not vote.void
    }
    for reviewer in asked:
        if reviewer.licence_id not in counting:
            told = f"No vote of the reviewer with the licence {reviewer.licence_id} counts."
            yield DeviationRecord(code="no_vote_counts", sentence=told, at=None)
