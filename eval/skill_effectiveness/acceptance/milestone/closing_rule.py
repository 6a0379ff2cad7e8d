"""Whether the evidence of a close lets it be recorded.

Source: milestone.md, section 8. Only a verified V of the gate's milestone and head closes; an imported
journal of the time before the crosscheck may hold a verified final review instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.milestone.words import GateState, Word

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.gate import GateJudgement
    from skill_effectiveness.acceptance.milestone.verdict import Verdict


@dataclass(frozen=True, slots=True)
class CloseEvidence:
    """What a close rests on.

    Attributes:
        milestone: the milestone to be closed.
        gate: the gate's judgement.
        verdict: V.
        imported: the run was imported from an older product.
        reviewer_final: body of its `crw.reviewerFinal` row.
    """

    milestone: str
    gate: GateJudgement | None
    verdict: Verdict | None
    imported: bool = False
    reviewer_final: dict[str, Any] | None = None


def judge_close(evidence: CloseEvidence, tip: str) -> str | None:
    """Why nothing may be recorded at this tip; `None`: the close may."""
    gate = evidence.gate
    if gate is None or gate.state is not GateState.PASS or gate.milestone != evidence.milestone:
        return "no passed final gate of this milestone"
    if gate.head != tip:
        return "the target is not at the head that the gate judged"
    verdict = evidence.verdict
    if verdict is None:
        return None if _final_review_stands(evidence, gate) else "no crosscheck"
    if verdict.milestone != gate.milestone:
        return "the crosscheck is of another milestone"
    if verdict.head != gate.head or verdict.base != gate.base:
        return "the crosscheck is of another head"
    return None if verdict.word is Word.VERIFIED else "the crosscheck is not verified"


def _final_review_stands(evidence: CloseEvidence, gate: GateJudgement) -> bool:
    final = evidence.reviewer_final
    if not evidence.imported or final is None:
        return False
    said = (final.get("verdict"), final.get("milestone"), final.get("head"))
    return said == (Word.VERIFIED, gate.milestone, gate.head)
