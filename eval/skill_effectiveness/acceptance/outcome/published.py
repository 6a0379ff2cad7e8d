"""The published JSON Schemas of accepted-outcome, generated from the models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.claim import Claim
from skill_effectiveness.acceptance.outcome.claims import ClaimRow
from skill_effectiveness.acceptance.outcome.contract import ContractDocument
from skill_effectiveness.acceptance.outcome.records import Attempt, Citations, Edge, PolicyDocument

if TYPE_CHECKING:
    from pydantic import BaseModel

PUBLISHED: Final[dict[str, type[BaseModel]]] = {
    "accepted-outcome-attempt": Attempt,
    "accepted-outcome-claim": Claim,
    "accepted-outcome-claim-row": ClaimRow,
    "accepted-outcome-contract": ContractDocument,
    "accepted-outcome-edge": Edge,
    "accepted-outcome-evidence": Citations,
    "accepted-outcome-policy": PolicyDocument,
}
