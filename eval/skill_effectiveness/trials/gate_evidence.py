"""From a bundle and a plan to a verdict: every planned trial is opened once (trials.md section 9).

`evaluate_bundle` is what the command line and a controller's door sit on. The order of its checks is that of
bridge.md, section 4: the bundle is there, shapes and hashes, plan, then the gate itself, whose failures say
by their stage what comes first. What cannot be judged at all is a `PilotError`; every other answer is a
verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.binding import SIMULATED
from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.protocol.caller_gates import NAME as GATES
from skill_effectiveness.protocol.caller_gates import caller_gates
from skill_effectiveness.protocol.capability import NO_PROVIDER
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.gates import gates_hash
from skill_effectiveness.protocol.registries import RULES
from skill_effectiveness.trials.capability_matrix import matrix
from skill_effectiveness.trials.gate import NO_REVIEWERS, GateInputs, evaluate_gate
from skill_effectiveness.trials.gate_facts import TrialEntry
from skill_effectiveness.trials.gate_result import result_json
from skill_effectiveness.trials.gate_reviewers import judge_reviewers
from skill_effectiveness.trials.gate_words import EvidenceSource, GateStatus
from skill_effectiveness.trials.pilot_bundle import open_bundle
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.pilot_plan import read_design, read_plan
from skill_effectiveness.trials.readings import folded
from skill_effectiveness.trials.summary import VerdictFacts
from skill_effectiveness.trials.tiers import CAUSAL, check_in_force
from skill_effectiveness.trials.trial_reading import NoTrials, SealedTrials, StoredTrials, TrialReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import JsonValue

    from skill_effectiveness.calibration.inputs import FrozenInputs
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.gates import PilotGates
    from skill_effectiveness.trials.capability_matrix import CapabilityMatrix
    from skill_effectiveness.trials.gate_result import GateResult
    from skill_effectiveness.trials.gate_reviewers import JudgedReviewers
    from skill_effectiveness.trials.pilot_bundle import PilotBundle
    from skill_effectiveness.trials.pilot_plan import Design, PlanIndex
    from skill_effectiveness.trials.pilot_records import TrialRecord
    from skill_effectiveness.trials.store import TrialStore
    from skill_effectiveness.trials.trial_reading import TrialSource

NO_AGENTS: Final = frozenset({SIMULATED, NO_PROVIDER})
"""Providers behind which no agent works: a run with one is synthetic, so it has no tier and never passes."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a caller planned, as plain JSON values.

    Attributes:
        config: the gates it asks for; None for the frozen ones, under the tier of the arms' registry.
        tasks: full task records.
        manifests: arm manifests.
        trials: plan rows, consumed once.
    """

    config: JsonValue
    tasks: Sequence[JsonValue]
    manifests: Sequence[JsonValue]
    trials: Iterable[JsonValue]


@dataclass(frozen=True, slots=True)
class Planned:
    """What a caller planned, as it was read.

    Attributes:
        design: tasks and arms.
        gates: those that count.
        config_hash: of the gates as the caller said them.
        plan: the rows.
    """

    design: Design
    gates: PilotGates
    config_hash: str
    plan: PlanIndex


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A verdict, and what is passed on of it when it is terminal: a pass or a fail."""

    result: GateResult
    facts: VerdictFacts | None


def evaluate_bundle(
    root: PrivateRoot | None, expected: Expected, inputs: FrozenInputs, *, store: TrialStore | None = None
) -> Evaluated:
    """Judge one set of trials.

    Args:
        root: the open folder of the bundle; None when there is none, and the gate then fails by that.
        expected: what was planned.
        inputs: the judged bank and the frozen gates.
        store: where the trials lie; their sealed copies are used when it is absent.

    Raises:
        PilotError: the gate cannot be applied.
        ProtocolError: `gates_changed`: the configuration is not the frozen one.
        TrialError: `registry_mismatch`: the advisory tier is not in force.
        EvidenceError: the disk failed, or something is no private file or folder of ours.
    """
    bundle = None if root is None else open_bundle(root, inputs)
    planned = read_expected(expected, inputs.gates)
    design, gates, plan = planned.design, planned.gates, planned.plan
    if bundle is not None:
        _check_bound(bundle, planned)
    source = _source(bundle, store)
    # Another spelling of the same word must not turn an invented run into a real one.
    synthetic = folded(plan.provider).strip() in NO_AGENTS
    result = evaluate_gate(
        GateInputs(
            thresholds=gates.thresholds,
            tier=None if synthetic else gates.evidence_tier,
            registry_schema=design.registry_schema,
            arms=design.arms,
            task_ids=tuple(design.tasks),
            entries=_entries(bundle, plan, TrialReader(design, source, inputs.gates)),
            reviewers=NO_REVIEWERS if synthetic else _reviewers(bundle, inputs, gates),
            capability=_capability(bundle, design, plan),
            source=EvidenceSource.SYNTHETIC if synthetic else source.kind,
        )
    )
    if result.status is GateStatus.NOT_EVALUATED_SYNTHETIC:
        return Evaluated(result, None)
    return Evaluated(result, _verdict_facts(result, bundle, planned))


def _reviewers(bundle: PilotBundle | None, inputs: FrozenInputs, gates: PilotGates) -> JudgedReviewers:
    return judge_reviewers(() if bundle is None else bundle.pairs, inputs.bank, gates.thresholds)


def _capability(bundle: PilotBundle | None, design: Design, plan: PlanIndex) -> CapabilityMatrix:
    families = [task.task.task_family for task in design.tasks.values()]
    return matrix(families, plan.provider, () if bundle is None else bundle.probes)


def read_expected(expected: Expected, frozen: PilotGates) -> Planned:
    """Read what a caller planned, every hash computed again; the rows are consumed.

    Raises:
        PilotError: `plan_invalid`, `tier_mismatch`.
        ProtocolError, TrialError: as `configuration`.
        Whatever reading `expected.trials` raises.
    """
    design = read_design(expected.tasks, expected.manifests)
    gates, config_hash = configuration(design, expected.config, frozen)
    least = gates.thresholds.samples_per_task_arm_min
    plan = read_plan(design, expected.trials, config_hash=config_hash, samples_min=least)
    return Planned(design, gates, config_hash, plan)


def configuration(design: Design, config: JsonValue, frozen: PilotGates) -> tuple[PilotGates, str]:
    """The gates that count, and the digest of what the caller said.

    Raises:
        PilotError: `tier_mismatch`.
        ProtocolError: `gates_changed`: another threshold, or a waiver that the frozen gates do not have.
        TrialError: `registry_mismatch`: the advisory tier is not in force.
    """
    tier = RULES[design.registry_schema].tier
    check_in_force(tier, frozen)
    if config is None:
        chosen = CAUSAL if tier is CAUSAL.requested_tier else frozen.evidence_tier
        gates = frozen.model_copy(update={"evidence_tier": chosen})
    else:
        gates = caller_gates(frozen, config)
        _check_waivers(gates, frozen)
    if gates.evidence_tier.requested_tier is not tier:
        sentence = f"arms of this registry have the tier {tier}; a tier follows from them and is not chosen."
        raise PilotError(PilotCode.TIER_MISMATCH, "config#/evidence_tier", sentence)
    return gates, gates_hash(gates) if config is None else digest_object(config)


def _check_waivers(gates: PilotGates, frozen: PilotGates) -> None:
    """Demand that a caller does without no more than the frozen gates do.

    Raises:
        ProtocolError: `gates_changed`.
    """
    wider = set(gates.evidence_tier.waived_items) - set(frozen.evidence_tier.waived_items)
    if wider:
        sentence = f"the frozen gates do not waive {min(wider)}; a caller may waive less, never more."
        raise ProtocolError(ProtocolCode.GATES_CHANGED, f"{GATES}#/evidence_tier/waived_items", sentence)


def _check_bound(bundle: PilotBundle, planned: Planned) -> None:
    bound = {"config_hash": planned.config_hash, "plan_binding_hash": planned.plan.binding_hash}
    for field, mine in bound.items():
        if getattr(bundle.document, field) != mine:
            sentence = f"the bundle was made for another plan or configuration ({field}); give those of it."
            raise PilotError(PilotCode.PLAN_MISMATCH, f"bundle.json#/{field}", sentence)


def _source(bundle: PilotBundle | None, store: TrialStore | None) -> TrialSource:
    if bundle is None:
        return NoTrials()
    return SealedTrials(bundle) if store is None else StoredTrials(store)


def _entries(bundle: PilotBundle | None, plan: PlanIndex, reader: TrialReader) -> Iterator[TrialEntry]:
    """Every row with its trial, then the planned trials that have no row; each trial is opened once."""
    left = dict(plan.trials)
    rows: Iterable[TrialRecord | None] = () if bundle is None else bundle.rows()
    for index, record in enumerate(rows):
        planned = None if record is None else plan.trials.get(record.name)
        found = None
        if planned is not None and left.pop(planned.name, None) is not None:
            found = reader.read(planned)
        yield TrialEntry(index, record, planned, found)
    for planned in left.values():
        yield TrialEntry(None, None, planned, reader.read(planned))


def _verdict_facts(result: GateResult, bundle: PilotBundle | None, planned: Planned) -> VerdictFacts:
    design, plan = planned.design, planned.plan
    passed = result.status is GateStatus.PASS
    return VerdictFacts(
        verdict=result_json(result),
        status="pass" if passed else "fail",
        verdict_tier=result.evidence_tier.verdict_tier,
        registry_schema=design.registry_schema,
        coverage_limitations=tuple(item.value for item in result.evidence_tier.coverage_limitations),
        bundle_hash=digest_object(None) if bundle is None else bundle.document.bundle_hash,
        config_hash=planned.config_hash,
        arm_registry_hash=design.arm_registry_hash,
        tasks_hash=design.tasks_hash,
        provider=plan.provider,
        model=plan.model,
        trial_count=result.metrics.trials,
        synthetic=result.evidence_source is EvidenceSource.SYNTHETIC,
    )
