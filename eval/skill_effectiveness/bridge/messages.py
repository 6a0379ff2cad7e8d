"""The documents of the wire and of the receipts: the schemas are generated from these models (bridge.md).

Types at every depth of a request are judged by the published schema (`shapes`), what a payload means by the
rooms below; every response is one of these.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel

from skill_effectiveness.bridge.words import Action, ReasonCode, Status
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, Yes
from skill_effectiveness.protocol.gates import EvidenceTier, EvidenceTierName, PilotGates, WaivableItem
from skill_effectiveness.protocol.manifests import ProfileManifest, SkillContentManifest
from skill_effectiveness.protocol.registries import ArmId, RegistrySchema
from skill_effectiveness.protocol.tasks import HeldOutTask, TaskRecord
from skill_effectiveness.trials.gate_result import GateResult
from skill_effectiveness.trials.models import (
    IsolationEvidence,
    RemainingBudget,
    ResumeCursor,
    Roots,
    Text,
    TrialBudget,
    TrialRuntime,
    TrialStatus,
    Version,
)
from skill_effectiveness.trials.pilot_plan import PlanRow

RequestSchema = Literal["skill-effectiveness.bridge.request.v1"]
ResponseSchema = Literal["skill-effectiveness.bridge.response.v1"]
RequestId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
AbsolutePath = Annotated[str, Field(pattern=r"^/")]
RelativePath = Annotated[str, Field(pattern=r"^[^/\x00]")]
Place = Annotated[str, Field(pattern=r"^[^/]+/[^/]+/sample-[0-9]{3,9}$")]
Count = Annotated[int, Field(ge=0)]


def absent() -> Any:  # noqa: ANN401 - stands for a member of any type
    """In the place of a member that may be absent, and is never null."""
    return None


class ManifestEntry(FrozenModel):
    """One file of code or frozen data."""

    path: str
    sha256: DigestText
    size: Count


class RuntimeManifest(FrozenModel):
    """Every file of the evaluator; the hash is over the rest."""

    schema_version: One
    entries: tuple[ManifestEntry, ...]
    manifest_hash: DigestText


class ProbePayload(FrozenModel):
    """Which of the two probes; the second is made under the manifest that was pinned after the first."""

    phase: Literal["manifest", "full"]
    pinned_manifest: RuntimeManifest = Field(default_factory=absent)


class DeclaredManifest(BaseModel):
    """An arm of the skill-content registry that says so; without this member it is as it was frozen."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    registry_schema: Literal[RegistrySchema.SKILL_CONTENT]


AnyManifest = ProfileManifest | SkillContentManifest | DeclaredManifest


class PreparePayload(FrozenModel):
    """One sample to be made or found; an arm whose manifest names no registry is of skill-content."""

    registry_schema: RegistrySchema
    task: TaskRecord | HeldOutTask
    manifest: AnyManifest
    runtime: TrialRuntime
    budget: TrialBudget
    sample_index: Annotated[int, Field(ge=1)]
    expected_isolation_evidence: IsolationEvidence | None = None
    expected_read_allow_roots: Roots = Field(default_factory=absent)
    expected_write_allow_roots: Roots = Field(default_factory=absent)
    registry_plan_path: RelativePath = Field(default_factory=absent)


Entered = Literal[
    TrialStatus.RUNNING,
    TrialStatus.INTERIM_BUDGET_STOP,
    TrialStatus.COMPLETED,
    TrialStatus.CONTAMINATED,
    TrialStatus.FAILED,
]


class CheckpointPayload(FrozenModel):
    """The state a trial enters; a completion makes both declarations."""

    trial_path: Place
    status: Entered
    access_audit_complete: bool = Field(default_factory=absent)
    access_roots_enforced: bool = Field(default_factory=absent)
    resume_cursor: ResumeCursor | None = None
    stop_reason: Text | None = None
    isolation_evidence: IsolationEvidence | None = None
    read_allow_roots: Roots = Field(default_factory=absent)
    write_allow_roots: Roots = Field(default_factory=absent)
    expected_state_version: Version | None = None


class CallerGates(PilotGates):
    """The frozen gates with tier and budgets of the caller; without a tier they ask for the causal one."""

    evidence_tier: EvidenceTier = Field(default_factory=absent)


class EvaluatePayload(FrozenModel):
    """One bundle to be judged; each of the four values stands here, or in a file by path and digest."""

    registry_schema: RegistrySchema
    evidence_path: RelativePath
    config: CallerGates = Field(default_factory=absent)
    config_path: RelativePath = Field(default_factory=absent)
    config_sha256: DigestText = Field(default_factory=absent)
    expected_tasks: tuple[TaskRecord | HeldOutTask, ...] = Field(default_factory=absent)
    expected_tasks_path: RelativePath = Field(default_factory=absent)
    expected_tasks_sha256: DigestText = Field(default_factory=absent)
    expected_manifests: tuple[AnyManifest, ...] = Field(default_factory=absent)
    expected_manifests_path: RelativePath = Field(default_factory=absent)
    expected_manifests_sha256: DigestText = Field(default_factory=absent)
    expected_trials: tuple[PlanRow, ...] = Field(default_factory=absent)
    expected_trials_path: RelativePath = Field(default_factory=absent)
    expected_trials_sha256: DigestText = Field(default_factory=absent)


class ProbeRequest(FrozenModel):
    """What is asked of the installation alone."""

    schema_id: RequestSchema = Field(alias="schema")
    request_id: RequestId
    action: Literal[Action.PROBE]
    artifact_root: None
    payload: ProbePayload


class PrepareRequest(FrozenModel):
    """One sample."""

    schema_id: RequestSchema = Field(alias="schema")
    request_id: RequestId
    action: Literal[Action.PREPARE]
    artifact_root: AbsolutePath
    payload: PreparePayload


class CheckpointRequest(FrozenModel):
    """One step of a trial."""

    schema_id: RequestSchema = Field(alias="schema")
    request_id: RequestId
    action: Literal[Action.CHECKPOINT]
    artifact_root: AbsolutePath
    payload: CheckpointPayload


class EvaluateRequest(FrozenModel):
    """One verdict."""

    schema_id: RequestSchema = Field(alias="schema")
    request_id: RequestId
    action: Literal[Action.EVALUATE]
    artifact_root: AbsolutePath
    payload: EvaluatePayload


class Request(
    RootModel[
        Annotated[
            ProbeRequest | PrepareRequest | CheckpointRequest | EvaluateRequest, Field(discriminator="action")
        ]
    ]
):
    """One request of a controller."""


class Interpreter(FrozenModel):
    """Which Python runs; its user site is always disabled."""

    configured_executable: AbsolutePath
    resolved_executable: AbsolutePath
    version: str
    implementation: str
    user_site_disabled: Yes


class RuntimeBinding(FrozenModel):
    """What gave an answer; the configuration is bound in phase full alone."""

    protocol_revision: Literal["skill-effectiveness.bridge.v1"]
    phase: Literal["manifest", "full"]
    bridge_hash: DigestText
    manifest_hash: DigestText
    configuration_hash: DigestText = Field(default_factory=absent)
    interpreter: Interpreter


class Dependency(FrozenModel):
    """One installed distribution."""

    name: str
    version: str
    record_sha256: DigestText


class CheckpointTiers(FrozenModel):
    """The only tier of each registry."""

    paired_profile: Literal[EvidenceTierName.ADVISORY_PAIRED] = Field(alias="paired-profile")
    skill_content: Literal[EvidenceTierName.CAUSAL] = Field(alias="skill-content")


class Configuration(FrozenModel):
    """What the installation judges by."""

    pilot_gates_hash: DigestText
    profile_arm_templates: dict[ArmId, DigestText]
    registry_schemas: tuple[RegistrySchema, ...]
    evidence_tiers: tuple[EvidenceTierName, ...]
    advisory_waivable_items: tuple[WaivableItem, ...]
    checkpoint_evidence_tiers: CheckpointTiers
    profile_arm_registry_plan_contract: Literal["skill-effectiveness-profile-arm-registry-plan-v1"]
    dependencies: tuple[Dependency, ...]


class ManifestProbeResult(FrozenModel):
    """What is installed; nothing of it was imported."""

    phase: Literal["manifest"]
    runtime_manifest: RuntimeManifest


class FullProbeResult(FrozenModel):
    """What the pinned installation can do."""

    phase: Literal["full"]
    supported_actions: tuple[Action, ...]
    reason_codes: tuple[ReasonCode, ...]
    configuration: Configuration
    loaded_checkout_modules: tuple[str, ...]


class PrepareResult(FrozenModel):
    """The sample, and what is left of its budget."""

    trial_path: Place
    mode: Literal["created", "resume", "complete"]
    state_version: Version
    remaining_budget: RemainingBudget
    replayed_receipt: bool


class CheckpointResult(FrozenModel):
    """The version that was written; limitations are listed once a trial has completed."""

    state_version: Version
    evidence_tier: EvidenceTierName | None
    coverage_limitations: tuple[WaivableItem, ...] | None
    replayed_receipt: bool


class EvaluateResult(FrozenModel):
    """The verdict; of one failure with a row number, the first hundred and how many more."""

    verdict: GateResult
    replayed_receipt: bool


class DoneResponse(FrozenModel):
    """To a request that was carried out."""

    schema_id: ResponseSchema = Field(alias="schema")
    request_id: RequestId
    status: Literal[Status.OK]
    reason_code: None
    runtime_binding: RuntimeBinding
    result: ManifestProbeResult | FullProbeResult | PrepareResult | CheckpointResult | EvaluateResult


class Nothing(FrozenModel):
    """An empty object."""


class RefusedResponse(FrozenModel):
    """To a request that was not."""

    schema_id: ResponseSchema = Field(alias="schema")
    request_id: RequestId
    status: Literal[Status.BLOCKED, Status.ERROR]
    reason_code: ReasonCode
    runtime_binding: Nothing
    result: Nothing


class Response(RootModel[DoneResponse | RefusedResponse]):
    """One response to a controller."""


class Receipt(FrozenModel):
    """`bridge-receipts/<request_id>.json`: what a request came to."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-bridge-receipt-v1"]
    request_id: RequestId
    request_hash: DigestText
    runtime_binding: RuntimeBinding
    result: dict[str, JsonValue]


class Intent(FrozenModel):
    """`bridge-receipts/intents/<request_id>.json`: what a request is about to change.

    `target` is the file below the artifact root that changes, `before` and `after` the digests of its bytes;
    null where it does not exist.
    """

    request_hash: DigestText
    runtime_binding: RuntimeBinding
    target: str
    before: DigestText | None
    after: DigestText | None
    result: dict[str, JsonValue]
