"""The bias-corrected and accelerated interval over tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from skill_effectiveness.studies.analysis.bootstrap import bca_interval
from skill_effectiveness.studies.chance import Chance

CHANCE = Chance(bytes(range(32)))


def unstretched(values: list[float], alpha: float = 0.05) -> tuple[float, float]:
    found, m = bca_interval(CHANCE, "bca/full-off", values, alpha), len(values)
    point, stretch = sum(values) / m, math.sqrt(m / (m - 1))
    return tuple(point + (end - point) / stretch for end in (found.low, found.high))  # type: ignore[return-value]


class OurDraws(np.random.Generator):
    """Hands a library the indexes of the plan instead of its own."""

    def __init__(self, use: str) -> None:
        super().__init__(np.random.PCG64(1))
        self.use = use

    def integers(self, _low: object, high: object = None, size: object = None, **_: object) -> object:  # type: ignore[override]
        draws, m = size  # type: ignore[misc]
        assert high == m
        return CHANCE.indexes(self.use, draws, m)


@pytest.mark.parametrize("tasks", [30, 45, 90])
@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_equal_to_another_implementation_on_the_same_draws(tasks: int, alpha: float) -> None:
    """S43 S54: scipy's BCa of the mean over our resamples, to 1e-9, on random input."""
    random = np.random.default_rng(tasks)
    values = np.clip(random.gamma(1.0, 0.2, tasks) - 0.1, -0.8, 0.8)
    there = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, confidence_level=1 - alpha, rng=OurDraws("bca/full-off")
    ).confidence_interval
    low, high = unstretched(values.tolist(), alpha)
    assert (low, high) == pytest.approx((there.low, there.high), abs=1e-9)


def test_ties_with_the_mean_count_half_whatever_the_order_of_summation() -> None:
    """Thirds: many resamples have the observed mean but for the last bit; a mirror image mirrors the ends."""
    values = [k / 3 for k in (1, -1, 0, 2, -2, 0, 1, -1, 3, -3) * 3]
    found = bca_interval(CHANCE, "bca/full-off", values, 0.05)
    mirrored = bca_interval(CHANCE, "bca/full-off", [-value for value in values], 0.05)
    assert (found.low, found.high) == pytest.approx((-mirrored.high, -mirrored.low), abs=1e-12)


def test_differences_equal_but_for_rounding_leave_one_point() -> None:
    values = [1 / 3, 2 / 3 - 1 / 3, 1 - 2 / 3] * 10
    found = bca_interval(CHANCE, "bca/full-off", values, 0.05)
    assert found.low == found.high == pytest.approx(1 / 3)


@pytest.mark.parametrize("tasks", [30, 60, 200])
def test_close_to_an_independent_bootstrap(tasks: int) -> None:
    """S43: scipy's BCa interval of the mean, whose draws differ, within Monte Carlo error of its ends."""
    random = np.random.default_rng(tasks)
    values = np.clip(random.gamma(1.0, 0.3, tasks) - 0.1, -1, 1)
    there = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, rng=np.random.default_rng(1)
    ).confidence_interval
    spread = float(values.std()) / math.sqrt(tasks)
    low, high = unstretched(values.tolist())
    assert low == pytest.approx(there.low, abs=0.1 * spread)
    assert high == pytest.approx(there.high, abs=0.1 * spread)


def test_equal_differences_leave_one_point() -> None:
    """No resample can differ."""
    found = bca_interval(CHANCE, "bca/full-off", [0.25] * 30, 0.05)
    assert (found.low, found.high) == (0.25, 0.25)


def test_repeats_of_the_draws_change_nothing_and_another_use_does() -> None:
    """S54: equal seed and use, equal ends."""
    values = [((7 * k) % 11) / 11 for k in range(30)]
    first = bca_interval(CHANCE, "bca/full-off", values, 0.05)
    assert bca_interval(CHANCE, "bca/full-off", values, 0.05) == first
    assert bca_interval(CHANCE, "bca/reference-off", values, 0.05) != first


@pytest.mark.parametrize("values", [[], [0.1], [0.1, float("nan")], [0.1, 1.5]])
def test_refused(values: list[float]) -> None:
    """F51: too few or not finite."""
    with pytest.raises(ValueError, match="least"):
        bca_interval(CHANCE, "bca/full-off", values, 0.05)
