"""What a live probe of one provider can say of it, and what it never can.

Source: trials.md section 8; providers.md section 6.

`OUTCOMES` is the whole mapping. Neither row of it is a proof of isolation: a session that names a canary of
an earlier one has shown a breach, and one that names none has shown nothing. A result that pairs them
otherwise does not load. Table and functions are protected lines (`protected-lines.json`).
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.capability import (
    AccessAudit,
    AuditObservations,
    CapabilityEvidence,
    CapabilityRow,
    CapabilityStatus,
    MatrixStatus,
    MemoryIsolation,
    MemoryObservations,
    MountBoundary,
    MountObservations,
    PartyName,
    probe_of,
)
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, Yes, to_json
from skill_effectiveness.protocol.words import TaskFamily

if TYPE_CHECKING:
    from collections.abc import Mapping

RESULT_CONTRACT: Final = "skill-effectiveness-provider-capability-result-v1"
RUNNER: Final = "provider-probe"
PROBE_ID: Final = "cross-session-canary-v1"


class IsolationOutcome(StrEnum):
    """What two sessions have shown; there is no word for isolated."""

    CONTAMINATED = "contaminated"
    UNRESOLVED_ISOLATION_THREAT = "unresolved_isolation_threat"


OUTCOMES: Final[Mapping[bool, tuple[IsolationOutcome, MatrixStatus]]] = MappingProxyType(
    {
        True: (IsolationOutcome.CONTAMINATED, MatrixStatus.CAUSAL_CORE_UNAVAILABLE),
        False: (IsolationOutcome.UNRESOLVED_ISOLATION_THREAT, MatrixStatus.CAUSAL_CORE_UNAVAILABLE),
    }
)
"""By whether the second session named a canary: the outcome, and the status of the matrix."""


class CrossTrialCanary(FrozenModel):
    """What became of the canary; only digests of texts.

    Attributes:
        recalled_value_hash: digest of what the second session named, null where it named nothing; equal to
            `canary_hash` where that was the canary of this probe, in whatever form.
    """

    canary_hash: DigestText
    seed_acknowledged: Yes
    recall_probe_completed: Yes
    cross_session_recall_detected: bool
    recalled_value_hash: DigestText | None

    @model_validator(mode="after")
    def _value_with_recall(self) -> Self:
        if self.cross_session_recall_detected is not (self.recalled_value_hash is not None):
            raise RuleBroken("A recalled value has a hash exactly where a recall was detected.")
        return self


class ProbedMatrix(FrozenModel):
    """The matrix over the one family that was probed."""

    status: MatrixStatus
    covered: tuple[TaskFamily, ...]
    lacking: tuple[TaskFamily, ...]
    rows: tuple[CapabilityRow, ...]


class ProviderCapabilityResult(FrozenModel):
    """`provider-probe-result.json`: who was probed, what came of it, and how little that says."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-provider-capability-result-v1"]
    execution_status: Literal["completed"]
    provider: PartyName
    provider_cli_version: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]+$")]
    provider_executable_hash: DigestText
    provider_environment_keys: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")], ...]
    model: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]
    task_family: TaskFamily
    timeout_seconds: Annotated[int, Field(ge=1, le=600)]
    requested_session_mode: Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,63}$")]
    tool_access: Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,63}$")]
    isolation_outcome: IsolationOutcome
    cross_trial_canary: CrossTrialCanary
    capability_artifact: str
    capability_artifact_hash: DigestText
    capability_matrix: ProbedMatrix
    provider_persistence_declaration: Literal["unverified"]
    conclusion_boundary: Literal["no_recall_in_one_session_is_no_proof_of_isolation"]
    security_review_status: Literal["not_reviewed"]

    @model_validator(mode="after")
    def _says_what_was_seen(self) -> Self:
        recalled = self.cross_trial_canary.cross_session_recall_detected
        row = capability_row(self.provider, self.task_family, recalled=recalled)
        if (self.isolation_outcome, self.capability_matrix) != outcome_of(row):
            raise RuleBroken("Outcome and matrix are those that the table gives for what was seen.")
        if self.capability_artifact != artifact_name(self.task_family):
            raise RuleBroken("The capability artifact is named after the task family.")
        if self.capability_artifact_hash != digest_object(to_json(probe_of(row))):
            raise RuleBroken("capability_artifact_hash is not the hash of the row's artifact.")
        return self


def artifact_name(family: TaskFamily) -> str:
    """The file that holds the row of a family."""
    return f"capability-probe-{family.value}.json"


def capability_row(provider: str, family: TaskFamily, *, recalled: bool) -> CapabilityRow:
    """The row that two sessions give: a violation, or no proof; nothing else was looked at."""
    nobody_looked = CapabilityStatus.UNVERIFIED
    evidence = CapabilityEvidence(
        mount_boundary=MountBoundary(
            probe_id=PROBE_ID,
            status=nobody_looked,
            observations=MountObservations(outside_read_denied=None, outside_write_denied=None),
        ),
        access_audit=AccessAudit(
            probe_id=PROBE_ID,
            status=nobody_looked,
            observations=AuditObservations(all_accesses_recorded=None, tamper_check_passed=None),
        ),
        memory_isolation=MemoryIsolation(
            probe_id=PROBE_ID,
            status=CapabilityStatus.VIOLATED if recalled else CapabilityStatus.UNVERIFIED,
            observations=MemoryObservations(
                fresh_session=False if recalled else None, cross_session_recall_detected=recalled
            ),
        ),
    )
    return CapabilityRow(
        runner=RUNNER,
        provider=provider,
        task_family=family,
        evidence=evidence,
        evidence_hash=digest_object(to_json(evidence)),
    )


def outcome_of(row: CapabilityRow) -> tuple[IsolationOutcome, ProbedMatrix]:
    """The outcome of a row of `capability_row`, and the matrix over it: never ready."""
    recalled = row.evidence.memory_isolation.observations.cross_session_recall_detected is True
    outcome, status = OUTCOMES[recalled]
    return outcome, ProbedMatrix(status=status, covered=(), lacking=(row.task_family,), rows=(row,))
