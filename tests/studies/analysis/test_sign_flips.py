"""The sign-flip test and the interval it inverts to."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.studies.analysis.sign_flips import DRAWS, Flips
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.words import Sides

FLIPS = Flips(Chance(bytes(32)), "flip/full-off")
EIGHT = [Fraction(k, 3) for k in (1, 0, 2, 1, -1, 3, 1, 1)]
TEN = [Fraction(k, 3) for k in (3, 1, 2, 0, 1, -1, 2, 1, 1, 2)]
SIX = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]

thirds = st.lists(st.integers(-3, 3).map(lambda k: k / 3), min_size=1, max_size=10)


def floats(values: list[Fraction]) -> list[float]:
    return [float(value) for value in values]


class TestKnownAnswers:
    def test_eight_tasks(self) -> None:
        """S42: 24 of 256 flips, the interval from 0 to two thirds, one-sided half of it."""
        values = floats(EIGHT)
        assert FLIPS.p_value(values, Sides.TWO) == 24 / 256
        assert FLIPS.p_value(values, Sides.GREATER) == 12 / 256
        wide, narrow = FLIPS.interval_or_range(values, 0.05), FLIPS.interval_or_range(values, 0.1)
        assert (wide.low, wide.high) == (0.0, pytest.approx(2 / 3, abs=1e-12))
        assert (round(narrow.low, 4), round(narrow.high, 4)) == (0.0833, 0.5833)

    def test_ten_tasks(self) -> None:
        """S42: 24 of 1,024 flips."""
        values = floats(TEN)
        assert FLIPS.p_value(values, Sides.TWO) == 24 / 1024
        found = FLIPS.interval_or_range(values, 0.05)
        assert (round(found.low, 4), round(found.high, 4)) == (0.1111, 0.6667)

    def test_six_tasks_just_reach_and_five_cannot(self) -> None:
        """S42: 2 of 64 flips is the least p of six tasks; five leave the whole range."""
        found = FLIPS.interval_or_range(SIX, 0.05)
        assert FLIPS.p_value(SIX, Sides.TWO) == 2 / 64
        assert (round(found.low, 12), round(found.high, 12)) == (0.1, 0.6)
        for five in itertools.combinations(SIX, 5):
            assert FLIPS.p_value(five, Sides.TWO) >= 2 / 32
            assert FLIPS.interval(five, 0.05) is None
            assert FLIPS.interval_or_range(five, 0.05).low == -1
            assert FLIPS.interval_or_range(five, 0.05).high == 1


class TestAgainstOthers:
    @pytest.mark.parametrize("sides", list(Sides))
    def test_p_equals_an_exact_permutation_test(self, sides: Sides) -> None:
        """S43: scipy's exact test of paired samples, on random differences."""
        random = np.random.default_rng(7)
        for _ in range(40):
            values = np.round(random.normal(0.2, 0.5, random.integers(2, 12)), 3).clip(-1, 1)
            there = scipy.stats.permutation_test(
                (values,),
                np.sum,
                permutation_type="samples",
                n_resamples=np.inf,
                alternative="two-sided" if sides is Sides.TWO else "greater",
            )
            # scipy doubles the smaller tail; for a symmetric distribution both are the same.
            assert FLIPS.p_value(values.tolist(), sides) == pytest.approx(there.pvalue, abs=1e-9)

    @given(thirds, st.sampled_from([0.05, 0.1, 0.2, 0.01]))
    def test_the_interval_is_what_the_test_keeps(self, values: list[float], alpha: float) -> None:
        """S44: brute inversion over a grid that holds every mean of thirds or lies near it."""
        found = FLIPS.interval_or_range(values, alpha)
        for effect in (k / 120 for k in range(-120, 121)):
            kept = FLIPS.p_value([value - effect for value in values], Sides.TWO) > alpha + 1e-9
            if kept:
                assert found.low - 1e-9 <= effect <= found.high + 1e-9
            elif FLIPS.interval(values, alpha) is not None:
                assert not found.low + 1e-9 < effect < found.high - 1e-9

    @given(thirds, st.sampled_from([0.05, 0.1, 0.2, 0.25]))
    def test_zero_is_inside_exactly_when_p_exceeds_alpha(self, values: list[float], alpha: float) -> None:
        """S44: the word of the interval and the word of the test agree."""
        found = FLIPS.interval_or_range(values, alpha)
        p = FLIPS.p_value(values, Sides.TWO)
        assert (found.low <= 0 <= found.high) is (p > alpha + 1e-12)


class TestDrawn:
    def test_more_than_twenty_tasks_count_the_observed_flip_among_the_drawn(self) -> None:
        """No draw reaches the sum of 40 equal differences but by a chance of 2**-39."""
        assert FLIPS.p_value([0.5] * 40, Sides.TWO) == 1 / (DRAWS + 1)

    def test_close_to_the_exact_share(self) -> None:
        """24 tasks: the exact share from counting sums of thirds, within four Monte Carlo errors."""
        steps = [1, 0, 2, 1, -1, 3, 1, 1, 0, -2, 1, 1] * 2
        exact = exact_share(steps)
        drawn = FLIPS.p_value([step / 3 for step in steps], Sides.TWO)
        assert abs(drawn - exact) < 4 * (exact * (1 - exact) / DRAWS) ** 0.5

    def test_interval_agrees_with_the_test(self) -> None:
        """S44: above 20 tasks too, since both use the same flips."""
        random = np.random.default_rng(3)
        for _ in range(10):
            values = (random.integers(-2, 4, 25) / 3).tolist()
            found = FLIPS.interval_or_range(values, 0.05)
            assert (found.low <= 0 <= found.high) is (FLIPS.p_value(values, Sides.TWO) > 0.05)

    def test_signs_are_those_of_the_rule(self) -> None:
        """S54: the share counted from the plain signs, without packing or keeping."""
        random = np.random.default_rng(8)
        values = (random.integers(-2, 4, 23) / 3).tolist()
        sums = Chance(bytes(32)).signs("flip/full-off", DRAWS, 23).astype(np.float64) @ np.array(values)
        for sides, far in ((Sides.TWO, np.abs(sums)), (Sides.GREATER, sums)):
            hits = int(np.count_nonzero(far >= abs(sum(values)) - 1e-12))
            for _ in range(2):
                assert FLIPS.p_value(values, sides) == (1 + hits) / (DRAWS + 1)

    def test_interval_by_brute_inversion(self) -> None:
        """S44: 22 tasks: just inside each end the test keeps the effect, just outside it does not."""
        random = np.random.default_rng(4)
        values = (random.integers(-2, 4, 22) / 3 + random.normal(0, 0.01, 22)).clip(-1, 1)
        found = FLIPS.interval_or_range(values.tolist(), 0.05)
        for end, out in ((found.low, -1e-7), (found.high, 1e-7)):
            assert FLIPS.p_value((values - end - out).tolist(), Sides.TWO) <= 0.05
            assert FLIPS.p_value((values - end + out).tolist(), Sides.TWO) > 0.05

    def test_kept_draws_are_bounded(self) -> None:
        """Signs of the last four numbers of tasks, a bit each."""
        flips = Flips(Chance(bytes(32)), "flip/full-off")
        for tasks in range(21, 30):
            flips.p_value([0.5] * tasks, Sides.TWO)
        assert len(flips._drawn) == 4
        assert sum(held.nbytes for held in flips._drawn.values()) == 4 * 4 * DRAWS


class TestRefused:
    @pytest.mark.parametrize("values", [[], [float("nan")], [float("inf"), 0.1]])
    def test_values(self, values: list[float]) -> None:
        """F51: empty or not finite is a typed error and no p-value."""
        with pytest.raises(ValueError, match="finite"):
            FLIPS.p_value(values, Sides.TWO)

    @pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
    def test_alpha(self, alpha: float) -> None:
        """F51: an error rate of 0 would reject nothing and keep everything silently."""
        with pytest.raises(ValueError, match="strictly between"):
            FLIPS.interval(SIX, alpha)


def exact_share(steps: list[int]) -> float:
    counts = {0: 1}
    for step in steps:
        after: dict[int, int] = {}
        for total, count in counts.items():
            for moved in (total + step, total - step):
                after[moved] = after.get(moved, 0) + count
        counts = after
    reach = abs(sum(steps))
    return sum(count for total, count in counts.items() if abs(total) >= reach) / 2 ** len(steps)
