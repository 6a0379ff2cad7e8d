"""Evidence that may be looked at after every task."""

from __future__ import annotations

import itertools
from statistics import fmean

import numpy as np
import pytest

from skill_effectiveness.studies.analysis.evidence_sequence import anytime_p, capitals, looks


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


class TestMartingale:
    @pytest.mark.parametrize("sizes", [[0.5] * 10, [1.0, 0.2, 0.7, 0.0, 1.0, 0.3], [1.0]])
    def test_mean_capital_over_all_flips_is_one(self, sizes: list[float]) -> None:
        """S49: without an effect the capital neither grows nor shrinks on average, at any time."""
        flips = np.array(list(itertools.product((1, -1), repeat=len(sizes)))) * np.array(sizes)
        for capital in capitals(flips, np.zeros(1), 0.05):
            assert fmean(capital[:, 0].tolist()) == pytest.approx(1.0, abs=1e-12)

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
