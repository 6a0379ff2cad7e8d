from __future__ import annotations

from fractions import Fraction

import pytest
from pydantic import ValidationError

from skill_effectiveness.calibration.figures import Interval, Share, at_least, at_most


def test_a_threshold_is_the_decimal_that_was_frozen() -> None:
    """R24: 20 of 25 reaches 0.8 although the double of 0.8 lies above four fifths."""
    assert Fraction(0.8) > Fraction(20, 25)
    assert at_least(Fraction(20, 25), 0.8)
    assert not at_least(Fraction(20, 25) - Fraction(1, 10**20), 0.8)


def test_the_other_direction_likewise() -> None:
    assert Fraction(0.3) < Fraction(3, 10)
    assert at_most(Fraction(3, 10), 0.3)
    assert not at_most(Fraction(3, 10) + Fraction(1, 10**20), 0.3)


@pytest.mark.parametrize(("threshold", "reached"), [(0.0, True), (1.0, True), (1e-07, True)])
def test_any_spelling_of_a_threshold(threshold: float, reached: bool) -> None:  # noqa: FBT001 - a table column
    assert at_least(Fraction(1), threshold) is reached


def test_a_share_of_nothing_is_unknown() -> None:
    assert Share.of(0, 0).value is None
    assert Share.of(1, 4) == Share(part=1, whole=4, value=0.25)


@pytest.mark.parametrize("end", [float("nan"), float("inf")])
def test_no_figure_is_written_that_is_no_number(end: float) -> None:
    with pytest.raises(ValidationError):
        Interval(low=0.0, high=end)
