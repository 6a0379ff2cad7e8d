"""The sign-flip test of paired differences and the interval it inverts to (studies.md section 6).

Without an effect each task's difference is as likely as its opposite, so the observed sum is compared with
the sums under all flips of signs (Fisher 1935; Pesarin 2001). Up to 20 tasks all 2**m flips are counted,
above that 99,999 drawn ones and the observed one.

A flip splits the tasks in two. For a supposed effect t the flipped sum of `d - t` is at least as far from 0
as the unflipped one exactly when t lies between the means of d in the two parts. Every split holds D
between its two means, so the supposed effects that the test keeps are those from the k-th smallest lower
mean to the k-th largest upper mean, k = floor(alpha * (B + 1)) of B splits: the inversion in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.decimals import TOLERANCE, checked_alpha
from skill_effectiveness.studies.words import Sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from skill_effectiveness.studies.chance import Chance

EXACT_TASKS: Final = 20
"""Up to this number of tasks every flip is counted."""

DRAWS: Final = 99_999
_HELD: Final = 4
_PATTERNS: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).astype(np.float64)
_WHOLE_RANGE: Final = Interval(low=-1.0, high=1.0)


@dataclass(frozen=True, slots=True)
class Flips:
    """The flips of one comparison.

    Drawn signs are kept, one bit each, for the numbers of tasks that were asked for last: p, both intervals
    and every step towards a tipping point use the same ones.

    Args:
        chance: the draws of the plan.
        use: names the comparison, for example `flip/full-off`.
    """

    chance: Chance
    use: str
    _drawn: dict[int, NDArray[np.uint8]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def p_value(self, differences: Sequence[float], sides: Sides) -> float:
        """The share of flips whose sum is as extreme as the observed one.

        Args:
            differences: one per task, in the order of the task ids; not empty.
            sides: `two` compares magnitudes, `greater` the sums themselves.

        Raises:
            ValueError: no difference, or one that is not finite.
        """
        values = checked_differences(differences)
        observed = float(values.sum())
        total = abs(observed) if sides is Sides.TWO else observed
        sums = self._flipped_sums(values)
        reached = np.abs(sums) if sides is Sides.TWO else sums
        hits = int(np.count_nonzero(reached >= total - TOLERANCE))
        if len(values) <= EXACT_TASKS:
            return hits / float(2 ** len(values))
        return (1 + hits) / (DRAWS + 1)

    def interval(self, differences: Sequence[float], alpha: float) -> Interval | None:
        """The effects that the two-sided test at `alpha` does not reject.

        Returns:
            The interval; None where no effect can be rejected because there are too few splits, in which
            case the whole range -1 to 1 stands (see `interval_or_range`).

        Raises:
            ValueError: no difference, one that is not finite, or an alpha outside (0, 1).
        """
        values = checked_differences(differences)
        lows, highs = self._means(values)
        rank = math.floor(checked_alpha(alpha) * (len(lows) + 1))
        if rank == 0:
            return None
        low = float(np.partition(lows, rank - 1)[rank - 1])
        high = -float(np.partition(-highs, rank - 1)[rank - 1])
        return Interval(low=max(_settled(low), -1.0), high=min(_settled(high), 1.0))

    def interval_or_range(self, differences: Sequence[float], alpha: float) -> Interval:
        """As `interval`, with the whole range where nothing can be rejected."""
        return self.interval(differences, alpha) or _WHOLE_RANGE

    def _flipped_sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if len(values) <= EXACT_TASKS:
            return _all_flipped_sums(values)
        return float(values.sum()) - 2 * self._sums_of_flipped(values)

    def _means(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The smaller and the larger mean of each split, both of shape (B,)."""
        if len(values) <= EXACT_TASKS:
            return _means_of_all_splits(values)
        sizes = np.rint(self._sums_of_flipped(np.ones_like(values))).astype(np.int64)
        return _means_of_parts(self._sums_of_flipped(values), sizes, values)

    def _sums_of_flipped(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each draw, the sum of the values whose signs are flipped, shape (DRAWS,).

        Eight tasks at a time: what each of the 256 patterns of their signs sums to is reckoned once.
        """
        padded = np.zeros(-(-len(values) // 8) * 8)
        padded[: len(values)] = values
        sums = np.zeros(DRAWS)
        for eight, patterns in zip(padded.reshape(-1, 8), self._packed(len(values)), strict=True):
            sums += (_PATTERNS @ eight)[patterns]
        return sums

    def _packed(self, tasks: int) -> NDArray[np.uint8]:
        """Of every eight tasks a row, of every draw a byte; the first of the eight is its highest bit."""
        if tasks not in self._drawn:
            while len(self._drawn) >= _HELD:
                del self._drawn[next(iter(self._drawn))]
            flipped = np.packbits(self.chance.signs(self.use, DRAWS, tasks) < 0, axis=1)
            self._drawn[tasks] = np.ascontiguousarray(flipped.T)
        return self._drawn[tasks]


def checked_differences(differences: Sequence[float]) -> NDArray[np.float64]:
    """Differences as an array of shape (m,).

    Raises:
        ValueError: no difference, or one that is not finite.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError("a test of differences needs at least one, all of them finite")
    return values


def _settled(end: float) -> float:
    """An end that is 0 but for the order of summation is 0, so that it lies where the test says."""
    return 0.0 if abs(end) <= TOLERANCE else end


def _all_flipped_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate((sums + value, sums - value))
    return sums


def _means_of_all_splits(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each split once: the parts without the first task, the empty one left out."""
    sums, sizes = np.zeros(1), np.zeros(1, dtype=np.int64)
    for value in values[1:]:
        sums = np.concatenate((sums, sums + value))
        sizes = np.concatenate((sizes, sizes + 1))
    return _means_of_parts(sums[1:], sizes[1:], values)


def _means_of_parts(
    sums: NDArray[np.float64], sizes: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A drawn flip may leave one part empty; such a flip rejects no effect, so its means are infinite."""
    total, tasks = float(values.sum()), len(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = sums / sizes, (total - sums) / (tasks - sizes)
    low, high = np.minimum(one, other), np.maximum(one, other)
    empty = (sizes == 0) | (sizes == tasks)
    return np.where(empty, -np.inf, low), np.where(empty, np.inf, high)
