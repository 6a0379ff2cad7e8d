"""Where the marks of the report's figures lie."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.studies.figures import Axis, evidence_curve, place
from skill_effectiveness.studies.results import EvidenceRecord


@pytest.mark.parametrize(
    ("values", "limit"),
    [([], 0.1), ([0.1], 0.1), ([0.11], 0.25), ([-0.4, 0.2], 0.5), ([0.51], 1.0), ([-1.0], 1.0)],
)
def test_the_axis_is_the_shortest_that_holds_all(values: list[float], limit: float) -> None:
    assert Axis.holding(values).limit == limit


def test_places() -> None:
    """Percent of the width; 0 lies in the middle; beyond an edge is the edge."""
    axis = Axis(0.5)
    assert [axis.at(value) for value in (-0.5, -0.25, 0, 0.5, 2.0)] == ["0", "25", "50", "100", "100"]
    assert (axis.between(-0.05, 0.05), axis.between(-2, 2), axis.between(0.7, 0.9)) == ("10", "100", "0")
    assert axis.ticks == (-0.5, -0.25, 0.0, 0.25, 0.5)


@given(st.floats(-10, 10))
def test_every_place_is_a_plain_number_inside(fraction: float) -> None:
    """Nothing that a style or a path could read otherwise."""
    assert 0 <= float(place(fraction)) <= 100
    assert set(place(fraction)) <= set("0123456789.")


class TestCurve:
    def look(self, e: float, low: float | None = -1.0, high: float | None = 1.0) -> EvidenceRecord:
        return EvidenceRecord(task_id="t", e=e, low=low, high=high)

    def test_points(self) -> None:
        """The axis runs a tenth of a decade beyond the least and the greatest of E and 1 / alpha."""
        curve = evidence_curve([self.look(1.0), self.look(10.0), self.look(100.0)], 0.05)
        assert curve is not None
        # log E: 0, 1, 2 on an axis from -0.1 to 2.1.
        assert curve.points == "0,95.455 50,50 100,4.545"
        assert curve.limit_y == place((2.1 - 1.30103) / 2.2)
        assert curve.one_y == "95.455"
        assert curve.band == "0,0 50,0 100,0 100,100 50,100 0,100"

    def test_looks_that_leave_nothing(self) -> None:
        """No band where no effect is left; an evidence of 0 stays on the page."""
        curve = evidence_curve([self.look(0.0, None, None)], 0.05)
        assert curve is not None
        assert curve.band == ""
        assert curve.points.startswith("50,")

    def test_no_look(self) -> None:
        assert evidence_curve([], 0.05) is None
