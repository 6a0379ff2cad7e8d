"""What an order tells of its study, in the shape in which an agent asks for it (studies.md section 3).

An agent on a worker is the same code as everywhere. It asks plan and study for what it needs
(`agent.AgentStudy`); here both know what the order says and hold the inputs that it names, and nothing else:
no other slot or task, no seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.document import FrozenModel
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.studies.attempt_records import read_brief
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import FileTree, HeldTree, read_listing
from skill_effectiveness.studies.plan import TaskLimits
from skill_effectiveness.studies.study_file import SimulatedSettings
from skill_effectiveness.studies.task_folder import ENVIRONMENT, WORKDIR, TaskFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.attempt_records import AttemptBrief, AttemptOrder
    from skill_effectiveness.studies.cluster_orders import AssayOrder, GradeOrder
    from skill_effectiveness.studies.study_file import Isolation


NO_SETTINGS: Final = SimulatedSettings(base_rate=0.0, task_sd=0.0, effect=0.0)
"""Of a simulated agent on a worker, which goes by the numbers that its order holds."""

_NOTHING: Final = FileTree(())
_LIST: Final = b"["


class OrderedDriver(FrozenModel):
    """The tested agent, as an order names it."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class OrderedPlan:
    """What an order tells of the plan."""

    plan_digest: str
    registry: RegistrySchema
    driver: OrderedDriver
    isolation: Isolation


@dataclass(frozen=True, slots=True)
class OrderedInputs:
    """The inputs that an order names."""

    read: Callable[[str], bytes]

    def held(self, digest: str) -> HeldTree:
        """A folder, to be laid down."""
        tree = read_listing(self.read(digest))
        return HeldTree(tree, lambda entry: self.read(str(entry.sha256)))


@dataclass(frozen=True, slots=True)
class OrderedStudy:
    """What an order tells of the study.

    Attributes:
        folder: the one task, without what the order does not name.
        files: of the task, by the part they are.
        payload: what the arm gives.
        secret: what belongs to this order alone, where an agent asks for the seed.
    """

    plan: OrderedPlan
    inputs: OrderedInputs
    around: Surroundings
    secret: bytes
    folder: TaskFolder | None = None
    files: Mapping[str, HeldTree] = field(default_factory=dict)
    payload: HeldTree | None = None

    def seed(self) -> bytes:
        """32 bytes that belong to this order."""
        return self.secret

    def task(self, task_id: str) -> TaskFolder:
        """The one task of the order."""
        if self.folder is None or self.folder.task_id != task_id:
            raise KeyError(task_id)
        return self.folder

    def task_files(self, task_id: str, part: str) -> HeldTree:
        """Files of the one task; other parts than the order names are not here."""
        self.task(task_id)
        return self.files[part]

    def payload_files(self, arm: str) -> HeldTree:
        """What the arm of the order gives its agent."""
        if self.payload is None:
            raise KeyError(arm)
        return self.payload


def attempt_study(order: AttemptOrder, read: Callable[[str], bytes], around: Surroundings) -> OrderedStudy:
    """The study of an attempt.

    Raises:
        StudyError: `order_invalid`: its inputs are not what its brief says; or an input cannot be had.
    """
    brief = _brief(order, read)
    inputs = OrderedInputs(read)
    environment = inputs.held(brief.environment)
    folder = _folder(
        brief.task_id,
        instruction=read(brief.instruction),
        environment=environment.tree,
        workdir=brief.workdir,
        # Nothing is graded by this order, so how long a verifier may take is not told.
        limits=TaskLimits(agent_seconds=brief.agent_seconds, verifier_seconds=brief.agent_seconds),
        environment_env=brief.env,
    )
    return OrderedStudy(
        plan=_plan(order, brief.registry),
        inputs=inputs,
        around=around,
        secret=bytes.fromhex(order.salt),
        folder=folder,
        files={ENVIRONMENT: environment},
        payload=inputs.held(brief.payload),
    )


def _brief(order: AttemptOrder, read: Callable[[str], bytes]) -> AttemptBrief:
    """The input that says what the others are.

    A brief names all inputs of its order, so no other input can pass for one: it would have to hold a digest
    of something that holds its own.
    """
    for digest in order.inputs:
        try:
            brief = read_brief(read(digest))
        except EvidenceError:
            continue
        if brief.inputs == order.inputs and brief.task_id == order.task_id:
            return brief
    raise _misnamed()


def assay_study(order: AssayOrder, read: Callable[[str], bytes], around: Surroundings) -> OrderedStudy:
    """The study of an exposure assay; errors as `attempt_study`."""
    if len(order.inputs) != 1:
        raise _misnamed()
    inputs = OrderedInputs(read)
    return OrderedStudy(
        plan=_plan(order, RegistrySchema.PAIRED_PROFILE),
        inputs=inputs,
        around=around,
        secret=bytes.fromhex(order.salt),
        payload=inputs.held(order.inputs[0]),
    )


def grade_study(order: GradeOrder, read: Callable[[str], bytes], around: Surroundings) -> OrderedStudy:
    """The study of a grading; errors as `attempt_study`."""
    if order.inputs != tuple(sorted({order.work, order.task.grader_hash})):
        raise _misnamed()
    folder = _folder(
        order.task.task_id, workdir=order.workdir, limits=order.task.limits, verifier_env=order.env
    )
    return OrderedStudy(
        plan=_plan(order, RegistrySchema.PAIRED_PROFILE),
        inputs=OrderedInputs(read),
        around=around,
        secret=bytes(32),
        folder=folder,
    )


def _plan(order: AttemptOrder | AssayOrder | GradeOrder, registry: RegistrySchema) -> OrderedPlan:
    return OrderedPlan(
        plan_digest=order.plan_digest,
        registry=registry,
        driver=_driver(order.driver),
        isolation=order.isolation,
    )


def _driver(told: Mapping[str, JsonValue]) -> OrderedDriver:
    named = {name: told[name] for name in OrderedDriver.model_fields if name in told}
    try:
        return validate(OrderedDriver, named)
    except EvidenceError as error:
        raise _misnamed() from error


def _folder(
    task_id: str,
    *,
    instruction: bytes = b"",
    environment: FileTree = _NOTHING,
    workdir: str = WORKDIR,
    limits: TaskLimits,
    environment_env: Mapping[str, str] | None = None,
    verifier_env: Mapping[str, str] | None = None,
) -> TaskFolder:
    return TaskFolder(
        task_id=task_id,
        instruction=instruction,
        tree=_NOTHING,
        environment=environment,
        tests=_NOTHING,
        solution=_NOTHING,
        workdir=workdir,
        limits=limits,
        environment_env=environment_env or {},
        verifier_env=verifier_env or {},
        solution_env={},
        metadata={},
        recorded={},
    )


def files_of(data: bytes) -> list[str]:
    """The digests of the files of a tree, if these bytes are its list; none of any other input."""
    if not data.startswith(_LIST):
        return []
    try:
        return [str(entry.sha256) for entry in read_listing(data).files]
    except StudyError:
        return []


def _misnamed() -> StudyError:
    sentence = "an order's inputs are not what it says; let coordinator and workers run the same version."
    return StudyError(StudyCode.ORDER_INVALID, "inputs", sentence)
