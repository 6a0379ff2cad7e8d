"""What an attempt is given and what it leaves, as records (studies.md section 3).

| record | where |
|---|---|
| `AttemptOrder` | named by its digest in the journal before the call; made again from plan and seed |
| `AttemptBrief` | an input of the order; made again from the frozen task |
| `AttemptExit` | `attempts/<slot>/a<M>/exit.json`, written last: without it nobody knows the end |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, JsonValue

from skill_effectiveness.evidence.canonical import digest_bytes, digest_object, dump, dump_line
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.execution.trace_log import MOST_REFUSED
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json
from skill_effectiveness.protocol.gates import Budgets
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.studies.endings import KILLED
from skill_effectiveness.studies.plan import SlotNumber
from skill_effectiveness.studies.rows import AttemptEnded, AttemptNumber, Usage, Word
from skill_effectiveness.studies.study_file import Isolation, Model
from skill_effectiveness.studies.words import Arm, EndClass
from skill_effectiveness.trials.models import AccessMode, IsolationEvidence, Operation, RootPath

if TYPE_CHECKING:
    from skill_effectiveness.studies.state import AttemptState
    from skill_effectiveness.studies.task_folder import TaskFolder

EXIT_CONTRACT: Final = "skill-effectiveness-study-attempt-v1"
MOST_AUDIT_FAULTS: Final = 20

RootId = Annotated[str, Field(pattern=r"^root-[0-9a-z-]{1,64}$")]
"""Names a study's folder, and the folder that a worker keeps for it."""

Salt = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Moment = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}Z$")]


class AttemptOrder(FrozenModel):
    """Everything that one attempt is given: no credential, key, path, hidden test or other slot.

    Attributes:
        salt: opens the commitment of the slot.
        driver: provider, model and what the driver itself needs.
        budget: what is left of the trial's.
        inputs: digests of frozen inputs, sorted.
    """

    kind: Literal["attempt"]
    root_id: RootId
    plan_digest: DigestText
    slot: SlotNumber
    attempt: AttemptNumber
    task_id: str
    arm: Arm
    sample: Annotated[int, Field(ge=1)]
    salt: Salt
    driver: dict[str, JsonValue]
    budget: Budgets
    isolation: Isolation
    inputs: tuple[DigestText, ...]
    runtime_manifest_hash: DigestText

    @property
    def digest(self) -> str:
        """`H` of the order."""
        return digest_object(to_json(self))


class AttemptBrief(FrozenModel):
    """What an attempt is told of its task, and which input is what: an input itself, named by its digest.

    Attributes:
        payload: tree of what the arm gives.
        environment: tree of what is worked on.
        instruction: digest of the prompt.
        workdir: where the working copy lies in a sandbox.
        agent_seconds: how long the agent may take.
        env: variables that the task gives to the agent.
    """

    task_id: str
    registry: RegistrySchema
    payload: DigestText
    environment: DigestText
    instruction: DigestText
    workdir: str
    agent_seconds: float
    env: dict[str, str]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Digests of everything that the attempt is given, this brief included, sorted."""
        named = {self.payload, self.environment, self.instruction, digest_bytes(brief_bytes(self))}
        return tuple(sorted(named))


def brief_of(task: TaskFolder, registry: RegistrySchema, payload: str) -> AttemptBrief:
    """The brief of a task in an arm: nothing of its tests, its oracle or their variables.

    Args:
        task: as it was frozen.
        registry: of the study.
        payload: digest of the arm's tree.
    """
    return AttemptBrief(
        task_id=task.task_id,
        registry=registry,
        payload=payload,
        environment=task.environment.digest,
        instruction=digest_bytes(task.instruction),
        workdir=task.workdir,
        agent_seconds=task.limits.agent_seconds,
        env=dict(task.environment_env),
    )


def brief_bytes(brief: AttemptBrief) -> bytes:
    """The bytes of a brief, which its digest is of."""
    return dump(to_json(brief))


def read_brief(data: bytes) -> AttemptBrief:
    """A brief, read strictly.

    Raises:
        StrictError, DocumentError: it is none.
    """
    return parse(AttemptBrief, data, Profile.DOCUMENT, canonical=Canonical.BARE)


class Refusal(FrozenModel):
    """What an agent asked for and did not get; no access, and no row of an audit.

    Attributes:
        mode: of an `open`; null for anything else.
    """

    operation: Operation
    mode: AccessMode | None
    path: RootPath


AuditFault = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_, -]{0,159}$")]
"""Why an audit is not whole, in a few words of this program's own."""


class ExitIsolation(FrozenModel):
    """What was observed of an attempt's isolation, without the rows of its audit.

    Attributes:
        audit_complete: whether an audit was made and is whole.
        audit_faults: why one that was made is not, some of it where it was much.
        read_roots: what it might read; empty where that is the attempt's own folder.
        write_roots: what it might write, likewise.
        refused: what it asked for outside of them and did not get, some of it where it was much.
    """

    evidence: IsolationEvidence | None
    audit_complete: bool
    roots_enforced: bool
    read_roots: Annotated[tuple[RootPath, ...], Field(max_length=1_024)] = ()
    write_roots: Annotated[tuple[RootPath, ...], Field(max_length=1_024)] = ()
    refused: Annotated[tuple[Refusal, ...], Field(max_length=MOST_REFUSED)] = ()
    audit_faults: Annotated[tuple[AuditFault, ...], Field(max_length=MOST_AUDIT_FAULTS)] = ()


class AttemptExit(FrozenModel):
    """`exit.json`.

    Attributes:
        ended: the class (`class` in the file).
        tree: digest of `tree.json`; null when nothing was collected.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-attempt-v1"]
    slot: SlotNumber
    attempt: AttemptNumber
    order_digest: DigestText
    ended: Annotated[EndClass, Field(alias="class")]
    detail: Word | None
    model_requested: Model
    model_reported: Annotated[str, Field(min_length=1, max_length=256)] | None
    tree: DigestText | None
    usage: Usage
    isolation: ExitIsolation
    started_at: Moment
    ended_at: Moment


def exit_line(document: AttemptExit) -> bytes:
    """The bytes of `exit.json`."""
    return dump_line(document.model_dump(mode="json", by_alias=True))


def read_exit(data: bytes) -> AttemptExit:
    """An `exit.json`, read strictly.

    Raises:
        StrictError, DocumentError: it is none.
    """
    return parse(AttemptExit, data, Profile.DOCUMENT, canonical=Canonical.LINE)


def is_of(document: AttemptExit, slot: int, attempt: AttemptState) -> bool:
    """Whether an exit is that of an attempt which the journal started."""
    found = (document.slot, document.attempt, document.order_digest)
    return found == (slot, attempt.number, attempt.order_digest)


def ended_row(document: AttemptExit) -> AttemptEnded:
    """The journal's row of an attempt that has an exit."""
    return AttemptEnded(
        slot=document.slot,
        attempt=document.attempt,
        **{"class": document.ended},
        detail=document.detail,
        tree=document.tree,
        usage=document.usage,
    )


def lost_row(slot: int, attempt: int) -> AttemptEnded:
    """The journal's row of an attempt whose end nobody saw."""
    interrupted = {"class": EndClass.INTERRUPTED}
    return AttemptEnded(slot=slot, attempt=attempt, **interrupted, detail=KILLED, tree=None, usage=Usage())
