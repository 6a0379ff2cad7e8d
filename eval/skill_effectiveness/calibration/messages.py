"""The documents of the wire: requests and responses of the controller door (calibration.md, section 3).

The published schemas are made from them, and every response is one of them. A request is read field by field,
in the order of the section's checks (`wire`), which accepts what these accept and nothing else.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, RootModel, WithJsonSchema

from skill_effectiveness.calibration.errors import CalibrationCode, Status
from skill_effectiveness.calibration.models import (
    FamilyName,
    ModelName,
    Record,
    SampleId,
    SampleIds,
    TimeoutSeconds,
)
from skill_effectiveness.calibration.reviewer import CONTROLLED
from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.document import DigestText, One

REQUEST_ID: Final = r"[A-Za-z0-9._-]{1,128}"


class Action(StrEnum):
    """What a controller may ask for."""

    PROBE = "probe"
    SAMPLE = "sample"
    FINALIZE = "finalize"


def _controlled(name: str) -> str:
    if name not in CONTROLLED:
        raise RuleBroken("This provider cannot be sampled by a controller.")
    return name


RequestId = Annotated[str, Field(pattern=f"^{REQUEST_ID}$")]
AbsolutePath = Annotated[str, Field(pattern=r"^/")]
ControlledProvider = Annotated[
    str, AfterValidator(_controlled), WithJsonSchema({"type": "string", "enum": list(CONTROLLED)})
]
NoCall = Annotated[int, Field(ge=0, le=0)]
RequestSchema = Literal["skill-effectiveness.reviewer-calibration.request.v1"]
ResponseSchema = Literal["skill-effectiveness.reviewer-calibration.response.v1"]


class ProbePayload(Record):
    """Nothing."""


class SamplePayload(Record):
    """Who is asked, with what, and what it may cost."""

    sample_id: SampleId
    provider: ControlledProvider
    executable: AbsolutePath
    model: ModelName
    reviewer_family: FamilyName
    timeout_seconds: TimeoutSeconds
    max_model_calls: One
    runtime_manifest_hash: DigestText


class FinalizePayload(Record):
    """Which samples make up the calibration; all that the root holds."""

    sample_ids: SampleIds
    runtime_manifest_hash: DigestText


class ProbeRequest(Record):
    """What is asked of the installation alone."""

    schema_id: RequestSchema = Field(alias="schema")
    request_id: RequestId
    action: Literal[Action.PROBE]
    payload: ProbePayload


class SampleRequest(Record):
    """One sample."""

    schema_id: RequestSchema = Field(alias="schema")
    request_id: RequestId
    action: Literal[Action.SAMPLE]
    artifact_root: AbsolutePath
    payload: SamplePayload


class FinalizeRequest(Record):
    """The pair out of the samples of a root."""

    schema_id: RequestSchema = Field(alias="schema")
    request_id: RequestId
    action: Literal[Action.FINALIZE]
    artifact_root: AbsolutePath
    payload: FinalizePayload


class Request(
    RootModel[Annotated[ProbeRequest | SampleRequest | FinalizeRequest, Field(discriminator="action")]]
):
    """One request of a controller."""


class InterpreterEntry(Record):
    """Which Python runs."""

    implementation: str
    version: str
    executable_hash: DigestText


class ManifestEntry(Record):
    """One file of code or frozen data."""

    path: str
    sha256: DigestText
    size: Annotated[int, Field(ge=0)]


class DependencyEntry(Record):
    """One installed distribution."""

    name: str
    version: str
    record_sha256: DigestText


class RuntimeManifest(Record):
    """Everything an examination runs on; the hash is over the rest."""

    schema_version: One
    protocol_revision: Literal["skill-effectiveness.reviewer-calibration.v1"]
    interpreter: InterpreterEntry
    entries: tuple[ManifestEntry, ...]
    dependencies: tuple[DependencyEntry, ...]
    manifest_hash: DigestText


class ProbeResult(Record):
    """What this installation can do, and what it is."""

    protocol_revision: Literal["skill-effectiveness.reviewer-calibration.v1"]
    supported_actions: tuple[Action, ...]
    supported_providers: tuple[ControlledProvider, ...]
    reason_codes: tuple[CalibrationCode, ...]
    runtime_manifest: RuntimeManifest
    runtime_manifest_hash: DigestText
    sample_model_call_limit: One
    finalize_model_call_count: NoCall


class SampleResult(Record):
    """A sample that counts."""

    sample_id: SampleId
    sample_artifact: str
    sample_hash: DigestText
    runtime_manifest_hash: DigestText
    model_call_count: One


class FinalizeResult(Record):
    """A published pair."""

    calibration_status: Literal["pass", "fail"]
    calibration_evidence: Literal["reviewer-calibration.json"]
    calibration_result: Literal["reviewer-calibration-result.json"]
    runtime_manifest_hash: DigestText
    model_call_count: NoCall


class ProbeAnswer(Record):
    """To a probe."""

    schema_id: ResponseSchema = Field(alias="schema")
    request_id: RequestId
    status: Literal[Status.OK]
    action: Literal[Action.PROBE]
    result: ProbeResult


class SampleAnswer(Record):
    """To a sample request."""

    schema_id: ResponseSchema = Field(alias="schema")
    request_id: RequestId
    status: Literal[Status.OK]
    action: Literal[Action.SAMPLE]
    result: SampleResult


class FinalizeAnswer(Record):
    """To a finalize request."""

    schema_id: ResponseSchema = Field(alias="schema")
    request_id: RequestId
    status: Literal[Status.OK]
    action: Literal[Action.FINALIZE]
    result: FinalizeResult


class RefusalAnswer(Record):
    """To a request that was not carried out; the action is named if it could be read."""

    schema_id: ResponseSchema = Field(alias="schema")
    request_id: RequestId
    status: Literal[Status.INVALID, Status.BLOCKED, Status.ERROR]
    action: Action | None = None
    reason_code: CalibrationCode


class Response(RootModel[ProbeAnswer | SampleAnswer | FinalizeAnswer | RefusalAnswer]):
    """One response to a controller."""
