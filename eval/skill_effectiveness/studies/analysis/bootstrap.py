"""The bias-corrected and accelerated interval of a mean over tasks (Efron 1987; studies.md section 6).

It serves from 30 tasks on. Resamples draw tasks, never repeats, because the tasks are the sample. The
distance of both ends from the mean is stretched by sqrt(m / (m - 1)), which makes up for the bootstrap's
variance being that of the population (Hesterberg 2015).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr, ndtri

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.decimals import checked_alpha
from skill_effectiveness.studies.analysis.sign_flips import checked_differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from skill_effectiveness.studies.chance import Chance

DRAWS: Final = 10_000
_BLOCK: Final = 4_000_000


def bca_interval(chance: Chance, use: str, differences: Sequence[float], alpha: float) -> Interval:
    """The interval of level 1 - alpha.

    Args:
        chance: the draws of the plan.
        use: names the comparison, for example `bca/full-off`.
        differences: one per task, in the order of the task ids; at least two.
        alpha: error rate in (0, 1).

    Returns:
        The interval; the point itself when all differences are equal, since then no resample can differ.

    Raises:
        ValueError: fewer than two differences, one that is not finite, or an alpha outside (0, 1).
    """
    values = checked_differences(differences)
    tail = float(checked_alpha(alpha) / 2)
    m = len(values)
    if m < 2:  # noqa: PLR2004 - a deviation needs two
        raise ValueError("a bootstrap over tasks needs at least two")
    point = float(values.mean())
    if np.all(values == values[0]):
        return Interval(low=point, high=point)
    means = _resampled_means(chance, use, values)
    shift = float(ndtri((np.count_nonzero(means < point) + np.count_nonzero(means == point) / 2) / DRAWS))
    acceleration = _acceleration(values)
    ends = np.quantile(means, [_level(shift, acceleration, float(ndtri(p))) for p in (tail, 1 - tail)])
    stretch = math.sqrt(m / (m - 1))
    low, high = (point + (float(end) - point) * stretch for end in ends)
    return Interval(low=low, high=high)


def _resampled_means(chance: Chance, use: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    indexes = chance.indexes(use, DRAWS, len(values))
    rows = max(1, _BLOCK // len(values))
    blocks = [values[indexes[start : start + rows]].mean(axis=1) for start in range(0, DRAWS, rows)]
    return np.concatenate(blocks)


def _acceleration(values: NDArray[np.float64]) -> float:
    """Skewness of the jackknife means over 6 (Efron 1987, equation 6.6)."""
    left_out = (values.sum() - values) / (len(values) - 1)
    centred = left_out.mean() - left_out
    spread = float((centred**2).sum()) ** 1.5
    return float((centred**3).sum()) / (6 * spread) if spread else 0.0


def _level(shift: float, acceleration: float, z: float) -> float:
    moved = shift + z
    return float(ndtr(shift + moved / (1 - acceleration * moved)))
