"""The documents of an examination, field for field (calibration.md, sections 4, 6 and 7).

Each record is frozen, refuses unknown fields and converts nothing. A field that only some variants have is
declared with the default None and is then really absent from the bytes: `to_json` leaves every default out,
and no other field has one. A null that means "unknown" (usage) is a value and stays. The one written form is
canonical JSON plus LF (`to_line`).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from skill_effectiveness.calibration.bias import BiasSheet
from skill_effectiveness.calibration.evaluation import CalibrationEvaluation
from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.evidence.strict import LARGEST_INTEGER
from skill_effectiveness.protocol.cases import KnownAnswer
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, Yes
from skill_effectiveness.protocol.words import BankName, Verdict
from skill_effectiveness.providers import MODEL_ID

SampleContract = Literal["skill-effectiveness-reviewer-calibration-sample-v1"]
LedgerV1Contract = Literal["skill-effectiveness-reviewer-calibration-sample-ledger-entry-v1"]
LedgerV2Contract = Literal["skill-effectiveness-reviewer-calibration-sample-ledger-entry-v2"]
ObservationContract = Literal["skill-effectiveness-reviewer-calibration-observation-v1"]
FinalizationContract = Literal["skill-effectiveness-reviewer-calibration-finalization-intent-v1"]
EndingContract = Literal["skill-effectiveness-reviewer-calibration-attempt-ending-v1"]
BindingContract = Literal["skill-effectiveness-reviewer-calibration-binding-v1"]
ResultContract = Literal["skill-effectiveness-reviewer-calibration-result-v1"]
ProbeResultContract = Literal["skill-effectiveness-reviewer-bias-probe-result-v1"]


def _present(value: object) -> object:
    if value is None:
        raise RuleBroken("This field is absent where it does not apply, never null.")
    return value


# After, not before: one that runs before is handed plain lists, which a strict tuple then refuses.
_ABSENT_NOT_NULL = AfterValidator(_present)

SAMPLE_ID: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
FAMILY_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
MODEL_NAME: Final = MODEL_ID


def _distinct(ids: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(ids)) != len(ids):
        raise RuleBroken("Each sample is named once.")
    return ids


SampleId = Annotated[str, Field(pattern=f"^{SAMPLE_ID}$")]
SampleIds = Annotated[
    tuple[SampleId, ...],
    Field(min_length=2, max_length=5, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_distinct),
]
FamilyName = Annotated[str, Field(pattern=f"^{FAMILY_NAME}$")]
ModelName = Annotated[str, Field(pattern=f"^{MODEL_NAME}$")]
ProviderName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
OneLine = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]+$")]
EnvironmentKey = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Word = Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,63}$")]
Token = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
TimeoutSeconds = Annotated[int, Field(ge=1, le=600)]
RepeatCount = Annotated[int, Field(ge=2, le=5)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Bit = Annotated[int, Field(ge=0, le=1)]
Synthetic = Annotated[Yes | None, _ABSENT_NOT_NULL]


class Record(FrozenModel):
    """Base of the documents of this room; a field has a default only if its variant may lack it."""


def to_json(record: FrozenModel) -> dict[str, JsonValue]:
    """The record as plain JSON values, without the fields its variant does not have."""
    plain: dict[str, JsonValue] = record.model_dump(mode="json", exclude_defaults=True)
    return plain


def to_line(record: FrozenModel) -> bytes:
    """The bytes a file of this record holds: canonical JSON plus LF."""
    return dump_line(to_json(record))


class Judgment(Record):
    """One verdict in bank orientation."""

    case_id: str
    verdict: Verdict


class ShownAnswer(Record):
    """One case as it was shown and answered.

    `orientation` 1 means that `candidate_a` stood in the second seat; the verdict is as given.
    """

    case_id: str
    orientation: Bit
    verdict: Verdict


class Usage(Record):
    """What one call cost; null is unknown, never zero. `latency_ms` is wall time in milliseconds."""

    input_tokens: Count | None
    output_tokens: Count | None
    cost_units: Annotated[float, Field(ge=0)] | None
    latency_ms: Count | None


UNKNOWN_COST: Final = Usage(input_tokens=None, output_tokens=None, cost_units=None, latency_ms=None)
"""Of a call that was not made, or never came back."""


class LegacyLedgerEntry(Record):
    """A ledger entry without a state, of an older contract.

    It counts only beside a completed intent and its sample and never authorises a resume.
    """

    schema_version: One
    artifact_contract: LedgerV1Contract
    sample_id: SampleId
    artifact_root_hash: DigestText


class LedgerEntry(Record):
    """The first durable record of a sample.

    It is `reserved`, then `model_call_started`, which authorises no further call for ever.
    """

    schema_version: One
    artifact_contract: LedgerV2Contract
    sample_id: SampleId
    artifact_root_hash: DigestText
    state: Literal["reserved", "model_call_started"]


class SampleBindings(Record):
    """What intent and sample have in common; all of it must be equal in both."""

    schema_version: One
    sample_id: SampleId
    artifact_root_hash: DigestText
    provider: ProviderName
    provider_cli_version: OneLine
    provider_executable_hash: DigestText
    model: ModelName
    reviewer_family: FamilyName
    timeout_seconds: TimeoutSeconds
    max_model_calls: One
    runtime_manifest_hash: DigestText
    known_answer_fixture_hash: DigestText
    case_fixture_hash: DigestText
    runner_hash: DigestText
    synthetic: Synthetic = None


class SampleIntent(SampleBindings):
    """The record that stands before the model call; `completed` names the sample that came of it."""

    state: Literal["model_call_started", "completed"]
    sample_hash: Annotated[DigestText | None, _ABSENT_NOT_NULL] = None

    @model_validator(mode="after")
    def _hash_with_completion(self) -> Self:
        if (self.state == "completed") != (self.sample_hash is not None):
            raise RuleBroken("A sample hash stands in a completed intent and in no other.")
        return self


class Sample(SampleBindings):
    """One answered examination, in bank orientation and order."""

    artifact_contract: SampleContract
    provider_environment_keys: tuple[EnvironmentKey, ...]
    runner_contract: str
    requested_session_mode: str
    tool_access: str
    judgments: tuple[Judgment, ...]


class Observation(Record):
    """What was shown and answered, as it was: enough to recompute the sample's judgements."""

    schema_version: One
    artifact_contract: ObservationContract
    sample_id: SampleId
    case_fixture_hash: DigestText
    orientation_key_hash: DigestText
    shown: tuple[ShownAnswer, ...]
    usage: Usage
    synthetic: Synthetic = None


class AttemptEnding(Record):
    """How the call of an attempt ended that gave no sample: words and numbers, nothing of an answer."""

    schema_version: One
    artifact_contract: EndingContract
    attempt: SampleId
    ending: Word
    detail: Word | None
    usage: Usage
    synthetic: Synthetic = None


class Claim(Record):
    """Whoever holds this token may publish in the folder."""

    claim_token: Token


class FinalizationIntent(Record):
    """The record that closes a root to further samples and says what is going to be published.

    `output_claimed` means that whoever holds the token may publish, and `completed` that it was done.
    """

    schema_version: One
    artifact_contract: FinalizationContract
    artifact_root_hash: DigestText
    runtime_manifest_hash: DigestText
    sample_ids: SampleIds
    sample_hashes: Annotated[tuple[DigestText, ...], Field(min_length=2, max_length=5)]
    state: Literal["publication_started", "output_claimed", "completed"]
    published_pair_hash: DigestText
    claim_token: Token


class Simulation(Record):
    """The five settings of a simulated reviewer."""

    accuracy: Share
    position_bias: Share
    flakiness: Share
    refusal_rate: Share
    seed: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]


class BoundConfiguration(Record):
    """What a provider took from the user's own configuration, frozen once for all repeats."""

    binding_type: OneLine
    model_alias: ModelName
    provider_id: OneLine
    underlying_model: OneLine
    selected_config_hash: DigestText


class Binding(Record):
    """What a folder of repeats was opened for; a resume must bring the same values."""

    schema_version: One
    artifact_contract: BindingContract
    claim_token: Token
    provider: ProviderName
    provider_cli_version: OneLine
    provider_executable_hash: DigestText
    model: ModelName
    reviewer_family: FamilyName
    bank: BankName
    known_answer_fixture_hash: DigestText
    case_fixture_hash: DigestText
    pilot_gates_hash: DigestText
    licence_policy_hash: DigestText
    prompt_hash: DigestText
    repeat_count: RepeatCount
    timeout_seconds: TimeoutSeconds
    runtime_manifest_hash: DigestText
    provider_binding: Annotated[BoundConfiguration | None, _ABSENT_NOT_NULL] = None
    simulation: Annotated[Simulation | None, _ABSENT_NOT_NULL] = None
    synthetic: Synthetic = None


class ReviewerRuns(Record):
    """All runs of one family, each in bank orientation and order."""

    family: FamilyName
    runs: tuple[tuple[Judgment, ...], ...]


class EvidenceDocument(Record):
    """The first file of a pair: what was answered, beside what was known."""

    status: Literal["evaluated"]
    known_answers: tuple[KnownAnswer, ...]
    known_answer_fixture_hash: DigestText
    reviewers: tuple[ReviewerRuns, ...]


class ResultFields(Record):
    """What the second file of every pair says: who was examined, on what, by which code."""

    schema_version: One
    execution_status: Literal["evaluated"]
    provider: ProviderName
    provider_cli_version: OneLine
    provider_executable_hash: DigestText
    provider_environment_keys: tuple[EnvironmentKey, ...]
    model: ModelName
    reviewer_family: FamilyName
    repeat_count: RepeatCount
    case_count: Annotated[int, Field(ge=1)]
    known_answer_fixture_hash: DigestText
    case_fixture_hash: DigestText
    pilot_gates_hash: DigestText
    runner_contract: str
    runner_hash: DigestText
    runtime_manifest_hash: DigestText
    requested_session_mode: str
    tool_access: str
    calibration_evidence: str
    calibration_evidence_hash: DigestText
    calibration_evaluation_hash: DigestText
    conclusion_boundary: Literal["reviewer_calibration_only_not_skill_effectiveness"]
    enforcement: Literal["advisory"]
    sample_ids: Annotated[tuple[SampleId, ...] | None, _ABSENT_NOT_NULL] = None
    provider_binding: Annotated[BoundConfiguration | None, _ABSENT_NOT_NULL] = None
    provider_binding_hash: Annotated[DigestText | None, _ABSENT_NOT_NULL] = None
    synthetic: Synthetic = None
    simulation: Annotated[Simulation | None, _ABSENT_NOT_NULL] = None


class ResultDocument(ResultFields):
    """The result of an examination with the judged bank."""

    artifact_contract: ResultContract
    calibration_status: Literal["pass", "fail"]
    calibration_evaluation: CalibrationEvaluation


class ProbeResultDocument(ResultFields):
    """The result of an examination with the bias probes: no gate decides it, the licence reads its table."""

    artifact_contract: ProbeResultContract
    calibration_status: Literal["not_applicable"]
    calibration_evaluation: BiasSheet
    licence_policy_hash: DigestText
