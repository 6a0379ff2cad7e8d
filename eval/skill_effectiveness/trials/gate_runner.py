"""Gate rules about the runner: did trials complete, in every arm and cell, and why not (section 9).

Void trials count for no arm: they are in no share and no sample count. Every other planned trial is, the one
that is not on disk included.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.figures import Share, at_least
from skill_effectiveness.trials.gate_words import FailureCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skill_effectiveness.protocol.gates import Thresholds
    from skill_effectiveness.protocol.words import TaskFamily
    from skill_effectiveness.trials.gate_facts import PlannedTrial, TrialFacts


class RunnerRules:
    """Takes the planned trials one by one.

    Attributes:
        planned: trials of each arm, void ones left out.
        completed: of these, by arm.
        void: trials of each arm that count for none.
        failed: trials that ended without completing.
    """

    def __init__(self, cells: Iterable[tuple[str, str]], arms: Iterable[str]) -> None:
        self._samples: Counter[tuple[str, str]] = Counter(dict.fromkeys(cells, 0))
        self._tasks: dict[str, set[str]] = {arm: set() for arm in arms}
        self._reasons: defaultdict[str, set[TaskFamily]] = defaultdict(set)
        self.planned: Counter[str] = Counter(dict.fromkeys(self._tasks, 0))
        self.completed: Counter[str] = Counter(dict.fromkeys(self._tasks, 0))
        self.void: Counter[str] = Counter(dict.fromkeys(self._tasks, 0))
        self.failed = 0

    def take(self, planned: PlannedTrial, facts: TrialFacts) -> None:
        """Count one trial."""
        task, arm = planned.name.task_id, planned.name.arm_id
        if facts.void:
            self.void[arm] += 1
            return
        self.planned[arm] += 1
        self._samples[task, arm] += facts.ended
        if facts.runner_completed:
            self.completed[arm] += 1
            self._tasks[arm].add(task)
            return
        self.failed += facts.ended
        if facts.runner_failure_reason is not None:
            self._reasons[facts.runner_failure_reason].add(planned.family)

    @property
    def completion(self) -> Share:
        """Completed trials of all that count."""
        return Share.of(self.completed.total(), self.planned.total())

    def failures(self, gates: Thresholds) -> Iterator[FailureCode]:
        """The rules that do not hold."""
        least = gates.runner_completion_rate_min
        if not _reaches(self.completed.total(), self.planned.total(), least):
            yield FailureCode.RUNNER_COMPLETION_RATE
        if not all(_reaches(self.completed[arm], self.planned[arm], least) for arm in self.planned):
            yield FailureCode.ARM_RUNNER_COMPLETION_RATE
        if not all(self.completed.values()):
            yield FailureCode.ARM_SYSTEMIC_RUNNER_FAILURE
        stop = gates.missing_shape_task_family_stop_count
        if any(len(families) >= stop for families in self._reasons.values()):
            yield FailureCode.RUNNER_FAILURE_REASON_CROSS_FAMILY
        if any(count < gates.samples_per_task_arm_min for count in self._samples.values()):
            yield FailureCode.INSUFFICIENT_TASK_ARM_SAMPLES
        if any(len(tasks) < gates.smoke_tasks_per_arm_min for tasks in self._tasks.values()):
            yield FailureCode.INSUFFICIENT_SMOKE_TASKS_PER_ARM


def _reaches(part: int, whole: int, least: float) -> bool:
    """A share of nothing reaches nothing."""
    return whole > 0 and at_least(Fraction(part, whole), least)
