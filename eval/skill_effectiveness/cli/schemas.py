"""The JSON Schemas of every published document, generated from the models that parse them.

The models stay the authority; `tools/schemas.py` writes the files under `schemas/` and checks that they are
what the models say.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.closeout.published import published_schemas
from skill_effectiveness.acceptance.loop.published import LOOP_MODELS
from skill_effectiveness.acceptance.milestone.published import MILESTONE_MODELS
from skill_effectiveness.acceptance.outcome.published import PUBLISHED as ACCEPTED_OUTCOME
from skill_effectiveness.bridge import messages as bridge
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
from skill_effectiveness.controls.documents import (
    Brief,
    Candidate,
    Claim,
    Constraints,
    ControllerState,
    Decision,
    MatchedCallEvidence,
    Measurement,
    OwnerReference,
    Rubric,
    Selection,
    SelectorInput,
)
from skill_effectiveness.protocol.published import published_models
from skill_effectiveness.studies.activation import ActivationRecord
from skill_effectiveness.studies.bundle_form import BundlePredicate, InclusionDocument
from skill_effectiveness.studies.results import Results
from skill_effectiveness.studies.voting import VoteDocument
from skill_effectiveness.trials.adjudication import Adjudication
from skill_effectiveness.trials.blinding import BlindOutcome, JudgeInput, LeakDocument, PairMapping
from skill_effectiveness.trials.gate_result import GateResult
from skill_effectiveness.trials.grades import GradeDocument
from skill_effectiveness.trials.pilot_records import BundleDocument, TrialRecord
from skill_effectiveness.trials.replication import ReplicatedAdvisoryReport
from skill_effectiveness.trials.smoke import SmokeResult
from skill_effectiveness.trials.summary import TerminalVerdictSummary

if TYPE_CHECKING:
    from pydantic import BaseModel

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SUFFIX: Final = ".schema.json"
RECORDS: Final[dict[str, type[BaseModel]]] = {
    "bridge-intent": bridge.Intent,
    "bridge-receipt": bridge.Receipt,
    "bridge-request": bridge.Request,
    "bridge-response": bridge.Response,
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
    "active-control-brief": Brief,
    "active-control-candidate": Candidate,
    "active-control-claim": Claim,
    "active-control-constraints": Constraints,
    "active-control-controller-state": ControllerState,
    "active-control-decision": Decision,
    "active-control-matched-call-evidence": MatchedCallEvidence,
    "active-control-owner-reference": OwnerReference,
    "active-control-owner-relative-measurement": Measurement,
    "active-control-rubric": Rubric,
    "active-control-selection": Selection,
    "active-control-selector-input": SelectorInput,
    "human-adjudication": Adjudication,
    "pair-judge-input": JudgeInput,
    "pair-leaks": LeakDocument,
    "pair-mapping": PairMapping,
    "pair-outcome": BlindOutcome,
    "pilot-bundle": BundleDocument,
    "pilot-gate-result": GateResult,
    "pilot-trial-record": TrialRecord,
    "smoke-result": SmokeResult,
    "activation-record": ActivationRecord,
    "study-bundle-predicate": BundlePredicate,
    "study-inclusion-proofs": InclusionDocument,
    "study-results": Results,
    "study-vote": VoteDocument,
    "replicated-advisory-report": ReplicatedAdvisoryReport,
    "terminal-verdict-summary": TerminalVerdictSummary,
    "trial-grade": GradeDocument,
}


def published() -> dict[str, bytes]:
    """File name under `schemas/` to the bytes it must hold."""
    closeout = {name: _written(schema) for name, schema in published_schemas().items()}
    frozen = {name.removesuffix(SUFFIX): model for name, model in published_models().items()}
    models = sorted((RECORDS | ACCEPTED_OUTCOME | LOOP_MODELS | MILESTONE_MODELS | frozen).items())
    return closeout | {f"{name}{SUFFIX}": schema_bytes(name, model) for name, model in models}


def schema_bytes(name: str, model: type[BaseModel]) -> bytes:
    """One schema, as people read it in review."""
    return _written({"$id": f"urn:skill-effectiveness:schema:{name}"} | model.model_json_schema())


def _written(schema: dict[str, object]) -> bytes:
    whole = {"$schema": DIALECT} | schema
    return (json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")
