"""The published JSON Schemas of closeout, generated from the models.

Source: closeout.md, sections 4, 7 and 9. Each carries as `$id` the path that the specification gives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.closeout.decision import DecisionDocument
from skill_effectiveness.acceptance.closeout.policy_models import PolicyDocument
from skill_effectiveness.acceptance.closeout.records import EVIDENCE

if TYPE_CHECKING:
    from typing import Any


def published_schemas() -> dict[str, dict[str, Any]]:
    """File name below `schemas/` and its schema, `$id` included."""
    schemas = {
        "policy": PolicyDocument.model_json_schema(by_alias=True),
        "evidence": EVIDENCE.json_schema(by_alias=True),
        "decision": DecisionDocument.model_json_schema(by_alias=True),
    }
    return {
        f"closeout/{name}.schema.json": {"$id": f"schema/{name}.schema.json"} | schema
        for name, schema in schemas.items()
    }
