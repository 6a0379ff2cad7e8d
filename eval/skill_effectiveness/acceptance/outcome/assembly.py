"""A claim made of records, and the grading that is kept of it.

Source: outcome.md, section 7. The caller says which edge satisfied which criterion and may name classes
against the own result; everything else is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.claim import (
    Claim,
    ClaimedAttempt,
    ClaimedEvidence,
    ClaimedIssue,
    ClaimedSections,
    ClaimedVerification,
    ClaimedVerifier,
)
from skill_effectiveness.acceptance.outcome.claims import ClaimKey, Grading, SatisfiedCriterion
from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.evaluate import Outcome, Reason, evaluate
from skill_effectiveness.acceptance.outcome.sections import read_sections
from skill_effectiveness.acceptance.outcome.words import (
    PRIVATE,
    PUBLIC,
    SECTIONS,
    ReasonKey,
    Withheld,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from skill_effectiveness.acceptance.outcome.records import (
        Attempt,
        CheckResult,
        Citations,
        Edge,
        IssueRecord,
        RepositoryPolicy,
    )

VERIFIER_MOST: Final = 200
FALSIFIER_MOST: Final = 500
_ELLIPSIS: Final = "…"


@dataclass(frozen=True, slots=True)
class Records:
    """All that a claim is made of.

    Attributes:
        issue: as read now.
        attempt: that is over, at a commit.
        policy: of the issue's repository.
        edges: by id.
        citations: the caller's.
    """

    issue: IssueRecord
    attempt: Attempt
    policy: RepositoryPolicy
    edges: Mapping[str, Edge]
    citations: Citations

    @property
    def revision(self) -> str:
        """The attempt's commit; empty where it has none."""
        return self.attempt.commit or ""

    @property
    def key(self) -> ClaimKey:
        """Which claim this is."""
        return ClaimKey(
            self.issue.repository, self.issue.issue_number, self.attempt.attempt_id, self.revision
        )


def claimable(attempts: Mapping[str, Attempt], attempt_id: str) -> Attempt:
    """The attempt that a claim may be about.

    Raises:
        OutcomeError: `claim_attempt_not_found`, `claim_attempt_not_terminal`,
            `claim_attempt_has_no_revision`.
    """
    attempt = attempts.get(attempt_id)
    if attempt is None:
        sentence = "No such attempt is recorded. Nothing was graded; record it with attempt add."
        raise OutcomeError(OutcomeCode.CLAIM_ATTEMPT_NOT_FOUND, sentence)
    if not attempt.state.terminal:
        sentence = "The attempt is not over. Nothing was graded; record its end, then submit."
        raise OutcomeError(OutcomeCode.CLAIM_ATTEMPT_NOT_TERMINAL, sentence)
    if attempt.commit is None:
        sentence = "The attempt ended without a commit, so there is nothing that a claim could be about."
        raise OutcomeError(OutcomeCode.CLAIM_ATTEMPT_HAS_NO_REVISION, sentence)
    return attempt


def claim_of(records: Records) -> Claim:
    """The claim that records make."""
    attempt, policy = records.attempt, records.policy
    checks = tuple(_checks(records))
    return Claim(
        actor=attempt.actor,
        agents_enabled=policy.agents_enabled,
        issue=ClaimedIssue(
            number=records.issue.issue_number,
            repository=records.issue.repository,
            sections=_sections(records.issue.body),
        ),
        attempt=ClaimedAttempt(
            issue_number=attempt.issue_number,
            repository=attempt.repository,
            authority=attempt.principal,
            budget=attempt.budget,
            revision=attempt.commit,
        ),
        verification=ClaimedVerification(
            verifier=_verifier(checks, attempt, policy),
            separation_required=True,
            falsifier=" ".join(sorted({check.falsifier for check in checks})),
            # Only edges that succeeded qualify at all.
            terminal_result="passed" if checks else "failed",
            false_green_classes=list(records.citations.false_green_classes),
        ),
        evidence=tuple(_evidence(records)),
    )


def _sections(body: str) -> ClaimedSections:
    sections = read_sections(body)
    return ClaimedSections(**{name: list(getattr(sections, name)) for name in SECTIONS})


def _qualifying(records: Records, evidence_id: str) -> Edge | None:
    edge = records.edges.get(evidence_id)
    return edge if edge is not None and edge.qualifies(records.issue.issue, records.revision) else None


def _evidence(records: Records) -> Iterable[ClaimedEvidence]:
    """The caller's list, with a receipt wherever the edge qualifies."""
    visibility = PUBLIC if records.policy.public else PRIVATE
    for cited in records.citations.evidence:
        edge = _qualifying(records, cited.evidence_id)
        receipt = None if edge is None else edge.receipt
        yield ClaimedEvidence(criterion=cited.criterion, receipt=receipt, visibility=visibility)


def _checks(records: Records) -> Iterable[CheckResult]:
    """The check results behind the edges that qualify, each once."""
    ids = dict.fromkeys(cited.evidence_id for cited in records.citations.evidence)
    for evidence_id in ids:
        edge = _qualifying(records, evidence_id)
        if edge is not None and edge.check is not None:
            yield edge.check


def _verifier(checks: tuple[CheckResult, ...], attempt: Attempt, policy: RepositoryPolicy) -> ClaimedVerifier:
    publishers = [check.publisher.strip() for check in checks if check.publisher is not None]
    admitted = {name.strip() for name in policy.admitted_verifiers}
    return ClaimedVerifier(
        id=",".join(sorted({check.name for check in checks})),
        # Of an unknown publisher independence says all there is to say.
        admitted=admitted.issuperset(publishers),
        independent_of_producer=all(_independent(check, attempt) for check in checks),
    )


def _independent(check: CheckResult, attempt: Attempt) -> bool:
    """Whether a known publisher who did not ask for the work checked, not in the session of the agent."""
    publisher, session = (check.publisher or "").strip(), (check.session or "").strip()
    if not publisher or publisher == (attempt.principal or "").strip():
        return False
    return not (session and session == (attempt.session or "").strip())


def graded(records: Records) -> Outcome:
    """The outcome of the claim that records make."""
    return evaluate(claim_of(records))


def grading_of(records: Records, outcome: Outcome, withheld: Withheld | None) -> Grading:
    """What is kept of a grading, already in public form.

    Args:
        records: what it was made of.
        outcome: of the claim.
        withheld: why an accepted claim would leave the issue as it is.
    """
    accepted = outcome.accepted
    reasons = [reason.text for reason in outcome.reasons]
    if withheld is not None:
        reasons.append(Reason(ReasonKey.CLOSURE_WITHHELD, withheld.value).text)
    public = records.policy.public
    criteria = accepted.criteria if accepted else ()
    return Grading(
        repository=records.issue.repository,
        issue_number=records.issue.issue_number,
        attempt_id=records.attempt.attempt_id,
        revision=records.revision,
        state=outcome.result,
        reasons=tuple(reasons),
        criteria=tuple(
            SatisfiedCriterion(
                criterion=each.criterion,
                evidence=str(each.receipt) if public else None,
                visibility="public" if public else "private",
            )
            for each in criteria
        ),
        verifier=_cut(accepted.verifier, VERIFIER_MOST) if accepted else None,
        falsifier=_cut(accepted.falsifier, FALSIFIER_MOST) if accepted else None,
        issue_digest=records.issue.body_digest,
        cited=records.citations,
    )


def _cut(text: JsonValue, most: int) -> str:
    """A text as long as a row may hold."""
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 1] + _ELLIPSIS
