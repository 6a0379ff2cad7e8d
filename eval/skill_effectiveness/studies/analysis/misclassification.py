"""Preference corrected for what the reviewer gets wrong (Rogan and Gladen 1978; studies.md section 6).

A reviewer with sensitivity q1 and specificity q0 reports a share p although the true share is (p + q0 - 1)
/ J, with Youden's J = q0 + q1 - 1. Both come from its licence, each with the number of cases it rests on,
and their uncertainty is part of the corrected figure's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.calibration.intervals import wilson

if TYPE_CHECKING:
    from fractions import Fraction

_Z: Final = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class KnownAccuracy:
    """Sensitivity and specificity of a reviewer's decided verdicts.

    Args:
        sensitivity: q1, from 0 to 1.
        sensitivity_cases: n1, at least 1.
        specificity: q0, from 0 to 1.
        specificity_cases: n0, at least 1.

    Raises:
        ValueError: a share outside 0 to 1 or a number of cases below 1.
    """

    sensitivity: float
    sensitivity_cases: int
    specificity: float
    specificity_cases: int

    def __post_init__(self) -> None:
        shares = (self.sensitivity, self.specificity)
        if not all(0 <= share <= 1 for share in shares):
            raise ValueError("sensitivity and specificity lie from 0 to 1")
        if min(self.sensitivity_cases, self.specificity_cases) < 1:
            raise ValueError("sensitivity and specificity rest on at least one case each")

    @property
    def youden(self) -> float:
        """J, how much a verdict tells; 0 is a coin."""
        return self.specificity + self.sensitivity - 1

    @property
    def identifiable(self) -> bool:
        """Whether the reviewer is certainly better than a coin: the Wilson lows sum to more than 1."""
        lows = wilson(self.sensitivity * self.sensitivity_cases, self.sensitivity_cases).low
        return lows + wilson(self.specificity * self.specificity_cases, self.specificity_cases).low > 1

    @property
    def sensitivity_variance(self) -> float:
        """Variance of q1."""
        return self.sensitivity * (1 - self.sensitivity) / self.sensitivity_cases

    @property
    def specificity_variance(self) -> float:
        """Variance of q0."""
        return self.specificity * (1 - self.specificity) / self.specificity_cases


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected share or difference of shares with its standard error and 95 % interval."""

    value: float
    standard_error: float
    interval: Interval


def corrected_share(share: float, variance: float, accuracy: KnownAccuracy) -> Corrected | None:
    """The true share behind a reported one.

    Args:
        share: p, from 0 to 1.
        variance: V(p), of the reported share: s**2 / m over task means.
        accuracy: of the reviewer.

    Returns:
        The corrected share; None where the correction is not identifiable.

    Raises:
        ValueError: a share outside 0 to 1 or a negative variance.
    """
    if not 0 <= share <= 1 or not variance >= 0:
        raise ValueError("a share lies from 0 to 1 and its variance is not negative")
    if not accuracy.identifiable:
        return None
    value = (share + accuracy.specificity - 1) / accuracy.youden
    spread = (
        variance + (1 - value) ** 2 * accuracy.specificity_variance + value**2 * accuracy.sensitivity_variance
    )
    return _corrected(value, math.sqrt(spread) / accuracy.youden)


def corrected_net(net: float | Fraction, variance: float, accuracy: KnownAccuracy) -> Corrected | None:
    """The true share of wins less losses behind a reported one: net / J.

    Both shares are corrected by the same J, so that specificity cancels in their difference and the
    uncertainty of the reviewer enters through J alone (the delta method).

    Args:
        net: reported share of wins less share of losses, from -1 to 1.
        variance: of it, s**2 / m over task means.
        accuracy: of the reviewer.

    Raises:
        ValueError: a net outside -1 to 1 or a negative variance.
    """
    if not -1 <= net <= 1 or not variance >= 0:
        raise ValueError("a net share lies from -1 to 1 and its variance is not negative")
    if not accuracy.identifiable:
        return None
    value = float(net) / accuracy.youden
    spread = variance + value**2 * (accuracy.specificity_variance + accuracy.sensitivity_variance)
    return _corrected(value, math.sqrt(spread) / accuracy.youden)


def _corrected(value: float, error: float) -> Corrected:
    return Corrected(value, error, Interval(low=value - _Z * error, high=value + _Z * error))
