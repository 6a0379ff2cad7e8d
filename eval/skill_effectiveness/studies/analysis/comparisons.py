"""What one comparison of two arms rests on, task by task (studies.md section 6).

A difference belongs to a task: the mean value of the treatment arm less that of the comparator, missing
values left out. A task without a value in an arm has no difference; it counts again where missing values
are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Measured(NamedTuple):
    """The value of one slot; None is missing, which is no number."""

    slot: int
    value: float | None


@dataclass(frozen=True, slots=True)
class TaskValues:
    """All values of one task in the two arms of a comparison.

    A preference compares the arms in itself: it stands in `treatment` and `comparator` is empty.
    """

    task_id: str
    treatment: tuple[Measured, ...]
    comparator: tuple[Measured, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """Every value that is there."""
        return tuple(held.value for held in (*self.treatment, *self.comparator) if held.value is not None)

    @property
    def informative(self) -> bool:
        """Whether the task can tell arms apart at all: its values are not all equal.

        A preference is one number for both arms, and 0 is its level of no difference, so that one decided
        pair tells and any number of ties does not.
        """
        level = () if self.comparator else (0.0,)
        return len({*self.values, *level}) > 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """The tasks of one comparison, sorted by id.

    Args:
        name: treatment and comparator, for example `full-off`.
        tasks: each once.
        paired_values: whether the values are preferences, from -1 to 1, not shares from 0 to 1 of two arms.

    Raises:
        ValueError: tasks out of order or twice.
    """

    name: str
    tasks: tuple[TaskValues, ...]
    paired_values: bool = False

    def __post_init__(self) -> None:
        ids = [task.task_id for task in self.tasks]
        if ids != sorted(set(ids)):
            raise ValueError("the tasks of a comparison are sorted by id and named once")

    @property
    def measured(self) -> tuple[str, ...]:
        """Ids of the tasks that have a difference."""
        return tuple(task.task_id for task in self.tasks if self.difference(task) is not None)

    @property
    def differences(self) -> tuple[float, ...]:
        """Differences of the tasks that have one, in the order of the ids."""
        found = (self.difference(task) for task in self.tasks)
        return tuple(value for value in found if value is not None)

    @property
    def informative_tasks(self) -> int:
        """How many tasks with a difference could tell the arms apart."""
        return sum(task.informative for task in self.tasks if self.difference(task) is not None)

    @property
    def missing(self) -> tuple[Measured, ...]:
        """Every slot without a value, sorted by slot."""
        return tuple(
            sorted(
                held
                for task in self.tasks
                for held in (*task.treatment, *task.comparator)
                if held.value is None
            )
        )

    def difference(self, task: TaskValues) -> float | None:
        """The difference of one task; None where an arm has no value."""
        treated = _mean(task.treatment)
        if self.paired_values or treated is None:
            return treated
        compared = _mean(task.comparator)
        return None if compared is None else treated - compared

    def filled(self, choose: Callable[[Measured, bool], float | None]) -> Comparison:
        """The same comparison with values chosen for missing ones.

        Args:
            choose: the value for a missing slot, told whether it is the treatment's; None leaves it so.
        """
        return replace(self, tasks=tuple(filled_task(task, choose) for task in self.tasks))


def _mean(held: tuple[Measured, ...]) -> float | None:
    values = [one.value for one in held if one.value is not None]
    return sum(values) / len(values) if values else None


def filled_task(task: TaskValues, choose: Callable[[Measured, bool], float | None]) -> TaskValues:
    """One task as `Comparison.filled` fills it."""

    def side(held: tuple[Measured, ...], *, treated: bool) -> tuple[Measured, ...]:
        return tuple(
            one if one.value is not None else one._replace(value=choose(one, treated)) for one in held
        )

    return TaskValues(task.task_id, side(task.treatment, treated=True), side(task.comparator, treated=False))
