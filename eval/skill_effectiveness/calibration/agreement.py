"""How far reviewers agree with each other beyond chance (calibration.md, section 8).

A reviewer's answer to a case is its consensus over the runs: a verdict, or None when no single verdict is the
most frequent one. Between two reviewers, None agrees with nothing, not even with None, and chance is computed
from the three verdicts alone; shares are always of all cases. Over all reviewers, alpha takes None for a
missing value.

The figures of a pair are ratios of whole numbers. One set of formulas serves both uses: with Python integers
it gives exact fractions, which gates compare, with arrays of tallies the resamples of a bootstrap.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from skill_effectiveness.calibration.figures import Estimate
from skill_effectiveness.calibration.intervals import DRAWS, bca
from skill_effectiveness.protocol.document import FrozenModel
from skill_effectiveness.protocol.words import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from skill_effectiveness.calibration.intervals import Statistic, Tallies

Answer = Verdict | None
"""Consensus of one reviewer on one case."""

Number = TypeVar("Number", int, "NDArray[np.int64]")

_VERDICTS: Final = tuple(Verdict)


class PairAgreement(FrozenModel):
    """What two reviewers have in common, each figure with its bootstrap interval over cases."""

    agreement: Estimate
    kappa: Estimate
    ac1: Estimate


def percent_agreement(x: Sequence[Answer], y: Sequence[Answer]) -> Fraction:
    """Share of all cases on which both gave the same verdict.

    Raises:
        ValueError: no cases, or sequences of different lengths; the other figures of a pair likewise.
    """
    return _exact(_agreement_ratio, x, y)


def cohen_kappa(x: Sequence[Answer], y: Sequence[Answer]) -> Fraction:
    """Agreement beyond what the two reviewers' own verdict rates give by chance (Cohen 1960).

    Where chance alone explains everything (p_e = 1) the figure is 1 for full agreement, else 0.
    """
    return _exact(_kappa_ratio, x, y)


def gwet_ac1(x: Sequence[Answer], y: Sequence[Answer]) -> Fraction:
    """Agreement beyond chance by Gwet's first coefficient (Gwet 2008), steady where verdicts are uneven."""
    return _exact(_ac1_ratio, x, y)


def pair_agreement(x: Sequence[Answer], y: Sequence[Answer], seed: int, draws: int = DRAWS) -> PairAgreement:
    """The three figures of a pair with BCa intervals over cases; the seed is for the caller to record."""
    kinds, values = _kinds([*zip(x, y, strict=True)])

    def estimate(ratio: _Ratio) -> Estimate:
        interval = bca(values, _statistic(ratio, kinds), seed, draws)
        return Estimate(value=float(_exact(ratio, x, y)), interval=interval)

    return PairAgreement(
        agreement=estimate(_agreement_ratio),
        kappa=estimate(_kappa_ratio),
        ac1=estimate(_ac1_ratio),
    )


def krippendorff_alpha_nominal(reviewers: Sequence[Sequence[Answer]]) -> float | None:
    """Krippendorff's alpha for nominal data over all reviewers (Krippendorff 2004), None counting as missing.

    Returns:
        None when no case has two verdicts to compare; 1.0 when every comparable verdict is the same one.

    Raises:
        ValueError: fewer than two reviewers, no cases, or sequences of different lengths.
    """
    import numpy as np  # noqa: PLC0415 - one family alone has no alpha and needs no numpy

    kinds, values = _comparable(reviewers)
    if not values:
        return None
    tallies = np.bincount(values, minlength=len(kinds)).astype(np.int64)
    return float(_alpha_statistic(kinds)(tallies[np.newaxis, :])[0])


def alpha_agreement(reviewers: Sequence[Sequence[Answer]], seed: int, draws: int = DRAWS) -> Estimate | None:
    """Alpha with its BCa interval, or None where alpha is None.

    The bootstrap draws from the cases with at least two verdicts. The others take no part in alpha, and
    drawing them would only make resamples without any comparable case, for which alpha does not exist.
    """
    value = krippendorff_alpha_nominal(reviewers)
    if value is None:
        return None
    kinds, values = _comparable(reviewers)
    return Estimate(value=value, interval=bca(values, _alpha_statistic(kinds), seed, draws))


@dataclass(frozen=True, slots=True)
class _Margins(Generic[Number]):
    """Counts of a pair: all cases, cases agreed on, and how often each reviewer gave each verdict."""

    cases: Number
    agreed: Number
    x: tuple[Number, Number, Number]
    y: tuple[Number, Number, Number]


class _Ratio(Protocol):
    """Numerator and denominator of a figure, for one pair or for many resamples of it at once."""

    def __call__(self, margins: _Margins[Number]) -> tuple[Number, Number]: ...


def _agreement_ratio(margins: _Margins[Number]) -> tuple[Number, Number]:
    return margins.agreed, margins.cases


def _kappa_ratio(margins: _Margins[Number]) -> tuple[Number, Number]:
    """(p_o - p_e) ÷ (1 - p_e), both times n²; p_e is the sum over verdicts of the product of both rates."""
    (x0, x1, x2), (y0, y1, y2) = margins.x, margins.y
    chance = x0 * y0 + x1 * y1 + x2 * y2
    return margins.cases * margins.agreed - chance, margins.cases * margins.cases - chance


def _ac1_ratio(margins: _Margins[Number]) -> tuple[Number, Number]:
    """As kappa, both times 8n²; p_e is half the sum over verdicts of q (1 - q), q the mean of both rates."""
    s0, s1, s2 = margins.x[0] + margins.y[0], margins.x[1] + margins.y[1], margins.x[2] + margins.y[2]
    both = 2 * margins.cases
    chance = s0 * (both - s0) + s1 * (both - s1) + s2 * (both - s2)
    return 4 * both * margins.agreed - chance, 2 * both * both - chance


def _exact(ratio: _Ratio, x: Sequence[Answer], y: Sequence[Answer]) -> Fraction:
    if not x or len(x) != len(y):
        raise ValueError("two reviewers are compared over the same cases, at least one")
    a, b, tie = _VERDICTS
    margins = _Margins(
        cases=len(x),
        agreed=sum(mine is not None and mine is theirs for mine, theirs in zip(x, y, strict=True)),
        x=(x.count(a), x.count(b), x.count(tie)),
        y=(y.count(a), y.count(b), y.count(tie)),
    )
    numerator, denominator = ratio(margins)
    # A denominator of 0 is p_e = 1, and then the numerator is 0 exactly when all cases agree.
    return Fraction(numerator, denominator) if denominator else Fraction(numerator == 0)


def _kinds(patterns: Sequence[tuple[Answer, ...]]) -> tuple[list[tuple[Answer, ...]], list[int]]:
    """The different patterns in a fixed order, and the place of each case's pattern among them."""
    kinds = sorted(set(patterns), key=lambda pattern: [answer or "" for answer in pattern])
    places = {pattern: place for place, pattern in enumerate(kinds)}
    return kinds, [places[pattern] for pattern in patterns]


def _statistic(ratio: _Ratio, kinds: Sequence[tuple[Answer, ...]]) -> Statistic:
    """The figure as a function of how often each kind of case occurs."""
    import numpy as np  # noqa: PLC0415 - only a bootstrap calls this

    def where(side: int, verdict: Verdict) -> NDArray[np.int64]:
        return np.array([pattern[side] is verdict for pattern in kinds], dtype=np.int64)

    given = [[where(side, verdict) for verdict in _VERDICTS] for side in (0, 1)]
    same = np.array([x is not None and x is y for x, y in kinds], dtype=np.int64)

    def statistic(tallies: Tallies) -> NDArray[np.float64]:
        (x0, x1, x2), (y0, y1, y2) = ([tallies @ column for column in side] for side in given)
        margins = _Margins(tallies.sum(axis=1), tallies @ same, (x0, x1, x2), (y0, y1, y2))
        numerator, denominator = ratio(margins)
        full: NDArray[np.float64] = (numerator == 0).astype(np.float64)
        np.divide(numerator, denominator, out=full, where=denominator != 0)
        return full

    return statistic


def _comparable(reviewers: Sequence[Sequence[Answer]]) -> tuple[list[tuple[Answer, ...]], list[int]]:
    """Kinds and cases as `_kinds`, of the cases with at least two verdicts."""
    if len(reviewers) <= 1 or not reviewers[0]:
        raise ValueError("alpha compares at least two reviewers over at least one case")
    patterns = zip(*reviewers, strict=True)
    return _kinds([pattern for pattern in patterns if len(pattern) - pattern.count(None) > 1])


def _alpha_statistic(kinds: Sequence[tuple[Answer, ...]]) -> Statistic:
    """Alpha as a function of how often each kind of comparable case occurs."""
    import numpy as np  # noqa: PLC0415 - only alpha calls this, see krippendorff_alpha_nominal

    given = np.array([[pattern.count(verdict) for verdict in _VERDICTS] for pattern in kinds], dtype=np.int64)
    present = given.sum(axis=1)
    matching = (given * (given - 1)).sum(axis=1) / (present - 1)

    def statistic(tallies: Tallies) -> NDArray[np.float64]:
        values, totals = tallies @ present, tallies @ given
        differing = values * (values - 1) - (totals * (totals - 1)).sum(axis=1)
        observed = (values - tallies @ matching) * (values - 1)
        disagreement = np.zeros(len(tallies), dtype=np.float64)
        np.divide(observed, differing, out=disagreement, where=differing != 0)
        return 1 - disagreement

    return statistic
