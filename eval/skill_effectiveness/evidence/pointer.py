"""JSON pointers (RFC 6901) that say where a fault is.

A pointer here is for people and logs, so it is bounded and harmless: member names come from outside, may be a
megabyte long or hold terminal control sequences, and one document may have many faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST_SEGMENT = 128
# The error handler `backslashreplace` leaves ASCII alone, control characters too.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F)}


class Location(NamedTuple):
    """A place in a document as seen from its parent, so that a walk spells out a pointer only for a fault."""

    parent: Location | None
    segment: str | int


def printable(text: str) -> str:
    """The text with all that a terminal might act on, or that has no UTF-8 form, as backslash escapes."""
    if text.isprintable():
        return text
    shown = (char if char.isprintable() else _escaped(char) for char in text)
    return "".join(shown)


def _escaped(char: str) -> str:
    return char.encode("ascii", "backslashreplace").decode().translate(_CONTROLS)


def json_pointer(segments: Iterable[str | int]) -> str:
    """The pointer to a place, empty for the whole document.

    A member name of more than 128 characters is cut and ends in an ellipsis.
    """
    return "".join("/" + _shown(segment) for segment in segments)


def _shown(segment: str | int) -> str:
    text = str(segment)
    if len(text) > _LONGEST_SEGMENT:
        text = text[:_LONGEST_SEGMENT] + "…"
    return printable(text.replace("~", "~0").replace("/", "~1"))


def pointer_to(place: Location | None) -> str:
    """The pointer to a place that a walk reached; `None` is the whole document."""
    segments: list[str | int] = []
    while place is not None:
        segments.append(place.segment)
        place = place.parent
    return json_pointer(reversed(segments))
