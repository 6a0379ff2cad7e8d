"""How figures are written down and held against thresholds (calibration.md, section 8).

A share of nothing has no value: it is null and never 0.
"""

from __future__ import annotations

from fractions import Fraction

from skill_effectiveness.protocol.document import FrozenModel


class Interval(FrozenModel):
    """Two ends of a confidence interval, low first."""

    low: float
    high: float


class Estimate(FrozenModel):
    """A figure and its 95 % interval."""

    value: float
    interval: Interval


class Share(FrozenModel):
    """A part of a whole; `value` is None when the whole is empty."""

    part: int
    whole: int
    value: float | None

    @classmethod
    def of(cls, part: int, whole: int) -> Share:
        """The share of two counts."""
        return cls(part=part, whole=whole, value=part / whole if whole else None)


def at_least(value: Fraction, threshold: float) -> bool:
    """True when an exact figure reaches a threshold.

    A threshold means the decimal number that was frozen. The double nearest to 0.8 lies above 4/5; compared
    with it, 20 of 25 would fail a gate of 0.8.
    """
    return value >= Fraction(repr(threshold))


def at_most(value: Fraction, threshold: float) -> bool:
    """True when an exact figure does not pass a threshold, read as in `at_least`."""
    return value <= Fraction(repr(threshold))
