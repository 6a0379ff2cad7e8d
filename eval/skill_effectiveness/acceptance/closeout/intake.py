"""`evidence add`: storing what a reviewer found, and deciding nothing.

Source: closeout.md, sections 7 and 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.closeout import runner_journal
from skill_effectiveness.acceptance.closeout.desk import open_desk
from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError, UsageRefused
from skill_effectiveness.acceptance.closeout.evidence_root import last_attempt
from skill_effectiveness.acceptance.closeout.records import (
    IDENTITY_MOST,
    RecordError,
    Reviewer,
    ReviewRecord,
    read_findings,
    strict_value,
)
from skill_effectiveness.acceptance.closeout.site import demand_text, survey
from skill_effectiveness.acceptance.closeout.words import SPEC_VERSION
from skill_effectiveness.evidence.journal import Entry

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.closeout.desk import Desk
    from skill_effectiveness.acceptance.closeout.policy_models import ResolvedReview
    from skill_effectiveness.acceptance.closeout.records import Artifact, Finding
    from skill_effectiveness.acceptance.closeout.site import Request, Site, Situation
    from skill_effectiveness.evidence.strict import JsonValue


@dataclass(frozen=True, slots=True)
class Intake:
    """What a reviewer hands in.

    Attributes:
        item_id: qualified id of the review requirement.
        session: of the reviewer.
        model: likewise.
        provider: likewise.
        findings: the JSON array, as read.
    """

    item_id: str
    session: str
    model: str
    provider: str
    findings: list[JsonValue]


def findings_array(data: bytes) -> list[JsonValue]:
    """The array in a findings file.

    Raises:
        UsageRefused: it is not JSON, or not an array.
    """
    try:
        value = strict_value(data)
    except RecordError:
        raise UsageRefused("findings file is not JSON") from None
    if not isinstance(value, list):
        raise UsageRefused("findings file must be a JSON array")
    return value


def review_item(situation: Situation, item_id: str, gate: str) -> ResolvedReview:
    """The review requirement of an id.

    Raises:
        UsageRefused: there is none at the gate.
    """
    item = situation.policy.review(item_id, gate)
    if item is None:
        raise UsageRefused(f"no review requirement {item_id} at {gate}")
    return item


def add_evidence(site: Site, request: Request, intake: Intake) -> ReviewRecord:
    """Store the next attempt of a review item.

    Raises:
        UsageRefused: there is no such review requirement, or an identity is too long or no text.
        CloseoutError: policy invalid, commits unresolved, findings invalid, evidence unreadable or not
            stored; no attempt number was used.
    """
    named = {name: getattr(intake, name) for name in ("session", "model", "provider")}
    demand_text(named)
    for name, text in named.items():
        if len(text) > IDENTITY_MOST:
            raise UsageRefused(f"--{name} is longer than {IDENTITY_MOST} characters")
    situation = survey(site, request)
    review_item(situation, intake.item_id, request.gate)
    try:
        findings = read_findings(intake.findings)
    except RecordError as error:
        raise CloseoutError(
            CloseoutCode.FINDINGS_INVALID,
            f"findings are invalid: {error}",
            "Correct the file; nothing was stored.",
        ) from None
    reviewer = Reviewer(session=intake.session, model=intake.model, provider=intake.provider)
    with open_desk(site, request, situation) as desk:
        return store_review(desk, intake.item_id, reviewer, findings, row=runner_journal.ADDED)


def store_review(
    desk: Desk,
    item_id: str,
    reviewer: Reviewer,
    findings: tuple[Finding, ...],
    *,
    row: str,
    log: bytes | None = None,
) -> ReviewRecord:
    """Store a review record as the next attempt and note it in the journal.

    Raises:
        CloseoutError: as `EvidenceRoot.store`.
    """
    situation, place = desk.situation, desk.place(item_id)
    least = last_attempt(desk.records(), place) + 1
    made: list[ReviewRecord] = []

    def make(attempt: int, artifacts: tuple[Artifact, ...]) -> ReviewRecord:
        record = ReviewRecord(
            specVersion=SPEC_VERSION,
            recordType="review",
            itemId=item_id,
            base=situation.base,
            head=situation.head,
            policyDigest=place.digest,
            attempt=attempt,
            evaluator=desk.runner,
            artifacts=artifacts,
            producer=reviewer,
            findings=findings,
        )
        made.append(record)
        return record

    _, digest = desk.evidence.store(place, make, log, least)
    desk.journal.note(Entry(row, {**desk.about(place), "attempt": made[-1].attempt, "recordDigest": digest}))
    return made[-1]
