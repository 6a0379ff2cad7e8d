"""The documents of a trial, field for field (trials.md, sections 2 to 5).

Each record is frozen, refuses unknown fields and converts nothing; `TrialRuntime` alone takes further keys.
`read_record` fits a caller's plain JSON value to a record, `document_line` gives the one written form of
`trial.json`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    field_serializer,
    model_validator,
)

from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.evidence.faults import EvidenceError, FileError
from skill_effectiveness.evidence.names import check_outside_id
from skill_effectiveness.evidence.strict import LARGEST_INTEGER
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, Stated, to_json
from skill_effectiveness.protocol.gates import EvidenceTier, EvidenceTierName, WaivableItem
from skill_effectiveness.protocol.tasks import TaskReference
from skill_effectiveness.trials.faults import TrialCode, TrialError

TRIAL_CONTRACT: Final = "skill-effectiveness-trial-v1"

_SAMPLE: Final = re.compile(r"sample-(?P<index>[0-9]{3}|[1-9][0-9]{3,8})")
LARGEST_SAMPLE: Final = 999_999_999


class TrialStatus(StrEnum):
    """Where a trial stands; the last three are terminal."""

    PREPARED = "prepared"
    RUNNING = "running"
    INTERIM_BUDGET_STOP = "interim-budget-stop"
    COMPLETED = "completed"
    CONTAMINATED = "contaminated"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing follows."""
        return self in {TrialStatus.COMPLETED, TrialStatus.CONTAMINATED, TrialStatus.FAILED}


class StopReason(StrEnum):
    """How the built-in runner says that a failed trial ended; other controllers keep their own words."""

    NO_ANSWER = "no_answer"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    PROVIDER_ERROR = "provider_error"
    LIMIT = "limit"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"
    VOID = "void"
    """Another model reported than was asked for, or a failed exposure check: counts for no arm."""


class Mode(StrEnum):
    """What preparing found."""

    CREATED = "created"
    RESUME = "resume"
    TERMINAL = "terminal"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True, order=True)
class TrialKey:
    """Which trial: one task, one arm, one sample.

    Raises:
        TrialError: `bad_record`: an id is no name for a folder, or the index is not 1 or more.
    """

    task_id: str
    arm_id: str
    sample_index: int

    def __post_init__(self) -> None:
        for name in ("task_id", "arm_id"):
            try:
                check_outside_id(getattr(self, name))
            except FileError as error:
                raise TrialError(TrialCode.BAD_RECORD, f"/{name}", str(error), field=name) from error
        if not 1 <= self.sample_index <= LARGEST_SAMPLE:
            sentence = f"Samples are numbered from 1 to {LARGEST_SAMPLE}."
            raise TrialError(TrialCode.BAD_RECORD, "/sample_index", sentence, field="sample_index")

    @property
    def sample_name(self) -> str:
        """Name of the trial's folder: `sample-NNN`."""
        return f"sample-{self.sample_index:03d}"

    @property
    def path(self) -> str:
        """`<task>/<arm>/sample-NNN`, below the folder `trials` of the store."""
        return f"{self.task_id}/{self.arm_id}/{self.sample_name}"

    @classmethod
    def parse(cls, path: str) -> Self:
        """The key whose `path` this is.

        Raises:
            TrialError: `bad_record`.
        """
        segments = path.split("/")
        index = sample_index(segments[-1])
        if len(segments) != 3 or index is None:  # noqa: PLR2004 - task, arm and sample
            sentence = "The path of a trial is <task>/<arm>/sample-NNN, with samples numbered from 001."
            raise TrialError(TrialCode.BAD_RECORD, "/trial_path", sentence, field="trial_path")
        return cls(segments[0], segments[1], index)


def sample_index(name: str) -> int | None:
    """The number in the name of a trial's folder; `None` for any other name."""
    match = _SAMPLE.fullmatch(name)
    return int(match["index"]) or None if match else None


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise RuleBroken("A number is needed here.")
    return value


def _truth_or_unverified(value: object) -> object:
    # In Python 0 and 1 equal the truth values, and a literal would take them.
    if value is not None and not isinstance(value, bool) and value != "unverified":
        raise RuleBroken("true, false, null or unverified is needed here.")
    return value


Text = Annotated[str, Field(min_length=1, max_length=4_096)]
Amount = Annotated[int | float, BeforeValidator(_number), Field(ge=0)]
Limit = Annotated[int | float, BeforeValidator(_number), Field(gt=0)] | None
"""A finite amount above 0; null is unlimited."""
Version = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
Truth = Annotated[bool | Literal["unverified"] | None, BeforeValidator(_truth_or_unverified)]


class TrialRuntime(BaseModel):
    """What a trial runs in. Further keys are kept and take part in the fingerprint."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)

    __pydantic_extra__: dict[str, JsonValue]

    provider: Text
    model: Text
    session_id: Text
    isolation_config_hash: DigestText
    runner_hash: DigestText
    experiment_plan_hash: DigestText


class TrialBudget(FrozenModel):
    """What one trial may use up; null is unlimited."""

    tokens: Limit
    wall_time_seconds: Limit
    tool_calls: Limit
    cost_units: Limit


class ConsumedBudget(FrozenModel):
    """What a trial has used up so far."""

    tokens: Amount
    wall_time_seconds: Amount
    tool_calls: Amount
    cost_units: Amount


class RemainingBudget(FrozenModel):
    """What a trial may still use up; null is unlimited."""

    tokens: Amount | None
    wall_time_seconds: Amount | None
    tool_calls: Amount | None
    cost_units: Amount | None


DIMENSIONS: Final = ("tokens", "wall_time_seconds", "tool_calls", "cost_units")


class ResumeCursor(FrozenModel):
    """Where a stopped trial goes on."""

    next_run_order: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
    consumed_budget: ConsumedBudget


class IsolationEvidence(FrozenModel):
    """What was observed of a trial's isolation; an absent, null or unverified field is missing proof."""

    fresh_session: Truth = None
    forked_from_existing: Truth = None
    auto_memory_enabled: Truth = None
    vector_retrieval_enabled: Truth = None
    session_recall_enabled: Truth = None
    cross_session_cache_enabled: Truth = None
    canary_leak_detected: Truth = None
    provider_persistence: Literal["disabled", "enabled", "unverified"] | None = None

    def given(self) -> dict[str, JsonValue]:
        """The fields as they were handed over: an absent one stays absent."""
        plain: dict[str, JsonValue] = self.model_dump(mode="json", exclude_unset=True)
        return plain


def evidence_hash(evidence: IsolationEvidence | None) -> str:
    """The object digest of the evidence as it was handed over."""
    return digest_object(None if evidence is None else evidence.given())


class Operation(StrEnum):
    """What a tested agent did to a path."""

    READ = "read"
    OPEN = "open"
    ENUMERATE = "enumerate"
    WRITE = "write"


class AccessMode(StrEnum):
    """For what a path was opened."""

    READ = "read"
    WRITE = "write"


class AuditRow(FrozenModel):
    """One access of the tested agent; `access_mode` exists for `open` only."""

    actor: Literal["tested-agent"]
    operation: Operation
    access_mode: AccessMode | None = None
    path: Annotated[str, Field(pattern=r"^/[^\x00]*$", max_length=65_536)]

    @model_validator(mode="after")
    def _only_open_has_a_mode(self) -> Self:
        if (self.operation is Operation.OPEN) != ("access_mode" in self.model_fields_set):
            raise RuleBroken("An access mode stands beside the operation open, and beside no other.")
        if self.operation is Operation.OPEN and self.access_mode is None:
            raise RuleBroken("The access mode is read or write.")
        return self

    @property
    def writes(self) -> bool:
        """Whether the path must lie in a write root rather than in a read root."""
        return self.operation is Operation.WRITE or self.access_mode is AccessMode.WRITE


RootPath = Annotated[str, Field(pattern=r"^/[^\x00]*$", max_length=65_536)]
Roots = Annotated[tuple[RootPath, ...], Field(min_length=1, max_length=1_024)]


class IsolationRoots(FrozenModel):
    """The folders a tested agent may read, and those it may write."""

    read_allow_roots: Roots
    write_allow_roots: Roots


class CompletionIsolation(FrozenModel):
    """What a completion says about isolation: proved, or limited by what its tier waives."""

    schema_version: One
    evidence: IsolationEvidence | None
    evidence_hash: DigestText
    read_allow_roots: Roots
    write_allow_roots: Roots
    status: Literal["ok", "advisory_limited"]
    file_access_status: Literal["ok", "unverified"]
    memory_isolation_status: Literal["ok", "unverified"]
    evidence_tier: EvidenceTierName
    coverage_limitations: tuple[WaivableItem, ...]

    @field_serializer("evidence")
    def _as_given(self, evidence: IsolationEvidence | None) -> dict[str, JsonValue] | None:
        return None if evidence is None else evidence.given()


class TrialDocument(FrozenModel):
    """`trial.json`: the fixed fields, then the changing ones.

    `registry_schema` is absent in a store of a controller that names none, and such a trial cannot complete;
    an unknown one is kept as text here and refused where it is used. `completion_claim` is true exactly when
    the status is `completed`.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-trial-v1"]
    enforcement: Literal["advisory"]
    registry_schema: Annotated[Text | None, Stated] = None
    task: TaskReference
    arm_id: Text
    manifest_hash: DigestText
    runtime: TrialRuntime
    budget: TrialBudget
    sample_index: Annotated[int, Field(ge=1, le=LARGEST_SAMPLE)]
    trial_location_hash: DigestText
    trial_fingerprint: DigestText
    registry_plan_hash: Annotated[DigestText | None, Stated] = None

    status: TrialStatus
    state_version: Version
    completion_claim: bool
    resume_cursor: ResumeCursor | None
    stop_reason: Text | None
    completion_isolation: CompletionIsolation | None
    completion_binding_hash: DigestText | None

    @model_validator(mode="after")
    def _states_are_whole(self) -> Self:
        completed = self.status is TrialStatus.COMPLETED
        parts = (self.completion_isolation, self.completion_binding_hash)
        if self.completion_claim != completed or any((part is not None) != completed for part in parts):
            raise RuleBroken("Claim, isolation and binding of a completion stand in completed trials only.")
        if (self.status is TrialStatus.PREPARED) != (self.state_version == 0):
            raise RuleBroken("A trial is prepared exactly in version 0.")
        return self


def document_line(document: TrialDocument) -> bytes:
    """The bytes of `trial.json`: canonical JSON plus LF."""
    return dump_line(to_json(document))


class CheckpointRequest(FrozenModel):
    """What a caller asks of a checkpoint.

    Attributes:
        status: the state to enter.
        access_audit_complete: whether the audit holds every access; a completion must say.
        access_roots_enforced: whether something kept the agent inside its roots; a completion must say.
        resume_cursor: where the trial goes on; the stored one stays when it is absent.
        stop_reason: in the words of the controller.
        isolation_evidence: what was observed.
        read_allow_roots: absolute paths; a completion needs them.
        write_allow_roots: likewise.
        expected_state_version: refused unless it is the stored one; `None` does not ask.
        evidence_tier: what the caller takes the tier to be; refused unless it is the derived one.
    """

    status: TrialStatus
    access_audit_complete: bool | None = None
    access_roots_enforced: bool | None = None
    resume_cursor: ResumeCursor | None = None
    stop_reason: Text | None = None
    isolation_evidence: IsolationEvidence | None = None
    read_allow_roots: Roots | None = None
    write_allow_roots: Roots | None = None
    expected_state_version: Version | None = None
    evidence_tier: EvidenceTier | None = None


@dataclass(frozen=True, slots=True)
class ExpectedIsolation:
    """What a caller says that a completed trial recorded."""

    evidence: IsolationEvidence | None
    read_allow_roots: tuple[str, ...]
    write_allow_roots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreparedTrial:
    """What preparing answers.

    Attributes:
        trial_path: `<task>/<arm>/sample-NNN`, below the folder `trials`.
        mode: what was found.
        state_version: of `trial.json` now.
        remaining_budget: null per unlimited dimension.
    """

    trial_path: str
    mode: Mode
    state_version: int
    remaining_budget: RemainingBudget


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """What a checkpoint answers.

    Attributes:
        state_version: of `trial.json` now.
        evidence_tier: derived from the stored registry; `None` where none is stored.
        coverage_limitations: what the completion does without, sorted; `None` before a completion.
    """

    state_version: int
    evidence_tier: EvidenceTierName | None
    coverage_limitations: tuple[WaivableItem, ...] | None


ModelT = TypeVar("ModelT", bound=BaseModel)


def read_record(
    model: type[ModelT], value: object, *, code: TrialCode = TrialCode.BAD_RECORD, what: str = ""
) -> ModelT:
    """Fit a plain JSON value to a record of this room.

    Args:
        model: the record.
        value: a plain JSON value.
        code: the word for a misfit.
        what: pointer of the value in the caller's request.

    Raises:
        TrialError: with `code`; `where` is the pointer of the first misfit.
    """
    try:
        return validate(model, value)
    except EvidenceError as error:
        raise misfit(error, code, what) from error


def misfit(error: EvidenceError, code: TrialCode, what: str = "") -> TrialError:
    """What the faults of a document are called here; arguments as `read_record`."""
    where = f"{what}{error.faults[0].where}"
    told = "; ".join(f"{what}{fault.where}: {fault.sentence}" for fault in error.faults[:_SHOWN])
    return TrialError(code, where, told, field=where.removeprefix("/") or None)


_SHOWN: Final = 5
