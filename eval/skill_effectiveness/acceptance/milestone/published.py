"""The documents of the milestone close that others read or write, for their JSON Schemas.

Source: milestone.md, sections 2, 5, 6 and 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.milestone.answers import Answer
from skill_effectiveness.acceptance.milestone.configuration import Configuration
from skill_effectiveness.acceptance.milestone.correction import FixAnswer
from skill_effectiveness.acceptance.milestone.gate import GateJudgement
from skill_effectiveness.acceptance.milestone.input import MilestoneInput
from skill_effectiveness.acceptance.milestone.qa import QaCapture, QaPass, QaSynthesis
from skill_effectiveness.acceptance.milestone.verdict import Verdict
from skill_effectiveness.acceptance.milestone.verification import VerificationRecord

if TYPE_CHECKING:
    from pydantic import BaseModel


MILESTONE_MODELS: Final[dict[str, type[BaseModel]]] = {
    "milestone": MilestoneInput,
    "milestone-configuration": Configuration,
    "milestone-crosscheck": Verdict,
    "milestone-crosscheck-answer": Answer,
    "milestone-final-gate": GateJudgement,
    "milestone-fix-answer": FixAnswer,
    "milestone-qa-capture": QaCapture,
    "milestone-qa-pass": QaPass,
    "milestone-qa-receipt": QaSynthesis,
    "milestone-verification-record": VerificationRecord,
}
"""Schema name to model."""
