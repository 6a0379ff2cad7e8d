"""What a run needs of a tested agent, whoever it is: one attempt, an exposure assay, and grading its tree.

An attempt sees its order and nothing else; it may run in a thread here, or elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.rows import Usage

if TYPE_CHECKING:
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.protocol.event_rows import HostResidualRow, SkillEventsRow
    from skill_effectiveness.studies.attempt_records import AttemptOrder
    from skill_effectiveness.studies.file_trees import Oddity
    from skill_effectiveness.studies.plan import PlanTask
    from skill_effectiveness.studies.rewards import Reward
    from skill_effectiveness.studies.state import SlotState
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
    """

    evidence: IsolationEvidence | None = None
    audit: tuple[AuditRow, ...] = ()
    audit_complete: bool = False
    roots_enforced: bool = False


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


class TestedAgent(Protocol):
    """The driver of a study."""

    def told(self, slot: Slot, before: SlotState) -> Mapping[str, JsonValue]:
        """What the order of a slot's next attempt says of the driver."""

    def wait_before(self, slot: SlotState) -> float:
        """Seconds to wait before the next attempt of a slot."""

    def attempt(self, order: AttemptOrder, place: str, cancelled: Cancelled) -> AttemptResult:
        """One attempt.

        Args:
            order: all that it is given.
            place: absolute path of the attempt's folder.
            cancelled: asked now and then.
        """

    def assay(self, batch: int, phase: str, arm: Arm) -> AssayResult:
        """Whether an arm's agent is shown what it should be, and nothing else (section 4)."""

    def grade(self, task: PlanTask, files: HeldTree) -> tuple[Reward, Reward]:
        """Grade a tree twice, each time on a copy of its own."""
