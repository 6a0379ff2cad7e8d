"""The share of success of one arm (studies.md section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.calibration.intervals import share_of_cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.calibration.figures import Estimate


def rate(task_means: Sequence[float]) -> Estimate | None:
    """Mean over tasks with a Wilson interval whose n is the number of tasks: repeats never narrow it.

    Args:
        task_means: each from 0 to 1, one per task that has a value.

    Returns:
        The estimate; None without a task.

    Raises:
        ValueError: a mean outside 0 to 1.
    """
    if not all(0 <= mean <= 1 for mean in task_means):
        raise ValueError("means of shares lie from 0 to 1")
    total = min(float(len(task_means)), max(0.0, sum(task_means)))
    return share_of_cases(total, len(task_means))
