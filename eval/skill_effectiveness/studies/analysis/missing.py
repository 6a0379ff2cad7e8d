"""What missing values could change (studies.md section 6; bounds: Manski 1990, tipping: Yan et al. 2009).

Nothing is imputed for the estimate itself. The bounds say where it could lie whatever the missing values
are; the tipping point says how many of them, at their least favourable, change the conclusion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.calibration.figures import Interval
from skill_effectiveness.studies.analysis.comparisons import filled_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.studies.analysis.comparisons import Comparison, Measured, TaskValues


def bounds(comparison: Comparison) -> Interval | None:
    """The least and the greatest mean difference that any values of the missing slots allow.

    Returns:
        The bounds, equal ends without a missing value; None without a task.
    """
    low, high = (_mean(comparison.filled(_least(comparison, up=up))) for up in (False, True))
    return None if low is None or high is None else Interval(low=low, high=high)


def tipping_point(comparison: Comparison, conclude: Callable[[Comparison], str]) -> int | None:
    """How many missing slots, filled in against the conclusion, change it.

    One slot after the other gets the value that moves the mean difference most, ties by slot number.
    Against `improves` that is downwards, against `harms` upwards. Any other word can be changed from either
    side, and the smaller count stands.

    Args:
        comparison: with its missing slots.
        conclude: the word that a comparison leads to.

    Returns:
        The count; None when no such filling changes the word.
    """
    word = conclude(comparison)
    directions = {"improves": (False,), "harms": (True,)}.get(word, (False, True))
    counts = [_count(comparison, conclude, word, up=up) for up in directions]
    return min((count for count in counts if count is not None), default=None)


def _count(
    comparison: Comparison, conclude: Callable[[Comparison], str], word: str, *, up: bool
) -> int | None:
    held = comparison
    for count in range(1, len(comparison.missing) + 1):
        held = held.filled(_only(_most_moving(held, up=up), _least(comparison, up=up)))
        if conclude(held) != word:
            return count
    return None


def _most_moving(comparison: Comparison, *, up: bool) -> int:
    """The missing slot whose worst value moves the mean difference furthest, the first of equals.

    Of one task's missing slots in one arm all move it alike, so the first of them stands for the rest.
    """
    choose = _least(comparison, up=up)
    values = comparison.differences
    total, count, sign = sum(values), len(values), -1.0 if up else 1.0
    found: list[tuple[float, int]] = []
    for task in comparison.tasks:
        before = comparison.difference(task)
        for slot in _first_missing(task):
            after = comparison.difference(filled_task(task, _only(slot, choose)))
            if after is None:
                # The other arm of this task still has no value, so nothing moves yet.
                mean = total / count if count else 0.0
            else:
                mean = (total - (before or 0.0) + after) / (count + (before is None))
            found.append((round(sign * mean, 12), slot))
    return min(found)[1]


def _first_missing(task: TaskValues) -> list[int]:
    arms = (task.treatment, task.comparator)
    firsts = (min((held.slot for held in arm if held.value is None), default=None) for arm in arms)
    return [slot for slot in firsts if slot is not None]


def _only(
    slot: int, choose: Callable[[Measured, bool], float | None]
) -> Callable[[Measured, bool], float | None]:
    return lambda held, treated: choose(held, treated) if held.slot == slot else None


def _least(comparison: Comparison, *, up: bool) -> Callable[[Measured, bool], float | None]:
    """The value of the scale's end that moves the difference down, or up."""
    bottom = -1.0 if comparison.paired_values else 0.0

    def choose(_held: Measured, treated: bool) -> float:  # noqa: FBT001 - the form `filled` calls
        return 1.0 if treated is up else bottom

    return choose


def _mean(comparison: Comparison) -> float | None:
    values = comparison.differences
    return sum(values) / len(values) if values else None
