"""The pilot gate: were runner and evaluator valid; never "does the skill work" (trials.md section 9).

A judgement over what was read: `gate_evidence` opens every planned trial once and hands the entries over one
by one, so a gate holds counts and no trial. The closed words and what each means stand in `gate_words`; each
family of rules has a file of its own (`gate_records`, `gate_runner`, `gate_events`, `gate_outcomes`,
`gate_isolation`, `gate_reviewers`, `gate_tier`).

A synthetic run evaluates nothing: whatever its trials hold, every check is named as not evaluated, and the
best it can come to is `not_evaluated_synthetic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.figures import Share
from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.trials.gate_events import EventRules
from skill_effectiveness.trials.gate_isolation import IsolationRules
from skill_effectiveness.trials.gate_outcomes import OutcomeRules
from skill_effectiveness.trials.gate_records import RecordRules
from skill_effectiveness.trials.gate_result import (
    ArmMetrics,
    Decision,
    GateMetrics,
    GateResult,
    SyntheticCalibration,
    TierReport,
)
from skill_effectiveness.trials.gate_reviewers import JudgedReviewers
from skill_effectiveness.trials.gate_runner import RunnerRules
from skill_effectiveness.trials.gate_tier import JudgedTier, judge_tier
from skill_effectiveness.trials.gate_words import (
    EvidenceSource,
    FailureCode,
    GateStatus,
    NextAction,
    NotEvaluated,
    Stage,
    TierStatus,
    WarningCode,
)
from skill_effectiveness.trials.tiers import AdvisoryVerdict, CausalVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skill_effectiveness.protocol.gates import EvidenceTier, Thresholds
    from skill_effectiveness.trials.capability_matrix import CapabilityMatrix
    from skill_effectiveness.trials.gate_facts import ArmFacts, TrialEntry

NO_REVIEWERS: Final = JudgedReviewers(None, frozenset())
"""Of a synthetic run, for which nobody is examined."""


@dataclass(frozen=True, slots=True)
class GateInputs:
    """Everything a gate is judged by.

    Attributes:
        thresholds: the frozen ones.
        tier: what is asked for and done without; None exactly for a synthetic run.
        registry_schema: of all arms.
        arms: of the plan.
        task_ids: of the plan.
        entries: consumed once.
        reviewers: see `gate_reviewers.judge_reviewers`.
        capability: rows read back from probe files.
        source: where the trials were opened.
    """

    thresholds: Thresholds
    tier: EvidenceTier | None
    registry_schema: RegistrySchema
    arms: Sequence[ArmFacts]
    task_ids: Sequence[str]
    entries: Iterable[TrialEntry]
    reviewers: JudgedReviewers
    capability: CapabilityMatrix
    source: EvidenceSource


class _Rules:
    """Every family of rules over trials, fed together."""

    def __init__(self, inputs: GateInputs) -> None:
        arms = {arm.arm_id: arm for arm in inputs.arms}
        self.arms = arms
        self.records = RecordRules(arms)
        self.runner = RunnerRules(((task, arm) for task in inputs.task_ids for arm in arms), arms)
        self.events = EventRules(arms)
        self.outcomes = OutcomeRules()
        self.isolation = IsolationRules()
        for entry in inputs.entries:
            self._take(entry)

    def _take(self, entry: TrialEntry) -> None:
        self.records.take(entry)
        planned, facts = entry.planned, entry.facts
        if planned is None or facts is None:
            return
        self.isolation.take_session(planned)
        self.runner.take(planned, facts)
        if not facts.void:
            self.events.take(planned, facts)
            self.outcomes.take(facts)
            self.isolation.take(planned, facts)

    def absent(self) -> Iterator[NotEvaluated]:
        return chain(self.events.absent(), self.outcomes.absent(), self.isolation.absent())

    def failures(self, gates: Thresholds, *, sessions_matter: bool) -> Iterator[FailureCode]:
        yield from self.records.failures()
        yield from self.runner.failures(gates)
        if any(arm.diff_faults for arm in self.arms.values()):
            yield FailureCode.MANIFEST_ALLOWLISTED_DIFF
        yield from self.events.failures(gates)
        yield from self.outcomes.failures()
        yield from self.isolation.failures(gates, sessions_matter=sessions_matter)

    def warnings(self) -> Iterator[WarningCode]:
        if self.runner.void.total():
            yield WarningCode.VOID_TRIALS_EXCLUDED
        if self.records.claims_without_evidence:
            yield WarningCode.CLAIMS_WITHOUT_EVIDENCE
        if self.runner.failed:
            yield WarningCode.FAILED_TRIALS_COUNTED


def evaluate_gate(inputs: GateInputs) -> GateResult:
    """Judge one set of trials.

    Raises:
        ValueError: a run that is not synthetic without a tier, or the reverse.
        Whatever `inputs.entries` raises while it is read.
    """
    synthetic = inputs.source is EvidenceSource.SYNTHETIC
    if synthetic is not (inputs.tier is None):
        raise ValueError("a synthetic run has no tier, and every other run has one")
    rules = _Rules(inputs)
    advisory = inputs.tier is not None and inputs.tier.requested_tier is EvidenceTierName.ADVISORY_PAIRED
    failures = {*rules.failures(inputs.thresholds, sessions_matter=advisory), *inputs.reviewers.failures}
    if inputs.tier is None:
        judged = JudgedTier(tuple(NotEvaluated), (), frozenset())
    else:
        judged = judge_tier(inputs.tier, rules.absent(), rules.isolation, capable=inputs.capability.is_ready)
    failures |= judged.failures
    if inputs.source is EvidenceSource.NONE:
        failures.add(FailureCode.LOCAL_EVIDENCE_BUNDLE_REQUIRED)
    status = _status(failures, synthetic=synthetic)
    return GateResult(
        schema_version=1,
        status=status,
        meaning="runner_eval_validity_only",
        failures=tuple(text for code in _ordered(failures) for text in rules.records.spelled(code)),
        warnings=tuple(rules.warnings()),
        not_evaluated_checks=judged.not_evaluated,
        evidence_tier=_tier_report(inputs, judged, status, failures),
        metrics=_metrics(rules),
        calibration=(
            SyntheticCalibration(status="not_evaluated_synthetic")
            if synthetic
            else inputs.reviewers.evaluation
        ),
        decision=Decision(mode="automated", human_required=False, next_action=_next(status, failures)),
        evidence_source=inputs.source,
    )


def verdict_of(result: GateResult) -> CausalVerdict | AdvisoryVerdict | None:
    """The verdict by its kind, which nothing turns into the other; None of a synthetic run."""
    tier = result.evidence_tier
    passed = result.status is GateStatus.PASS
    match tier.requested_tier:
        case EvidenceTierName.CAUSAL:
            return CausalVerdict(passed)
        case EvidenceTierName.ADVISORY_PAIRED:
            return AdvisoryVerdict(passed, tier.coverage_limitations)
        case None:
            return None


def failed_stages(result: GateResult) -> tuple[Stage, ...]:
    """What the failures of a result are about, in the order in which a caller is told."""
    words = {text.split(":")[0] for text in result.failures}
    stages = {code.stage for code in FailureCode if code.value in words}
    tier, absent = result.evidence_tier, set(result.not_evaluated_checks)
    if Stage.PROOFS in stages and NotEvaluated.PROVIDER_CAPABILITY_MATRIX in absent:
        stages.add(Stage.CAPABILITY)
        # With nothing else missing, capability is all that the causal tier lacks.
        if absent == {NotEvaluated.PROVIDER_CAPABILITY_MATRIX}:
            stages.remove(Stage.PROOFS)
    if Stage.SKILL_EVENTS in stages and tier.registry_schema is not RegistrySchema.SKILL_CONTENT:
        # Where no call is matched, unverifiable events are a failure like any other.
        stages.remove(Stage.SKILL_EVENTS)
        stages.add(Stage.GATE)
    return tuple(stage for stage in Stage if stage in stages)


def _ordered(failures: set[FailureCode]) -> list[FailureCode]:
    return [code for code in FailureCode if code in failures]


def _status(failures: set[FailureCode], *, synthetic: bool) -> GateStatus:
    if failures:
        return GateStatus.FAIL
    return GateStatus.NOT_EVALUATED_SYNTHETIC if synthetic else GateStatus.PASS


_ONLY_MISSING: Final = {FailureCode.REQUIRED_EVIDENCE_NOT_EVALUATED, FailureCode.CAUSAL_CORE_UNAVAILABLE}


def _next(status: GateStatus, failures: set[FailureCode]) -> NextAction:
    if status is GateStatus.PASS:
        return NextAction.CONTINUE
    if FailureCode.LOCAL_EVIDENCE_BUNDLE_REQUIRED in failures:
        return NextAction.PERSIST
    return NextAction.COLLECT if failures <= _ONLY_MISSING else NextAction.REPAIR


def _tier_report(
    inputs: GateInputs, judged: JudgedTier, status: GateStatus, failures: set[FailureCode]
) -> TierReport:
    tier = inputs.tier
    if tier is None:
        standing = TierStatus.SYNTHETIC_NOT_A_TIER
    elif FailureCode.CAUSAL_CORE_UNAVAILABLE in failures:
        standing = TierStatus.CAUSAL_CORE_UNAVAILABLE
    elif FailureCode.REQUIRED_EVIDENCE_NOT_EVALUATED in failures:
        standing = TierStatus.NOT_MET
    else:
        standing = TierStatus.MET
    passed = tier is not None and status is GateStatus.PASS
    waivers: tuple[WaivableItem, ...] = () if tier is None else tier.waived_items
    return TierReport(
        schema_version=1,
        requested_tier=None if tier is None else tier.requested_tier,
        declared_waivers=waivers,
        coverage_limitations=judged.limitations,
        registry_schema=inputs.registry_schema,
        tier_status=standing,
        verdict_tier=tier.requested_tier if passed and tier is not None else None,
        boundary="verdict-tier-never-relabelled",
    )


def _metrics(rules: _Rules) -> GateMetrics:
    records, runner, events, isolation = rules.records, rules.runner, rules.events, rules.isolation
    gap = isolation.gap
    return GateMetrics(
        records=records.rows,
        trials=runner.planned.total(),
        void_trials=runner.void.total(),
        failed_trials=runner.failed,
        contradicted=dict(sorted(records.contradictions.items())),
        claims_without_evidence=records.claims_without_evidence,
        breached_completions=isolation.breached,
        runner_completion=runner.completion,
        contamination=isolation.contamination,
        arm_contamination_gap=None if gap is None else float(gap),
        unverifiable_skill_events=events.unverifiable_share,
        matched_calls=Share.of(events.compliant, events.calls),
        off_residuals=events.residuals,
        blinding_leaks=rules.outcomes.leaks,
        grade_faults=rules.outcomes.grade_faults,
        budget_faults=rules.outcomes.budget_faults,
        arms={arm: _arm_metrics(rules, arm) for arm in rules.arms},
    )


def _arm_metrics(rules: _Rules, arm: str) -> ArmMetrics:
    runner, events, isolation = rules.runner, rules.events, rules.isolation
    return ArmMetrics(
        trials=runner.planned[arm],
        void_trials=runner.void[arm],
        runner_completion=Share.of(runner.completed[arm], runner.planned[arm]),
        contamination=Share.of(isolation.contaminated[arm], isolation.known[arm]),
        unverifiable_skill_events=Share.of(events.unverifiable[arm], events.read[arm]),
    )
