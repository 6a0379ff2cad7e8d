"""The two documents of a pair, derived from what was answered (calibration.md, section 6).

`Declared` is all that a pair can only state: who was asked, with what and how. Everything else follows from
the declaration, the answers and the frozen inputs, by the functions here. Publication derives with them, and
the loader derives again and compares, so no field can say something of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.calibration.bias import bias_sheet
from skill_effectiveness.calibration.binding import SIMULATED, runner_hash
from skill_effectiveness.calibration.evaluation import ReviewerRuns as JudgedRuns
from skill_effectiveness.calibration.evaluation import evaluate
from skill_effectiveness.calibration.models import (
    BoundConfiguration,
    EvidenceDocument,
    Judgment,
    ProbeResultDocument,
    ResultDocument,
    ReviewerRuns,
    Simulation,
    to_json,
)
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.words import BankName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.calibration.inputs import FrozenInputs


@dataclass(frozen=True, slots=True)
class PairNames:
    """File names of what an examination publishes."""

    evidence: str
    result: str
    metrics: str


PAIR_NAMES: Final[Mapping[BankName, PairNames]] = {
    BankName.JUDGED: PairNames(
        "reviewer-calibration.json",
        "reviewer-calibration-result.json",
        "reviewer-calibration-metrics.json",
    ),
    BankName.BIAS_PROBE: PairNames(
        "bias-probe.json",
        "bias-probe-result.json",
        "bias-probe-metrics.json",
    ),
}


@dataclass(frozen=True, slots=True)
class Declared:
    """What a pair states and nothing in it can prove; a seal or the folder's own records hold it fast."""

    provider: str
    provider_cli_version: str
    provider_executable_hash: str
    provider_environment_keys: tuple[str, ...]
    model: str
    reviewer_family: str
    runner_contract: str
    runtime_manifest_hash: str
    requested_session_mode: str
    tool_access: str
    sample_ids: tuple[str, ...] | None = None
    provider_binding: BoundConfiguration | None = None
    simulation: Simulation | None = None


def evidence_document(
    inputs: FrozenInputs, reviewer_family: str, runs: Sequence[tuple[Judgment, ...]]
) -> EvidenceDocument:
    """The first document: the bank's answers and every run."""
    return EvidenceDocument(
        status="evaluated",
        known_answers=inputs.bank.known_answers,
        known_answer_fixture_hash=inputs.bank.known_answer_fixture_hash,
        reviewers=(ReviewerRuns(family=reviewer_family, runs=tuple(runs)),),
    )


def result_document(
    declared: Declared, evidence: EvidenceDocument, inputs: FrozenInputs
) -> ResultDocument | ProbeResultDocument:
    """The second document: who was examined, and what the answers come to under the frozen rules.

    Raises:
        ValueError: the runs do not answer every case of the bank exactly once, in its order.
    """
    fields = {**_stated(declared), **_derived(declared, evidence, inputs)}
    if inputs.bank.name is BankName.JUDGED:
        return ResultDocument.model_validate({**fields, **_gated(evidence, inputs)})
    return ProbeResultDocument.model_validate({**fields, **_probed(evidence, inputs)})


def _stated(declared: Declared) -> dict[str, Any]:
    fields = {name: getattr(declared, name) for name in Declared.__slots__}
    if declared.provider_binding is not None:
        fields["provider_binding_hash"] = digest_object(to_json(declared.provider_binding))
    if declared.provider == SIMULATED:
        fields["synthetic"] = True
    return {name: value for name, value in fields.items() if value is not None}


def _derived(declared: Declared, evidence: EvidenceDocument, inputs: FrozenInputs) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "execution_status": "evaluated",
        "repeat_count": sum(len(reviewer.runs) for reviewer in evidence.reviewers),
        "case_count": len(inputs.bank.cases),
        "known_answer_fixture_hash": inputs.bank.known_answer_fixture_hash,
        "case_fixture_hash": inputs.bank.case_fixture_hash,
        "pilot_gates_hash": inputs.gates_hash,
        "runner_hash": runner_hash(
            declared.runner_contract, declared.runtime_manifest_hash, declared.provider_executable_hash
        ),
        "calibration_evidence": PAIR_NAMES[inputs.bank.name].evidence,
        "calibration_evidence_hash": digest_object(to_json(evidence)),
        "conclusion_boundary": "reviewer_calibration_only_not_skill_effectiveness",
        "enforcement": "advisory",
    }


def _gated(evidence: EvidenceDocument, inputs: FrozenInputs) -> dict[str, Any]:
    """The judged bank: the gates decide."""
    runs = [JudgedRuns(reviewer.family, reviewer.runs) for reviewer in evidence.reviewers]
    found = evaluate(inputs.bank, runs, inputs.gates.thresholds)
    return {
        "artifact_contract": "skill-effectiveness-reviewer-calibration-result-v1",
        "calibration_status": found.status.value,
        "calibration_evaluation": found,
        "calibration_evaluation_hash": digest_object(to_json(found)),
    }


def _probed(evidence: EvidenceDocument, inputs: FrozenInputs) -> dict[str, Any]:
    """The probes: a table under the licence policy, and no gate."""
    verdicts = [
        [judgment.verdict for judgment in run] for reviewer in evidence.reviewers for run in reviewer.runs
    ]
    found = bias_sheet(inputs.bank, inputs.policy.probe_rules, verdicts)
    return {
        "artifact_contract": "skill-effectiveness-reviewer-bias-probe-result-v1",
        "calibration_status": "not_applicable",
        "calibration_evaluation": found,
        "calibration_evaluation_hash": digest_object(to_json(found)),
        "licence_policy_hash": inputs.policy_hash,
    }
