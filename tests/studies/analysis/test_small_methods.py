"""McNemar, Holm, Wilson over task means, misclassification, blinding index, sizes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.blinding_index import (
    Blinding,
    BlindingIndex,
    Guess,
    blinding_index,
    judge_blinding,
)
from skill_effectiveness.studies.analysis.holm import holm
from skill_effectiveness.studies.analysis.misclassification import (
    KnownAccuracy,
    corrected_net,
    corrected_share,
)
from skill_effectiveness.studies.analysis.paired_counts import mcnemar_exact
from skill_effectiveness.studies.analysis.rates import rate
from skill_effectiveness.studies.analysis.to_decide import tasks_to_decide

LICENSED = KnownAccuracy(sensitivity=0.9, sensitivity_cases=20, specificity=0.8, specificity_cases=40)


class TestMcNemar:
    @pytest.mark.parametrize(
        ("b", "c", "p"), [(5, 0, 0.0625), (6, 0, 0.03125), (9, 1, 22 / 1024), (0, 0, 1.0), (3, 3, 1.0)]
    )
    def test_known_answers(self, b: int, c: int, p: float) -> None:
        """S42: small counts by hand: 2 (1 + 10) / 1,024 for 9 to 1."""
        assert mcnemar_exact(b, c) == pytest.approx(p, abs=1e-15)

    def test_thousands_of_pairs(self) -> None:
        """S42 S47 F51: no overflow past 1,000 discordant pairs; scipy's exact binomial test agrees."""
        assert f"{mcnemar_exact(1200, 1000):.3e}" == "2.182e-05"
        there = scipy.stats.binomtest(9000, 19000, 0.5).pvalue
        assert mcnemar_exact(10_000, 9_000) == pytest.approx(there, rel=1e-6)
        assert mcnemar_exact(10_000, 9_000) > 0

    def test_against_statsmodels(self) -> None:
        """S43: random tables."""
        random = np.random.default_rng(5)
        for b, c in random.integers(0, 60, (50, 2)).tolist():
            there = mcnemar([[10, b], [c, 10]], exact=True).pvalue if b + c else 1.0
            assert mcnemar_exact(b, c) == pytest.approx(there, abs=1e-9)

    def test_negative_counts_are_refused(self) -> None:
        with pytest.raises(ValueError, match="start at 0"):
            mcnemar_exact(-1, 3)


class TestHolm:
    def test_known_answer(self) -> None:
        """S42: 4 x .005, 3 x .01, 2 x .03, and the running maximum for .04."""
        assert holm((0.01, 0.04, 0.03, 0.005)) == pytest.approx((0.03, 0.06, 0.06, 0.02), abs=1e-15)

    def test_against_statsmodels(self) -> None:
        """S43: random values."""
        random = np.random.default_rng(2)
        for size in range(1, 12):
            values = random.random(size)
            assert holm(values.tolist()) == pytest.approx(multipletests(values, method="holm")[1], abs=1e-9)

    def test_none_is_none(self) -> None:
        assert holm(()) == ()

    def test_beyond_one_is_refused(self) -> None:
        with pytest.raises(ValueError, match="from 0 to 1"):
            holm((0.1, 1.1))


class TestRate:
    @pytest.mark.parametrize(
        ("means", "low", "high"),
        [([1.0] * 3, 0.4385, 1.0), ([0.0] * 3, 0.0, 0.5615), ([1.0] * 7 + [0.0] * 5, 0.3195, 0.8067)],
    )
    def test_known_answers(self, means: list[float], low: float, high: float) -> None:
        """S42: Wilson ends."""
        found = rate(means)
        assert found is not None
        assert (round(found.interval.low, 4), round(found.interval.high, 4)) == (low, high)

    def test_against_statsmodels(self) -> None:
        """S43: random means, fractional successes among them."""
        random = np.random.default_rng(12)
        for tasks in range(1, 40):
            means = random.integers(0, 4, tasks) / 3
            found = rate(means.tolist())
            assert found is not None
            there = proportion_confint(float(means.sum()), tasks, method="wilson")
            assert (found.interval.low, found.interval.high) == pytest.approx(there, abs=1e-9)

    def test_no_task_has_no_rate(self) -> None:
        assert rate([]) is None

    def test_an_impossible_mean_is_refused(self) -> None:
        with pytest.raises(ValueError, match="from 0 to 1"):
            rate([1.5])


class TestMisclassification:
    def test_known_answer(self) -> None:
        """S42: p .6 of 50 binary tasks, so V = .24 / 50."""
        found = corrected_share(0.6, 0.24 / 50, LICENSED)
        assert found is not None
        assert round(found.value, 4) == 0.5714
        assert round(found.standard_error, 4) == 0.1196
        assert (round(found.interval.low, 4), round(found.interval.high, 4)) == (0.3371, 0.8058)

    def test_a_net_share_is_divided_by_youden(self) -> None:
        """.35 / .7; by hand: V = .01, J's variance .004 + .0045, so (.01 + .25 x .0085) / .49."""
        found = corrected_net(0.35, 0.01, LICENSED)
        assert found is not None
        assert found.value == pytest.approx(0.5)
        assert found.standard_error == pytest.approx((0.012125 / 0.49) ** 0.5)

    def test_a_coin_is_not_corrected_for(self) -> None:
        """S48: Wilson lows of .55 and .55 with 20 cases each sum to under 1."""
        coin = KnownAccuracy(0.55, 20, 0.55, 20)
        assert not coin.identifiable
        assert corrected_share(0.6, 0.001, coin) is None
        assert corrected_net(0.2, 0.001, coin) is None

    @pytest.mark.parametrize(("share", "variance"), [(1.2, 0.1), (0.5, -0.1), (0.5, float("nan"))])
    def test_impossible_shares_are_refused(self, share: float, variance: float) -> None:
        with pytest.raises(ValueError, match="not negative"):
            corrected_share(share, variance, LICENSED)

    @pytest.mark.parametrize("wrong", [(1.2, 20, 0.8, 40), (0.9, 0, 0.8, 40)])
    def test_impossible_licences_are_refused(self, wrong: tuple[float, int, float, int]) -> None:
        with pytest.raises(ValueError, match="sensitivity"):
            KnownAccuracy(*wrong)


class TestBlinding:
    def test_known_answer(self) -> None:
        """S42: 14 right, 6 wrong, 10 unsure, one guess per task."""
        said = [Guess.RIGHT] * 14 + [Guess.WRONG] * 6 + [Guess.UNSURE] * 10
        found = blinding_index({f"t{k}": [guess] for k, guess in enumerate(said)})
        assert found is not None
        assert round(found.value, 4) == 0.2667
        assert (round(found.interval.low, 4), round(found.interval.high, 4)) == (-0.0095, 0.5428)

    def test_guesses_of_one_task_count_as_one(self) -> None:
        """Repeats narrow nothing: the task is the sample."""
        found = blinding_index({"t1": [Guess.RIGHT] * 10, "t2": [Guess.WRONG]})
        assert found is not None
        assert (found.value, found.tasks) == (0.0, 2)

    def test_nothing_said_is_no_index(self) -> None:
        assert blinding_index({"t1": []}) is None

    @pytest.mark.parametrize(
        ("first", "second", "word"),
        [
            ((-0.1, 0.19), (-0.3, 0.1), Blinding.BLINDED),
            ((-0.1, 0.2), (-0.3, 0.1), Blinding.NOT_SHOWN),
            ((0.0, 0.4), (-0.3, 0.1), Blinding.NOT_SHOWN),
            ((0.01, 0.4), (-0.3, 0.1), Blinding.UNBLINDED),
            ((-0.1, 0.1), None, Blinding.NOT_SHOWN),
            (None, None, Blinding.NOT_SHOWN),
        ],
    )
    def test_words(
        self, first: tuple[float, float] | None, second: tuple[float, float] | None, word: Blinding
    ) -> None:
        """S52: each word at its boundary."""
        assert judge_blinding(index(first), index(second)) is word


class TestToDecide:
    def test_known_answer(self) -> None:
        """S42: eight tasks with D one third and half an interval of one third."""
        values = [k / 3 for k in (1, 0, 2, 1, -1, 3, 1, 1)]
        assert tasks_to_decide(values, Interval(low=0.0, high=2 / 3), 0.05, 0.05) == 17

    def test_always_more_than_there_were(self) -> None:
        """Six equal differences leave no width at all."""
        assert tasks_to_decide([1.0] * 6, Interval(low=1.0, high=1.0), 0.05, 0.05) == 7

    def test_too_few_tasks_for_an_interval(self) -> None:
        """h = z s / sqrt(m): 3 (s (z + .8416) / (sqrt(3) D))**2 with s = .1, D = .2 by hand is 1.96 -> 4."""
        assert tasks_to_decide([0.1, 0.2, 0.3], None, 0.05, 0.05) == 4

    def test_without_a_task_or_an_effect(self) -> None:
        with pytest.raises(ValueError, match="needs a difference"):
            tasks_to_decide([], None, 0.05, 0.05)


def index(ends: tuple[float, float] | None) -> BlindingIndex | None:
    return None if ends is None else BlindingIndex(sum(ends) / 2, Interval(low=ends[0], high=ends[1]), 10)
