"""Whether a pass read anything: what it did, against the floors of its profile.

Source: milestone.md, section 7, Engines. A floor that cannot be observed is not met, unless the profile
states it as null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.providers.events import ToolActivity

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.milestone.configuration import Floors
    from skill_effectiveness.providers import CallOutcome


@dataclass(frozen=True, slots=True)
class Reading:
    """What was observed of a call; `None` is not observed.

    Attributes:
        commands: finished tool calls that ran or read something, and did not fail.
        tokens: tokens read.
        seconds: how long it took.
    """

    commands: int | None
    tokens: int | None
    seconds: float

    def plain(self) -> dict[str, object]:
        """The reading as plain JSON values."""
        return {"commands": self.commands, "tokens": self.tokens, "milliseconds": round(self.seconds * 1000)}


UNOBSERVED: Final = "not-observed"
"""The label of an adapter that sees no tools."""


def reading_of(outcome: CallOutcome, tool_label: str) -> Reading:
    """What an outcome shows of its call.

    Args:
        outcome: what came back.
        tool_label: what the adapter says it sees of tools.
    """
    seen = bool(outcome.events) and tool_label != UNOBSERVED
    commands = sum(_ran(event) for event in outcome.events if isinstance(event, ToolActivity))
    return Reading(commands if seen else None, outcome.usage.input_tokens, outcome.latency_ms / 1000)


def _ran(tool: ToolActivity) -> bool:
    """Whether a tool event tells of a call that ended well; one that merely began or failed does not."""
    return tool.succeeded is True


def shortfalls(reading: Reading, floors: Floors) -> tuple[str, ...]:
    """The floors that a reading does not reach, by name."""
    pairs = (
        ("commands", reading.commands, floors.commands),
        ("tokens", reading.tokens, floors.tokens),
        ("seconds", reading.seconds, floors.seconds),
    )
    return tuple(name for name, seen, floor in pairs if floor is not None and (seen is None or seen < floor))
