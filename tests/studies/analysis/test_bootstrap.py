"""The bias-corrected and accelerated interval over tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from skill_effectiveness.studies.analysis.bootstrap import bca_interval
from skill_effectiveness.studies.chance import Chance

CHANCE = Chance(bytes(range(32)))


def unstretched(values: list[float]) -> tuple[float, float]:
    found, m = bca_interval(CHANCE, "bca/full-off", values, 0.05), len(values)
    point, stretch = sum(values) / m, math.sqrt(m / (m - 1))
    return tuple(point + (end - point) / stretch for end in (found.low, found.high))  # type: ignore[return-value]


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


@pytest.mark.parametrize("values", [[], [0.1], [0.1, float("nan")]])
def test_refused(values: list[float]) -> None:
    """F51: too few or not finite."""
    with pytest.raises(ValueError, match="least"):
        bca_interval(CHANCE, "bca/full-off", values, 0.05)
