"""The plan of a study: everything that is fixed before anything runs (studies.md section 2).

A plan holds digests of what it freezes, never the thing itself, and its own digest is over all the rest, so
that one text pins the whole study. `build_plan(facts)` makes one, `read_plan(data)` takes one back, and
`changed_field(plan, found)` names the first frozen field that is no longer what it was.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.documents import Canonical, RuleBroken, parse, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, Rate, told
from skill_effectiveness.protocol.gates import EvidenceTierName
from skill_effectiveness.protocol.registries import ArmId, RegistrySchema, Scope
from skill_effectiveness.protocol.tasks import TaskId
from skill_effectiveness.protocol.words import TaskFamily
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.study_file import (
    MOST_ATTEMPTS,
    MOST_SAMPLES,
    Isolation,
    Model,
    OneSentence,
    Provider,
    StudyBudgets,
    StudyName,
)
from skill_effectiveness.studies.words import (
    FIXED_RULES,
    SIMULATED,
    Arm,
    EndClass,
    Outcome,
    Rule,
    Sides,
    Stopping,
)
from skill_effectiveness.trials.allocation import AllocationOrder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue

PLAN_CONTRACT: Final = "skill-effectiveness-study-plan-v1"
BATCH_SLOTS: Final = 50

Seconds = Annotated[float, Field(gt=0, le=604_800)]
TimeText = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
LicenceId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
FamilyName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:+/@-]{0,63}$")]
Version = Annotated[str, Field(min_length=1, max_length=1_024, pattern=r"^[^\x00-\x1f\x7f]+$")]
SlotNumber = Annotated[int, Field(ge=1, le=10_000_000)]


class PlanDriver(FrozenModel):
    """The tested agent as it was frozen.

    Attributes:
        executable_hash: of its program; of a simulated one, of the text `simulated`.
        settings_hash: `H` of its settings.
    """

    provider: Provider
    executable_hash: DigestText
    cli_version: Version
    model: Model
    settings_hash: DigestText


class PlanArm(FrozenModel):
    """One arm as it was frozen.

    Attributes:
        arm: what the study calls it.
        arm_id: what its manifest calls it.
        tree: of the files of its payload, as an agent is given them.
    """

    arm: Arm
    arm_id: ArmId
    manifest_hash: DigestText
    tree: DigestText


class TaskLimits(FrozenModel):
    """How long the agent and the grader have, in seconds."""

    agent_seconds: Seconds
    verifier_seconds: Seconds


class PlanTask(FrozenModel):
    """One task as it was frozen.

    Attributes:
        task_hash: of its full record.
        tree: of its whole folder.
        grader_hash: of `tests/` alone.
    """

    task_id: TaskId
    task_hash: DigestText
    tree: DigestText
    grader_hash: DigestText
    family: TaskFamily
    limits: TaskLimits


class PlanReviewer(FrozenModel):
    """One reviewer; `licence_hash` is of the bytes of the licence file."""

    family: FamilyName
    licence_id: LicenceId
    licence_hash: DigestText


class PlanOutcome(FrozenModel):
    """What the arms are measured by, with nothing left to defaults."""

    primary: Outcome
    pass_at: Annotated[float, Field(gt=0, le=1)]
    minimum_effect: Annotated[float, Field(gt=0, le=1)]
    secondary: tuple[Outcome, ...]


class PlanAnalysis(FrozenModel):
    """How it is decided; `estimand` has a rule for every class that can have one."""

    alpha: Annotated[float, Field(gt=0, lt=0.5)]
    sides: Sides
    stopping: Stopping
    estimand: dict[EndClass, Rule]
    base_rate: Rate
    task_sd: Rate

    def rule(self, ended: EndClass) -> Rule:
        """What a class counts for, fixed ones included."""
        return FIXED_RULES[ended] if ended in FIXED_RULES else self.estimand[ended]


class PlanPower(FrozenModel):
    """What can be expected; `detectable` is null when no effect up to 1 would be found often enough."""

    at_minimum_effect: Rate
    detectable: Rate | None
    draws: Annotated[int, Field(ge=1)]


class PlanAllocation(FrozenModel):
    """The run order, hidden: how many slots, and what is committed to."""

    slots: SlotNumber
    seed_commitment: DigestText
    commitments_hash: DigestText


class StudyPlan(FrozenModel):
    """`plan.json`."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-plan-v1"]
    name: StudyName
    question: OneSentence
    registry: RegistrySchema
    tier: EvidenceTierName
    scope: Scope
    synthetic: bool
    created_at: TimeText
    driver: PlanDriver
    arms: Annotated[tuple[PlanArm, ...], Field(min_length=2, max_length=3)]
    arm_registry_plan_hash: DigestText
    tasks: Annotated[tuple[PlanTask, ...], Field(min_length=1, max_length=100_000)]
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES)]
    attempts: Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)]
    batch_slots: SlotNumber
    budgets: StudyBudgets
    isolation: Isolation
    reviewers: tuple[PlanReviewer, ...]
    outcome: PlanOutcome
    analysis: PlanAnalysis
    power: PlanPower
    gates_hash: DigestText
    runtime_manifest_hash: DigestText
    allocation: PlanAllocation
    plan_digest: DigestText

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.allocation.slots != len(self.tasks) * len(self.arms) * self.samples:
            raise RuleBroken("The number of slots is not tasks times arms times samples.")
        if self.batch_slots % len(self.arms):
            raise RuleBroken("A batch holds whole blocks, so its slots are a multiple of the arms.")
        if [task.task_id for task in self.tasks] != sorted({task.task_id for task in self.tasks}):
            raise RuleBroken("Tasks are sorted by id, and each stands once.")
        if len({arm.arm for arm in self.arms}) < len(self.arms):
            raise RuleBroken("Each arm stands once.")
        if self.synthetic is not (self.driver.provider == SIMULATED):
            raise RuleBroken("A study is synthetic exactly when its driver is simulated.")
        return self

    @property
    def order(self) -> AllocationOrder:
        """In which order the blocks follow each other."""
        anytime = self.analysis.stopping is Stopping.ANYTIME
        return AllocationOrder.ANYTIME if anytime else AllocationOrder.FIXED

    @property
    def arm_names(self) -> tuple[str, ...]:
        """What the study calls its arms, in the order of the plan."""
        return tuple(str(arm.arm) for arm in self.arms)

    def arm(self, name: str) -> PlanArm:
        """An arm by what the study calls it.

        Raises:
            KeyError: there is none.
        """
        return {str(arm.arm): arm for arm in self.arms}[name]

    def task(self, task_id: str) -> PlanTask:
        """A task by its id.

        Raises:
            KeyError: there is none.
        """
        place = bisect_left(self.tasks, task_id, key=lambda task: task.task_id)
        if place == len(self.tasks) or self.tasks[place].task_id != task_id:
            raise KeyError(task_id)
        return self.tasks[place]


def plan_json(plan: StudyPlan) -> dict[str, JsonValue]:
    """A plan as plain JSON values, every field written out."""
    plain: dict[str, JsonValue] = plan.model_dump(mode="json")
    return plain


def plan_line(plan: StudyPlan) -> bytes:
    """The bytes of `plan.json`."""
    return dump_line(plan_json(plan))


def plan_digest(fields: Mapping[str, object]) -> str:
    """`H` of a plan without its own digest.

    Args:
        fields: of a plan, as plain JSON values; a `plan_digest` among them is left out.
    """
    return digest_object({name: value for name, value in fields.items() if name != "plan_digest"})


def build_plan(fields: Mapping[str, object]) -> StudyPlan:
    """The plan of these fields, with its digest.

    Args:
        fields: every field of `StudyPlan` but `schema_version`, `artifact_contract` and `plan_digest`, as
            plain JSON values.

    Raises:
        StudyError: `plan_invalid`.
    """
    whole = {"schema_version": 1, "artifact_contract": PLAN_CONTRACT, **fields}
    try:
        # First without its digest's being right: what is digested is what the models write.
        draft = validate(StudyPlan, whole | {"plan_digest": "sha256:" + "0" * 64})
    except EvidenceError as error:
        raise _invalid(told(error)) from error
    return draft.model_copy(update={"plan_digest": plan_digest(plan_json(draft))})


def read_plan(data: bytes) -> StudyPlan:
    """A plan out of its file.

    Raises:
        StudyError: `plan_invalid`: not of its form, not the bytes that this program writes, or with a digest
            that is not that of its fields.
    """
    try:
        plan = parse(StudyPlan, data, Profile.DOCUMENT, canonical=Canonical.LINE)
    except EvidenceError as error:
        raise _invalid(told(error)) from error
    if plan.plan_digest != plan_digest(plan_json(plan)):
        sentence = "plan_digest is not that of the plan's own fields; the plan was edited, so plan anew."
        raise StudyError(StudyCode.PLAN_INVALID, "plan.json#/plan_digest", sentence)
    return plan


def changed_field(plan: StudyPlan, found: StudyPlan) -> str | None:
    """JSON pointer of the first field in which two plans of one study differ; None when none does.

    Left out is what every making of a plan has of its own: its time, its draws and what follows from them.
    """
    ours, theirs = plan_json(plan), plan_json(found)
    for name in ("created_at", "allocation", "power", "plan_digest"):
        del ours[name], theirs[name]
    return _difference(ours, theirs, "")


def _difference(ours: object, theirs: object, pointer: str) -> str | None:
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        pairs = [(str(name), ours[name], theirs[name]) for name in ours]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = [
            (str(index), mine, other) for index, (mine, other) in enumerate(zip(ours, theirs, strict=True))
        ]
    else:
        return None if ours == theirs else pointer
    return next(
        (found for name, mine, other in pairs if (found := _difference(mine, other, f"{pointer}/{name}"))),
        None,
    )


def batch_slots(arms: int) -> int:
    """How many slots a batch has: `BATCH_SLOTS` at most, in whole blocks."""
    return BATCH_SLOTS - BATCH_SLOTS % arms


def _invalid(told_: str) -> StudyError:
    sentence = f"this is no plan of a study; plan anew. Found: {told_}"
    return StudyError(StudyCode.PLAN_INVALID, "plan.json", sentence)
