"""Tasks as records: what an agent is tried on, and what of it may be told (trials.md section 1).

A regression task is known to everybody; a held-out task is one whose prompt, hidden tests and answer no
tested agent's files and no version control ever hold, so its record names the prompt by a `corpus://`
reference and pins everything around it. `public_reference` is the part of either that may travel: it holds no
owner and no truth.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.document import DigestText, FrozenModel, Stated, Yes, to_json, told
from skill_effectiveness.protocol.words import TaskFamily

if TYPE_CHECKING:
    from collections.abc import Sequence


class Cohort(StrEnum):
    """Whether a task is known to those who wrote the skills."""

    KNOWN_REGRESSION = "known-regression"
    HELD_OUT_GENERALIZATION = "held-out-generalization"


class ExecutionMode(StrEnum):
    """Whether the agent only answers, or works on a copy of the files."""

    ANSWER_ONLY = "answer_only"
    WORKSPACE = "workspace"


class TaskCode(StrEnum):
    """Why a task record is refused.

    `bad_record`: it is not of its exact form. `held_out_undeclared`: a held-out task folder leaves to
    defaults what it has to declare. `task_repeated`: a set names one task twice. `not_committed_form`: a
    committed task does not say how it is executed, or a committed regression task is not `answer_only`.
    """

    BAD_RECORD = "bad_record"
    HELD_OUT_UNDECLARED = "held_out_undeclared"
    TASK_REPEATED = "task_repeated"
    NOT_COMMITTED_FORM = "not_committed_form"


class TaskError(Exception):
    """A task record cannot be used.

    Attributes:
        code: the closed word.
        where: JSON pointer or field name; never a machine path.
        sentence: what is wrong and what to do, for people.
    """

    def __init__(self, code: TaskCode, where: str, sentence: str) -> None:
        self.code = code
        self.where = where
        self.sentence = sentence
        super().__init__(f"{where}: {sentence}" if where else sentence)


_UNIQUE: Final[dict[str, Any]] = {"uniqueItems": True}
_SEGMENT: Final = "[A-Za-z0-9_-][A-Za-z0-9._-]*"
_NO_OWNER: Final = (
    "Owners are empty exactly when negative_control is true and should_invoke is false; add or remove them."
)

TaskId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$")]
"""The name of a task; also that of its folder in a store."""

Owner = Annotated[str, Field(pattern=r"^[a-z0-9-]+:[a-z0-9-]+$", max_length=256)]
"""A skill that a task belongs to: its namespace and its name."""

Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9:._+-]{0,127}$")]
"""A version, date, tag or name: letters, digits and a few marks."""

CorpusRef = Annotated[str, Field(pattern=rf"^corpus://{_SEGMENT}(/{_SEGMENT})*$", max_length=512)]
"""Where a private corpus keeps a prompt; no segment starts with a dot."""

_FOLDER_REF: Final = "^task://[0-9a-f]{64}$"


def _folder_by_digest(reference: str) -> str:
    if reference.startswith("task://") and re.fullmatch(_FOLDER_REF, reference) is None:
        raise RuleBroken("A task folder is referred to by task:// and the 64 hex digits of its tree digest.")
    return reference


PromptRef = Annotated[
    str,
    Field(
        pattern=rf"^[a-z][a-z0-9-]{{0,31}}://{_SEGMENT}(/{_SEGMENT})*$",
        max_length=512,
        json_schema_extra={"if": {"pattern": "^task://"}, "then": {"pattern": _FOLDER_REF}},
    ),
    AfterValidator(_folder_by_digest),
]
"""Where a prompt is: a task folder by its digest, a place in a private corpus, or another named place."""

Revision = Annotated[str, Field(pattern=r"^(root|[0-9a-f]{40,64})$")]
"""A commit, or `root` for a task that lives in none."""

CommitId = Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]
"""A commit."""


class _UniqueOwners(FrozenModel):
    """The rules of the lists of both kinds of record."""

    task_id: TaskId
    task_family: TaskFamily
    expected_owners: Annotated[tuple[Owner, ...], Field(json_schema_extra=_UNIQUE)]
    corpus_version: Word


_NEGATIVE: Final[dict[str, Any]] = {
    "properties": {"negative_control": {"const": True}, "should_invoke": {"const": False}},
    "required": ["negative_control", "should_invoke"],
}
_OWNER_RULE: Final[dict[str, Any]] = {
    "if": _NEGATIVE,
    "then": {"properties": {"expected_owners": {"maxItems": 0}}},
    "else": {"properties": {"expected_owners": {"minItems": 1}}},
}


class TaskRecord(_UniqueOwners):
    """A task known to those who wrote the skills."""

    model_config = ConfigDict(json_schema_extra=_OWNER_RULE)

    cohort: Literal[Cohort.KNOWN_REGRESSION]
    prompt_ref: PromptRef
    frozen_at_sha: Revision
    should_invoke: Annotated[bool | SkipJsonSchema[None], Stated] = None
    negative_control: Annotated[bool | SkipJsonSchema[None], Stated] = None
    execution_mode: Annotated[ExecutionMode | SkipJsonSchema[None], Stated] = None

    @model_validator(mode="after")
    def _lists_hold(self) -> Self:
        check_unique(self.expected_owners)
        check_owners(
            self.expected_owners,
            negative=self.negative_control is True and self.should_invoke is False,
        )
        return self


class HeldOutTask(_UniqueOwners):
    """A task that nobody who wrote the skills has seen."""

    model_config = ConfigDict(json_schema_extra=_OWNER_RULE)

    cohort: Literal[Cohort.HELD_OUT_GENERALIZATION]
    prompt_ref: CorpusRef
    frozen_at_sha: CommitId
    skill_content_cutoff: Word
    curator_independent: Yes
    repo_snapshot: DigestText
    should_invoke: bool
    risk_tags: Annotated[tuple[Word, ...], Field(json_schema_extra=_UNIQUE)]
    graders: Annotated[tuple[Word, ...], Field(min_length=1, json_schema_extra=_UNIQUE)]
    negative_control: bool
    execution_mode: ExecutionMode

    @model_validator(mode="after")
    def _lists_hold(self) -> Self:
        check_unique(self.expected_owners)
        check_unique(self.risk_tags)
        check_unique(self.graders)
        check_owners(self.expected_owners, negative=self.negative_control and not self.should_invoke)
        return self


Task: TypeAlias = TaskRecord | HeldOutTask


class TaskReference(FrozenModel):
    """What of a task is told to everybody: neither owners nor truth, and the hash of the whole record."""

    task_id: TaskId
    task_family: TaskFamily
    cohort: Cohort
    prompt_ref: PromptRef
    frozen_at_sha: Revision
    corpus_version: Word
    execution_mode: Annotated[ExecutionMode | SkipJsonSchema[None], Stated] = None
    task_hash: DigestText


def check_unique(listed: Sequence[str]) -> None:
    """Demand that nothing is listed twice.

    Raises:
        RuleBroken: something is.
    """
    if len(set(listed)) != len(listed):
        raise RuleBroken("An entry of a list occurs twice; keep one.")


def check_owners(owners: Sequence[str], *, negative: bool) -> None:
    """Demand owners for every task but the negative controls, and none for those.

    Raises:
        RuleBroken: it is the other way round.
    """
    if negative is bool(owners):
        raise RuleBroken(_NO_OWNER)


def parse_task(value: object) -> Task:
    """A task record; its cohort decides which of the two forms it must have.

    Raises:
        TaskError: `bad_record`, naming every fault with its pointer.
    """
    held_out = isinstance(value, dict) and value.get("cohort") == Cohort.HELD_OUT_GENERALIZATION
    model: type[Task] = HeldOutTask if held_out else TaskRecord
    try:
        return validate(model, value)
    except EvidenceError as error:
        sentence = f"the task record is malformed; correct it. Found: {told(error)}"
        raise TaskError(TaskCode.BAD_RECORD, error.faults[0].where, sentence) from error


def check_committed(task: Task) -> None:
    """Demand what a committed task says besides: how it is executed; a regression task only answers.

    Raises:
        TaskError: `not_committed_form`.
    """
    if task.execution_mode is None:
        sentence = f"the committed task {task.task_id} does not say how it is executed; add execution_mode."
        raise TaskError(TaskCode.NOT_COMMITTED_FORM, "/execution_mode", sentence)
    if isinstance(task, TaskRecord) and task.execution_mode is not ExecutionMode.ANSWER_ONLY:
        sentence = f"the committed regression task {task.task_id} must be {ExecutionMode.ANSWER_ONLY}."
        raise TaskError(TaskCode.NOT_COMMITTED_FORM, "/execution_mode", sentence)


def task_hash(task: Task) -> str:
    """The object digest of the whole record, owners included."""
    return digest_object(to_json(task))


def public_reference(task: Task) -> TaskReference:
    """What of a task may be told."""
    told_of = TaskReference.model_fields.keys()
    fields = {name: value for name, value in to_json(task).items() if name in told_of}
    return validate(TaskReference, {**fields, "task_hash": task_hash(task)})
