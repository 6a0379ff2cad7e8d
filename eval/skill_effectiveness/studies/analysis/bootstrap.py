"""The bias-corrected and accelerated interval of a mean over tasks (Efron 1987; studies.md section 6).

It serves from 30 tasks on. Resamples draw tasks, never repeats, because the tasks are the sample. The
distance of both ends from the mean is stretched by sqrt(m / (m - 1)), which makes up for the bootstrap's
variance being that of the population (Hesterberg 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr, ndtri

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.decimals import TOLERANCE, checked_alpha
from skill_effectiveness.studies.analysis.sign_flips import checked_differences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from skill_effectiveness.studies.chance import Chance

DRAWS: Final = 10_000
_BLOCK: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Resamples:
    """The resamples of one comparison; those of the differences asked for last are kept.

    Args:
        chance: the draws of the plan.
        use: names the comparison, for example `bca/full-off`.
    """

    chance: Chance
    use: str
    _means: dict[bytes, NDArray[np.float64]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _indexes: dict[int, NDArray[np.int32]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def interval(self, differences: Sequence[float], alpha: float) -> Interval:
        """The interval of level 1 - alpha.

        Args:
            differences: one per task, in the order of the task ids; at least two.
            alpha: error rate in (0, 1).

        Returns:
            The interval, within -1 to 1; the point itself when all differences are equal, since then no
            resample can differ.

        Raises:
            ValueError: fewer than two differences, one that is not finite or beyond -1 to 1, or an alpha
                outside (0, 1).
        """
        values = checked_differences(differences)
        tail = float(checked_alpha(alpha) / 2)
        m = len(values)
        if m < 2 or float(np.abs(values).max()) > 1:  # noqa: PLR2004 - a deviation needs two
            raise ValueError("a bootstrap over tasks needs at least two differences from -1 to 1")
        point = float(values.mean())
        if float(np.ptp(values)) <= TOLERANCE:
            return Interval(low=point, high=point)
        means = self._resampled_means(values)
        below = np.count_nonzero(means < point - TOLERANCE)
        tied = np.count_nonzero(np.abs(means - point) <= TOLERANCE)
        shift = float(ndtri((below + tied / 2) / DRAWS))
        acceleration = _acceleration(values)
        ends = np.quantile(means, [_level(shift, acceleration, float(ndtri(p))) for p in (tail, 1 - tail)])
        stretch = math.sqrt(m / (m - 1))
        low, high = (point + (float(end) - point) * stretch for end in ends)
        return Interval(low=max(low, -1.0), high=min(high, 1.0))

    def _resampled_means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        key = values.tobytes()
        if key not in self._means:
            self._means.clear()
            indexes = self._drawn_indexes(len(values))
            rows = max(1, _BLOCK // len(values))
            blocks = [values[indexes[start : start + rows]].mean(axis=1) for start in range(0, DRAWS, rows)]
            self._means[key] = np.concatenate(blocks)
        return self._means[key]

    def _drawn_indexes(self, m: int) -> NDArray[np.int32]:
        if m not in self._indexes:
            self._indexes.clear()
            self._indexes[m] = self.chance.indexes(self.use, DRAWS, m)
        return self._indexes[m]


def bca_interval(chance: Chance, use: str, differences: Sequence[float], alpha: float) -> Interval:
    """One interval, as `Resamples.interval`."""
    return Resamples(chance, use).interval(differences, alpha)


def _acceleration(values: NDArray[np.float64]) -> float:
    """Skewness of the jackknife means over 6 (Efron 1987, equation 6.6)."""
    left_out = (values.sum() - values) / (len(values) - 1)
    centred = left_out.mean() - left_out
    spread = float((centred**2).sum()) ** 1.5
    return float((centred**3).sum()) / (6 * spread) if spread else 0.0


def _level(shift: float, acceleration: float, z: float) -> float:
    moved = shift + z
    return float(ndtr(shift + moved / (1 - acceleration * moved)))
