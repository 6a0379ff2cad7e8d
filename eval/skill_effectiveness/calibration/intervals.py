"""Uncertainty of a reviewer's figures: Wilson and BCa intervals (calibration.md, section 8).

Wilson serves shares, the bootstrap agreement. Both treat the cases of a bank as the sample. Runs are repeated
looks at the same cases and enter through the means per case, so asking a reviewer more often never makes an
interval narrower.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.figures import Estimate, Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Tallies = NDArray[np.int64]
    Statistic = Callable[[Tallies], NDArray[np.float64]]

CONFIDENCE: Final = 0.95
DRAWS: Final = 2000

_STANDARD_NORMAL: Final = NormalDist()
_BLOCK_CASES: Final = 2_000_000


def wilson(successes: float | Fraction, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Score interval of a share (Wilson 1927), ends within 0..1.

    Args:
        successes: how many of n succeeded; a real number, because a case counts with the mean of its runs.
        n: number of cases, at least 1.
        confidence: coverage, strictly between 0 and 1.

    Raises:
        ValueError: n below 1, successes outside 0..n, confidence outside (0, 1).
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError("a share needs at least one case, and between none and all of them succeeding")
    z = _quantile(confidence)
    share = float(Fraction(successes) / n)
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    # With none or all succeeding one end is exactly 0 or 1; rounding must not move it past that.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low=low, high=high)


def share_of_cases(successes: float | Fraction, n: int) -> Estimate | None:
    """A share of n cases with its Wilson interval, arguments as for `wilson`; None without cases."""
    if n == 0:
        return None
    return Estimate(value=float(Fraction(successes) / n), interval=wilson(successes, n))


def bca(
    values: Sequence[int],
    statistic: Statistic,
    seed: int,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Bias-corrected and accelerated bootstrap interval over cases (Efron 1987).

    A case is given by its kind only, and the statistic sees how often each kind occurs, never where, so that
    the interval does not depend on the order of the cases. Cases are drawn from the raw stream of numpy's
    PCG64 under `seed`. numpy keeps that stream stable across versions (NEP 19), which it does not promise for
    its distributions: the same seed gives the same draws wherever this runs.

    Args:
        values: kind of each case, an integer from 0; at least one case.
        statistic: from tallies of shape (m, kinds) to m finite numbers. Each row sums to the number of cases,
            or to one less when a case is left out.
        seed: not negative.
        draws: number of resamples, at least 1.
        confidence: coverage, strictly between 0 and 1.

    Returns:
        The interval. When all cases are of one kind no resample can differ, and both ends are the point
        estimate.

    Raises:
        ValueError: no cases, a negative kind or seed, no draws, confidence outside (0, 1), or a statistic
            that is not finite.
    """
    import numpy as np  # noqa: PLC0415 - one family alone needs no bootstrap and no numpy

    if not values or min(values) < 0 or draws < 1 or seed < 0:
        raise ValueError("a bootstrap needs cases of kinds from 0, at least one draw and a seed from 0")
    z = _quantile(confidence)
    counts = np.bincount(np.asarray(values, dtype=np.int64)).astype(np.int64)
    point = float(_finite(statistic(counts[np.newaxis, :]))[0])
    if np.count_nonzero(counts) == 1:
        return Interval(low=point, high=point)
    resampled = _finite(np.concatenate([statistic(block) for block in _resamples(counts, seed, draws)]))
    shift = _bias(resampled, point)
    acceleration = _acceleration(counts, statistic)
    low, high = np.quantile(resampled, [_level(shift, acceleration, tail) for tail in (-z, z)])
    return Interval(low=float(low), high=float(high))


def _quantile(confidence: float) -> float:
    """Standard normal quantile with half of what the coverage leaves out above it."""
    if not 0 < confidence < 1:
        raise ValueError("confidence lies strictly between 0 and 1")
    return _STANDARD_NORMAL.inv_cdf(0.5 + confidence / 2)


def _resamples(counts: Tallies, seed: int, draws: int) -> list[Tallies]:
    """Tallies of resamples with replacement, made in blocks so that memory stays within bounds."""
    import numpy as np  # noqa: PLC0415 - as in bca

    source = np.random.PCG64(seed)
    n, kinds = int(counts.sum()), len(counts)
    kind_of = np.repeat(np.arange(kinds, dtype=np.int64), counts)
    rows = max(1, _BLOCK_CASES // n)
    blocks: list[Tallies] = []
    for first in range(0, draws, rows):
        height = min(rows, draws - first)
        # The upper half of a raw word, scaled to 0..n-1: a fixed rule, uneven by less than n in 2^32.
        scaled = (np.asarray(source.random_raw(height * n)) >> np.uint64(32)) * np.uint64(n)
        cells = kind_of[(scaled >> np.uint64(32)).astype(np.int64)].reshape(height, n)
        cells += np.arange(height, dtype=np.int64)[:, np.newaxis] * kinds
        tally = np.bincount(cells.ravel(), minlength=height * kinds)
        blocks.append(tally.reshape(height, kinds).astype(np.int64))
    return blocks


def _bias(resampled: NDArray[np.float64], point: float) -> float:
    """Normal quantile of the share of resamples below the point estimate, equal ones counting half."""
    below = int((resampled < point).sum()) + int((resampled <= point).sum())
    # A point outside all resamples has an infinite quantile; half a draw is the finest these draws can tell.
    least = 0.5 / len(resampled)
    return _STANDARD_NORMAL.inv_cdf(min(max(below / (2 * len(resampled)), least), 1 - least))


def _acceleration(counts: Tallies, statistic: Statistic) -> float:
    """A sixth of the skewness of the jackknife; leaving out a case is done once per kind and weighted."""
    import numpy as np  # noqa: PLC0415 - as in bca

    present = np.flatnonzero(counts)
    without = np.tile(counts, (len(present), 1))
    without[np.arange(len(present)), present] -= 1
    left_out = _finite(statistic(without))
    weights = counts[present]
    distance = np.average(left_out, weights=weights) - left_out
    squares = float((weights * distance**2).sum())
    # Values that differ by rounding alone have no skewness to speak of.
    if float(np.ptp(left_out)) <= 16 * float(np.finfo(np.float64).eps) * float(np.abs(left_out).max()):
        return 0.0
    cubes = float((weights * distance**3).sum())
    return cubes / (6 * math.pow(squares, 1.5))


def _level(shift: float, acceleration: float, tail: float) -> float:
    """Level at which the resampled distribution is read for the normal quantile `tail`."""
    moved = shift + tail
    scale = 1 - acceleration * moved
    if scale <= 0:
        return 0.0 if tail < 0 else 1.0
    return _STANDARD_NORMAL.cdf(shift + moved / scale)


def _finite(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np  # noqa: PLC0415 - as in bca

    if not np.isfinite(numbers).all():
        raise ValueError("the statistic must be a finite number for every resample")
    return numbers
