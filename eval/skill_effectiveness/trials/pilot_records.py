"""The rows of a bundle and what they claim (trials.md section 9).

A record never adds a fact. Each of its values is held against the one derived from the trial: another value
is a contradiction, a value with nothing behind it counts as absent, and an absent one says nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, JsonValue

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.trials.gate_facts import PlannedTrial, TrialName

if TYPE_CHECKING:
    from skill_effectiveness.trials.gate_facts import ArmFacts, TrialFacts

BUNDLE_CONTRACT: Final = "skill-effectiveness-pilot-evidence-v1"

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
Place = Annotated[int, Field(ge=1, le=1_000_000)]
"""A run order or sample index, from 1."""
Reason = Annotated[str, Field(min_length=1, max_length=4096)]

CLAIMS: Final = (
    "runner_completed",
    "runner_failure_reason",
    "manifest_diff_valid",
    "off_ccl_residual",
    "skill_events_verifiable",
    "skill_event_shape",
    "matched_call_compliant",
    "blinding_leak",
    "deterministic_replay_match",
    "contaminated",
    "budget_complete",
    "access_audit_ok",
    "memory_isolation_ok",
)
"""The values of a record besides its identity."""


class TrialRecord(FrozenModel):
    """One row of `trial-records.jsonl`: which trial, six hashes, and what it says of it."""

    task_id: Id
    arm_id: Id
    sample_index: Place
    run_order: Place
    task_family: TaskFamily
    task_hash: DigestText
    manifest_hash: DigestText
    runtime_hash: DigestText
    runner_hash: DigestText
    experiment_plan_hash: DigestText
    trial_fingerprint: DigestText
    runner_completed: bool | None = None
    runner_failure_reason: Reason | None = None
    manifest_diff_valid: bool | None = None
    off_ccl_residual: bool | None = None
    skill_events_verifiable: bool | None = None
    skill_event_shape: Reason | None = None
    matched_call_compliant: bool | None = None
    blinding_leak: bool | None = None
    deterministic_replay_match: bool | None = None
    contaminated: bool | None = None
    budget_complete: bool | None = None
    access_audit_ok: bool | None = None
    memory_isolation_ok: bool | None = None

    @property
    def name(self) -> TrialName:
        """Which trial the row is about."""
        return TrialName(self.task_id, self.arm_id, self.sample_index)

    @property
    def hashes(self) -> tuple[str, str, str, str, str, str]:
        """The six hashes, in the order of `PlannedTrial.hashes`."""
        return (
            self.task_hash,
            self.manifest_hash,
            self.runtime_hash,
            self.runner_hash,
            self.experiment_plan_hash,
            self.trial_fingerprint,
        )


class CalibrationReference(FrozenModel):
    """One further reviewer family, whose pair lies in `calibrations/<family>/`."""

    reviewer_family: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    calibration_hash: DigestText
    calibration_result_hash: DigestText


class BundleDocument(FrozenModel):
    """`bundle.json`: the digests that hold a bundle together.

    Attributes:
        records_hash: object digest of the list of rows.
        calibration_hash, calibration_result_hash: object digests of the pair in the bundle's own folder.
        config_hash: of the gates the caller asked for.
        plan_binding_hash: object digest of `{config_hash, expected_tasks, expected_manifest_hashes,
            expected_trials}`; the manifest hashes are sorted.
        calibrations: further reviewer families.
        capability_probes: entry hashes of the probes in `capability/`, sorted.
        trials_tree_hash: digest of the sealed trial copies in `trials/`.
        bundle_hash: object digest of the rest.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-pilot-evidence-v1"]
    records_hash: DigestText
    record_count: Annotated[int, Field(ge=0)]
    calibration_hash: DigestText
    calibration_result_hash: DigestText
    config_hash: DigestText
    plan_binding_hash: DigestText
    calibrations: tuple[CalibrationReference, ...] | None = None
    capability_probes: tuple[DigestText, ...] | None = None
    trials_tree_hash: DigestText | None = None
    bundle_hash: DigestText


def read_record(row: JsonValue) -> TrialRecord | None:
    """A row as a record; None when it is none."""
    try:
        return validate(TrialRecord, row)
    except EvidenceError:
        return None


def record_of(planned: PlannedTrial, facts: TrialFacts, arm: ArmFacts) -> TrialRecord:
    """The row that says exactly what is on disk."""
    names = ("task_hash", "manifest_hash", "runtime_hash", "runner_hash", "experiment_plan_hash")
    values = {claim: value for claim in CLAIMS if (value := on_disk(claim, facts, arm)) is not None}
    return TrialRecord.model_validate(
        {
            **planned.name._asdict(),
            "run_order": planned.run_order,
            "task_family": planned.family,
            **dict(zip((*names, "trial_fingerprint"), planned.hashes, strict=True)),
            **values,
        }
    )


def on_disk(claim: str, facts: TrialFacts, arm: ArmFacts) -> bool | str | None:
    """What the trial, or its arm's manifest, says where a record makes this claim."""
    if claim == "manifest_diff_valid":
        return not arm.diff_faults
    value: bool | str | None = getattr(facts, claim)
    return value


def is_known(claim: str, facts: TrialFacts) -> bool:
    """Whether the folder says anything of the claim; "no reason" and "no missing shape" are something."""
    match claim:
        case "manifest_diff_valid":
            return True
        case "runner_completed" | "runner_failure_reason":
            return "missing" not in facts.drift
        case "skill_event_shape":
            return facts.skill_events_verifiable is not None
        case _:
            return getattr(facts, claim) is not None


def contradicted(record: TrialRecord, facts: TrialFacts, arm: ArmFacts) -> tuple[str, ...]:
    """The claims of a row that the folder contradicts."""
    return tuple(
        claim
        for claim in CLAIMS
        if (said := getattr(record, claim)) is not None
        and is_known(claim, facts)
        and said != on_disk(claim, facts, arm)
    )


def unsupported(record: TrialRecord, facts: TrialFacts) -> tuple[str, ...]:
    """The claims of a row that nothing stands behind; they count as absent."""
    return tuple(
        claim for claim in CLAIMS if getattr(record, claim) is not None and not is_known(claim, facts)
    )
