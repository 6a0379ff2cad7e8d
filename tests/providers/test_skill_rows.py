"""Skill calls and task calls to the row that a study keeps."""

from __future__ import annotations

import pytest

from skill_effectiveness.providers.skill_rows import SkillCall, TaskCall, skill_events_row


def skill(
    name: str | None = "one", identity: str | None = "call_1", *, completed: bool | None = True
) -> SkillCall:
    return SkillCall(name, identity, completed)


def test_indexes_count_skill_calls_and_task_calls() -> None:
    """A24: from 0, in order of appearance; what is completed says so twice."""
    row = skill_events_row(
        "some-driver", [skill(), TaskCall(), skill("two", "call_2", completed=False), TaskCall()]
    )

    assert row.driver == "some-driver"
    assert row.unverifiable is None
    assert row.events is not None
    assert row.events.first_task_tool_event_index == 1
    assert [
        (call.skill, call.event_index, call.tool_use_id, call.matching_tool_result, call.completed)
        for call in row.events.skills_invoked
    ] == [("one", 0, "call_1", True, True), ("two", 2, "call_2", False, False)]


def test_no_call_at_all_is_stable() -> None:
    """A24: a recording that was read whole and shows nothing."""
    row = skill_events_row("some-driver", [])

    assert row.verifiable
    assert row.events is not None
    assert row.events.first_task_tool_event_index is None


@pytest.mark.parametrize(
    "call",
    [
        skill(name=None),
        skill(name=""),
        skill(name="x" * 257),
        skill(identity=None),
        skill(identity=""),
        skill(identity="x" * 257),
        skill(completed=None),
    ],
)
def test_a_call_that_lacks_something_degrades_the_row(call: SkillCall) -> None:
    """A24 A26: it takes its index all the same, and nothing of the row is relied on."""
    row = skill_events_row("some-driver", [skill(), call, TaskCall()])

    assert row.unverifiable == "missing_invocation_field"
    assert row.events is not None
    assert row.events.event_contract_status == "degraded"
    assert row.events.skills_invoked == ()
    assert row.events.first_task_tool_event_index == 2


def test_a_recording_with_a_gap_is_degraded() -> None:
    """A26: what is missing could have been a call."""
    assert skill_events_row("some-driver", [skill()], gap=True).unverifiable == "missing_invocation_field"


def test_more_calls_than_the_contract_holds() -> None:
    """A24: 1,024 are kept, one more degrades the row."""
    calls = [skill(identity=f"call_{number}") for number in range(1025)]

    assert skill_events_row("some-driver", calls[:-1]).verifiable
    assert not skill_events_row("some-driver", calls).verifiable
