"""Gate rules about reviewers: the pairs of a bundle, judged together (trials.md section 9, calibration.md).

Each pair went through the one loader of published pairs (`calibration.loader`), which derives every value
again. What is judged here is the set: every family once, and the gates between families as soon as there are
two.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.evaluation import (
    CalibrationEvaluation,
    ReviewerRuns,
    Status,
    evaluate,
)
from skill_effectiveness.calibration.evaluation import (
    FailureCode as ExaminationFailure,
)
from skill_effectiveness.trials.gate_words import FailureCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skill_effectiveness.calibration.loader import LoadedCalibration
    from skill_effectiveness.protocol.cases import Bank
    from skill_effectiveness.protocol.gates import Thresholds


class PairStanding(StrEnum):
    """How one pair of a bundle was found."""

    LOADED = "loaded"
    REFUSED = "refused"
    """The loader refused it, or it is about another family or bank than the bundle says."""
    NOT_EVALUATED_SYNTHETIC = "not_evaluated_synthetic"
    """It says that no reviewer was examined, which only a synthetic run may say."""
    STATUS_UNKNOWN = "status_unknown"
    """It has another status than a finished examination has."""


@dataclass(frozen=True, slots=True)
class ReviewerPair:
    """One pair of a bundle; `calibration` is there exactly when it loaded."""

    standing: PairStanding
    calibration: LoadedCalibration | None = None


@dataclass(frozen=True, slots=True)
class JudgedReviewers:
    """What the reviewers come to; no evaluation when no pair loaded."""

    evaluation: CalibrationEvaluation | None
    failures: frozenset[FailureCode]


def judge_reviewers(pairs: Sequence[ReviewerPair], bank: Bank, gates: Thresholds) -> JudgedReviewers:
    """Judge the reviewers of a run that is not synthetic."""
    loaded = [pair.calibration for pair in pairs if pair.calibration is not None]
    failures = set(_standing_failures(pairs))
    if any(calibration.synthetic for calibration in loaded):
        failures.add(FailureCode.SYNTHETIC_CALIBRATION_ON_NON_SYNTHETIC_RUN)
    real = [calibration for calibration in loaded if not calibration.synthetic]
    families = {calibration.result.reviewer_family for calibration in real}
    if len(families) < gates.reviewer_family_count_min:
        failures.add(FailureCode.REVIEWER_CALIBRATION_FAMILY_COUNT)
    if not loaded:
        return JudgedReviewers(None, frozenset(failures))
    runs = [
        ReviewerRuns(reviewer.family, reviewer.runs)
        for calibration in loaded
        for reviewer in calibration.evidence.reviewers
    ]
    evaluation = evaluate(bank, runs, gates)
    failures.update(_evaluation_failures(evaluation))
    return JudgedReviewers(evaluation, frozenset(failures))


def _standing_failures(pairs: Sequence[ReviewerPair]) -> Iterator[FailureCode]:
    for pair in pairs:
        match pair.standing:
            case PairStanding.REFUSED:
                yield FailureCode.CALIBRATION_EVIDENCE_INVALID
            case PairStanding.NOT_EVALUATED_SYNTHETIC:
                yield FailureCode.SYNTHETIC_CALIBRATION_ON_NON_SYNTHETIC_RUN
            case PairStanding.STATUS_UNKNOWN:
                yield FailureCode.CALIBRATION_STATUS_INVALID
            case PairStanding.LOADED:
                pass


_BETWEEN = {ExaminationFailure.AGREEMENT_BELOW_GATE, ExaminationFailure.KAPPA_BELOW_GATE}


def _evaluation_failures(evaluation: CalibrationEvaluation) -> Iterator[FailureCode]:
    if evaluation.status is Status.INVALID:
        yield FailureCode.CALIBRATION_STATUS_INVALID
    if Status.FAIL in evaluation.reviewer_statuses.values():
        yield FailureCode.REVIEWER_SELF_CALIBRATION
    if any(failure.code in _BETWEEN for failure in evaluation.failures):
        yield FailureCode.REVIEWER_MUTUAL_CALIBRATION
