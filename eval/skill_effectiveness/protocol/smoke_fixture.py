"""The fixture of the synthetic smoke run: everything it is made of, in one document (trials.md section 10).

Nothing in it names a provider, and no part of it may be mistaken for an observation: the kind is fixed, live
model calls are ruled out, and reviewers are not evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator
from pydantic.json_schema import SkipJsonSchema

from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.capability import NO_PROVIDER, CapabilityRow
from skill_effectiveness.protocol.document import FrozenModel, No, One, Stated, parse_document, read_document
from skill_effectiveness.protocol.tasks import HeldOutTask, TaskError, TaskRecord, check_committed

if TYPE_CHECKING:
    from skill_effectiveness.evidence.fsops import FileSystem

SMOKE_FIXTURE: Final = "fixtures/e10-smoke.json"
ADVICE: Final = "correct it; `fixtures/e10-smoke.json` is an example."

TemplateRef = Annotated[str, Field(pattern=r"^arms/(profile/)?[A-Za-z0-9-]{1,64}\.json$")]
"""A committed arm template."""

Seed = Annotated[int, Field(ge=0, le=9_007_199_254_740_991)]
"""The number that the order of trials is drawn from; a synthetic run hides no order."""


def _committed(task: TaskRecord | HeldOutTask) -> TaskRecord | HeldOutTask:
    try:
        check_committed(task)
    except TaskError as error:
        raise RuleBroken(f"T{error.sentence[1:]}") from error
    return task


FixtureTask = Annotated[
    Annotated[TaskRecord | HeldOutTask, Field(discriminator="cohort")], AfterValidator(_committed)
]


class FixtureArm(FrozenModel):
    """One arm: a committed template and the content of every component, a text or a structure."""

    template_ref: TemplateRef
    components: dict[str, str | dict[str, JsonValue] | list[JsonValue]]


class FixtureAccess(FrozenModel):
    """An audit row that the run adds to every trial, in order to show that a violation is found."""

    actor: str
    operation: str
    access_mode: Annotated[str | SkipJsonSchema[None], Stated] = None
    path: str


class FixtureIsolation(FrozenModel):
    """What the run says of the isolation of its trials (trials.md section 5); a field may be missing or null.

    Use `stated()`, which tells a null from a missing field.
    """

    fresh_session: bool | None = None
    forked_from_existing: bool | None = None
    auto_memory_enabled: bool | None = None
    vector_retrieval_enabled: bool | None = None
    session_recall_enabled: bool | None = None
    cross_session_cache_enabled: bool | None = None
    canary_leak_detected: bool | None = None
    provider_persistence: Literal["disabled", "enabled", "unverified"] | None = None

    def stated(self) -> dict[str, bool | str | None]:
        """The fields as they were written."""
        said: dict[str, bool | str | None] = self.model_dump(exclude_unset=True)
        return said


class FixtureCalibration(FrozenModel):
    """Reviewers are not examined in a synthetic run."""

    status: Literal["not_evaluated_synthetic"]


def _nobodys(row: CapabilityRow) -> CapabilityRow:
    if row.provider != NO_PROVIDER:
        raise RuleBroken("A synthetic run has no provider; write none.")
    return row


class SmokeFixture(FrozenModel):
    """The whole fixture."""

    schema_version: One
    fixture_kind: Literal["synthetic-runner-calibration"]
    live_model_calls: No
    samples: Annotated[int, Field(ge=1, le=1_000)]
    seed: Seed
    synthetic_extra_access_events: tuple[FixtureAccess, ...]
    tasks: Annotated[tuple[FixtureTask, ...], Field(min_length=1, max_length=1_000)]
    arms: Annotated[tuple[FixtureArm, ...], Field(min_length=1, max_length=16)]
    isolation_evidence: FixtureIsolation
    capability_matrix: tuple[Annotated[CapabilityRow, AfterValidator(_nobodys)], ...]
    calibration: FixtureCalibration

    @model_validator(mode="after")
    def _nothing_occurs_twice(self) -> Self:
        names = [task.task_id.casefold() for task in self.tasks]
        refs = [arm.template_ref for arm in self.arms]
        if len(set(names)) != len(names) or len(set(refs)) != len(refs):
            raise RuleBroken("A task or an arm occurs twice (case does not matter); keep one.")
        return self


def parse_smoke_fixture(data: bytes, name: str = "fixture") -> SmokeFixture:
    """The fixture a person named.

    Args:
        data: its bytes.
        name: how errors call it.

    Raises:
        ProtocolError: `fixture_invalid`, with the pointer of every fault.
    """
    return parse_document(SmokeFixture, data, name, advice=ADVICE)


def load_smoke_fixture(fs: FileSystem) -> SmokeFixture:
    """The committed fixture of this installation.

    Raises:
        ProtocolError: `fixture_invalid`.
    """
    return read_document(fs, SMOKE_FIXTURE, SmokeFixture)
