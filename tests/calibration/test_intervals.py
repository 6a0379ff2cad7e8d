from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.calibration.intervals import _resamples, bca, share_of_cases, wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray


def mean_of_kinds(tallies: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean of the kinds, taken as numbers."""
    kinds = np.arange(tallies.shape[1])
    return np.asarray((tallies @ kinds) / tallies.sum(axis=1), dtype=np.float64)


def variance_of_kinds(tallies: NDArray[np.int64]) -> NDArray[np.float64]:
    kinds = np.arange(tallies.shape[1])
    squares = (tallies @ kinds**2) / tallies.sum(axis=1)
    return np.asarray(squares - mean_of_kinds(tallies) ** 2, dtype=np.float64)


class Replay(np.random.Generator):
    """A generator whose only draw is the documented one: upper halves of PCG64 words, scaled to 0..high-1."""

    def integers(  # type: ignore[override]
        self, low: int, high: int, size: tuple[int, ...], **_: object
    ) -> NDArray[np.int64]:
        assert low == 0
        words = self.bit_generator.random_raw(int(np.prod(size)))
        return np.array([int(word >> 32) * high >> 32 for word in words.tolist()]).reshape(size)


class TestWilson:
    @pytest.mark.parametrize(
        ("right", "low", "high"), [(24, 0.8620, 1.0), (20, 0.6415, 0.9332), (19, 0.5953, 0.9076)]
    )
    def test_known_answers_over_24_cases(self, right: int, low: float, high: float) -> None:
        """R22: the three intervals of section 8; the upper end of 19 is from statsmodels."""
        interval = wilson(right, 24)
        assert interval.low == pytest.approx(low, abs=5e-5)
        assert interval.high == pytest.approx(high, abs=5e-5)

    @given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.floats(0, n), st.just(n))))
    def test_equals_statsmodels_for_real_successes(self, case: tuple[float, int]) -> None:
        successes, n = case
        low, high = proportion_confint(successes, n, method="wilson")
        interval = wilson(successes, n)
        assert interval.low == pytest.approx(low, abs=1e-12)
        assert interval.high == pytest.approx(high, abs=1e-12)

    @given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.floats(0, n), st.just(n))))
    def test_holds_the_share_and_stays_within_0_and_1(self, case: tuple[float, int]) -> None:
        successes, n = case
        interval = wilson(successes, n)
        assert 0 <= interval.low <= successes / n + 1e-12
        assert successes / n - 1e-12 <= interval.high <= 1

    def test_nothing_and_everything_end_exactly_at_0_and_1(self) -> None:
        assert all(wilson(0, n).low == 0 for n in range(1, 400))
        assert all(wilson(n, n).high == 1 for n in range(1, 400))

    def test_confidence_widens(self) -> None:
        low, high = proportion_confint(7, 24, alpha=0.01, method="wilson")
        interval = wilson(7, 24, confidence=0.99)
        assert interval.low == pytest.approx(low)
        assert interval.high == pytest.approx(high)

    @pytest.mark.parametrize(
        ("successes", "n", "confidence"),
        [(0, 0, 0.95), (-1, 3, 0.95), (4, 3, 0.95), (float("nan"), 3, 0.95), (1, 3, 0.0), (1, 3, 1.0)],
    )
    def test_nonsense_is_refused(self, successes: float, n: int, confidence: float) -> None:
        with pytest.raises(ValueError, match=r"cases?|confidence"):
            wilson(successes, n, confidence)

    def test_share_of_no_cases_is_unknown(self) -> None:
        assert share_of_cases(0, 0) is None

    def test_share_is_the_exact_quotient(self) -> None:
        estimate = share_of_cases(Fraction(1, 3), 3)
        assert estimate is not None
        assert estimate.value == 1 / 9


class TestBca:
    VALUES = (0,) * 9 + (1,) * 6 + (2,) * 5 + (5,) * 4

    @pytest.mark.parametrize("statistic", [mean_of_kinds, variance_of_kinds])
    @pytest.mark.parametrize("confidence", [0.95, 0.8])
    def test_equals_scipy_on_the_same_draws(self, statistic: Any, confidence: float) -> None:  # noqa: ANN401 - a callable
        plain = np.mean if statistic is mean_of_kinds else np.var
        expected = stats.bootstrap(
            (np.array(self.VALUES, dtype=float),),
            plain,
            confidence_level=confidence,
            n_resamples=2000,
            method="BCa",
            rng=Replay(np.random.PCG64(11)),
        ).confidence_interval
        interval = bca(self.VALUES, statistic, seed=11, confidence=confidence)
        assert interval.low == pytest.approx(expected.low, abs=1e-9)
        assert interval.high == pytest.approx(expected.high, abs=1e-9)

    def test_same_seed_same_interval_whatever_the_order_of_cases(self) -> None:
        shuffled = (*self.VALUES[12:], *self.VALUES[:12])
        assert bca(self.VALUES, mean_of_kinds, 3) == bca(shuffled, mean_of_kinds, 3)
        assert bca(self.VALUES, mean_of_kinds, 3) != bca(self.VALUES, mean_of_kinds, 4)

    def test_the_stream_is_the_one_numpy_keeps(self) -> None:
        """First words of numpy's own compatibility data, pcg64-testset-1.csv."""
        words = np.random.PCG64(0xDEADBEAF).random_raw(3)
        assert [int(word) for word in words] == [0x60D24054E17A0698, 0xD5E79D89856E4F12, 0xD254972FE64BD782]

    def test_blocks_do_not_change_the_draws(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = bca(self.VALUES, mean_of_kinds, 5)
        monkeypatch.setattr("skill_effectiveness.calibration.intervals._BLOCK_CASES", 100)
        assert bca(self.VALUES, mean_of_kinds, 5) == whole

    @pytest.mark.parametrize("values", [(0,), (3,), (2, 2, 2, 2)])
    def test_constant_data_give_the_point(self, values: tuple[int, ...]) -> None:
        point = float(values[0])
        assert bca(values, mean_of_kinds, 1) == Interval(low=point, high=point)

    def test_constant_statistic_gives_the_point(self) -> None:
        interval = bca((0, 1, 2), lambda tallies: np.full(len(tallies), 0.25), 1)
        assert interval == Interval(low=0.25, high=0.25)

    def test_a_point_outside_all_resamples_stays_finite(self) -> None:
        """Only a whole sample with all three kinds scores 1, as a resample of three cases mostly does not."""

        def all_three(tallies: NDArray[np.int64]) -> NDArray[np.float64]:
            return np.asarray((tallies > 0).sum(axis=1) + (tallies == 1).all(axis=1) * 10.0, dtype=np.float64)

        interval = bca((0, 1, 2), all_three, 2, draws=3)
        assert interval.low <= interval.high

    def test_a_strong_skew_reads_the_outermost_level(self) -> None:
        """Where the correction has no finite level, the end is that of the resamples themselves."""
        cases = (0,) * 23 + (40,)
        interval = bca(cases, mean_of_kinds, 1, draws=4000, confidence=1 - 1e-12)
        assert interval.low == 0
        assert interval.high == max(
            float(mean_of_kinds(block).max()) for block in _resamples(np.bincount(cases), 1, 4000)
        )

    @pytest.mark.parametrize(
        ("values", "seed", "draws", "confidence"),
        [
            ((), 1, 10, 0.9),
            ((-1, 0), 1, 10, 0.9),
            ((0, 1), -1, 10, 0.9),
            ((0, 1), 1, 0, 0.9),
            ((0, 1), 1, 10, 1.0),
        ],
    )
    def test_nonsense_is_refused(
        self, values: tuple[int, ...], seed: int, draws: int, confidence: float
    ) -> None:
        with pytest.raises(ValueError, match=r"bootstrap|confidence"):
            bca(values, mean_of_kinds, seed, draws, confidence)

    def test_a_statistic_that_is_no_number_is_refused(self) -> None:
        with pytest.raises(ValueError, match="finite"):
            bca((0, 1), lambda tallies: np.full(len(tallies), np.nan), 1)

    @given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(0, 2**63))
    def test_is_ordered_and_finite_for_any_cases(self, values: list[int], seed: int) -> None:
        interval = bca(values, mean_of_kinds, seed, draws=50)
        assert min(values) - 1e-9 <= interval.low <= interval.high <= max(values) + 1e-9


def test_shares_need_no_array_library() -> None:
    """Reading the pair of one family, as `finalize` does, loads neither numpy nor scipy."""
    program = (
        "import sys\n"
        "import skill_effectiveness.calibration.evaluation, skill_effectiveness.calibration.sheet\n"
        "from skill_effectiveness.calibration.intervals import wilson\n"
        "wilson(1, 2)\n"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'pandas')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # noqa: S603 - our own interpreter
