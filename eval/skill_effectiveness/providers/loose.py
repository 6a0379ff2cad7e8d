"""Lines that are JSON and not strict JSON, as far as something can be told against a call from them.

Source: providers.md P5, P9; field-failures.md F18, F22.

Nothing that is read here makes anything better: the line stays unreadable, and a call with one never
succeeds.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import StrictCode

if TYPE_CHECKING:
    from skill_effectiveness.evidence.faults import StrictError

_REFUSED_VALUE: Final = frozenset(
    {
        StrictCode.DUPLICATE_KEY,
        StrictCode.LONE_SURROGATE,
        StrictCode.NONCHARACTER,
        StrictCode.NUMBER_RANGE,
        StrictCode.NON_FINITE,
    }
)
"""Refusals of a value in text that is JSON, and within the limits of size and depth."""


class Members(list[tuple[str, object]]):
    """An object with all its members, also those that share a name."""

    def named(self, name: str) -> list[object]:
        """The values of every member of that name."""
        return [value for key, value in self if key == name]

    def items(self, name: str) -> list[object]:
        """What stands in those of them that are arrays."""
        return [
            item
            for value in self.named(name)
            if isinstance(value, list) and not isinstance(value, Members)
            for item in value
        ]

    def objects(self, name: str) -> list[Members]:
        """Those of them that are objects."""
        return [value for value in self.named(name) if isinstance(value, Members)]


def loose_members(error: StrictError, line: bytes) -> Members | None:
    """The object in a line that the strict reader refused; `None` when there is none to be read."""
    if not {fault.code for fault in error.faults} <= _REFUSED_VALUE:
        return None
    document = json.loads(
        line.decode(), object_pairs_hook=Members, parse_int=str, parse_float=str, parse_constant=str
    )
    return document if isinstance(document, Members) else None
