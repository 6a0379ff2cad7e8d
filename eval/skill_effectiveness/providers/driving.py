"""What whoever drives an agent through work calls has to know of its provider beside the calls themselves.

Source: providers.md P8 and section 7; studies.md section 1 (a limit of cost); controls.md section 8.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skill_effectiveness.protocol.event_rows import SkillEventsRow, Unverifiable
from skill_effectiveness.protocol.skill_events import EVENT_CONTRACT
from skill_effectiveness.providers import claude_skills, opencode_skills
from skill_effectiveness.providers.claude import ClaudeProvider
from skill_effectiveness.providers.opencode import OpenCodeProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skill_effectiveness.providers.recording import Recording

_EXTRACTORS: Final[Mapping[str, Callable[[Recording], SkillEventsRow]]] = MappingProxyType(
    {ClaudeProvider.name: claude_skills.skill_events, OpenCodeProvider.name: opencode_skills.skill_events}
)
"""Extractors of the drivers that are registered for skill events, by provider."""

_TELLS_COST: Final = frozenset({ClaudeProvider.name})
"""Providers whose program prices every session itself; a price of 0 for an unknown model is none."""

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
