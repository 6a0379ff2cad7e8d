"""Submitting a claim: graded from records, stored whatever comes of it, with what closing would say.

Source: outcome.md, sections 6 to 8 and 12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.assembly import Records, claimable, graded, grading_of
from skill_effectiveness.acceptance.outcome.claims import GRADED, ISSUE
from skill_effectiveness.acceptance.outcome.closing import withheld
from skill_effectiveness.acceptance.outcome.contract import load_contract
from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.issues import demand_same_source, read_issue
from skill_effectiveness.acceptance.outcome.project import projection
from skill_effectiveness.acceptance.outcome.records import CITED_MOST, Citations
from skill_effectiveness.acceptance.outcome.sections import read_sections
from skill_effectiveness.evidence.documents import parse
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from pydantic import BaseModel, JsonValue

    from skill_effectiveness.acceptance.outcome.claims import ClaimKey, ClaimRow, Grading, Ledger
    from skill_effectiveness.acceptance.outcome.issues import IssuePlace
    from skill_effectiveness.acceptance.outcome.records import IssueRecord, PolicyDocument
    from skill_effectiveness.acceptance.outcome.store import Desk, Reading
    from skill_effectiveness.acceptance.outcome.words import Withheld
    from skill_effectiveness.evidence.surroundings import Surroundings

NOT_RECORDED: Final = OutcomeCode.CLAIM_NOT_RECORDED
"""What it is called when a row of a claim cannot be written; for `store.writing`."""


def read_citations(data: bytes) -> Citations:
    """What a caller gives, out of its file.

    Raises:
        OutcomeError: `claim_invalid`, with the pointer.
    """
    try:
        return parse(Citations, data, Profile.WIRE)
    except EvidenceError as error:
        fault = error.faults[0]
        about = f": {fault.where or '/'} {fault.code.value}"
        raise OutcomeError(
            OutcomeCode.CLAIM_INVALID, f"{fault.sentence} Nothing was graded.", about
        ) from error


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim as it is judged now; nothing of it is stored yet.

    Attributes:
        key: which claim.
        issue: as read.
        grading: what would be kept.
        withheld: why an accepted claim leaves its issue as it is.
    """

    key: ClaimKey
    issue: IssueRecord
    grading: Grading
    withheld: Withheld | None


def judge(
    ledger: Ledger,
    policy: PolicyDocument,
    place: IssuePlace,
    attempt_id: str,
    *,
    citations: Citations,
    replaced: frozenset[str],
    around: Surroundings,
) -> Judged:
    """Judge a claim from records and the issue as it is now, under the published contract.

    Args:
        ledger: what is recorded.
        policy: as it is now.
        place: where the issue is.
        attempt_id: of the attempt.
        citations: the caller's.
        replaced: digests of receipts that count no more; see `sibling_records.replaced_receipts`.
        around: the surroundings.

    Raises:
        OutcomeError: a `claim_attempt_…` code, `invalid_contract`, `contract_divergence`, `issue_unreadable`,
            `record_invalid`.
    """
    attempt = claimable(ledger.attempts, attempt_id)
    load_contract(around.fs)
    demand_same_source(place, ledger)
    issue = read_issue(place, ledger, around)
    if len(read_sections(issue.body).acceptance_criteria) > CITED_MOST:
        sentence = f"The issue has more than {CITED_MOST} acceptance criteria, and no claim can cite so many;"
        raise OutcomeError(
            OutcomeCode.RECORD_INVALID, f"{sentence} split it. Nothing was graded.", " at /issue"
        )
    edges = {name: edge for name, edge in ledger.edges.items() if not edge.rests_on(replaced)}
    records = Records(issue, attempt, policy.of(issue.repository), edges, citations)
    outcome = graded(records)
    reason = withheld(outcome, records, ledger)
    return Judged(records.key, issue, grading_of(records, outcome, reason), reason)


def submit(
    desk: Desk, place: IssuePlace, attempt_id: str, citations: Citations, around: Surroundings
) -> Judged:
    """Grade a claim and store the grading; closes nothing.

    Raises:
        OutcomeError: as `judge`; `policy_unreadable`, `policy_unsafe`, `journal_broken` (a sibling's),
            `claim_not_recorded`.
    """
    judged = judge(
        desk.ledger,
        desk.policy(),
        place,
        attempt_id,
        citations=citations,
        replaced=desk.replaced(),
        around=around,
    )
    desk.append(*rows_of(desk.ledger, judged), (GRADED, judged.grading))
    return judged


def rows_of(ledger: Ledger, judged: Judged) -> list[tuple[str, BaseModel]]:
    """The issue as read, where that is news."""
    known = ledger.issues.get(judged.issue.issue) == judged.issue
    return [] if known else [(ISSUE, judged.issue)]


def public_form(row: ClaimRow, found: Reading) -> dict[str, JsonValue]:
    """The projection of a stored claim; a repository that is private by now shows no receipt any more."""
    public = found.policy.of(row.repository).public
    criteria = [(each.criterion, each.evidence if public else None) for each in row.criteria]
    return projection(row.state, row.reasons, criteria)
