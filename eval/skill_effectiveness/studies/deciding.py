"""Whether evidence suffices before all slots have run (studies.md section 6, "anytime").

Evidence is looked at in the order of allocation and never by completion, so that the speed of an arm, the
number of jobs and a crash change no look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.studies.words import Arm, Outcome, Stopping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.trials.allocation import Slot

_COMPARED = (str(Arm.FULL), str(Arm.OFF))


class Deciding:
    """Looks at the tasks of a study one by one, as they are through.

    Args:
        plan: of the study.
        slots: its run order.
    """

    def __init__(self, plan: StudyPlan, slots: Sequence[Slot]) -> None:
        self._plan = plan
        self._tasks: dict[str, list[Slot]] = {}
        for slot in slots:
            if slot.arm in _COMPARED:
                self._tasks.setdefault(slot.task_id, []).append(slot)
        self._order = list(self._tasks)
        self._looked_at = 0
        self._differences: list[float] = []

    @property
    def applies(self) -> bool:
        """Whether the plan may stop early: preferences are not known while slots run."""
        return may_stop(self._plan)

    def decided(self, values: Mapping[int, float | None]) -> bool:
        """Whether the study may stop.

        Args:
            values: of every slot that is through, by number; None for one without a value.
        """
        before = len(self._differences)
        for task_id in self._order[self._looked_at :]:
            held = self._tasks[task_id]
            if any(slot.slot not in values for slot in held):
                break
            self._looked_at += 1
            full, off = (_mean([values[slot.slot] for slot in held if slot.arm == arm]) for arm in _COMPARED)
            if full is not None and off is not None:
                self._differences.append(full - off)
        if len(self._differences) == before:
            return False
        # A study that looks once, at its end, runs without the library for arrays.
        from skill_effectiveness.studies.analysis.evidence_sequence import (  # noqa: PLC0415 - see above
            looks,
            stopped_at,
        )

        alpha, effect = self._plan.analysis.alpha, self._plan.outcome.minimum_effect
        return stopped_at(looks(self._differences, alpha), alpha, effect) is not None


def may_stop(plan: StudyPlan) -> bool:
    """Whether a plan lets its study stop early."""
    anytime = plan.analysis.stopping is Stopping.ANYTIME
    return anytime and plan.outcome.primary is not Outcome.PREFERENCE


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
