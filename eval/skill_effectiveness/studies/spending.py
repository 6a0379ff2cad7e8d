"""What attempts have used, and what a study may still use (studies.md sections 1 and 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.protocol.gates import Budgets
from skill_effectiveness.studies.words import EndClass
from skill_effectiveness.trials.models import DIMENSIONS, ConsumedBudget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.studies.rows import Usage
    from skill_effectiveness.studies.state import AttemptState

_WORKED: Final = frozenset(
    {
        EndClass.COMPLETED,
        EndClass.NO_ANSWER,
        EndClass.REFUSED,
        EndClass.TIMEOUT,
        EndClass.LIMIT,
        EndClass.CONTAMINATED,
        EndClass.VOID,
    }
)
"""Classes after which a model has certainly worked, so that what is not told is not nothing."""


def told(usage: Usage, dimension: str) -> float | None:
    """What a call says it used; None where it does not say."""
    if dimension == "wall_time_seconds":
        return usage.wall_seconds
    value: float | None = getattr(usage, dimension)
    return value


def consumed(attempts: Iterable[AttemptState], further: Usage | None = None) -> ConsumedBudget:
    """What all attempts of a trial used together, as far as it is known.

    Args:
        attempts: those that have ended.
        further: of one more.
    """
    held = [attempt.usage for attempt in attempts if attempt.usage is not None]
    if further is not None:
        held.append(further)
    return ConsumedBudget(**{name: sum(told(usage, name) or 0 for usage in held) for name in DIMENSIONS})


def over_limit(budget: Budgets, used: ConsumedBudget) -> str | None:
    """The first dimension in which more was used than there was; None when there is none."""
    for name in DIMENSIONS:
        limit = getattr(budget, name)
        if limit is not None and getattr(used, name) > limit:
            return name
    return None


def left_of(budget: Budgets, used: ConsumedBudget) -> Budgets | None:
    """What is left of a budget; None when a dimension is used up."""
    left = {
        name: None if limit is None else limit - getattr(used, name)
        for name in DIMENSIONS
        for limit in [getattr(budget, name)]
    }
    if any(value is not None and value <= 0 for value in left.values()):
        return None
    return Budgets(**left)


class Spending:
    """What the attempts of a study have used so far, dimension by dimension.

    What a call does not tell is taken as the whole budget of its trial where a model has certainly worked,
    and where a trial has no limit, as the whole budget of the study: a cap trips even when nobody says what
    things cost (field-failures.md F39, F40).

    Args:
        trial: the budget of one trial.
    """

    def __init__(self, trial: Budgets) -> None:
        self._trial = trial
        self._used = dict.fromkeys(DIMENSIONS, 0.0)
        self._unknown: set[str] = set()

    def add(self, ended: EndClass, usage: Usage) -> None:
        """Take an attempt that ended."""
        for name in DIMENSIONS:
            value = told(usage, name)
            if value is None and ended in _WORKED:
                value = getattr(self._trial, name)
                if value is None:
                    self._unknown.add(name)
            self._used[name] += value or 0.0

    def exhausted(self, budget: Budgets) -> str | None:
        """The first dimension in which nothing is left; None while there is."""
        for name in DIMENSIONS:
            limit = getattr(budget, name)
            if limit is not None and (name in self._unknown or self._used[name] >= limit):
                return name
        return None
