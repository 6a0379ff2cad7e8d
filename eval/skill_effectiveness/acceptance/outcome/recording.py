"""Writing one record: an attempt, a commit that names an issue, an edge.

Source: outcome.md, sections 7, 9 and 11. What a new edge means for claims that were accepted is not written
beside it: the ledger derives it, so a receipt that arrives never fails for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel

from skill_effectiveness.acceptance.outcome.claims import ATTEMPT, EDGE, REFERENCE
from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.records import Attempt, ClosingReference, Edge, IssueKey
from skill_effectiveness.acceptance.outcome.sibling_records import NOTHING, Shown, look_up, tree_digest
from skill_effectiveness.acceptance.outcome.words import RESULTS, Family
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.outcome.claims import Ledger
    from skill_effectiveness.acceptance.outcome.store import Desk
    from skill_effectiveness.evidence.surroundings import Surroundings

ISSUES_MOST: Final = 64
_ID_DIGITS: Final = 24
_BINDING: Final = ("repository", "issue_number", "actor", "principal")
_Model = TypeVar("_Model", bound=BaseModel)


def record_of(model: type[_Model], value: dict[str, object]) -> _Model:
    """A record of what somebody said on a command line.

    Raises:
        OutcomeError: `record_invalid`, with the member.
    """
    try:
        return validate(model, value)
    except EvidenceError as error:
        fault = error.faults[0]
        sentence = f"{fault.sentence} Nothing was stored."
        raise OutcomeError(OutcomeCode.RECORD_INVALID, sentence, f" at {fault.where or '/'}") from error


def add_attempt(desk: Desk, attempt: Attempt) -> Attempt:
    """Record an attempt, or how far a known one has come; the same again is a no-op.

    Raises:
        OutcomeError: `attempt_conflict`: it is bound otherwise, leaves out a session or budget that is known,
            or was over already; `record_not_stored`.
    """
    known = desk.ledger.attempts.get(attempt.attempt_id)
    if known == attempt:
        return attempt
    if known is not None:
        _demand_goes_on(known, attempt)
    desk.append((ATTEMPT, attempt))
    return attempt


def _demand_goes_on(known: Attempt, attempt: Attempt) -> None:
    """Demand that a record of a known attempt says how far it has come and nothing else."""
    if known.state.terminal:
        sentence = "The attempt is over as it is recorded and stays so; give a new one its own id."
        raise OutcomeError(OutcomeCode.ATTEMPT_CONFLICT, sentence)
    members = [name for name in _BINDING if getattr(known, name) != getattr(attempt, name)]
    # A session that is forgotten would make a reviewer in it independent of it.
    if known.session not in {None, attempt.session}:
        members.append("session")
    if known.budget is not None and attempt.budget is None:
        members.append("budget")
    if members:
        told = ", ".join(name.replace("_", " ") for name in members)
        sentence = (
            f"The attempt is recorded with another {told}; repeat it, or give a new attempt its own id."
        )
        raise OutcomeError(OutcomeCode.ATTEMPT_CONFLICT, sentence)


def add_reference(desk: Desk, reference: ClosingReference) -> ClosingReference:
    """Record that a commit names an issue, and who closed the issue by it, if anybody."""
    if reference not in desk.ledger.references:
        desk.append((REFERENCE, reference))
    return reference


@dataclass(frozen=True, slots=True)
class NewEdge:
    """What a caller says about an edge.

    Attributes:
        issue: that it is about.
        commit: full id; `None`: that of the receipt.
        family: a word.
        result: a word of the family; of a qualification the receipt itself says it.
        receipt: reference of a build, deployment or push.
        environment: of a deployment.
        shown: of a qualification.
        checkout: a repository that has the commit.
    """

    issue: IssueKey
    commit: str | None
    family: str
    result: str | None = None
    receipt: str | None = None
    environment: str | None = None
    shown: Shown = NOTHING
    checkout: Path | None = None


def add_edge(desk: Desk, new: NewEdge, around: Surroundings) -> Edge:
    """Record an edge; the same again is a no-op.

    Raises:
        OutcomeError: an `evidence_…` code, `record_invalid`, `record_not_stored`.
    """
    family = _family(new.family)
    edge = _qualification(desk, new, around) if family is Family.QUALIFICATION else _other(new, family)
    _demand_admissible(edge, desk.ledger)
    if desk.ledger.edges.get(edge.edge_id) != edge:
        desk.append((EDGE, edge))
    return edge


def _family(word: str) -> Family:
    try:
        return Family(word)
    except ValueError as error:
        known = ", ".join(Family)
        sentence = f"There is no such family of receipts; name one of {known}."
        raise OutcomeError(OutcomeCode.EVIDENCE_FAMILY_UNKNOWN, sentence) from error


def _qualification(desk: Desk, new: NewEdge, around: Surroundings) -> Edge:
    if new.receipt is not None or new.environment is not None:
        sentence = "A qualification is shown by --decision or --milestone; it has no --receipt of its own and"
        raise OutcomeError(OutcomeCode.EVIDENCE_RECEIPT_NOT_FOUND, f"{sentence} no --environment.")
    receipt = look_up(new.shown, desk.root, around)
    if new.commit not in {None, receipt.commit}:
        sentence = "The receipt is about another commit than the one named. No edge was recorded."
        raise OutcomeError(OutcomeCode.EVIDENCE_COMMIT_MISMATCH, sentence)
    if new.result not in {None, receipt.status.value}:
        sentence = "A qualification says itself what it came to, and it says something else."
        raise OutcomeError(OutcomeCode.EVIDENCE_RESULT_UNKNOWN, sentence)
    if new.checkout is None:
        sentence = "Name a checkout that has the commit with --checkout."
        raise OutcomeError(OutcomeCode.EVIDENCE_REPOSITORY_NOT_RESOLVED, sentence)
    check = receipt.check(new.issue.repository, tree_digest(new.checkout, receipt.commit, around))
    value: dict[str, object] = {"result": check.status.value, "check": check.model_dump(mode="json")}
    return _edge(new.issue, receipt.commit, Family.QUALIFICATION, receipt.reference, value)


def _other(new: NewEdge, family: Family) -> Edge:
    if new.shown != NOTHING:
        sentence = "Decisions and milestones are receipts of the family qualification."
        raise OutcomeError(OutcomeCode.EVIDENCE_FAMILY_UNKNOWN, sentence)
    if new.environment is not None and family is not Family.DEPLOYMENT:
        sentence = f"A {family} is of no environment; leave --environment out."
        raise OutcomeError(OutcomeCode.EVIDENCE_ENVIRONMENT_MISMATCH, sentence)
    if new.commit is None:
        if family is Family.PUSH:
            sentence = "A push is of a commit; name it with --commit."
            raise OutcomeError(OutcomeCode.EVIDENCE_PUSH_NEEDS_COMMIT, sentence)
        raise OutcomeError(OutcomeCode.RECORD_INVALID, "Name the commit with --commit.", " at /commit")
    known = new.result is None if family is Family.PUSH else new.result in RESULTS[family]
    if not known:
        words = ", ".join(sorted(RESULTS[family]))
        sentence = f"A {family} says one of {words}; name it with --result."
        if not words:
            sentence = f"A {family} has no result; leave --result out."
        raise OutcomeError(OutcomeCode.EVIDENCE_RESULT_UNKNOWN, sentence)
    if not new.receipt:
        raise OutcomeError(OutcomeCode.EVIDENCE_RECEIPT_NOT_FOUND, "Name the receipt with --receipt.")
    value: dict[str, object] = {"result": new.result, "environment": new.environment}
    return _edge(new.issue, new.commit, family, new.receipt, value)


def _edge(issue: IssueKey, commit: str, family: Family, receipt: str, value: dict[str, object]) -> Edge:
    """An edge under the id that issue, commit, family and receipt give it."""
    named = [issue.repository, issue.number, commit, family.value, receipt]
    try:
        digest = digest_object(named).removeprefix("sha256:")
    except EvidenceError as error:
        sentence = f"{error.faults[0].sentence} No edge was recorded."
        raise OutcomeError(OutcomeCode.RECORD_INVALID, sentence) from error
    members: dict[str, object] = {
        "repository": issue.repository,
        "issue_number": issue.number,
        "edge_id": f"edge-{digest[:_ID_DIGITS]}",
        "commit": commit,
        "family": family.value,
        "receipt": receipt,
        "environment": None,
        "check": None,
    }
    return record_of(Edge, members | value)


def _demand_admissible(edge: Edge, ledger: Ledger) -> None:
    """Demand that the issue claims the commit, and that the edge agrees with what is known of its receipt."""
    if not ledger.claims_commit(edge.issue, edge.commit):
        sentence = (
            "The issue does not claim this commit: no attempt at it ended there, and no commit names it."
        )
        raise OutcomeError(OutcomeCode.EVIDENCE_COMMIT_NOT_CLAIMED, f"{sentence} No edge was recorded.")
    known = ledger.edges.get(edge.edge_id)
    if known is not None and known.environment != edge.environment:
        sentence = "This receipt is recorded for another environment. No edge was recorded."
        raise OutcomeError(OutcomeCode.EVIDENCE_ENVIRONMENT_MISMATCH, sentence)
    others = ledger.issues_at(edge.commit) - {edge.issue}
    if len(others) >= ISSUES_MOST:
        sentence = f"{ISSUES_MOST} issues have evidence at this commit already. No edge was recorded."
        raise OutcomeError(OutcomeCode.EVIDENCE_TOO_MANY_ISSUES, sentence)
