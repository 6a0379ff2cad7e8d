"""Evidence that may be looked at after every task."""

from __future__ import annotations

import itertools
import math
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.evidence_sequence import (
    Look,
    anytime_p,
    capitals,
    looks,
    stopped_at,
)


class TestKnownAnswers:
    def test_eight_tasks(self) -> None:
        """S42: E after three, five and eight tasks."""
        found = looks([k / 3 for k in (1, 0, 2, 1, -1, 3, 1, 1)], 0.05)
        assert [round(found[t - 1].evidence, 4) for t in (3, 5, 8)] == [1.1250, 1.0547, 2.4280]

    def test_seven_tasks_all_won(self) -> None:
        """S42: 20 is passed at the seventh, and 0 leaves the sequence."""
        found = looks([1.0] * 7, 0.05)
        assert [round(look.evidence, 4) for look in found[5:]] == [14.3616, 25.1326]
        last = found[-1].interval
        assert last is not None
        assert (last.low, last.high) == (0.039, 1.0)
        assert anytime_p([look.evidence for look in found]) == pytest.approx(1 / 25.1326, rel=1e-5)


def by_the_rule(d: list[float], theta: float, alpha: float = 0.05) -> list[float]:
    """E_t(theta) written down once more, each mu_j, v_i and lambda_i from the whole past."""
    found = []
    for t in range(1, len(d) + 1):
        up = down = 1.0
        for i in range(1, t + 1):
            squares = sum((d[j] - sum(d[: j + 1]) / (j + 2)) ** 2 for j in range(i - 1))
            v = (1 + squares) / i
            stake = min(
                math.sqrt(2 * math.log(2 / alpha) / (v * i * math.log(i + 1))), 0.75 / (1 + abs(theta))
            )
            up *= 1 + stake * (d[i - 1] - theta)
            down *= 1 - stake * (d[i - 1] - theta)
        found.append(up / 2 + down / 2)
    return found


class TestSecondImplementation:
    @settings(max_examples=30)
    @given(
        st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=12),
        st.sampled_from([0.0, 0.3, -1.0]),
    )
    def test_capital(self, values: list[float], theta: float) -> None:
        """S42 S49: v_0 = 1 and every later term by its own sum."""
        there = [capital[0, 0] for capital in capitals(np.array([values]), np.array([theta]), 0.05)]
        assert there == pytest.approx(by_the_rule(values, theta), rel=1e-9)

    def test_sequence_is_the_hull_of_what_was_never_rejected(self) -> None:
        """S42: a grid of 0.001 walked value by value."""
        values = [1.0, 0.5, 0.75, 1.0, 0.25, 1.0, 1.0, 0.5, 0.75, 1.0]
        kept = [k / 1000 for k in range(-1000, 1001) if max(by_the_rule(values, k / 1000)) < 20]
        last = looks(values, 0.05)[-1].interval
        assert last is not None
        assert (last.low, last.high) == (kept[0], kept[-1])


class TestStopping:
    WIDE = Interval(low=-1.0, high=1.0)

    def test_at_the_first_crossing(self) -> None:
        """S49: 1 / alpha itself is enough."""
        seen = [Look(19.999, self.WIDE), Look(20.0, self.WIDE), Look(50.0, self.WIDE)]
        assert stopped_at(seen, 0.05, 0.1) == 2
        assert stopped_at(seen[:1], 0.05, 0.1) is None
        assert stopped_at([], 0.05, 0.1) is None

    def test_inside_the_least_effect(self) -> None:
        """S52: strictly."""
        assert stopped_at([Look(1.0, Interval(low=-0.1, high=0.05))], 0.05, 0.1) is None
        assert stopped_at([Look(1.0, Interval(low=-0.099, high=0.05))], 0.05, 0.1) == 1


class TestMartingale:
    @pytest.mark.parametrize("sizes", [[0.5] * 10, [1.0, 0.2, 0.7, 0.0, 1.0, 0.3], [1.0]])
    def test_mean_capital_over_all_flips_is_one(self, sizes: list[float]) -> None:
        """S49: without an effect the capital neither grows nor shrinks on average, at any time."""
        flips = np.array(list(itertools.product((1, -1), repeat=len(sizes)))) * np.array(sizes)
        for capital in capitals(flips, np.zeros(1), 0.05):
            assert fmean(capital[:, 0].tolist()) == pytest.approx(1.0, abs=1e-12)

    def test_thousands_of_tasks_stay_finite(self) -> None:
        """F51: 1.75 to the 2,000 is no float; the capital is capped and p is no zero."""
        last = looks([1.0] * 2_000, 0.05)[-1]
        assert 1e299 < last.evidence < float("inf")
        assert anytime_p([last.evidence]) > 0

    def test_capital_never_falls_to_nothing(self) -> None:
        """Stakes stay under what the worst difference could take."""
        for capital in capitals(np.array([[1.0, -1.0] * 20, [-1.0] * 40]), np.array([-1.0, 0.0, 1.0]), 0.05):
            assert (capital > 0).all()


class TestLooks:
    def test_sequence_only_narrows(self) -> None:
        """Once left out, a supposed effect stays out."""
        random = np.random.default_rng(4)
        found = looks((random.random(60) - 0.2).clip(-1, 1).tolist(), 0.05)
        ends = [look.interval for look in found if look.interval is not None]
        assert all(a.low <= b.low and b.high <= a.high for a, b in itertools.pairwise(ends))

    def test_p_is_the_best_look_so_far(self) -> None:
        """S49: evidence that sank again does not unsay what was reached."""
        assert anytime_p([1.0, 50.0, 0.1]) == 1 / 50
        assert anytime_p([0.5]) == 1.0
        assert anytime_p([]) == 1.0

    @pytest.mark.parametrize("values", [[1.5], [float("nan")]])
    def test_beyond_the_scale_is_refused(self, values: list[float]) -> None:
        with pytest.raises(ValueError, match="from -1 to 1"):
            looks(values, 0.05)
