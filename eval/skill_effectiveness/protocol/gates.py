"""The pilot gates, frozen before any outcome (trials.md section 1).

They answer "were runner and evaluator valid", never "does the skill work". The primary outcome of each task
family, which every analysis starts from, is one of these measures; each is a share from 0 to 1 that a grader
can decide without a reviewer's preference:

| family | primary outcome | the share of |
|---|---|---|
| implementation | `acceptance_tests_passed` | samples whose hidden acceptance tests all pass |
| review | `seeded_defects_found` | the defects placed in the change that the review names |
| diagnosis | `root_cause_identified` | samples that name the recorded cause |
| plan | `required_steps_covered` | the required steps that the plan holds in a workable order |
| shared_gate | `gate_decision_correct` | samples that decide the gate as recorded |
| delegation | `delegated_result_accepted` | delegated results that pass their acceptance checks |
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.document import (
    Count,
    DigestText,
    FrozenModel,
    One,
    Rate,
    Two,
    Yes,
    read_document,
)

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

GATES_FILE: Final = "fixtures/pilot-gates.json"

OutcomeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Limit = Annotated[float, Field(gt=0)] | None
"""A finite amount above 0, or unlimited."""


class EvidenceTierName(StrEnum):
    """The two kinds of verdict that exist; neither turns into the other."""

    CAUSAL = "causal"
    ADVISORY_PAIRED = "advisory-paired"


class WaivableItem(StrEnum):
    """The six proofs an advisory verdict may lack; never a seventh (trials.md section 6)."""

    ACCESS_ROOT_ENFORCEMENT = "access_root_enforcement"
    COMPLETE_ACCESS_AUDIT = "complete_access_audit"
    LIVE_MATCHED_CALL_GATE = "live_matched_call_gate"
    MEMORY_ISOLATION_PROOF = "memory_isolation_proof"
    MOUNT_EVIDENCE = "mount_evidence"
    PROVIDER_SIDE_PERSISTENCE_PROOF = "provider_side_persistence_proof"


class EvidenceTier(FrozenModel):
    """The tier a run asks for and the proofs it does without."""

    schema_version: One
    requested_tier: EvidenceTierName
    waived_items: Annotated[tuple[WaivableItem, ...], Field(max_length=len(WaivableItem))]

    @model_validator(mode="after")
    def _waivers_are_sorted_and_advisory(self) -> Self:
        if list(self.waived_items) != sorted(set(self.waived_items)):
            raise RuleBroken("Waived items must be sorted and named once.")
        if self.requested_tier is EvidenceTierName.CAUSAL and self.waived_items:
            raise RuleBroken("The causal tier waives nothing.")
        return self


class Thresholds(FrozenModel):
    """Point-estimate gates; bounds are inclusive, except the contamination gap, which fails when reached."""

    runner_completion_rate_min: Rate
    samples_per_task_arm_min: Count
    smoke_tasks_per_arm_min: Count
    skill_event_unverifiable_rate_max: Rate
    missing_shape_task_family_stop_count: Count
    matched_call_smoke_rate_min: Rate
    reviewer_family_count_min: Count
    reviewer_self_consistency_min: Rate
    reviewer_known_answer_accuracy_min: Rate
    reviewer_pairwise_agreement_min: Rate
    reviewer_pairwise_kappa_min: Rate
    contamination_rate_max: Rate
    arm_contamination_gap_max: Rate


class Budgets(FrozenModel):
    """What one trial may use up; null is unlimited."""

    tokens: Limit
    wall_time_seconds: Limit
    tool_calls: Limit
    cost_units: Limit


class PrimaryOutcomes(FrozenModel):
    """The measure each family is analysed by."""

    implementation: OutcomeName
    review: OutcomeName
    diagnosis: OutcomeName
    plan: OutcomeName
    shared_gate: OutcomeName
    delegation: OutcomeName


class MinimumEffects(FrozenModel):
    """The least difference of the primary outcome worth acting on, per family."""

    implementation: Rate
    review: Rate
    diagnosis: Rate
    plan: Rate
    shared_gate: Rate
    delegation: Rate


COMPARISONS_ALLOWED: Final = "owner_bundle_only"
CONTENT_UNANSWERABLE: Final = "ccl_specific_content_unanswerable"
"""What a report compares and what it prints in the place of a content effect, while a control is pending."""


class PendingActiveControl(FrozenModel):
    """No fair opponent exists yet (controls.md section 6).

    It says what a report may compare until then, and what it prints instead of a content effect.
    """

    status: Literal["pending-independent-candidates"]
    required_independent_candidates: Two
    selection_blinded_before_outcomes: Yes
    allowed_comparisons: tuple[Literal["owner_bundle_only"]]
    content_effect: Literal["ccl_specific_content_unanswerable"]


class PilotGates(FrozenModel):
    """The whole gates file."""

    schema_version: One
    frozen_before_outcomes: Yes
    enforcement: Literal["advisory"]
    evidence_tier: EvidenceTier
    meaning: Literal["runner_eval_validity_only"]
    reviewer_calibration_fixture_hash: DigestText
    reviewer_calibration_case_fixture_hash: DigestText
    thresholds: Thresholds
    budgets: Budgets
    primary_outcomes: PrimaryOutcomes
    minimum_effects: MinimumEffects
    active_control: PendingActiveControl


def load_gates(fs: FileSystem) -> PilotGates:
    """The frozen gates of this installation.

    Raises:
        ProtocolError: `fixture_invalid`.
    """
    return read_document(fs, GATES_FILE, PilotGates)


def gates_hash(gates: PilotGates) -> str:
    """The object digest of the gates, equal to that of the file's JSON value whatever its layout."""
    return digest_object(gates.model_dump(mode="json"))
