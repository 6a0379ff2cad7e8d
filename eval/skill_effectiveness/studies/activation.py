"""Activation records: that somebody used the verdict of a study, and which (studies.md section 8).

A record authorises nothing and is no verdict. It exists only for a verdict that passed, in a bundle that
verifies, and repeats the verdict's limitations as they stood; one without them, or with an edited list, does
not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.documents import Canonical, RuleBroken, parse, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json, told
from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan import TimeText
from skill_effectiveness.studies.results import read_results
from skill_effectiveness.studies.rows import Reason

if TYPE_CHECKING:
    from datetime import datetime

    from skill_effectiveness.studies.results import Results, StudyVerdict

ACTIVATION_CONTRACT: Final = "skill-effectiveness-activation-record-v1"
RECORD_HASH: Final = "record_hash"
BOUNDARY: Final = "states-use-authorises-nothing"


class ActivationRecord(FrozenModel):
    """One use of one verdict.

    Attributes:
        verdict_hash: `H` of the verdict in the results.
        coverage_limitations: of the verdict, verbatim.
        merkle_root: of the bundle that held them.
        record_hash: `H` of the rest.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-activation-record-v1"]
    boundary: Literal["states-use-authorises-nothing"]
    verdict_hash: DigestText
    verdict_tier: EvidenceTierName
    coverage_limitations: Annotated[tuple[WaivableItem, ...], Field(max_length=len(WaivableItem))]
    plan_digest: DigestText
    results_digest: DigestText
    merkle_root: DigestText
    recorded_at: TimeText
    reason: Reason
    record_hash: DigestText

    @model_validator(mode="after")
    def _as_it_was_written(self) -> Self:
        items = [str(item) for item in self.coverage_limitations]
        if items != sorted(set(items)):
            raise RuleBroken("Limitations are sorted and named once; take the verdict's own list.")
        if self.verdict_tier is EvidenceTierName.CAUSAL and items:
            raise RuleBroken("A causal verdict has no limitation.")
        body = to_json(self)
        if self.record_hash != digest_object({key: body[key] for key in body.keys() - {RECORD_HASH}}):
            raise RuleBroken("record_hash is not over this record; it was edited, so take the original.")
        return self


def verdict_hash(verdict: StudyVerdict) -> str:
    """`H` of a verdict."""
    return digest_object(verdict.model_dump(mode="json"))


def claimed_results(data: bytes) -> Results:
    """The results that somebody wants to use.

    Raises:
        StudyError: `activation_invalid`: they are none, were edited, or lack their limitations.
    """
    try:
        return read_results(data)
    except EvidenceError as error:
        sentence = f"these are no results as they were written; take the original. Found: {told(error)}"
        raise StudyError(StudyCode.ACTIVATION_INVALID, "results.json", sentence) from error


def record_activation(results: Results, merkle_root: str, reason: str, at: datetime) -> ActivationRecord:
    """The record of one use.

    Args:
        results: of a bundle that verified.
        merkle_root: of that bundle.
        reason: in a person's words.
        at: UTC.

    Raises:
        ValueError: a verdict that did not pass.
    """
    verdict = results.verdict
    if verdict.gate_status != "pass" or not isinstance(verdict.verdict_tier, EvidenceTierName):
        raise ValueError("only a verdict that passed can be used")
    body = {
        "schema_version": 1,
        "artifact_contract": ACTIVATION_CONTRACT,
        "boundary": BOUNDARY,
        "verdict_hash": verdict_hash(verdict),
        "verdict_tier": str(verdict.verdict_tier),
        "coverage_limitations": [str(item) for item in verdict.coverage_limitations],
        "plan_digest": results.plan_digest,
        "results_digest": results.results_digest,
        "merkle_root": merkle_root,
        "recorded_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "reason": reason,
    }
    return validate(ActivationRecord, body | {RECORD_HASH: digest_object(body)})


def activation_line(record: ActivationRecord) -> bytes:
    """The bytes of a record's file."""
    return dump_line(to_json(record))


def read_activation(data: bytes) -> ActivationRecord:
    """A record out of its file.

    Raises:
        StudyError: `activation_invalid`: it is none, was edited, or lacks the limitations.
    """
    try:
        return parse(ActivationRecord, data, Profile.DOCUMENT, canonical=Canonical.LINE)
    except EvidenceError as error:
        sentence = f"this is no activation record as it was written; take the original. Found: {told(error)}"
        raise StudyError(StudyCode.ACTIVATION_INVALID, "", sentence) from error


def differing_field(record: ActivationRecord, results: Results, merkle_root: str) -> str | None:
    """The first field in which a record is not about these results; None where it is.

    Args:
        record: as it was read.
        results: of a bundle that verified.
        merkle_root: of that bundle.
    """
    verdict = results.verdict
    for field, expected in (
        ("merkle_root", merkle_root),
        ("plan_digest", results.plan_digest),
        ("results_digest", results.results_digest),
        ("verdict_hash", verdict_hash(verdict)),
        ("verdict_tier", verdict.verdict_tier),
        ("coverage_limitations", verdict.coverage_limitations),
    ):
        if getattr(record, field) != expected:
            return field
    return None
