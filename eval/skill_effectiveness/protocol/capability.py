"""What a runner and a provider have been shown to isolate, per task family (trials.md section 8).

A row says what a probe observed; it is read back from the probe's own file, and rows that come from anywhere
else make nothing ready. `eligible` is the one judgement: everything seen, everything safe, nothing assumed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json, told
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.words import TaskFamily

NO_PROVIDER: Final = "none"
CONTRACT: Final = "skill-effectiveness-capability-probe-v1"

PartyName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._:+-]{0,127}$")]
"""A runner or a provider."""

ProbeId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:+-]{0,127}$")]
"""Which probe looked."""


class CapabilityStatus(StrEnum):
    """What became of one probe: a proof, an observed violation, or no proof."""

    VERIFIED = "verified"
    VIOLATED = "violated"
    UNVERIFIED = "unverified"


class MatrixStatus(StrEnum):
    """Whether every task family has an eligible row."""

    READY = "ready"
    CAUSAL_CORE_UNAVAILABLE = "causal_core_unavailable"


class MountObservations(FrozenModel):
    """Whether the agent was kept from what lies outside; null where nobody looked."""

    outside_read_denied: bool | None
    outside_write_denied: bool | None


class AuditObservations(FrozenModel):
    """Whether every access was recorded, and a tampered record was noticed; null where nobody looked."""

    all_accesses_recorded: bool | None
    tamper_check_passed: bool | None


class MemoryObservations(FrozenModel):
    """Whether a session starts anew; null where nobody looked."""

    fresh_session: bool | None
    cross_session_recall_detected: bool | None


class MountBoundary(FrozenModel):
    """The probe of what the agent can reach."""

    probe_id: ProbeId
    status: CapabilityStatus
    observations: MountObservations


class AccessAudit(FrozenModel):
    """The probe of the record of accesses."""

    probe_id: ProbeId
    status: CapabilityStatus
    observations: AuditObservations


class MemoryIsolation(FrozenModel):
    """The probe of what one session knows of another."""

    probe_id: ProbeId
    status: CapabilityStatus
    observations: MemoryObservations


class CapabilityEvidence(FrozenModel):
    """The three probes of one row."""

    mount_boundary: MountBoundary
    access_audit: AccessAudit
    memory_isolation: MemoryIsolation


class CapabilityRow(FrozenModel):
    """What was observed of one runner with one provider at one family of tasks."""

    runner: PartyName
    provider: PartyName
    task_family: TaskFamily
    evidence: CapabilityEvidence
    evidence_hash: DigestText

    @model_validator(mode="after")
    def _hash_is_of_the_evidence(self) -> Self:
        if digest_object(to_json(self.evidence)) != self.evidence_hash:
            raise RuleBroken("evidence_hash is not the hash of the evidence.")
        return self


class CapabilityProbe(FrozenModel):
    """The file that a probe leaves: one row under its hash."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-capability-probe-v1"]
    entry: CapabilityRow
    entry_hash: DigestText

    @model_validator(mode="after")
    def _hash_is_of_the_entry(self) -> Self:
        if digest_object(to_json(self.entry)) != self.entry_hash:
            raise RuleBroken("entry_hash is not the hash of the entry.")
        return self


def eligible(row: CapabilityRow) -> bool:
    """Whether a row lets its task family take part in a causal run."""
    mount, audit, memory = (
        row.evidence.mount_boundary,
        row.evidence.access_audit,
        row.evidence.memory_isolation,
    )
    return (
        row.provider != NO_PROVIDER
        and all(probe.status is CapabilityStatus.VERIFIED for probe in (mount, audit, memory))
        and mount.observations.outside_read_denied is True
        and mount.observations.outside_write_denied is True
        and audit.observations.all_accesses_recorded is True
        and audit.observations.tamper_check_passed is True
        and memory.observations.fresh_session is True
        and memory.observations.cross_session_recall_detected is False
    )


def probe_of(row: CapabilityRow) -> CapabilityProbe:
    """The file that holds a row."""
    return CapabilityProbe(
        schema_version=1,
        artifact_contract=CONTRACT,
        entry=row,
        entry_hash=digest_object(to_json(row)),
    )


def parse_probe(value: object) -> CapabilityProbe:
    """What a probe left, with both of its hashes recomputed.

    Raises:
        ProtocolError: `capability_invalid`, naming the faults and where.
    """
    try:
        return validate(CapabilityProbe, value)
    except EvidenceError as error:
        place = error.faults[0].where
        sentence = f"the capability probe is malformed; run the probe again. Found: {told(error)}"
        raise ProtocolError(ProtocolCode.CAPABILITY_INVALID, f"capability-probe#{place}", sentence) from error
