"""The metrics sheet: everything measured about the reviewers of one examination (calibration.md, section 8).

The sheet stands in `reviewer-calibration-metrics.json`. It is derived from the records alone, so it may be
rebuilt at any time and comes out the same, and it names the evidence it was derived from. It decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol

from pydantic import Field

from skill_effectiveness.calibration.agreement import Answer, PairAgreement, alpha_agreement, pair_agreement
from skill_effectiveness.calibration.bias import BiasSheet, bias_sheet
from skill_effectiveness.calibration.figures import Estimate, at_least
from skill_effectiveness.calibration.intervals import DRAWS
from skill_effectiveness.calibration.metrics import ReviewerMetrics, reviewer_metrics
from skill_effectiveness.calibration.position import PositionSheet, SeenVerdict, position_sheet
from skill_effectiveness.evidence.strict import LARGEST_INTEGER
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One
from skill_effectiveness.protocol.words import BankName, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skill_effectiveness.protocol.cases import Bank
    from skill_effectiveness.protocol.policy import LicencePolicy, ProbeRule

METRICS_CONTRACT: Final = "skill-effectiveness-reviewer-calibration-metrics-v1"
BOOTSTRAP_SEED: Final = 241_012_784
UNKNOWN: Final = "unknown"
Number = Annotated[int | float, Field(ge=0)]
Counted = Annotated[int, Field(ge=0)]


class CallUsage(Protocol):
    """What one model call cost, each part None when it is not known; `models.Usage` is one."""

    @property
    def input_tokens(self) -> int | None:
        """Tokens read."""
        ...

    @property
    def output_tokens(self) -> int | None:
        """Tokens written."""
        ...

    @property
    def cost_units(self) -> float | None:
        """Price in the provider's unit."""
        ...

    @property
    def latency_ms(self) -> int | None:
        """Wall time in milliseconds."""
        ...


@dataclass(frozen=True, slots=True)
class ReviewerRecords:
    """What is on record about one family.

    Attributes:
        family: its name.
        runs: verdicts of each completed sample in bank order and orientation.
        seen: the same samples as they were shown and answered; a sample without observation has orientation
            0.
        calls: usage of every model call that may have been made, of failed ones too; None parts are unknown.
        attempts: samples that were tried, whether or not their call was made; what is no run was in vain.
        orientation_key_hashes: commitments to the keys the samples were drawn with.
    """

    family: str
    runs: Sequence[Sequence[Verdict]]
    seen: Sequence[Sequence[SeenVerdict]]
    calls: Sequence[CallUsage]
    attempts: int
    orientation_key_hashes: Sequence[str]


class Totals(FrozenModel):
    """Sum and median over all calls."""

    sum: Number
    median: Number


CostFigure = Totals | Literal["unknown"]


class CostSheet(FrozenModel):
    """What the calls cost: `unknown` where one call lacks the figure, never 0; latency in milliseconds."""

    call_count: Counted
    input_tokens: CostFigure
    output_tokens: CostFigure
    cost_units: CostFigure
    latency_ms: CostFigure


class AttemptSheet(FrozenModel):
    """How often the reviewer was asked in vain; `flagged` when fewer answers count than a licence needs."""

    attempts: Counted
    unusable_answers: Counted
    flagged: bool


class VerdictSheet(FrozenModel):
    """One verdict against the other two, in judgements over all runs.

    Attributes:
        hits: judgements with this verdict where it is the truth, of `n1`.
        rejections: judgements with another verdict where it is not, of `n0`.
        sensitivity: hits ÷ n1 with its Wilson interval over cases; None when no case has this truth.
        specificity: rejections ÷ n0 likewise.
    """

    hits: Counted
    n1: Counted
    rejections: Counted
    n0: Counted
    sensitivity: Estimate | None
    specificity: Estimate | None


class ReviewerSheet(FrozenModel):
    """One family.

    Attributes:
        family: its name.
        repeat_count: completed samples.
        self_consistency: with its Wilson interval over cases, as is the accuracy.
        accuracy: correct judgements ÷ all judgements.
        inconsistent_cases: cases whose verdict is not the same in every run.
        consensus: per case in bank order; `none` for a modal tie.
        confusion: judgements by truth, then by verdict.
        verdicts: sensitivity and specificity per verdict.
        position: seats and flips.
        bias: the probe table; None for the judged bank.
        attempts: how often it was asked.
        cost: what the calls cost.
        orientation_key_hashes: commitments that opened keys can be checked against.
    """

    family: str
    repeat_count: Counted
    self_consistency: Estimate
    accuracy: Estimate
    inconsistent_cases: Counted
    consensus: tuple[Verdict | Literal["none"], ...]
    confusion: dict[Verdict, dict[Verdict, Counted]]
    verdicts: dict[Verdict, VerdictSheet]
    position: PositionSheet
    bias: BiasSheet | None
    attempts: AttemptSheet
    cost: CostSheet
    orientation_key_hashes: tuple[DigestText, ...]


class PairSheet(FrozenModel):
    """Two families over all cases."""

    families: tuple[str, str]
    figures: PairAgreement


class Bootstrap(FrozenModel):
    """What makes the bootstrap intervals repeatable."""

    seed: Counted
    draws: Counted


class MetricsSheet(FrozenModel):
    """The whole sheet.

    Attributes:
        schema_version: 1.
        artifact_contract: names this form.
        calibration_evidence_hash: digest of the evidence document the runs stand in.
        bank: which bank.
        known_answer_fixture_hash: its answers.
        case_fixture_hash: its cases.
        case_count: number of cases.
        reviewers: families in the order of the evidence.
        pairs: every two families.
        alpha: Krippendorff's alpha over all families; None with one family or nothing to compare.
        bootstrap: how the intervals of pairs and alpha were drawn.
        synthetic: whether the reviewers are simulated.
    """

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-reviewer-calibration-metrics-v1"]
    calibration_evidence_hash: DigestText
    bank: BankName
    known_answer_fixture_hash: DigestText
    case_fixture_hash: DigestText
    case_count: Counted
    reviewers: tuple[ReviewerSheet, ...]
    pairs: tuple[PairSheet, ...]
    alpha: Estimate | None
    bootstrap: Bootstrap
    synthetic: bool


def build_sheet(
    bank: Bank,
    reviewers: Sequence[ReviewerRecords],
    *,
    evidence_hash: str,
    synthetic: bool,
    policy: LicencePolicy,
    seed: int = BOOTSTRAP_SEED,
    draws: int = DRAWS,
) -> MetricsSheet:
    """Measure everything there is to measure.

    Args:
        bank: the bank all samples were taken with.
        reviewers: at least one family, each name once.
        evidence_hash: object digest of the evidence document.
        synthetic: whether the reviewers are simulated.
        policy: the frozen licence policy: its probe table, for the probe bank alone, and the share of answers
            that have to be usable.
        seed: of the bootstrap; recorded.
        draws: of the bootstrap; recorded.

    Raises:
        ValueError: no family or one twice, no or incomplete runs, counts that contradict each other.
    """
    if not reviewers or len({records.family for records in reviewers}) < len(reviewers):
        raise ValueError("a sheet is about at least one family, each once")
    found = [reviewer_metrics(bank.truth, records.runs) for records in reviewers]
    answers: list[tuple[Answer, ...]] = [metrics.consensus for metrics in found]
    pairs = [
        PairSheet(
            families=(reviewers[x].family, reviewers[y].family),
            figures=pair_agreement(answers[x], answers[y], seed, draws),
        )
        for x, y in combinations(range(len(reviewers)), 2)
    ]
    return MetricsSheet(
        schema_version=1,
        artifact_contract=METRICS_CONTRACT,
        calibration_evidence_hash=evidence_hash,
        bank=bank.name,
        known_answer_fixture_hash=bank.known_answer_fixture_hash,
        case_fixture_hash=bank.case_fixture_hash,
        case_count=len(bank.cases),
        reviewers=tuple(
            _reviewer(records, metrics, _bias(bank, policy.probe_rules, records), policy)
            for records, metrics in zip(reviewers, found, strict=True)
        ),
        pairs=tuple(pairs),
        alpha=alpha_agreement(answers, seed, draws) if len(answers) > 1 else None,
        bootstrap=Bootstrap(seed=seed, draws=draws),
        synthetic=synthetic,
    )


def cost_sheet(calls: Sequence[CallUsage]) -> CostSheet:
    """Sum and median of each part over the calls; without calls everything is unknown."""

    def figure(part: Callable[[CallUsage], float | None]) -> CostFigure:
        return _totals([part(call) for call in calls])

    return CostSheet(
        call_count=len(calls),
        input_tokens=figure(lambda call: call.input_tokens),
        output_tokens=figure(lambda call: call.output_tokens),
        cost_units=figure(lambda call: call.cost_units),
        latency_ms=figure(lambda call: call.latency_ms),
    )


def _totals(amounts: Sequence[float | None]) -> CostFigure:
    known = [amount for amount in amounts if amount is not None]
    if not known or len(known) < len(amounts):
        return UNKNOWN
    exact = sum(map(Fraction, known))
    # A stream may claim any amount. What no reader of ours takes back as a number is not known either.
    if exact > LARGEST_INTEGER:
        return UNKNOWN
    whole = all(isinstance(amount, int) for amount in known)
    return Totals(sum=int(exact) if whole else float(exact), median=median(known))


def _bias(bank: Bank, rules: Sequence[ProbeRule], records: ReviewerRecords) -> BiasSheet | None:
    return bias_sheet(bank, rules, records.runs) if bank.name is BankName.BIAS_PROBE else None


def _reviewer(
    records: ReviewerRecords, metrics: ReviewerMetrics, bias: BiasSheet | None, policy: LicencePolicy
) -> ReviewerSheet:
    if len(records.seen) != len(records.runs):
        raise ValueError("every completed sample was seen once")
    return ReviewerSheet(
        family=records.family,
        repeat_count=metrics.repeat_count,
        self_consistency=metrics.self_consistency_estimate,
        accuracy=metrics.accuracy_estimate,
        inconsistent_cases=metrics.case_count - metrics.consistent,
        consensus=tuple("none" if answer is None else answer for answer in metrics.consensus),
        confusion={
            truth: {verdict: metrics.confusion.of(truth, verdict) for verdict in Verdict} for truth in Verdict
        },
        verdicts={verdict: _verdict(metrics, verdict) for verdict in Verdict},
        position=position_sheet(records.seen),
        bias=bias,
        attempts=_attempts(records, policy),
        cost=cost_sheet(records.calls),
        orientation_key_hashes=tuple(records.orientation_key_hashes),
    )


def _verdict(metrics: ReviewerMetrics, verdict: Verdict) -> VerdictSheet:
    found = metrics.confusion.one_against_rest(verdict)
    return VerdictSheet(
        hits=found.hits,
        n1=found.positives,
        rejections=found.rejections,
        n0=found.negatives,
        sensitivity=found.sensitivity,
        specificity=found.specificity,
    )


def _attempts(records: ReviewerRecords, policy: LicencePolicy) -> AttemptSheet:
    usable = len(records.runs)
    if not usable <= len(records.calls) <= records.attempts:
        raise ValueError("a sample is one call, and an attempt at most one")
    share = Fraction(usable, records.attempts)
    return AttemptSheet(
        attempts=records.attempts,
        unusable_answers=records.attempts - usable,
        flagged=not at_least(share, policy.usable_answer_rate_min),
    )
