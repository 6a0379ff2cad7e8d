"""What whoever drives an agent through work calls has to know of its provider beside the calls themselves.

Source: providers.md P8, P9 and section 7; studies.md section 1 (budgets); controls.md section 8;
field-failures.md F38 to F40.

| provider | tools that a session used |
|---|---|
| `claude` | every message of the stream, which is printed before its tools are run; unknown with a subagent |
| `opencode` | every part of the export, printed or not; unknown with a subagent, which has its own session |
| `kimi` | the wire files of all agents, of which the stream has the first one's calls |
| `codex` | not told: what its sandbox refuses, and an image that is looked at, leave no event |
| `command` | not told: nothing of a session is observed |
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.protocol.event_rows import SkillEventsRow, Unverifiable
from skill_effectiveness.protocol.skill_events import EVENT_CONTRACT
from skill_effectiveness.providers import (
    claude_events,
    claude_skills,
    kimi_events,
    opencode_export,
    opencode_skills,
)
from skill_effectiveness.providers.claude import ClaudeProvider
from skill_effectiveness.providers.kimi import KimiProvider
from skill_effectiveness.providers.opencode import OpenCodeProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.providers.recording import Recording

_EXTRACTORS: Final[Mapping[str, Callable[[Recording], SkillEventsRow]]] = MappingProxyType(
    {ClaudeProvider.name: claude_skills.skill_events, OpenCodeProvider.name: opencode_skills.skill_events}
)
"""Extractors of the drivers that are registered for skill events, by provider."""

_COUNTERS: Final[Mapping[str, Callable[[Recording], int | None]]] = MappingProxyType(
    {
        ClaudeProvider.name: claude_events.tool_calls,
        KimiProvider.name: kimi_events.tool_calls,
        OpenCodeProvider.name: opencode_export.tool_calls,
    }
)
"""Providers whose recordings have every tool call."""

_TELLS_COST: Final = frozenset({ClaudeProvider.name})
"""Providers whose program prices every session itself; a price of 0 is none."""

_ONE: Final = 1


def skill_events_of(provider: str, recording: Recording | None) -> SkillEventsRow:
    """The skill events of a session: a manipulation check, and never an outcome.

    Args:
        provider: whose program it was.
        recording: what it said; `None` when no program was started.
    """
    extract = _EXTRACTORS.get(provider)
    if extract is not None and recording is not None:
        return extract(recording)
    return SkillEventsRow(
        schema_version=_ONE,
        event_contract=EVENT_CONTRACT,
        driver=provider,
        unverifiable=Unverifiable.DRIVER_SHAPE_UNREGISTERED,
        events=None,
    )


def tells_cost(provider: str) -> bool:
    """Whether what a session cost is told, so that it can be limited (field-failures.md F39)."""
    return provider in _TELLS_COST


def tells_tool_calls(provider: str) -> bool:
    """Whether every tool call of a session shows, so that their number can be limited."""
    return provider in _COUNTERS


def tool_calls_of(provider: str, recording: Recording | None) -> int | None:
    """How many tools a session used; `None` is unknown and never none.

    Args:
        provider: whose program it was.
        recording: what it said; `None` when no program was started.
    """
    count = _COUNTERS.get(provider)
    return None if count is None or recording is None else count(recording)
