"""Lines of a program's output to typed events, one at a time.

Source: providers.md P5; field-failures.md F17, F18, F20.

`execution.run_process` frames the lines; an adapter says what a document means; this log keeps the events and
answers the two questions that cannot wait for the end: is the terminal marker there, and was a tool used?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import JsonValue, Profile, read_json
from skill_effectiveness.execution import Limits
from skill_effectiveness.providers.calls import CallKind
from skill_effectiveness.providers.events import (
    Event,
    Flood,
    Message,
    SurfaceDiffers,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unanswered,
    Unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SHORTEST_SECONDS: Final = 0.001
"""What is left of a time that is over: enough to start, and to be stopped at the first look at the clock."""

Document: TypeAlias = dict[str, JsonValue]

LINE_PROFILE = Profile.ROW
"""Limits of one line; the process has the same one, so that an over-long line ends a call under its name."""


LINES_MOST: Final = 20_000
"""Lines one call may print. Without it a few megabytes of empty lines would take minutes and much memory."""

STDOUT_MOST: Final = 16 * 1024 * 1024
"""Bytes one call may print."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a call of one kind may say.

    Attributes:
        lines: how many lines.
        line: the limits of one.
        line_bytes: the longest, in bytes; not more than `line` reads.
        stdout_bytes: all of them.
    """

    lines: int = LINES_MOST
    line: Profile = LINE_PROFILE
    line_bytes: int = LINE_PROFILE.max_bytes
    stdout_bytes: int = STDOUT_MOST


BOUNDS: Final = {
    CallKind.JUDGE: Bounds(),
    CallKind.READ: Bounds(),
    # Whoever works for an hour says more, and shows whole files on one line.
    CallKind.WORK: Bounds(10 * LINES_MOST, Profile.DOCUMENT, STDOUT_MOST, 4 * STDOUT_MOST),
}


def nothing_salvaged(error: StrictError, line: bytes) -> list[Event]:
    """Nothing can be told from a line that is not strict JSON."""
    del error, line
    return []


@dataclass(frozen=True, slots=True)
class StreamReader:
    """What the lines of one stream mean; see `EventLog` for both.

    Without `read` nothing does: lines are kept under the same limits, and never looked at.
    """

    read: Callable[[Document, bytes], list[Event]] | None
    salvage: Callable[[StrictError, bytes], list[Event]] = nothing_salvaged


class EventLog:
    """The events of one call, in order.

    Args:
        read: what one document means in the adapter's stream; `None`: no line is looked at.
        salvage: what can be told against the call from a line that is not strict JSON; it is asked only then,
            its events are kept before the `Unreadable` one, and it can make nothing better, because an
            unreadable line never leads to a success.
        lines_most: lines after which nothing more is read.
        tools_end_it: whether a tool is a reason to stop the program.
        profile: the limits of one line.
    """

    def __init__(
        self,
        read: Callable[[Document, bytes], list[Event]] | None,
        salvage: Callable[[StrictError, bytes], list[Event]],
        lines_most: int = LINES_MOST,
        *,
        tools_end_it: bool = True,
        profile: Profile = LINE_PROFILE,
    ) -> None:
        self._tools_end_it = tools_end_it
        self._profile = profile
        self._taken = bytearray()
        self._lines_left = lines_most
        self._read = read
        self._salvage = salvage
        self._events: list[Event] = []
        self._turn_over = False
        self._tool_used = False
        self._other_surface = False

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything so far."""
        return tuple(self._events)

    @property
    def taken(self) -> bytes:
        """Every line that was taken in, each with its LF, as it came."""
        return bytes(self._taken)

    @property
    def doomed(self) -> bool:
        """Whether the program has to be stopped.

        A tool it must not use, another session than was asked for, or more said than it may.
        """
        return (self._tool_used and self._tools_end_it) or self._other_surface or self._lines_left < 0

    def take(self, line: bytes) -> bool:
        """Take in one line without its LF; True while the last turn is over."""
        if self._lines_left <= 0:
            self._give_up()
            return False
        self._lines_left -= 1
        self._taken += line + b"\n"
        for event in self._events_of(line):
            self._events.append(event)
            if isinstance(event, ToolActivity):
                self._tool_used = True
            if isinstance(event, SurfaceDiffers):
                self._other_surface = True
            if isinstance(event, TurnCompleted | TurnFailed | Unanswered):
                self._turn_over = True
            elif isinstance(event, TurnStarted | Message):
                self._turn_over = False
        return self._turn_over

    def _give_up(self) -> None:
        if self._lines_left == 0:
            self._lines_left = -1
            self._events.append(Flood())

    def _events_of(self, line: bytes) -> list[Event]:
        if self._read is None:
            return []
        try:
            document = cast("Document", read_json(line, self._profile, want_object=True))
        except StrictError as error:
            return [*self._salvage(error, line), Unreadable(line, str(error.code))]
        return self._read(document, line)


def call_limits(seconds: float, bounds: Bounds) -> Limits:
    """The limits of a call's program, of whose time `seconds` are left.

    There is no idle limit: a healthy program may say nothing until it has its answer (field-failures.md F11).
    """
    return Limits(
        wall_seconds=max(seconds, SHORTEST_SECONDS),
        line_bytes=bounds.line_bytes,
        stdout_bytes=bounds.stdout_bytes,
    )
