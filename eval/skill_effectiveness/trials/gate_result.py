"""What a gate answers, field for field (trials.md section 9)."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import JsonValue, model_validator

from skill_effectiveness.calibration.evaluation import CalibrationEvaluation
from skill_effectiveness.calibration.figures import Share
from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.document import FrozenModel, One
from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.protocol.registries import RULES, RegistrySchema
from skill_effectiveness.trials.gate_words import (
    EvidenceSource,
    GateStatus,
    NextAction,
    NotEvaluated,
    TierStatus,
    WarningCode,
)


class ArmMetrics(FrozenModel):
    """The figures of one arm; void trials are in `void_trials` alone."""

    trials: int
    void_trials: int
    runner_completion: Share
    contamination: Share
    unverifiable_skill_events: Share


class GateMetrics(FrozenModel):
    """The figures behind the rules.

    Attributes:
        records: rows of the bundle.
        trials: planned trials that count.
        void_trials: planned trials that count for no arm.
        failed_trials: of those that count, ended without completing.
        contradicted: how often a row, or a trial, said something else than the disk or the plan, by claim.
        claims_without_evidence: claims that nothing on disk stands behind.
        breached_completions: completed trials with an observed breach.
    """

    records: int
    trials: int
    void_trials: int
    failed_trials: int
    contradicted: dict[str, int]
    claims_without_evidence: int
    breached_completions: int
    runner_completion: Share
    contamination: Share
    arm_contamination_gap: float | None
    unverifiable_skill_events: Share
    matched_calls: Share
    off_residuals: int
    blinding_leaks: int
    grade_faults: int
    budget_faults: int
    arms: dict[str, ArmMetrics]


class TierReport(FrozenModel):
    """The tier that was asked for and what the evidence carries.

    Attributes:
        requested_tier: None for a synthetic run.
        declared_waivers: the proofs that the configuration does without.
        coverage_limitations: those of them that were absent; whoever cites the verdict copies the list.
        tier_status: whether the evidence carries the tier.
        verdict_tier: set on a pass only, and never changed.
        boundary: what no reader may do with it.
    """

    schema_version: One
    requested_tier: EvidenceTierName | None
    declared_waivers: tuple[WaivableItem, ...]
    coverage_limitations: tuple[WaivableItem, ...]
    registry_schema: RegistrySchema
    tier_status: TierStatus
    verdict_tier: EvidenceTierName | None
    boundary: Literal["verdict-tier-never-relabelled"]

    @model_validator(mode="after")
    def _tiers_agree(self) -> Self:
        if self.requested_tier not in (None, RULES[self.registry_schema].tier):
            raise RuleBroken("The tier follows from the registry; this registry has the other one.")
        if self.verdict_tier is not None and self.verdict_tier is not self.requested_tier:
            raise RuleBroken("A verdict has the tier that was asked for, or none.")
        listed = list(self.coverage_limitations)
        if listed != sorted(set(listed)) or not set(listed) <= set(self.declared_waivers):
            raise RuleBroken("Limitations are sorted, named once, and of the declared waivers.")
        return self


class Decision(FrozenModel):
    """What happens next; no person is waited for."""

    mode: Literal["automated"]
    human_required: Literal[False]
    next_action: NextAction


class SyntheticCalibration(FrozenModel):
    """No reviewer was examined for a synthetic run."""

    status: Literal["not_evaluated_synthetic"]


class GateResult(FrozenModel):
    """The verdict of one gate.

    Attributes:
        status: `pass`, `fail` or `not_evaluated_synthetic`.
        meaning: of what the verdict is one.
        failures: the codes of `FailureCode`, those of rows with the row's number.
        warnings: what changes no verdict.
        not_evaluated_checks: in the order of `NotEvaluated`.
        evidence_tier: see `TierReport`.
        metrics: see `GateMetrics`.
        calibration: what the reviewers' examinations come to together; None when there is none.
        decision: see `Decision`.
        evidence_source: where the trials were opened.
    """

    schema_version: One
    status: GateStatus
    meaning: Literal["runner_eval_validity_only"]
    failures: tuple[str, ...]
    warnings: tuple[WarningCode, ...]
    not_evaluated_checks: tuple[NotEvaluated, ...]
    evidence_tier: TierReport
    metrics: GateMetrics
    calibration: CalibrationEvaluation | SyntheticCalibration | None
    decision: Decision
    evidence_source: EvidenceSource

    @model_validator(mode="after")
    def _only_a_pass_has_a_tier(self) -> Self:
        tier = self.evidence_tier
        passed = self.status is GateStatus.PASS
        if passed is (tier.verdict_tier is None) or passed is not (
            not self.failures and tier.requested_tier is not None
        ):
            raise RuleBroken("Exactly a gate without failures passes, and exactly a pass has a verdict tier.")
        return self


def result_json(result: GateResult) -> dict[str, JsonValue]:
    """The result as plain JSON values, every field present."""
    plain: dict[str, JsonValue] = result.model_dump(mode="json")
    return plain
