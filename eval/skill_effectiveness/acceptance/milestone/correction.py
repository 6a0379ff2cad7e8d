"""The one correction of a close: what is done about findings, and what is left to whoever gets them.

Source: milestone.md, section 9.
"""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from skill_effectiveness.acceptance.milestone.words import CLOSED, NO_NUL, FindingKind
from skill_effectiveness.evidence.canonical import digest_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.acceptance.milestone.criteria import Criterion
    from skill_effectiveness.acceptance.milestone.findings import Finding
    from skill_effectiveness.acceptance.milestone.verdict import Verdict


class CorrectionPlan(StrEnum):
    """Who corrects: an explorer finds evidence at the same head, or one executor changes the code."""

    EXPLORER = "explorer"
    EXECUTOR = "executor"


class FixAnswer(BaseModel):
    """What the close-fix executor answers."""

    model_config = CLOSED

    state: Literal["ready", "needs_research"]
    question: Annotated[str, Field(pattern=NO_NUL)] = ""
    summary: str = ""


class ExplorerAnswer(BaseModel):
    """What an explorer answers."""

    model_config = CLOSED

    answer: Annotated[str, Field(pattern=NO_NUL)]


def plan_correction(findings: Sequence[Finding]) -> CorrectionPlan:
    """Who answers for these findings; a verdict without any needs the executor."""
    kinds = {finding.kind for finding in findings}
    return CorrectionPlan.EXPLORER if kinds == {FindingKind.EVIDENCE_MISSING} else CorrectionPlan.EXECUTOR


ROUTE: Final = (
    "Add a correction issue that names these finding ids to a revision of the same plan, keep the integrated "
    "nodes, and start one new run. Where execution evidence is missing, hand in real red-to-green receipts: "
    "commands, revisions, test overlay or diff, results. An explanation alone is no execution evidence."
)


def fix_packet(verdict: Verdict, criteria: Sequence[Criterion]) -> dict[str, Any]:
    """What a correction issue needs: exactly the blocking findings, the range, the criteria, the route."""
    files = sorted({finding.file for finding in verdict.blocking if finding.file})
    named = f" {shlex.join(files)}" if files else ""
    return {
        "findings": {finding.id: finding.plain() for finding in verdict.blocking},
        "range": f"git diff {verdict.base}..{verdict.head} --{named}",
        "criteria": [{"id": each.id, "text": each.text} for each in criteria],
        "route": ROUTE,
    }


def escalation_id(run: str, call: str, evidence: object) -> str:
    """The id of an escalation: of the run, the call, and the canonical digest of V or what stands for it."""
    digest = digest_object({"run": run, "call": call, "evidence": evidence})
    return f"esc-{digest.removeprefix('sha256:')[:32]}"
