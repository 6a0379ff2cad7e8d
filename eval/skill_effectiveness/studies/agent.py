"""What a run needs of a tested agent, whoever it is, and what such an agent asks of its study.

An attempt sees its order and nothing else; it may run in a thread here, or elsewhere. So an agent asks for no
more than an order can tell: `StudyRoot` answers here, and `ordered_studies.OrderedStudy` on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.rows import Usage

if TYPE_CHECKING:
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.protocol.event_rows import HostResidualRow, SkillEventsRow
    from skill_effectiveness.protocol.registries import RegistrySchema
    from skill_effectiveness.studies.attempt_records import AttemptOrder, Refusal
    from skill_effectiveness.studies.file_trees import Oddity
    from skill_effectiveness.studies.plan import PlanTask
    from skill_effectiveness.studies.rewards import Reward
    from skill_effectiveness.studies.rows import WorkerLost
    from skill_effectiveness.studies.state import SlotState
    from skill_effectiveness.studies.study_file import Isolation
    from skill_effectiveness.studies.task_folder import TaskFolder
    from skill_effectiveness.studies.words import Arm, EndClass
    from skill_effectiveness.trials.allocation import Slot
    from skill_effectiveness.trials.models import AuditRow, IsolationEvidence

Cancelled = Callable[[], bool]
"""Asked now and then during an attempt; True stops it."""

AssayResult = Literal["passed", "failed", "not_applicable"]


@dataclass(frozen=True, slots=True)
class Observed:
    """What was observed of an attempt's isolation; an absent proof is absent.

    Attributes:
        evidence: of memory and sessions.
        audit: every access, as far as it was recorded.
        audit_complete: whether that is every access.
        roots_enforced: whether something kept the agent inside its roots.
        read_roots: what it might read, absolute; empty where the attempt's own folder is all there is.
        write_roots: what it might write, likewise.
        refused: what it asked for outside of them and did not get; no access, and no part of the audit.
        audit_faults: why the audit that was made is not complete.
    """

    evidence: IsolationEvidence | None = None
    audit: tuple[AuditRow, ...] = ()
    audit_complete: bool = False
    roots_enforced: bool = False
    read_roots: tuple[str, ...] = ()
    write_roots: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    audit_faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """What an attempt came to.

    Attributes:
        ended: its class.
        detail: a closed word where the class does not say all.
        model_reported: None where nothing reports it.
        usage: as far as it was told.
        files: what lies in the working copy; None when nothing was collected.
        oddities: what lies there and cannot be kept: pipes, devices, links that lead out.
        residual: whether anything of the treatment lay about.
        events: skill events of the recording.
        observed: of its isolation.
        stream, stderr: as recorded; None where there is none.
    """

    ended: EndClass
    residual: HostResidualRow
    events: SkillEventsRow
    detail: str | None = None
    model_reported: str | None = None
    usage: Usage = field(default_factory=Usage)
    files: HeldTree | None = field(default_factory=lambda: HeldTree.of_files({}))
    oddities: tuple[Oddity, ...] = ()
    observed: Observed = field(default_factory=Observed)
    stream: bytes | None = None
    stderr: bytes | None = None


class AttemptLostError(Exception):
    """Nobody saw the end of an attempt: whoever carried it out has gone."""


class AgentUnreachableError(Exception):
    """The agent cannot be reached any more, and what was asked of it stays open.

    Attributes:
        reason: a closed word.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class AgentDriver(Protocol):
    """Whom an agent is started as."""

    @property
    def provider(self) -> str:
        """Its provider's word."""

    @property
    def model(self) -> str:
        """The exact model that is asked for."""


class AgentPlan(Protocol):
    """What an agent asks of the plan."""

    @property
    def plan_digest(self) -> str:
        """Of the whole plan."""

    @property
    def registry(self) -> RegistrySchema:
        """Of its arms."""

    @property
    def driver(self) -> AgentDriver:
        """The agent."""

    @property
    def isolation(self) -> Isolation:
        """What has to be around it."""


class AgentInputs(Protocol):
    """Frozen inputs, by digest."""

    def held(self, digest: str) -> HeldTree:
        """A folder, to be laid down.

        Raises:
            StudyError: it is missing or changed.
        """


class AgentStudy(Protocol):
    """What an agent asks of its study, all of it about what it is given an order for."""

    @property
    def plan(self) -> AgentPlan:
        """As it was frozen."""

    @property
    def inputs(self) -> AgentInputs:
        """What was frozen with it."""

    @property
    def around(self) -> Surroundings:
        """Of the process that the agent runs in."""

    def seed(self) -> bytes:
        """32 bytes from which nonces and marks are made."""

    def task(self, task_id: str) -> TaskFolder:
        """A task."""

    def task_files(self, task_id: str, part: str) -> HeldTree:
        """The files of one part of a task; errors as `AgentInputs.held`."""

    def payload_files(self, arm: str) -> HeldTree:
        """What an arm gives its agent; errors as `AgentInputs.held`."""


class AgentAtWork(Protocol):
    """What can be done wherever the agent's program is."""

    def attempt(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult:
        """One attempt.

        Args:
            order: all that it is given.
            place: absolute path of the attempt's folder.
            cancelled: asked now and then.

        Raises:
            AttemptLostError: nobody saw its end.
            AgentUnreachableError: it stays open.
        """

    def assay(self, batch: int, phase: str, arm: Arm) -> AssayResult:
        """Whether an arm's agent is shown what it should be, and nothing else (section 4)."""

    def grade(self, task: PlanTask, files: HeldTree) -> tuple[Reward, Reward]:
        """Grade a tree twice, each time on a copy of its own."""


class TestedAgent(AgentAtWork, Protocol):
    """The driver of a study, as its run knows it."""

    def told(self, slot: Slot, before: SlotState) -> Mapping[str, JsonValue]:
        """What the order of a slot's next attempt says of the driver."""

    def wait_before(self, slot: SlotState) -> float:
        """Seconds to wait before the next attempt of a slot."""


class Elsewhere(Protocol):
    """Where attempts are carried out when it is not here; what a run has to know of it."""

    def ready(self, cancelled: Cancelled) -> None:
        """Return once an attempt could be carried out.

        Raises:
            AgentUnreachableError: none can.
        """

    def capacity(self) -> int:
        """How many things can be carried out at a time."""

    def finished(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult | None:
        """What an attempt came to whose runner died; None where nobody knows.

        Raises:
            AgentUnreachableError: nobody can be asked.
        """

    def kept(self, order: AttemptOrder) -> None:
        """An attempt was published."""

    def losses(self) -> tuple[WorkerLost, ...]:
        """Who has gone since this was last asked, as rows of the journal."""
