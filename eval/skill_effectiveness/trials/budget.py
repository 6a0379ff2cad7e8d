"""What is left of a budget, and that consumption only grows (trials.md, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import DIMENSIONS, RemainingBudget

if TYPE_CHECKING:
    from skill_effectiveness.trials.models import ConsumedBudget, ResumeCursor, TrialBudget


def remaining(budget: TrialBudget, consumed: ConsumedBudget | None) -> RemainingBudget:
    """What is left per dimension, never below 0; `None` where the dimension has no limit."""
    left: dict[str, int | float | None] = {}
    for name in DIMENSIONS:
        limit = getattr(budget, name)
        used = 0 if consumed is None else getattr(consumed, name)
        left[name] = None if limit is None else max(limit - used, 0)
    return RemainingBudget(**left)


def check_left(left: RemainingBudget) -> None:
    """Demand that something is left of every limit.

    Raises:
        TrialError: `budget_exceeded`, naming the first dimension that is used up.
    """
    for name in DIMENSIONS:
        if getattr(left, name) == 0:
            sentence = f"The budget of {name} is used up; the trial cannot go on. Record how it ended."
            raise TrialError(TrialCode.BUDGET_EXCEEDED, f"/budget/{name}", sentence, field=name)


def check_within(budget: TrialBudget, consumed: ConsumedBudget) -> None:
    """Demand that no limit is passed.

    Raises:
        TrialError: `budget_exceeded`.
    """
    for name in DIMENSIONS:
        limit = getattr(budget, name)
        if limit is not None and getattr(consumed, name) > limit:
            sentence = f"The trial used more {name} than its budget; it can only be recorded as failed."
            where = f"/resume_cursor/consumed_budget/{name}"
            raise TrialError(TrialCode.BUDGET_EXCEEDED, where, sentence, field=name)


def check_progress(before: ResumeCursor | None, after: ResumeCursor, *, must_advance: bool = False) -> None:
    """Demand that neither consumption nor run order falls.

    Args:
        before: the stored cursor; none means that nothing was used.
        after: the new one.
        must_advance: some dimension of consumption must grow, as at every interim stop.

    Raises:
        TrialError: `no_progress`.
    """
    if before is not None and after.next_run_order < before.next_run_order:
        sentence = "The run order falls behind the stored one; send the order of the next run."
        where = "/resume_cursor/next_run_order"
        raise TrialError(TrialCode.NO_PROGRESS, where, sentence, field="next_run_order")
    advanced = False
    for name in DIMENSIONS:
        old = 0 if before is None else getattr(before.consumed_budget, name)
        new = getattr(after.consumed_budget, name)
        if new < old:
            sentence = f"The consumption of {name} falls below the stored one; send what was used in all."
            where = f"/resume_cursor/consumed_budget/{name}"
            raise TrialError(TrialCode.NO_PROGRESS, where, sentence, field=name)
        advanced = advanced or new > old
    if must_advance and not advanced:
        sentence = (
            "An interim stop that used nothing since the last checkpoint is no progress; run, then stop."
        )
        raise TrialError(TrialCode.NO_PROGRESS, "/resume_cursor/consumed_budget", sentence)


def has_limit(budget: TrialBudget) -> bool:
    """Whether any dimension has a limit."""
    return any(getattr(budget, name) is not None for name in DIMENSIONS)
