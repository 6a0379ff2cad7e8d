"""What an analysis is told and what it answers (studies.md sections 6 and 7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.analysis.decimals import checked_alpha
from skill_effectiveness.studies.words import Sides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.calibration.figures import Estimate, Interval
    from skill_effectiveness.studies.analysis.blinding_index import Blinding, BlindingIndex
    from skill_effectiveness.studies.analysis.conclusions import Conclusion
    from skill_effectiveness.studies.analysis.evidence_sequence import Look
    from skill_effectiveness.studies.analysis.misclassification import Corrected, KnownAccuracy
    from skill_effectiveness.studies.analysis.reviewers import ReviewersResult
    from skill_effectiveness.studies.words import Outcome

_HIGHEST_ALPHA: Final = 0.5


class Method(StrEnum):
    """Where p and interval of a comparison come from."""

    SIGN_FLIPS = "sign-flips-inverted"
    DRAWN_SIGN_FLIPS = "drawn-sign-flips-inverted"
    SIGN_FLIPS_BCA = "drawn-sign-flips-bca"
    MCNEMAR = "mcnemar-exact-inverted"
    MCNEMAR_DRAWN = "mcnemar-exact-drawn-sign-flips-inverted"
    MCNEMAR_BCA = "mcnemar-exact-bca"
    ANYTIME = "anytime-evidence-sequence"


class Uncorrected(StrEnum):
    """Why a preference stands as the reviewers gave it."""

    NO_KNOWN_ACCURACY = "no_known_accuracy"
    TOO_FEW_TASKS = "too_few_tasks"
    NOT_IDENTIFIABLE = "not_identifiable"


@dataclass(frozen=True, slots=True)
class AnalysisPlan:
    """What the plan fixed of the analysis.

    Attributes:
        arms: names of the arms, `off` and `full` among them.
        outcome: the primary one.
        secondary: further outcomes of full against off.
        minimum_effect: delta, above 0.
        alpha: error rate, above 0 and below one half (an interval of level 1 - 2 alpha is needed).
        sides: of the primary test; secondary ones look both ways.
        anytime: whether evidence is looked at after every task; two-sided only.
        samples: repeats per task and arm.
        planned_power: at delta.
        task_order: every planned id once, in the order of the allocation.
        accuracy: of the licensed reviewers, pooled; None without a reviewer.

    Raises:
        ValueError: a value that the plan could not have fixed.
    """

    arms: tuple[str, ...]
    outcome: Outcome
    secondary: tuple[Outcome, ...]
    minimum_effect: float
    alpha: float
    sides: Sides
    anytime: bool
    samples: int
    planned_power: float
    task_order: tuple[str, ...]
    accuracy: KnownAccuracy | None = None

    def __post_init__(self) -> None:
        checked_alpha(self.alpha)
        if self.alpha >= _HIGHEST_ALPHA or not self.minimum_effect > 0 or self.samples < 1:
            raise ValueError("alpha lies below one half, delta above 0, and there is at least one sample")
        if self.anytime and self.sides is not Sides.TWO:
            raise ValueError("evidence that may be looked at any time looks both ways")
        if not {"off", "full"} <= set(self.arms) or len(set(self.arms)) < len(self.arms):
            raise ValueError("a study has the arms off and full, and each arm once")
        if len(set(self.task_order)) < len(self.task_order):
            raise ValueError("the order of allocation names each task once")


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """What one comparison comes to; figures are None where there is no task.

    Attributes:
        interval: the one its word rests on, of coverage `level`; -1 to 1 where too few tasks allow another,
            None where there is no task, or where the sequence rejects every effect.
        to_decide_tasks: for a word that leaves the question open.
        p_holm: adjusted over the secondary comparisons; None for the primary one.
    """

    comparison: str
    outcome: Outcome
    conclusion: Conclusion
    effect: float | None
    interval: Interval | None
    level: float
    method: Method
    p: float | None
    tasks: int
    informative_tasks: int
    to_decide_tasks: int | None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class CorrectedPreference:
    """Wins, losses and their difference behind what the reviewers reported."""

    win: Corrected
    loss: Corrected
    net: Corrected


@dataclass(frozen=True, slots=True)
class PreferenceResult:
    """Preference over single showings, as given and corrected for the reviewers' errors.

    Attributes:
        win: mean over tasks of the share of showings that the treatment won.
        loss: of those that it lost.
        net: win less loss.
        tasks: with at least one valid showing.
        corrected: the correction, or why there is none.
    """

    win: float
    loss: float
    net: float
    tasks: int
    corrected: CorrectedPreference | Uncorrected


@dataclass(frozen=True, slots=True)
class BlindingResult:
    """Whether the reviewers could tell the treated side, by the side it was shown on."""

    word: Blinding
    treated_first: BlindingIndex | None
    treated_second: BlindingIndex | None


@dataclass(frozen=True, slots=True)
class MissingResult:
    """What missing values could change of the primary comparison.

    Attributes:
        by_class: slots of all arms without a value, by how they ended.
        slots: missing values of the primary comparison itself (pairs, for a preference).
        bounds: of D; None without a task.
        tipping: how many missing values, at their worst, change the word; None when all of them do not.
    """

    by_class: Mapping[str, int]
    slots: int
    bounds: Interval | None
    tipping: int | None


@dataclass(frozen=True, slots=True)
class TaskLook:
    """The evidence after one task."""

    task_id: str
    look: Look


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that follows from the tables."""

    primary: ComparisonResult
    secondary: tuple[ComparisonResult, ...]
    anytime: tuple[TaskLook, ...] | None
    rates: Mapping[str, Estimate | None]
    preference: PreferenceResult | None
    reviewers: ReviewersResult
    blinding: BlindingResult
    missing: MissingResult
