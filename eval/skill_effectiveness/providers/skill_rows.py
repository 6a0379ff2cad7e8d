"""Skill calls and task calls of one recording, in order, to the row that a study keeps.

Source: controls.md section 8. What a call looks like is for each driver's extractor to know; counting them
and saying what cannot be told is done here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from skill_effectiveness.protocol.event_rows import SkillEventsRow, Unverifiable
from skill_effectiveness.protocol.skill_events import (
    EVENT_CONTRACT,
    INDEX_SOURCE,
    LONGEST_ID,
    MOST_INVOCATIONS,
    EventStatus,
    SkillEvents,
    SkillInvocation,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class SkillCall:
    """One skill call.

    Attributes:
        skill: which skill; `None` when the recording does not say.
        tool_use_id: the provider's id of the call; `None` when there is none.
        completed: whether a result of this very call came that is no error; `None` when the recording does
            not say.
    """

    skill: str | None
    tool_use_id: str | None
    completed: bool | None


@dataclass(frozen=True, slots=True)
class TaskCall:
    """One call of the task tool; nothing of it but its place is told."""


Call: TypeAlias = SkillCall | TaskCall


def skill_events_row(driver: str, calls: Iterable[Call], *, gap: bool = False) -> SkillEventsRow:
    """The row of one recording.

    A call of which something is missing takes its index all the same, and makes the whole row unverifiable.

    Args:
        driver: the registered name of the driver.
        calls: in order of appearance; a result is no call.
        gap: whether calls may be missing from the recording.
    """
    indexed = list(enumerate(calls))
    first = next((index for index, call in indexed if isinstance(call, TaskCall)), None)
    skills = [(index, call) for index, call in indexed if isinstance(call, SkillCall)]
    invoked = [_invocation(index, call) for index, call in skills[: MOST_INVOCATIONS + 1]]
    whole = [invocation for invocation in invoked if invocation is not None]
    if gap or len(whole) != len(invoked) or len(invoked) > MOST_INVOCATIONS:
        return _row(driver, Unverifiable.MISSING_INVOCATION_FIELD, (), first)
    return _row(driver, None, whole, first)


def _invocation(index: int, call: SkillCall) -> SkillInvocation | None:
    """The call as the contract has it; `None` when it lacks something."""
    if not (_is_name(call.skill) and _is_name(call.tool_use_id)) or call.completed is None:
        return None
    return SkillInvocation(
        skill=call.skill or "",
        event_index=index,
        tool_use_id=call.tool_use_id or "",
        matching_tool_result=call.completed,
        completed=call.completed,
    )


def _is_name(value: str | None) -> bool:
    return value is not None and 0 < len(value) <= LONGEST_ID


_ONE: Final = 1


def _row(
    driver: str, unverifiable: Unverifiable | None, invoked: Sequence[SkillInvocation], first: int | None
) -> SkillEventsRow:
    events = SkillEvents(
        schema_version=_ONE,
        event_contract_version=EVENT_CONTRACT,
        event_contract_status=EventStatus.STABLE if unverifiable is None else EventStatus.DEGRADED,
        skill_events_available=True,
        task_tool_events_available=True,
        first_task_tool_event_index=first,
        event_index_source=INDEX_SOURCE,
        skills_invoked=tuple(invoked),
    )
    return SkillEventsRow(
        schema_version=_ONE,
        event_contract=EVENT_CONTRACT,
        driver=driver,
        unverifiable=unverifiable,
        events=events,
    )
