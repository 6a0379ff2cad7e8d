"""Every row of a study's journal: its type, its body and nothing else (studies.md section 2).

`entry(body)` is what is appended; `read_study_row(row)` takes a row back. The rows of the journal's own (such
as `journal_open`) are no rows of a study and come back as None.

A row tells nothing of an arm before its slot has ended, and no row holds a text of an agent.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from pydantic import Field, ValidationError

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.journal import Entry
from skill_effectiveness.evidence.journal_rows import KERNEL_BODIES
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.protocol.document import DigestText, FrozenModel, told
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan import LicenceId, SlotNumber
from skill_effectiveness.studies.study_file import MOST_ATTEMPTS
from skill_effectiveness.studies.words import Arm, EndClass, GradeState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.journal import Row

Amount = Annotated[float, Field(ge=0)]
Tokens = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=0)]
BatchNumber = Annotated[int, Field(ge=1)]
AttemptNumber = Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.:-]{0,127}$")]
"""A closed word of another room, such as the kind of a provider's error."""

Reason = Annotated[str, Field(min_length=1, max_length=10_000)]
"""In a person's words."""

Pointer = Annotated[str, Field(pattern=r"^(/[^/\x00-\x1f]{1,128}){1,8}$")]
PairId = Annotated[str, Field(pattern=r"^pair-[0-9a-f]{64}$")]
VoteId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
HostName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
WorkerName = Annotated[str, Field(min_length=1, max_length=280, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""A host's name and the number of a process there, as `host/pid`."""


class Usage(FrozenModel):
    """What one attempt or vote has used; null is unknown and never 0."""

    input_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    reasoning_tokens: Tokens | None = None
    tool_calls: Tokens | None = None
    cost_units: Amount | None = None
    wall_seconds: Amount | None = None

    @property
    def tokens(self) -> int | None:
        """Tokens in and out; None when either is unknown."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


class StudyRow(FrozenModel):
    """Base of all bodies; `type` is the journal's word for the row."""

    type: ClassVar[str]


class PlanSealed(StudyRow):
    """The first row of every study."""

    type: ClassVar[str] = "plan_sealed"
    plan_digest: DigestText


class Amendment(StudyRow):
    """A person changed what may be changed."""

    type: ClassVar[str] = "amendment"
    pointer: Pointer
    value: float | str | None
    former: float | str | None
    reason: Reason


class BatchOpened(StudyRow):
    """A batch of slots begins; `first` and `last` are its slots."""

    type: ClassVar[str] = "batch_opened"
    batch: BatchNumber
    first: SlotNumber
    last: SlotNumber


class Assay(StudyRow):
    """An exposure assay came to a result (section 4)."""

    type: ClassVar[str] = "assay"
    batch: BatchNumber
    phase: Literal["open", "close"]
    arm: Arm
    result: Literal["passed", "failed", "not_applicable"]


class BatchVoid(StudyRow):
    """A closing assay failed: every slot of the batch is void."""

    type: ClassVar[str] = "batch_void"
    batch: BatchNumber


class SlotStarted(StudyRow):
    """Durable before the call; `order_digest` names everything that the attempt was given."""

    type: ClassVar[str] = "slot_started"
    slot: SlotNumber
    attempt: AttemptNumber
    order_digest: DigestText


class AttemptEnded(StudyRow):
    """One attempt is over.

    Attributes:
        ended: its class (`class` in the journal).
        detail: the kind of a provider's error, a limit's name and the like; null when the class says all.
        tree: digest of what it left; null when it left nothing.
    """

    type: ClassVar[str] = "attempt_ended"
    slot: SlotNumber
    attempt: AttemptNumber
    ended: Annotated[EndClass, Field(alias="class")]
    detail: Word | None
    tree: DigestText | None
    usage: Usage


class WorkerLost(StudyRow):
    """A worker has gone, with the attempts it held."""

    type: ClassVar[str] = "worker_lost"
    worker: WorkerName
    slots: tuple[SlotNumber, ...]


class LeftoversEnded(StudyRow):
    """Processes that a killed run left behind were found and ended."""

    type: ClassVar[str] = "leftovers_ended"
    processes: Annotated[int, Field(ge=1)]


class SlotEnded(StudyRow):
    """A slot is over; `completion_binding_hash` is null where its trial did not complete."""

    type: ClassVar[str] = "slot_ended"
    slot: SlotNumber
    ended: Annotated[EndClass, Field(alias="class")]
    completion_binding_hash: DigestText | None


class Graded(StudyRow):
    """A slot's tree was graded; `grade_hash` is null unless the state is `valid`."""

    type: ClassVar[str] = "graded"
    slot: SlotNumber
    grade_hash: DigestText | None
    state: GradeState


class Drained(StudyRow):
    """The run was asked to stop; what ran was let finish."""

    type: ClassVar[str] = "drained"


class VoteStarted(StudyRow):
    """Durable before a reviewer is asked; a canary looks like every other vote."""

    type: ClassVar[str] = "vote_started"
    vote_id: VoteId
    licence_id: LicenceId
    pair_id: PairId
    position: Annotated[int, Field(ge=0, le=1)]


class VoteEnded(StudyRow):
    """A reviewer has answered, or has not; `vote_hash` is of `votes/<vote_id>.json`."""

    type: ClassVar[str] = "vote_ended"
    vote_id: VoteId
    state: Literal["valid", "no_verdict", "invalid", "refused", "provider_error"]
    vote_hash: DigestText | None
    usage: Usage


class Canary(StudyRow):
    """A known answer was asked; `e` is the evidence against the reviewer after it."""

    type: ClassVar[str] = "canary"
    licence_id: LicenceId
    right: bool
    e: Annotated[float, Field(gt=0)]


class LicenceRevoked(StudyRow):
    """Canaries have revoked a licence."""

    type: ClassVar[str] = "licence_revoked"
    licence_id: LicenceId


class VotesVoid(StudyRow):
    """These votes count no more."""

    type: ClassVar[str] = "votes_void"
    licence_id: LicenceId
    vote_ids: tuple[VoteId, ...]


class Guess(StudyRow):
    """A reviewer guessed the treated side of a pair."""

    type: ClassVar[str] = "guess"
    licence_id: LicenceId
    pair_id: PairId
    position: Annotated[int, Field(ge=0, le=1)]
    guess: Literal["A", "B", "unsure"]


class SlotsClosed(StudyRow):
    """Open slots will not be run: evidence was decided, or a person gave up."""

    type: ClassVar[str] = "slots_closed"
    reason: Literal["decided", "abandoned"]
    slots: Number


class Unblinded(StudyRow):
    """From here on arms are known."""

    type: ClassVar[str] = "unblinded"
    reason: Reason


class Analysed(StudyRow):
    """The results were written."""

    type: ClassVar[str] = "analysed"
    results_digest: DigestText


class Sealed(StudyRow):
    """A bundle is about to be sealed; nothing follows that a bundle would have to hold."""

    type: ClassVar[str] = "sealed"


ROWS: Final[Mapping[str, type[StudyRow]]] = MappingProxyType(
    {
        model.type: model
        for model in (
            PlanSealed,
            Amendment,
            BatchOpened,
            Assay,
            BatchVoid,
            SlotStarted,
            AttemptEnded,
            WorkerLost,
            LeftoversEnded,
            SlotEnded,
            Graded,
            Drained,
            VoteStarted,
            VoteEnded,
            Canary,
            LicenceRevoked,
            VotesVoid,
            Guess,
            SlotsClosed,
            Unblinded,
            Analysed,
            Sealed,
        )
    }
)
"""Every type of row, in the order of section 2."""


_OTHER_VERSION: Final = "read it with the version that wrote it."


def entry(row: StudyRow) -> Entry:
    """A row as the journal takes it."""
    return Entry(row.type, row.model_dump(mode="json", by_alias=True))


def read_study_row(row: Row) -> StudyRow | None:
    """The body of a row of a study; None for a row of the journal's own.

    Raises:
        StudyError: `row_invalid`: of no known type, or not of its form.
    """
    if row.type in KERNEL_BODIES:
        return None
    where = f"journal row {row.seq}"
    model = ROWS.get(row.type)
    if model is None:
        sentence = f"a study has no row of the type {printable(row.type[:64])}; {_OTHER_VERSION}"
        raise StudyError(StudyCode.ROW_INVALID, where, sentence)
    try:
        # A row that was read is canonical already, so its members need no second look.
        return model.model_validate_json(json.dumps(row.body), strict=True)
    except ValidationError:
        return _told(model, row, where)


def _told(model: type[StudyRow], row: Row, where: str) -> StudyRow:
    """The same by the slower way, which knows where a misfit is."""
    try:
        return validate(model, row.body)
    except EvidenceError as error:
        sentence = f"a row {row.type} is not of its form; {_OTHER_VERSION} Found: {told(error)}"
        raise StudyError(StudyCode.ROW_INVALID, where, sentence) from error
