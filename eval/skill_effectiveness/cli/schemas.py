"""The JSON Schemas of every published document, generated from the models that parse them.

The models stay the authority; `tools/schemas.py` writes the files under `schemas/` and checks that they are
what the models say.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.licence import LicencePredicate
from skill_effectiveness.calibration.messages import Request, Response
from skill_effectiveness.calibration.models import (
    Binding,
    EvidenceDocument,
    FinalizationIntent,
    LedgerEntry,
    Observation,
    ProbeResultDocument,
    ResultDocument,
    Sample,
    SampleIntent,
)
from skill_effectiveness.calibration.sealing import SealPredicate
from skill_effectiveness.calibration.sheet import MetricsSheet
from skill_effectiveness.protocol.published import published_models

if TYPE_CHECKING:
    from pydantic import BaseModel

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SUFFIX: Final = ".schema.json"
RECORDS: Final[dict[str, type[BaseModel]]] = {
    "reviewer-calibration-binding": Binding,
    "reviewer-calibration-evidence": EvidenceDocument,
    "reviewer-calibration-finalization-intent": FinalizationIntent,
    "reviewer-calibration-intent": SampleIntent,
    "reviewer-calibration-ledger-entry": LedgerEntry,
    "reviewer-calibration-metrics": MetricsSheet,
    "reviewer-calibration-observation": Observation,
    "reviewer-calibration-request": Request,
    "reviewer-calibration-response": Response,
    "reviewer-calibration-result": ResultDocument,
    "reviewer-calibration-sample": Sample,
    "reviewer-calibration-seal-predicate": SealPredicate,
    "reviewer-bias-probe-result": ProbeResultDocument,
    "reviewer-licence": LicencePredicate,
}


def published() -> dict[str, bytes]:
    """File name under `schemas/` to the bytes it must hold."""
    frozen = {name.removesuffix(SUFFIX): model for name, model in published_models().items()}
    return {
        f"{name}{SUFFIX}": schema_bytes(name, model) for name, model in sorted((RECORDS | frozen).items())
    }


def schema_bytes(name: str, model: type[BaseModel]) -> bytes:
    """One schema, as people read it in review."""
    schema = {"$schema": DIALECT, "$id": f"urn:skill-effectiveness:schema:{name}"} | model.model_json_schema()
    return (json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")
