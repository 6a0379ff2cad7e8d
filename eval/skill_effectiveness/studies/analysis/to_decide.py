"""How many tasks would decide a question that stayed open (studies.md section 6)."""

from __future__ import annotations

import math
from statistics import NormalDist, stdev
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies.analysis.decimals import TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.calibration.figures import Interval

_POWER: Final = 0.8416
"""The 0.8 quantile of the standard normal distribution, as the rule has it."""


def tasks_to_decide(
    differences: Sequence[float], interval: Interval | None, alpha: float, minimum_effect: float
) -> int:
    """The least number of tasks with which a study like this would have decided, always more than it had.

    ceil(m (h (z + 0.8416) / (z max(|D|, delta)))**2), with h half the interval. It holds effect and spread
    as observed, so it is a size to plan with, not a promise.

    Args:
        differences: one per task; not empty.
        interval: of level 1 - alpha; None where there were too few tasks for one: then h = z s / sqrt(m).
        alpha: error rate in (0, 1).
        minimum_effect: delta, above 0.

    Raises:
        ValueError: no difference, or a minimum effect that is not above 0.
    """
    if not differences or not minimum_effect > 0:
        raise ValueError("a size needs a difference and a least effect above 0")
    m, z = len(differences), NormalDist().inv_cdf(1 - alpha / 2)
    if interval is not None:
        half = (interval.high - interval.low) / 2
    elif m > 1:
        half = z * stdev(differences) / math.sqrt(m)
    else:
        half = 0.0
    effect = max(abs(sum(differences) / m), minimum_effect)
    size = m * (half * (z + _POWER) / (z * effect)) ** 2
    return max(m + 1, math.ceil(size - TOLERANCE))
