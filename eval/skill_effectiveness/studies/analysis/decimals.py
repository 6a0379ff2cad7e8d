"""Numbers as people write them, and how far two results of arithmetic may differ and still be one.

`alpha` is read as the decimal it is written as: 0.05 is one twentieth, not the nearest binary fraction, so
that a limit such as `alpha * 100000` is exactly 5000.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

TOLERANCE: Final = 1e-12
"""Differences up to this are none: sums of thirds in another order differ by less."""


def decimal_fraction(number: float) -> Fraction:
    """The decimal fraction that the shortest spelling of a number stands for."""
    return Fraction(repr(number))


def checked_alpha(alpha: float) -> Fraction:
    """An error rate strictly between 0 and 1, as a decimal fraction.

    Raises:
        ValueError: 0, 1, beyond, or no number.
    """
    if not 0 < alpha < 1:
        raise ValueError("an error rate lies strictly between 0 and 1")
    return decimal_fraction(alpha)
