"""The closed words of the pilot gate (trials.md section 9).

A failure says that something was seen and is wrong, or that too little was seen to pass; a check that could
not be made is named by `NotEvaluated` as well. `gate.failed_stages` says what a caller is told first.

| failure | when |
|---|---|
| `trial_record_identity_invalid:<i>` | row `i` (from 0) of the records is not a record of this contract |
| `trial_task_family_mismatch` | a row names another task family than the task has |
| `trial_evidence_binding` | a row differs from disk, or the trial from the plan or its own binding |
| `duplicate_trial_record` | two rows for one trial |
| `trial_plan_membership_mismatch` | a row outside the plan, or a planned trial without a row |
| `trial_execution_order` | a row says another place in the run order than the plan, or comes out of it |
| `no_trial_records` | no row at all |
| `runner_completion_rate` | too few trials completed |
| `arm_runner_completion_rate` | too few trials of one arm completed |
| `arm_systemic_runner_failure` | no trial of an arm completed |
| `runner_failure_reason_cross_family` | one reason stopped trials of several task families |
| `insufficient_task_arm_samples` | a cell of task and arm has too few ended samples; void ones do not count |
| `insufficient_smoke_tasks_per_arm` | an arm completed trials of too few tasks |
| `manifest_allowlisted_diff` | an arm differs from its off arm in other components than its allowlist |
| `off_ccl_layer_residual` | an off arm saw something of the treatment |
| `skill_event_unverifiable_rate` | too many trials, of all or an arm, with unverifiable skill events |
| `skill_event_shape_cross_family` | one missing shape of skill events in several task families |
| `matched_call_compliance` | too few trials of oracle and control arms made the matching call in time |
| `blinding_leak` | an outcome tells a judge its arm |
| `deterministic_grader_replay` | a grade is malformed, or grading again gave another |
| `total_contamination_rate` | too many contaminated trials |
| `arm_contamination_gap` | arms differ too much in contamination |
| `budget_missing` | a trial with a limit has no account of what it used up, or used more |
| `trial_file_isolation` | a completed trial with an observed breach of its folders |
| `cross_trial_memory_isolation` | a completed trial with observed memory, recall or persistence |
| `advisory_fresh_session_per_sample` | two samples share a session |
| `calibration_status_invalid` | examinations that cannot be evaluated, or of another status |
| `synthetic_calibration_on_non_synthetic_run` | a simulated reviewer, or a synthetic status, for a real run |
| `reviewer_calibration_family_count` | too few reviewer families |
| `calibration_evidence_invalid` | a pair that the loader refuses, or of another family than the bundle says |
| `reviewer_self_calibration` | a reviewer below its own gates |
| `reviewer_mutual_calibration` | two reviewers below the gates between families |
| `causal_core_unavailable` | a causal verdict without a proof or an eligible capability row that it needs |
| `required_evidence_not_evaluated` | a check that could not be made and that no waiver covers |
| `local_evidence_bundle_required` | a live evaluation without a bundle |

| not evaluated | absent |
|---|---|
| `off_runtime_residual_evidence` | row `host-residual-v1` of a trial of an off arm |
| `skill_event_verifiability` | row `skill-events-v2` |
| `matched_call_compliance` | that row in an oracle or control arm; a profile registry has neither arm |
| `blinding_leak` | the judge payload of an outcome |
| `deterministic_grader_replay` | one of the two grade files |
| `contamination` | the trial itself |
| `budget_complete` | the account of consumption |
| `trial_file_isolation` | proof of audit and roots |
| `cross_trial_memory_isolation` | proof of memory isolation or of no persistence at the provider |
| `provider_capability_matrix` | an eligible capability row for each task family |
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Stage(StrEnum):
    """What a failure is about, in the order in which a caller is told (bridge.md, section 4)."""

    REVIEWERS = "reviewers"
    CAPABILITY = "capability"
    PROOFS = "proofs"
    SKILL_EVENTS = "skill_events"
    ISOLATION = "isolation"
    GATE = "gate"


class FailureCode(StrEnum):
    """Why a gate does not pass; see the table above."""

    stage: Stage

    def __new__(cls, word: str, stage: Stage) -> Self:
        """A word and its stage."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.stage = stage
        return member

    CALIBRATION_STATUS_INVALID = "calibration_status_invalid", Stage.REVIEWERS
    SYNTHETIC_CALIBRATION_ON_NON_SYNTHETIC_RUN = (
        "synthetic_calibration_on_non_synthetic_run",
        Stage.REVIEWERS,
    )
    REVIEWER_CALIBRATION_FAMILY_COUNT = "reviewer_calibration_family_count", Stage.REVIEWERS
    CALIBRATION_EVIDENCE_INVALID = "calibration_evidence_invalid", Stage.REVIEWERS
    REVIEWER_SELF_CALIBRATION = "reviewer_self_calibration", Stage.REVIEWERS
    REVIEWER_MUTUAL_CALIBRATION = "reviewer_mutual_calibration", Stage.REVIEWERS
    CAUSAL_CORE_UNAVAILABLE = "causal_core_unavailable", Stage.PROOFS
    REQUIRED_EVIDENCE_NOT_EVALUATED = "required_evidence_not_evaluated", Stage.GATE
    SKILL_EVENT_UNVERIFIABLE_RATE = "skill_event_unverifiable_rate", Stage.SKILL_EVENTS
    SKILL_EVENT_SHAPE_CROSS_FAMILY = "skill_event_shape_cross_family", Stage.SKILL_EVENTS
    TOTAL_CONTAMINATION_RATE = "total_contamination_rate", Stage.GATE
    ARM_CONTAMINATION_GAP = "arm_contamination_gap", Stage.GATE
    TRIAL_FILE_ISOLATION = "trial_file_isolation", Stage.ISOLATION
    CROSS_TRIAL_MEMORY_ISOLATION = "cross_trial_memory_isolation", Stage.ISOLATION
    TRIAL_RECORD_IDENTITY_INVALID = "trial_record_identity_invalid", Stage.GATE
    TRIAL_TASK_FAMILY_MISMATCH = "trial_task_family_mismatch", Stage.GATE
    TRIAL_EVIDENCE_BINDING = "trial_evidence_binding", Stage.GATE
    DUPLICATE_TRIAL_RECORD = "duplicate_trial_record", Stage.GATE
    TRIAL_PLAN_MEMBERSHIP_MISMATCH = "trial_plan_membership_mismatch", Stage.GATE
    TRIAL_EXECUTION_ORDER = "trial_execution_order", Stage.GATE
    NO_TRIAL_RECORDS = "no_trial_records", Stage.GATE
    RUNNER_COMPLETION_RATE = "runner_completion_rate", Stage.GATE
    ARM_RUNNER_COMPLETION_RATE = "arm_runner_completion_rate", Stage.GATE
    ARM_SYSTEMIC_RUNNER_FAILURE = "arm_systemic_runner_failure", Stage.GATE
    RUNNER_FAILURE_REASON_CROSS_FAMILY = "runner_failure_reason_cross_family", Stage.GATE
    INSUFFICIENT_TASK_ARM_SAMPLES = "insufficient_task_arm_samples", Stage.GATE
    INSUFFICIENT_SMOKE_TASKS_PER_ARM = "insufficient_smoke_tasks_per_arm", Stage.GATE
    MANIFEST_ALLOWLISTED_DIFF = "manifest_allowlisted_diff", Stage.GATE
    OFF_CCL_LAYER_RESIDUAL = "off_ccl_layer_residual", Stage.GATE
    MATCHED_CALL_COMPLIANCE = "matched_call_compliance", Stage.GATE
    BLINDING_LEAK = "blinding_leak", Stage.GATE
    DETERMINISTIC_GRADER_REPLAY = "deterministic_grader_replay", Stage.GATE
    BUDGET_MISSING = "budget_missing", Stage.GATE
    ADVISORY_FRESH_SESSION_PER_SAMPLE = "advisory_fresh_session_per_sample", Stage.GATE
    LOCAL_EVIDENCE_BUNDLE_REQUIRED = "local_evidence_bundle_required", Stage.GATE


class NotEvaluated(StrEnum):
    """A check that could not be made; see the table above."""

    OFF_RUNTIME_RESIDUAL_EVIDENCE = "off_runtime_residual_evidence"
    SKILL_EVENT_VERIFIABILITY = "skill_event_verifiability"
    MATCHED_CALL_COMPLIANCE = "matched_call_compliance"
    BLINDING_LEAK = "blinding_leak"
    DETERMINISTIC_GRADER_REPLAY = "deterministic_grader_replay"
    CONTAMINATION = "contamination"
    BUDGET_COMPLETE = "budget_complete"
    TRIAL_FILE_ISOLATION = "trial_file_isolation"
    CROSS_TRIAL_MEMORY_ISOLATION = "cross_trial_memory_isolation"
    PROVIDER_CAPABILITY_MATRIX = "provider_capability_matrix"


class WarningCode(StrEnum):
    """What changes no verdict and whoever reads it should know.

    `void_trials_excluded`: trials of another model than asked for, or of a failed exposure check, counted
    for no arm. `claims_without_evidence`: rows said something that nothing on disk stands behind; it was
    taken as absent. `failed_trials_counted`: trials that ended without an answer stay in every share.
    """

    VOID_TRIALS_EXCLUDED = "void_trials_excluded"
    CLAIMS_WITHOUT_EVIDENCE = "claims_without_evidence"
    FAILED_TRIALS_COUNTED = "failed_trials_counted"


class GateStatus(StrEnum):
    """How a gate comes out."""

    PASS = "pass"  # noqa: S105 - a status, no password
    FAIL = "fail"
    NOT_EVALUATED_SYNTHETIC = "not_evaluated_synthetic"


class TierStatus(StrEnum):
    """Whether the evidence carries the tier that was asked for."""

    MET = "met"
    NOT_MET = "not_met"
    CAUSAL_CORE_UNAVAILABLE = "causal_core_unavailable"
    SYNTHETIC_NOT_A_TIER = "synthetic_not_a_tier"


class NextAction(StrEnum):
    """What a controller does next; nobody has to be asked."""

    CONTINUE = "continue_automated_trial"
    COLLECT = "collect_live_evidence"
    REPAIR = "repair_before_retry"
    PERSIST = "persist_local_evidence_before_retry"


class EvidenceSource(StrEnum):
    """Where the trials were opened."""

    TRIAL_STORE = "trial_store"
    SEALED_COPIES = "sealed_copies"
    SYNTHETIC = "synthetic"
    NONE = "none"
