"""What the records of sibling tools say, as check results.

Source: outcome.md, section 11. The documents are read as data, by the few members that count here; what makes
them receipts at all is that their tool's own journal holds their digest, which `sibling_records` looks up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.records import CheckResult
from skill_effectiveness.acceptance.outcome.words import COMMIT, CheckStatus
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue

# Their tools own these documents and may add to them.
_FOREIGN: Final = ConfigDict(extra="ignore", strict=True, frozen=True)
_Model = TypeVar("_Model", bound=BaseModel)


class DecidedPolicy(BaseModel):
    """Which policy a decision was made under."""

    model_config = _FOREIGN
    digest: str | None
    absent: bool


class DecidedItem(BaseModel):
    """One requirement of a decision."""

    model_config = _FOREIGN
    id: Annotated[str, Field(min_length=1, max_length=120)]
    kind: str
    state: str
    attempt: int = 0


class Decision(BaseModel):
    """A Closeout decision. One without `publisher` is no receipt."""

    model_config = _FOREIGN
    publisher: str
    decision: str
    gate: Annotated[str, Field(min_length=1, max_length=100)]
    head: Annotated[str, Field(pattern=COMMIT)]
    policy: DecidedPolicy
    items: tuple[DecidedItem, ...]


class CommandProducer(BaseModel):
    """Which program ran a command."""

    model_config = _FOREIGN
    name: str
    version: str


class ReviewProducer(BaseModel):
    """Who reviewed."""

    model_config = _FOREIGN
    session: str
    model: str
    provider: str


class _DecidingRecord(BaseModel):
    model_config = _FOREIGN
    itemId: str  # noqa: N815 - the document's own spelling
    head: Annotated[str, Field(pattern=COMMIT)]
    policyDigest: str  # noqa: N815 - the document's own spelling
    attempt: int


class CommandRecord(_DecidingRecord):
    """The record that decided a command item."""

    recordType: Literal["command"]  # noqa: N815 - the document's own spelling
    producer: CommandProducer


class ReviewRecord(_DecidingRecord):
    """The record that decided a review item."""

    recordType: Literal["review"]  # noqa: N815 - the document's own spelling
    producer: ReviewProducer


class _AnyRecord(BaseModel):
    model_config = _FOREIGN
    recordType: str  # noqa: N815 - the document's own spelling


class MilestoneClose(BaseModel):
    """The body of a milestone's close row, as far as it counts here."""

    model_config = _FOREIGN
    milestone: Annotated[str, Field(min_length=1, max_length=100)]
    head: Annotated[str, Field(pattern=COMMIT)]
    producer: CommandProducer | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt of another tool that was looked up there.

    Attributes:
        reference: how evidence names it; free of paths.
        name: of the check.
        commit: that it is about.
        status: what it says.
        publisher: who says so; `None` is unknown.
        session: of a reviewer; `None` where there is none.
        digest: of the bytes that were looked up.
    """

    reference: str
    name: str
    commit: str
    status: CheckStatus
    publisher: str | None
    session: str | None
    digest: str

    def check(self, repository: str, artifact_digest: str) -> CheckResult:
        """As the check result of a repository's tree."""
        return CheckResult(
            repository=repository,
            name=self.name,
            commit=self.commit,
            artifact_digest=artifact_digest,
            status=self.status,
            publisher=self.publisher,
            session=self.session,
            evidence_digest=self.digest,
        )


def read_decision(data: bytes) -> Decision:
    """A decision out of its file.

    Raises:
        OutcomeError: `evidence_receipt_not_found`.
    """
    return _foreign(Decision, data, "decision")


def read_record(data: bytes) -> CommandRecord | ReviewRecord:
    """A deciding record out of its file.

    Raises:
        OutcomeError: `evidence_receipt_not_found`.
    """
    if _foreign(_AnyRecord, data, "record").recordType == "command":
        return _foreign(CommandRecord, data, "record")
    return _foreign(ReviewRecord, data, "record")


def _foreign(model: type[_Model], data: bytes, what: str) -> _Model:
    try:
        return parse(model, data, Profile.DOCUMENT)
    except EvidenceError as error:
        fault = error.faults[0]
        place = f" at {fault.where}" if fault.where else ""
        raise no_receipt(f"This is no {what} of Closeout{place}: {fault.sentence}") from error


def no_receipt(sentence: str) -> OutcomeError:
    """The refusal of what is no receipt."""
    return OutcomeError(OutcomeCode.EVIDENCE_RECEIPT_NOT_FOUND, f"{sentence} No edge was recorded.")


_OF_DECISION: Final = {"accepted": CheckStatus.SUCCEEDED, "rejected": CheckStatus.FAILED}
_OF_ITEM: Final = {"passed": CheckStatus.SUCCEEDED, "failed": CheckStatus.FAILED}


def receipt_of_decision(decision: Decision, digest: str) -> Receipt:
    """A whole decision as a receipt.

    One that was accepted because nothing is required has verified nothing, so it succeeds at nothing.
    """
    status = _OF_DECISION.get(decision.decision, CheckStatus.PENDING)
    if decision.policy.absent or not decision.items:
        status = CheckStatus.PENDING
    name = f"closeout/{decision.gate}"
    return Receipt(
        reference=f"{name}:{digest}",
        name=name,
        commit=decision.head,
        status=status,
        publisher=_known(decision.publisher),
        session=None,
        digest=digest,
    )


def receipt_of_item(
    decision: Decision, item_id: str, record: CommandRecord | ReviewRecord, digest: str
) -> Receipt:
    """One item of a decision as a receipt, with the record that decided it.

    Raises:
        OutcomeError: `evidence_receipt_not_found`: the item is not in the decision, or the record is not the
            one that decided it.
    """
    item = next((each for each in decision.items if each.id == item_id), None)
    if item is None:
        raise no_receipt("The decision has no such item.")
    said = (record.recordType, record.itemId, record.head, record.policyDigest, record.attempt)
    meant = (item.kind, item.id, decision.head, decision.policy.digest, item.attempt)
    if said != meant:
        raise no_receipt("The record is not the one that decided the item.")
    session = None
    if isinstance(record, ReviewRecord):
        producer = record.producer
        session = _known(producer.session)
        parts = ("reviewer:", producer.provider, "/", producer.model) if session else None
    else:
        parts = ("runner:", record.producer.name, "@", record.producer.version)
    return Receipt(
        reference=f"{item.id}:{digest}",
        name=item.id,
        commit=decision.head,
        status=_OF_ITEM.get(item.state, CheckStatus.PENDING),
        publisher=_joined(*parts) if parts else None,
        session=session,
        digest=digest,
    )


def receipt_of_milestone(body: Mapping[str, JsonValue], digest: str) -> Receipt:
    """A closed milestone as a receipt.

    Args:
        body: of the close row.
        digest: of that row.

    Raises:
        OutcomeError: `evidence_receipt_not_found`.
    """
    try:
        close = MilestoneClose.model_validate(dict(body), strict=False)
    except ValueError as error:
        raise no_receipt("The close of the milestone names neither milestone nor head.") from error
    producer = close.producer
    name = f"milestone/{close.milestone}"
    return Receipt(
        reference=f"{name}:{digest}",
        name=name,
        commit=close.head,
        status=CheckStatus.SUCCEEDED,
        publisher=_joined("runner:", producer.name, "@", producer.version) if producer else None,
        session=None,
        digest=digest,
    )


def _joined(kind: str, first: str, between: str, second: str) -> str | None:
    """A publisher's name; unknown when any part of it is blank."""
    one, other = first.strip(), second.strip()
    return _known(f"{kind}{one}{between}{other}") if one and other else None


_PUBLISHER_MOST: Final = 200


def _known(name: str) -> str | None:
    """A name, trimmed; `None` when it is blank, or too long to be kept whole."""
    plain = name.strip()
    return plain if plain and len(plain) <= _PUBLISHER_MOST else None
