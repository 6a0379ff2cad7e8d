"""Consistency, accuracy, consensus and confusion of one reviewer's runs (calibration.md, section 8).

Everything is a count, and shares are exact fractions of counts, so that a gate is decided without rounding.
The counting is plain Python over small codes: it needs no array library, because a finalized sample pair is
judged by pinned code whose every dependency has to be pinned too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.figures import Estimate
from skill_effectiveness.calibration.intervals import share_of_cases, wilson
from skill_effectiveness.protocol.words import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.calibration.agreement import Answer

_VERDICTS: Final = tuple(Verdict)
_CODE_OF: Final = {verdict: code for code, verdict in enumerate(_VERDICTS)}


@dataclass(frozen=True, slots=True)
class Confusion:
    """Judgements of all runs by truth (outer) and verdict (inner), in the order `A win`, `B win`, `tie`."""

    counts: tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
    repeat_count: int

    def of(self, truth: Verdict, verdict: Verdict) -> int:
        """Judgements of cases with this truth that came to this verdict."""
        return self.counts[_CODE_OF[truth]][_CODE_OF[verdict]]

    def one_against_rest(self, verdict: Verdict) -> OneAgainstRest:
        """The reviewer as a detector of one verdict."""
        code = _CODE_OF[verdict]
        positives = sum(self.counts[code])
        everything = sum(map(sum, self.counts))
        hits = self.counts[code][code]
        false_alarms = sum(row[code] for row in self.counts) - hits
        negatives = everything - positives
        return OneAgainstRest(hits, positives, negatives - false_alarms, negatives, self.repeat_count)


@dataclass(frozen=True, slots=True)
class OneAgainstRest:
    """How well one verdict is told from the other two, in judgements over all runs.

    Attributes:
        hits: judgements with this verdict where it is the truth.
        positives: judgements where it is the truth (n1).
        rejections: judgements without this verdict where it is not the truth.
        negatives: judgements where it is not the truth (n0).
        repeat_count: runs; intervals count cases, not judgements.
    """

    hits: int
    positives: int
    rejections: int
    negatives: int
    repeat_count: int

    @property
    def sensitivity(self) -> Estimate | None:
        """Hits ÷ positives, interval over the cases with this truth; None when there are none."""
        return share_of_cases(Fraction(self.hits, self.repeat_count), self.positives // self.repeat_count)

    @property
    def specificity(self) -> Estimate | None:
        """Rejections ÷ negatives, interval over the cases with another truth; None when there are none."""
        return share_of_cases(
            Fraction(self.rejections, self.repeat_count), self.negatives // self.repeat_count
        )


@dataclass(frozen=True, slots=True)
class ReviewerMetrics:
    """The figures of one reviewer over all its runs.

    Attributes:
        case_count: cases of the bank.
        repeat_count: runs.
        consistent: cases with the same verdict in every run.
        correct: right judgements, over all runs.
        consensus: per case, in bank order, the single most frequent verdict; None for a modal tie.
        confusion: judgements by truth and verdict.
    """

    case_count: int
    repeat_count: int
    consistent: int
    correct: int
    consensus: tuple[Answer, ...]
    confusion: Confusion

    @property
    def self_consistency(self) -> Fraction:
        """Share of all cases with the same verdict in every run."""
        return Fraction(self.consistent, self.case_count)

    @property
    def accuracy(self) -> Fraction:
        """Share of all judgements that are right."""
        return Fraction(self.correct, self.case_count * self.repeat_count)

    @property
    def self_consistency_estimate(self) -> Estimate:
        """The same with its interval over cases."""
        return Estimate(value=float(self.self_consistency), interval=wilson(self.consistent, self.case_count))

    @property
    def accuracy_estimate(self) -> Estimate:
        """The same with its interval over cases, each counting with the mean of its runs."""
        successes = Fraction(self.correct, self.repeat_count)
        return Estimate(value=float(self.accuracy), interval=wilson(successes, self.case_count))


def reviewer_metrics(truth: Sequence[Verdict], runs: Sequence[Sequence[Verdict]]) -> ReviewerMetrics:
    """Count one reviewer's runs.

    Args:
        truth: the known answers in bank order, at least one.
        runs: verdicts of each run in bank order and orientation, at least one run.

    Raises:
        ValueError: no cases, no runs, or a run of another length.
    """
    if not truth or not runs or any(len(run) != len(truth) for run in runs):
        raise ValueError("metrics need at least one run, and one verdict per case in each")
    expected = _codes(truth)
    given = [_codes(run) for run in runs]
    pairs = Counter[tuple[int, int]]()
    for run in given:
        pairs.update(zip(expected, run, strict=True))
    cases = [*zip(*given, strict=True)]
    return ReviewerMetrics(
        case_count=len(truth),
        repeat_count=len(runs),
        consistent=sum(case.count(case[0]) == len(case) for case in cases),
        correct=sum(pairs[code, code] for code in range(len(_VERDICTS))),
        consensus=tuple(map(_consensus, cases)),
        confusion=_confusion(pairs, len(runs)),
    )


def majority(verdicts: Sequence[Verdict]) -> Answer:
    """The single most frequent verdict, or None for a modal tie or no verdict at all."""
    return _consensus(_codes(verdicts))


def _codes(verdicts: Sequence[Verdict]) -> bytes:
    return bytes(map(_CODE_OF.__getitem__, verdicts))


def _consensus(codes: Sequence[int]) -> Answer:
    counts = [codes.count(code) for code in range(len(_VERDICTS))]
    most = max(counts)
    return _VERDICTS[counts.index(most)] if counts.count(most) == 1 else None


def _confusion(pairs: Counter[tuple[int, int]], repeat_count: int) -> Confusion:
    first, second, third = (
        (pairs[truth, 0], pairs[truth, 1], pairs[truth, 2]) for truth in range(len(_VERDICTS))
    )
    return Confusion((first, second, third), repeat_count)
