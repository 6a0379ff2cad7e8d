"""Which documents of this room have a published JSON Schema."""

from __future__ import annotations

from skill_effectiveness.protocol.cases import AnswersFile, CasesFile
from skill_effectiveness.protocol.gates import PilotGates
from skill_effectiveness.protocol.policy import LicencePolicy


def published_models() -> dict[str, type]:
    """File name below `schemas/` and the model its schema is generated from."""
    return {
        "reviewer-case-bank.schema.json": CasesFile,
        "reviewer-known-answers.schema.json": AnswersFile,
        "pilot-gates.schema.json": PilotGates,
        "licence-policy.schema.json": LicencePolicy,
    }
