"""The published JSON Schemas of the loop, generated from the models.

Source: loop.md, sections 3 and 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.config import ConfigDocument
from skill_effectiveness.acceptance.loop.inspection import RunStatus
from skill_effectiveness.acceptance.loop.summary import RunSummary

if TYPE_CHECKING:
    from pydantic import BaseModel

LOOP_MODELS: Final[dict[str, type[BaseModel]]] = {
    "closedloop/config": ConfigDocument,
    "closedloop/run-status": RunStatus,
    "closedloop/run-summary": RunSummary,
}
"""Name below `schemas/` and model of every published document."""
