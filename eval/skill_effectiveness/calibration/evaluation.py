"""Judging an examination: are its reviewers consistent, right and agreed (calibration.md, section 8).

Gates are point estimates, compared as exact fractions; a figure at its threshold passes. A run that lacks a
case, holds one twice, names a foreign one or uses another word makes its family invalid: nothing is filled
in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING, Final, Protocol

from skill_effectiveness.calibration.agreement import cohen_kappa, percent_agreement
from skill_effectiveness.calibration.figures import at_least
from skill_effectiveness.calibration.metrics import ReviewerMetrics, reviewer_metrics
from skill_effectiveness.protocol.document import FrozenModel
from skill_effectiveness.protocol.words import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skill_effectiveness.protocol.cases import Bank
    from skill_effectiveness.protocol.gates import Thresholds

RUNS_MIN: Final = 2


class Status(StrEnum):
    """How an examination, a reviewer in it or the agreement between reviewers comes out."""

    PASS = "pass"  # noqa: S105 - a status, no password
    FAIL = "fail"
    INVALID = "invalid"
    NOT_APPLICABLE_SINGLE_REVIEWER = "not_applicable_single_reviewer"


class FailureCode(StrEnum):
    """Why an evaluation is no pass; those up to `verdict_unknown` make it invalid, the others fail a gate."""

    NO_REVIEWER = "no_reviewer"
    FAMILY_REPEATED = "family_repeated"
    TOO_FEW_RUNS = "too_few_runs"
    CASE_UNKNOWN = "case_unknown"
    CASE_REPEATED = "case_repeated"
    CASE_MISSING = "case_missing"
    VERDICT_UNKNOWN = "verdict_unknown"
    SELF_CONSISTENCY_BELOW_GATE = "self_consistency_below_gate"
    KNOWN_ANSWER_ACCURACY_BELOW_GATE = "known_answer_accuracy_below_gate"
    AGREEMENT_BELOW_GATE = "agreement_below_gate"
    KAPPA_BELOW_GATE = "kappa_below_gate"


class Judged(Protocol):
    """One verdict of a run; `models.Judgment` is one. The word is checked here, so it may be any text."""

    @property
    def case_id(self) -> str:
        """Id of the case."""
        ...

    @property
    def verdict(self) -> str:
        """The word, in bank orientation."""
        ...


@dataclass(frozen=True, slots=True)
class ReviewerRuns:
    """A family and its runs, each in any order, in bank orientation."""

    family: str
    runs: Sequence[Sequence[Judged]]


class Failure(FrozenModel):
    """One reason, the family or pair of families it concerns, and the run (from 1) if one is meant."""

    code: FailureCode
    families: tuple[str, ...]
    run: int | None


class FamilyMetrics(FrozenModel):
    """The gated figures of one family."""

    case_count: int
    repeat_count: int
    known_answer_accuracy: float
    self_consistency: float


class PairMetrics(FrozenModel):
    """The gated figures of two families over all cases."""

    families: tuple[str, str]
    case_count: int
    agreement: float
    kappa: float
    status: Status


class CalibrationEvaluation(FrozenModel):
    """What the pair of documents publishes; figures of an invalid family are absent.

    Attributes:
        valid: whether the runs could be evaluated at all.
        status: `pass` when everything passes, `invalid` when not valid.
        failures: every reason found.
        reviewer_families: in the order given, each once.
        reviewer_metrics: by family.
        reviewer_statuses: `pass`, `fail` or `invalid` by family.
        pairwise_metrics: every pair of valid families.
        mutual_status: the gates between families; they do not apply to one family alone.
    """

    valid: bool
    status: Status
    failures: tuple[Failure, ...]
    reviewer_families: tuple[str, ...]
    reviewer_metrics: dict[str, FamilyMetrics]
    reviewer_statuses: dict[str, Status]
    pairwise_metrics: tuple[PairMetrics, ...]
    mutual_status: Status


def evaluate(bank: Bank, reviewers: Sequence[ReviewerRuns], thresholds: Thresholds) -> CalibrationEvaluation:
    """Judge the runs of all reviewers against the bank's known answers and the frozen gates.

    A family that occurs twice is invalid, because its runs cannot be told apart; so is one with fewer than
    two runs.
    """
    families = Counter(reviewer.family for reviewer in reviewers)
    failures = [*_entry_failures(families)]
    figures: dict[str, ReviewerMetrics] = {}
    statuses = dict.fromkeys(families, Status.INVALID)
    for reviewer in reviewers:
        faults = [*_run_failures(bank, reviewer)]
        failures += faults
        if not faults and families[reviewer.family] == 1:
            found = reviewer_metrics(bank.truth, [_in_bank_order(bank, run) for run in reviewer.runs])
            below = [*_family_failures(reviewer.family, found, thresholds)]
            failures += below
            figures[reviewer.family] = found
            statuses[reviewer.family] = Status.FAIL if below else Status.PASS
    pairs = []
    for x, y in combinations(figures, 2):
        metrics, below = _pair(x, y, figures, thresholds)
        pairs.append(metrics)
        failures += below
    mutual = _mutual(statuses, pairs)
    status = _overall(statuses, mutual)
    return CalibrationEvaluation(
        valid=status is not Status.INVALID,
        status=status,
        failures=tuple(failures),
        reviewer_families=tuple(families),
        reviewer_metrics={family: _family(found) for family, found in figures.items()},
        reviewer_statuses=statuses,
        pairwise_metrics=tuple(pairs),
        mutual_status=mutual,
    )


def _entry_failures(families: Counter[str]) -> Iterator[Failure]:
    if not families:
        yield Failure(code=FailureCode.NO_REVIEWER, families=(), run=None)
    for family, times in families.items():
        if times > 1:
            yield Failure(code=FailureCode.FAMILY_REPEATED, families=(family,), run=None)


def _run_failures(bank: Bank, reviewer: ReviewerRuns) -> Iterator[Failure]:
    """What keeps the runs of one reviewer from counting, each code once per run."""
    whom = (reviewer.family,)
    if len(reviewer.runs) < RUNS_MIN:
        yield Failure(code=FailureCode.TOO_FEW_RUNS, families=whom, run=None)
    expected = set(bank.case_ids)
    words = {verdict.value for verdict in Verdict}
    for number, run in enumerate(reviewer.runs, start=1):
        times = Counter(judged.case_id for judged in run)
        found = {
            FailureCode.CASE_UNKNOWN: times.keys() - expected,
            FailureCode.CASE_REPEATED: [case_id for case_id, count in times.items() if count > 1],
            FailureCode.CASE_MISSING: expected - times.keys(),
            FailureCode.VERDICT_UNKNOWN: [judged for judged in run if judged.verdict not in words],
        }
        yield from (Failure(code=code, families=whom, run=number) for code, hits in found.items() if hits)


def _in_bank_order(bank: Bank, run: Sequence[Judged]) -> list[Verdict]:
    given = {judged.case_id: Verdict(judged.verdict) for judged in run}
    return [given[case_id] for case_id in bank.case_ids]


def _family_failures(family: str, found: ReviewerMetrics, gates: Thresholds) -> Iterator[Failure]:
    if not at_least(found.self_consistency, gates.reviewer_self_consistency_min):
        yield Failure(code=FailureCode.SELF_CONSISTENCY_BELOW_GATE, families=(family,), run=None)
    if not at_least(found.accuracy, gates.reviewer_known_answer_accuracy_min):
        yield Failure(code=FailureCode.KNOWN_ANSWER_ACCURACY_BELOW_GATE, families=(family,), run=None)


def _family(found: ReviewerMetrics) -> FamilyMetrics:
    return FamilyMetrics(
        case_count=found.case_count,
        repeat_count=found.repeat_count,
        known_answer_accuracy=float(found.accuracy),
        self_consistency=float(found.self_consistency),
    )


def _pair(
    x: str, y: str, figures: dict[str, ReviewerMetrics], gates: Thresholds
) -> tuple[PairMetrics, list[Failure]]:
    mine, theirs = figures[x].consensus, figures[y].consensus
    agreement, kappa = percent_agreement(mine, theirs), cohen_kappa(mine, theirs)
    below = [
        Failure(code=code, families=(x, y), run=None)
        for code, figure, gate in (
            (FailureCode.AGREEMENT_BELOW_GATE, agreement, gates.reviewer_pairwise_agreement_min),
            (FailureCode.KAPPA_BELOW_GATE, kappa, gates.reviewer_pairwise_kappa_min),
        )
        if not at_least(figure, gate)
    ]
    metrics = PairMetrics(
        families=(x, y),
        case_count=len(mine),
        agreement=float(agreement),
        kappa=float(kappa),
        status=Status.FAIL if below else Status.PASS,
    )
    return metrics, below


def _mutual(statuses: dict[str, Status], pairs: Sequence[PairMetrics]) -> Status:
    if not statuses or Status.INVALID in statuses.values():
        return Status.INVALID
    if len(statuses) == 1:
        return Status.NOT_APPLICABLE_SINGLE_REVIEWER
    return Status.FAIL if any(pair.status is Status.FAIL for pair in pairs) else Status.PASS


def _overall(statuses: dict[str, Status], mutual: Status) -> Status:
    if mutual is Status.INVALID:
        return Status.INVALID
    return Status.FAIL if Status.FAIL in (mutual, *statuses.values()) else Status.PASS
