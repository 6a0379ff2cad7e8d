"""Evidence that may be looked at after every task (studies.md section 6).

Two bettors, one on a positive and one on a negative effect, stake a share of their capital on each task's
difference; their mean capital E is a test martingale under the supposed effect (Waudby-Smith and Ramdas
2024, the plug-in bets of their section 4). By Ville's inequality it ever reaches 1 / alpha with probability
at most alpha, whenever one stops. Tasks enter in the order of their allocation, never in that of their
completion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.decimals import TOLERANCE, checked_alpha

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

GRID_STEPS: Final = 2000
"""Supposed effects from -1 to 1 in steps of 0.001."""

_BOLDEST: Final = 0.75

_RICHEST: Final = 1e300
"""Capital is counted no further, so that a thousand won tasks stay finite; less is safe."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is known after one task.

    Attributes:
        evidence: E(0).
        interval: the confidence sequence; None when no supposed effect is left, which at level 1 - alpha
            happens with probability at most alpha.
    """

    evidence: float
    interval: Interval | None


def looks(differences: Sequence[float], alpha: float) -> tuple[Look, ...]:
    """One look per task, in the order of allocation.

    Args:
        differences: each from -1 to 1.
        alpha: error rate in (0, 1).

    Raises:
        ValueError: a difference beyond -1 to 1 or not finite, or an alpha outside (0, 1).
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not (np.abs(values) <= 1).all():
        raise ValueError("differences of shares lie from -1 to 1")
    rate = float(checked_alpha(alpha))
    grid = np.arange(-GRID_STEPS // 2, GRID_STEPS // 2 + 1) / (GRID_STEPS // 2)
    zero = GRID_STEPS // 2
    kept = np.ones(len(grid), dtype=bool)
    found = []
    for capital in capitals(values[np.newaxis, :], grid, rate):
        kept &= capital[0] < 1 / rate - TOLERANCE
        left = grid[kept]
        interval = Interval(low=float(left[0]), high=float(left[-1])) if len(left) else None
        found.append(Look(evidence=float(capital[0, zero]), interval=interval))
    return tuple(found)


def anytime_p(evidence: Sequence[float]) -> float:
    """min(1, 1 / max E_t(0)) over all looks so far; 1 without a look."""
    return min(1.0, 1.0 / max(evidence)) if evidence and max(evidence) > 0 else 1.0


def stopped_at(seen: Sequence[Look], alpha: float, minimum_effect: float) -> int | None:
    """After how many tasks a study may stop: E(0) has reached 1 / alpha, or the sequence lies inside delta.

    Args:
        seen: all looks so far.
        alpha: error rate in (0, 1).
        minimum_effect: delta, above 0.

    Returns:
        The number of the first such look, from 1; None while there is none.
    """
    limit = 1 / float(checked_alpha(alpha))
    for number, look in enumerate(seen, start=1):
        if look.evidence >= limit - TOLERANCE or _inside(look.interval, minimum_effect):
            return number
    return None


def _inside(interval: Interval | None, limit: float) -> bool:
    return interval is not None and interval.low > -limit + TOLERANCE and interval.high < limit - TOLERANCE


def capitals(
    differences: NDArray[np.float64], supposed: NDArray[np.float64], alpha: float
) -> list[NDArray[np.float64]]:
    """E_t after each task, for many studies at once.

    Args:
        differences: shape (studies, tasks).
        supposed: supposed effects, shape (effects,).
        alpha: error rate.

    Returns:
        One array of shape (studies, effects) per task.
    """
    studies, tasks = differences.shape
    gain, loss = np.ones((studies, len(supposed))), np.ones((studies, len(supposed)))
    bold = _BOLDEST / (1 + np.abs(supposed))
    total, squares, variance = np.zeros(studies), np.ones(studies), np.ones(studies)
    found = []
    for i in range(1, tasks + 1):
        value = differences[:, i - 1]
        stake = np.sqrt(2 * math.log(2 / alpha) / (variance * i * math.log(i + 1)))
        stakes = np.minimum(stake[:, np.newaxis], bold[np.newaxis, :])
        off = value[:, np.newaxis] - supposed[np.newaxis, :]
        gain = np.minimum(gain * (1 + stakes * off), _RICHEST)
        loss = np.minimum(loss * (1 - stakes * off), _RICHEST)
        found.append(0.5 * gain + 0.5 * loss)
        # The stake on the next task knows this one only from here on, which keeps E a martingale.
        total += value
        squares += (value - total / (i + 1)) ** 2
        variance = squares / (i + 1)
    return found
