"""Stopping early: looks in the order of allocation, never by completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.studies.deciding import Deciding
from skill_effectiveness.studies.words import EndClass
from skill_effectiveness.trials.allocation import Slot
from tests.support.crash_images import fast_folder
from tests.support.studies import bench, example
from tests.support.study_runs import FakeAgent, result, rows_of, run, state_of, types_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.studies.plan import StudyPlan

ANYTIME = {
    "stopping: fixed": "stopping: anytime",
    "samples: 3": "samples: 1",
    "minimum_effect: 0.3": "minimum_effect: 0.05",
}


@pytest.fixture(scope="module")
def plan() -> Iterator[StudyPlan]:
    """A plan that may stop early."""
    with fast_folder() as folder, bench(folder) as held:
        yield held.plan(example(folder, tasks=2, edits=ANYTIME))


def slots(tasks: int) -> tuple[Slot, ...]:
    """One slot of each arm, task after task."""
    return tuple(
        Slot(2 * task + number, f"t{task:02d}", arm, 1)
        for task in range(tasks)
        for number, arm in ((1, "off"), (2, "full"))
    )


def values(tasks: range) -> dict[int, float | None]:
    """Full passes and off fails in these tasks."""
    return {2 * task + number: float(number == 2) for task in tasks for number in (1, 2)}


def test_seven_won_tasks_decide(plan: StudyPlan) -> None:
    """S49: E_7(0) = 25.1 is at least 20, E_6(0) = 14.4 is not."""
    deciding = Deciding(plan, slots(10))
    assert deciding.applies
    assert not deciding.decided(values(range(6)))
    assert deciding.decided(values(range(7)))


def test_tasks_that_are_through_out_of_order_are_not_looked_at(plan: StudyPlan) -> None:
    """S49: the second to ninth task may be as good as they like while the first runs."""
    deciding = Deciding(plan, slots(10))
    assert not deciding.decided(values(range(1, 9)))
    assert deciding.decided(values(range(9)))


def test_a_task_without_a_value_is_passed_over(plan: StudyPlan) -> None:
    """A missing value makes no difference and holds nothing up."""
    found: dict[int, float | None] = values(range(8))
    found[1] = None
    assert not Deciding(plan, slots(10)).decided({key: value for key, value in found.items() if key <= 14})
    assert Deciding(plan, slots(10)).decided(found)


def test_a_run_stops_when_evidence_suffices() -> None:
    """S49: open slots are closed and not missing; a resume changes nothing."""
    with fast_folder() as folder, bench(folder) as held:
        held.plan(example(folder, tasks=12, edits=ANYTIME))
        with held.open() as study:
            losers = [slot.slot for slot in study.slots() if slot.arm == "off"]
        agent = FakeAgent(endings={slot: [result("crashed")] for slot in losers})
        outcome = run(held, agent, jobs=2)
        assert outcome.status == "complete"
        assert outcome.counts.decided
        assert 14 <= len(agent.asked) <= 16
        closed = [row["body"] for row in rows_of(held) if row["type"] == "slots_closed"]
        assert closed == [{"reason": "decided", "slots": 24 - outcome.counts.ended}]
        assert types_of(held)[-3:] == ["assay", "assay", "slots_closed"]
        assert run(held, FakeAgent()).counts == outcome.counts
        with state_of(held) as state:
            assert {slot.ended for slot in state.slots.values()} == {EndClass.COMPLETED, EndClass.CRASHED}
