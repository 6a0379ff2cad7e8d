"""The stored claim, and what the rows of the journal add up to.

Source: outcome.md, sections 6, 8 and 9. Every row is an entry that stays. A claim's row is derived from them:
the newest grading, the one close that no grading takes away, and the first disagreement that came after it
was accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from skill_effectiveness.acceptance.outcome.records import (
    Attempt,
    AttemptId,
    Citations,
    ClosingReference,
    Commit,
    Digest,
    Edge,
    EdgeId,
    IssueKey,
    IssueRecord,
    Number,
    Repository,
)
from skill_effectiveness.acceptance.outcome.words import CLOSER, COMPLETED, PUBLIC, IssueState, Result
from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.evidence.journal_rows import KERNEL_BODIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.journal_rows import Row

_CLOSED: Final = ConfigDict(extra="forbid", strict=True, frozen=True)

ISSUE: Final = "issue_recorded"
ATTEMPT: Final = "attempt_recorded"
REFERENCE: Final = "reference_recorded"
EDGE: Final = "edge_recorded"
GRADED: Final = "claim_graded"
INTENDED: Final = "close_intended"
UNCONFIRMED: Final = "close_unconfirmed"
CLOSED: Final = "issue_closed"

Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]


class ClaimKey(NamedTuple):
    """What a claim is about: one row each."""

    repository: str
    issue_number: int
    attempt_id: str
    revision: str

    @property
    def issue(self) -> IssueKey:
        """Which issue."""
        return IssueKey(self.repository, self.issue_number)


class _OfClaim(BaseModel):
    """A record that is about one claim."""

    model_config = _CLOSED
    repository: Repository
    issue_number: Number
    attempt_id: AttemptId
    revision: Commit

    @property
    def key(self) -> ClaimKey:
        """Which claim."""
        return ClaimKey(self.repository, self.issue_number, self.attempt_id, self.revision)


class SatisfiedCriterion(BaseModel):
    """A criterion in public form: the receipt only where everybody may see it."""

    model_config = _CLOSED
    criterion: Annotated[str, Field(max_length=65_536)]
    evidence: Annotated[str, Field(max_length=200)] | None
    visibility: Literal["public", "private"]

    @model_validator(mode="after")
    def _private_shows_nothing(self) -> SatisfiedCriterion:
        if (self.evidence is not None) is not (self.visibility == PUBLIC):
            raise RuleBroken("A public criterion shows its receipt, and a private one none.")
        return self


class _Verdict(_OfClaim):
    """What a grading says."""

    state: Result
    reasons: tuple[Annotated[str, Field(max_length=66_000)], ...]
    criteria: tuple[SatisfiedCriterion, ...]
    verifier: Annotated[str, Field(max_length=200)] | None
    falsifier: Annotated[str, Field(max_length=500)] | None

    @model_validator(mode="after")
    def _accepted_alone_names_who(self) -> _Verdict:
        named = (self.verifier is not None, self.falsifier is not None, bool(self.criteria))
        accepted = self.state is Result.ACCEPTED
        if any(each is not accepted for each in named):
            raise RuleBroken("An accepted claim names verifier, falsifier and criteria, and no other does.")
        return self


class Grading(_Verdict):
    """One grading, with what it was made of."""

    issue_digest: Digest
    cited: Citations


class ClaimRow(_Verdict):
    """One `issue_completion_claims` row."""

    closed: bool
    closed_at: Time | None
    closed_by_actor: Annotated[str, Field(max_length=200)] | None
    contradicted_at: Time | None
    contradicted_by_evidence_id: EdgeId | None
    contradiction_reason: Annotated[str, Field(max_length=200)] | None

    @model_validator(mode="after")
    def _closed_needs(self) -> ClaimRow:
        if self.closed and self.state is not Result.ACCEPTED:
            raise RuleBroken("Only an accepted claim closes.")
        if self.closed is not (self.closed_at is not None) or self.closed is not (
            self.closed_by_actor is not None
        ):
            raise RuleBroken("A closed claim says when it was closed and by whom, and no other does.")
        stamp = (self.contradicted_at, self.contradicted_by_evidence_id, self.contradiction_reason)
        if len({part is None for part in stamp}) > 1:
            raise RuleBroken("A contradiction has a time, an edge and a reason.")
        return self


class Intent(_OfClaim):
    """That closing an issue is about to be asked for."""

    intent_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Unconfirmed(_OfClaim):
    """That nobody knows what came of an intent; what was observed instead of it, if anything."""

    intent_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    observed_state: IssueState | None
    observed_reason: Annotated[str, Field(max_length=40)] | None


class Close(_OfClaim):
    """That an issue was closed here."""

    intent_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None
    closed_by_actor: Literal["system:accepted-outcome"] = CLOSER
    reason: Literal["completed"] = COMPLETED


@dataclass(slots=True)
class _Entries:
    """What was written about one claim.

    Attributes:
        gradings: all of them, each with its time.
        closed: the grading that closed the issue and when.
        contradiction: when, by which edge, in which words.
    """

    gradings: list[tuple[str, Grading]]
    closed: tuple[Grading, str] | None = None
    contradiction: tuple[str, str, str] | None = None

    @property
    def standing(self) -> Grading:
        """The grading that the row shows: the one that closed the issue, else the newest."""
        return self.closed[0] if self.closed else self.gradings[-1][1]


class LedgerError(Exception):
    """Rows contradict each other.

    Attributes:
        seq: number of the row.
    """

    def __init__(self, seq: int) -> None:
        self.seq = seq
        super().__init__(f"row {seq} does not follow from those before it")


class Ledger:
    """What all rows up to one of them add up to."""

    def __init__(self) -> None:
        self.issues: dict[IssueKey, IssueRecord] = {}
        self.attempts: dict[str, Attempt] = {}
        self.references: list[ClosingReference] = []
        self.edges: dict[str, Edge] = {}
        self._every_edge: list[Edge] = []
        self._claims: dict[ClaimKey, _Entries] = {}
        self._pending: dict[str, Intent] = {}

    def take(self, row: Row) -> None:
        """Add one row; those of the journal itself say nothing here.

        Raises:
            EvidenceError: the body is not of its type.
            LedgerError: it does not follow from the rows before it.
        """
        if row.type in KERNEL_BODIES:
            return
        model = _MODELS.get(row.type)
        if model is None:
            raise LedgerError(row.seq)
        record = validate(model, row.body)
        match record:
            case Edge():
                self._take_edge(record, row.time)
            case Grading():
                entries = self._claims.setdefault(record.key, _Entries([]))
                entries.gradings.append((row.time, record))
            case Close():
                self._take_close(record, row)
            case _:
                self._keep(record)

    def _keep(self, record: BaseModel) -> None:
        """Take what says nothing about what was there before."""
        match record:
            case IssueRecord():
                self.issues[record.issue] = record
            case Attempt():
                self.attempts[record.attempt_id] = record
            case ClosingReference():
                self.references.append(record)
            case Intent():
                self._pending[record.intent_id] = record
            case Unconfirmed():
                self._pending.pop(record.intent_id, None)

    def _take_edge(self, edge: Edge, time: str) -> None:
        self.edges[edge.edge_id] = edge
        self._every_edge.append(edge)
        if not edge.contradicts:
            return
        for key, entries in self._claims.items():
            accepted = entries.standing.state is Result.ACCEPTED
            if (
                accepted
                and entries.contradiction is None
                and (key.issue, key.revision) == (edge.issue, edge.commit)
            ):
                entries.contradiction = (time, edge.edge_id, edge.said)

    def _take_close(self, close: Close, row: Row) -> None:
        entries = self._claims.get(close.key)
        if entries is None or entries.closed or entries.standing.state is not Result.ACCEPTED:
            raise LedgerError(row.seq)
        entries.closed = (entries.standing, row.time)
        if close.intent_id is not None:
            self._pending.pop(close.intent_id, None)

    # Questions.

    def row(self, key: ClaimKey) -> ClaimRow | None:
        """The row of a claim; `None` where it was never graded."""
        entries = self._claims.get(key)
        if entries is None:
            return None
        verdict = entries.standing.model_dump(mode="json", exclude={"issue_digest", "cited"})
        when, edge, said = entries.contradiction or (None, None, None)
        members = {
            "closed": entries.closed is not None,
            "closed_at": entries.closed[1] if entries.closed else None,
            "closed_by_actor": CLOSER if entries.closed else None,
            "contradicted_at": when,
            "contradicted_by_evidence_id": edge,
            "contradiction_reason": said,
        }
        return validate(ClaimRow, verdict | members)

    def gradings(self, key: ClaimKey) -> tuple[tuple[str, Grading], ...]:
        """Every grading of a claim with its time, oldest first."""
        entries = self._claims.get(key)
        return tuple(entries.gradings) if entries else ()

    def pending(self, issue: IssueKey) -> tuple[Intent, ...]:
        """Closes of an issue that were begun and of which nobody knows what they came to."""
        return tuple(intent for intent in self._pending.values() if intent.key.issue == issue)

    def contradicted(self, issue: IssueKey, commit: str) -> bool:
        """Whether any edge at this revision ever carried its family's word for failure."""
        about = (edge for edge in self._every_edge if (edge.issue, edge.commit) == (issue, commit))
        return any(edge.contradicts for edge in about)

    def claims_commit(self, issue: IssueKey, commit: str) -> bool:
        """Whether an issue claims a commit: by an attempt that ended there, or by a commit that names it."""
        attempts = (each for each in self.attempts.values() if each.state.terminal)
        named: Iterator[Attempt | ClosingReference] = iter((*attempts, *self.references))
        return any((each.issue, each.commit) == (issue, commit) for each in named)

    def issues_at(self, commit: str) -> frozenset[IssueKey]:
        """The issues that have an edge at a commit."""
        return frozenset(edge.issue for edge in self._every_edge if edge.commit == commit)

    def closed_here(self, issue: IssueKey) -> bool:
        """Whether a row of ours says that an issue is closed: our own close, or a person's by a commit."""
        ours = any(each.closed is not None for key, each in self._claims.items() if key.issue == issue)
        persons = (each for each in self.references if each.issue == issue)
        return ours or any(each.closed_by_user_id is not None for each in persons)


_MODELS: Final[dict[str, type[BaseModel]]] = {
    ISSUE: IssueRecord,
    ATTEMPT: Attempt,
    REFERENCE: ClosingReference,
    EDGE: Edge,
    GRADED: Grading,
    INTENDED: Intent,
    UNCONFIRMED: Unconfirmed,
    CLOSED: Close,
}
