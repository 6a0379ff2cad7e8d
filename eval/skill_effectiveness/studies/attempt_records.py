"""What an attempt is given and what it leaves, as records (studies.md section 3).

| record | where |
|---|---|
| `AttemptOrder` | named by its digest in the journal before the call; made again from plan and seed |
| `AttemptExit` | `attempts/<slot>/a<M>/exit.json`, written last: without it nobody knows the end |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, JsonValue

from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json
from skill_effectiveness.protocol.gates import Budgets
from skill_effectiveness.studies.plan import SlotNumber
from skill_effectiveness.studies.rows import AttemptNumber, Usage, Word
from skill_effectiveness.studies.study_file import Isolation, Model
from skill_effectiveness.studies.words import Arm, EndClass
from skill_effectiveness.trials.models import IsolationEvidence

if TYPE_CHECKING:
    from skill_effectiveness.studies.state import AttemptState

EXIT_CONTRACT: Final = "skill-effectiveness-study-attempt-v1"

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
    root_id: str
    plan_digest: DigestText
    slot: SlotNumber
    attempt: AttemptNumber
    task_id: str
    arm: Arm
    sample: Annotated[int, Field(ge=1)]
    salt: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    driver: dict[str, JsonValue]
    budget: Budgets
    isolation: Isolation
    inputs: tuple[DigestText, ...]
    runtime_manifest_hash: DigestText

    @property
    def digest(self) -> str:
        """`H` of the order."""
        return digest_object(to_json(self))


class ExitIsolation(FrozenModel):
    """What was observed of an attempt's isolation, without the rows of its audit."""

    evidence: IsolationEvidence | None
    audit_complete: bool
    roots_enforced: bool


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
