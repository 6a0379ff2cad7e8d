"""Lines to events: nothing is dropped, nothing raises, and two questions are answered at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.providers import CallKind, codex
from skill_effectiveness.providers.events import (
    Flood,
    Message,
    Progress,
    SessionStarted,
    SurfaceDiffers,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unknown,
    Unreadable,
)
from skill_effectiveness.providers.stream import BOUNDS, Bounds, EventLog, call_limits
from tests.support.provider_calls import DONE, THREAD, TURN, lines, message

if TYPE_CHECKING:
    from skill_effectiveness.evidence.faults import StrictError
    from skill_effectiveness.providers.events import Event
    from skill_effectiveness.providers.stream import Document


def log() -> EventLog:
    return EventLog(codex.read_event, codex.salvage)


def nothing(error: StrictError, line: bytes) -> list[Event]:
    del error, line
    return []


class TestEveryLineIsKept:
    def test_a_line_the_adapter_reads(self) -> None:
        """P5: one document, its events, in order."""
        taken = log()
        for line in lines(THREAD, TURN):
            taken.take(line)

        assert taken.events == (SessionStarted("01a22c67-4f17-7e10-9157-503a84adda3b"), TurnStarted())

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"", "empty"),
            (b"Welcome to the program!", "syntax"),
            (b'{"type":"turn.started"', "syntax"),
            (b'{"type":"turn.started"} {}', "trailing_data"),
            (b'["turn.started"]', "not_an_object"),
            (b'{"type":"a","type":"b"}', "duplicate_key"),
            (b'{"type":"a","n":NaN}', "non_finite"),
            (b'{"type":"a","n":1e999}', "non_finite"),
            (b'{"type":"a","n":12345678901234567890}', "number_range"),
            (b'{"type":"a","t":"\\ud800"}', "lone_surrogate"),
            (b'{"type":"a","t":"\xff"}', "not_utf8"),
            (b"\xef\xbb\xbf{}", "bom"),
            (b"[" * 100_000, "too_deep"),
        ],
    )
    def test_a_line_that_is_not_strict_json(self, line: bytes, reason: str) -> None:
        """P5 F18: it is kept without loss under a closed reason, and the next line is read."""
        taken = log()
        taken.take(line)
        taken.take(lines(TURN)[0])

        assert taken.events == (Unreadable(line, reason), TurnStarted())

    def test_half_a_surrogate_pair_is_kept_as_the_bytes_that_came(self) -> None:
        """F18: stored losslessly, and the reader lives on."""
        line = b'{"type":"item.completed","item":{"type":"agent_message","text":"\\ud83d"}}'
        taken = log()
        taken.take(line)

        (event,) = taken.events
        assert isinstance(event, Unreadable)
        assert event.data == line

    def test_a_long_line_is_a_line(self) -> None:
        """F17: 70,000 bytes are parsed."""
        taken = log()
        taken.take(lines(message("x" * 70_000))[0])

        assert taken.events == (Message("x" * 70_000),)

    def test_line_separators_of_unicode_are_content(self) -> None:
        """F20 P5: only LF ends a line, so these arrive inside one."""
        taken = log()
        taken.take(
            '{"type":"item.completed","item":{"type":"agent_message","text":"a\u2028b\u0085c"}}'.encode()
        )

        assert taken.events == (Message("a\u2028b\u0085c"),)

    @given(st.binary(max_size=200))
    def test_no_bytes_make_it_raise(self, line: bytes) -> None:
        """P5 F18: hostile bytes are an event, never an exception."""
        taken = log()
        taken.take(line)

        assert taken.events

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["type", "item", "text", "message", "usage", "error", "thread_id", "id"]),
                    inner | st.sampled_from(["item.completed", "error", "agent_message", "turn.completed"]),
                    max_size=5,
                )
            ),
        )
    )
    def test_no_json_makes_it_raise(self, document: object) -> None:
        """P5: whatever JSON comes, it becomes events."""
        taken = log()
        taken.take(lines(document)[0])

        assert taken.events


class TestWhatCannotWait:
    def test_the_terminal_marker_stands_until_the_model_is_asked_again(self) -> None:
        """F15 F6: a later turn takes it back, a failed turn is an end too."""
        taken = log()

        assert [
            taken.take(line)
            for line in lines(
                THREAD, TURN, message(), DONE, {"type": "new.kind"}, TURN, message(), {"type": "turn.failed"}
            )
        ] == [False, False, False, True, True, False, False, True]

    def test_a_message_after_the_marker_takes_it_back(self) -> None:
        """F15: a program that goes on is not done."""
        taken = log()

        assert [taken.take(line) for line in lines(THREAD, TURN, DONE, message())] == [
            False,
            False,
            True,
            False,
        ]

    def test_a_tool_is_known_at_once(self) -> None:
        """P9: at its first line, not at the end."""
        taken = log()
        taken.take(lines(THREAD)[0])
        assert not taken.doomed

        taken.take(lines({"type": "item.started", "item": {"type": "command_execution"}})[0])
        assert taken.doomed

    @pytest.mark.parametrize("tools_end_it", [True, False])
    def test_another_session_than_was_asked_for_dooms_any_call(self, *, tools_end_it: bool) -> None:
        """P9 R31: nothing more is spent on it."""
        taken = EventLog(lambda *_: [SurfaceDiffers("tools")], nothing, tools_end_it=tools_end_it)
        taken.take(b"{}")

        assert taken.doomed

    def test_salvaged_events_come_before_the_line_they_come_from(self) -> None:
        taken = EventLog(codex.read_event, lambda error, line: [ToolActivity(f"{error.code} {len(line)}")])
        taken.take(b"nonsense")

        assert taken.events == (ToolActivity("syntax 8"), Unreadable(b"nonsense", "syntax"))
        assert taken.doomed

    def test_an_adapter_may_give_several_events_for_one_line(self) -> None:
        def read(document: Document, line: bytes) -> list[Event]:
            del document, line
            return [Progress("a"), Unknown("b"), TurnFailed("")]

        taken = EventLog(read, nothing)

        assert taken.take(b"{}")
        assert taken.events == (Progress("a"), Unknown("b"), TurnFailed(""))


class TestLimits:
    def test_after_its_last_line_nothing_more_is_read(self) -> None:
        """P5: a flood of lines is given up, told once, and stops the program."""
        taken = EventLog(codex.read_event, codex.salvage, lines_most=2)
        over = [taken.take(line) for line in lines(TURN, DONE)]
        doomed = [taken.doomed]
        over += [taken.take(b"anything"), taken.take(lines(DONE)[0])]
        doomed.append(taken.doomed)

        assert over == [False, True, False, False]
        assert doomed == [False, True]
        assert [type(event) for event in taken.events] == [TurnStarted, TurnCompleted, Flood]

    def test_the_process_and_the_reader_have_the_same_longest_line(self) -> None:
        """F17 P5: 1 MiB per line, and no idle limit."""
        limits = call_limits(12.5, Bounds(stdout_bytes=1000))

        assert limits.wall_seconds == 12.5
        assert limits.line_bytes == 1_048_576
        assert limits.stdout_bytes == 1000
        assert limits.idle_seconds is None

    @pytest.mark.parametrize("kind", CallKind)
    def test_no_line_is_taken_that_could_not_be_read(self, kind: CallKind) -> None:
        """F17 P5: a worker may say more, and the reader reads what the process lets through."""
        bounds = BOUNDS[kind]

        assert bounds.line_bytes <= bounds.line.max_bytes
        assert bounds.line_bytes <= bounds.stdout_bytes
        assert (bounds.lines, bounds.line_bytes, bounds.stdout_bytes) == (
            (200_000, 16_777_216, 67_108_864) if kind is CallKind.WORK else (20_000, 1_048_576, 16_777_216)
        )

    def test_every_line_is_kept_as_it_came(self) -> None:
        """P5 F18: also those that cannot be read, and none after the flood."""
        taken = EventLog(codex.read_event, codex.salvage, lines_most=3)
        for line in (b"", b"\xff\r", b'{"a":', b"too much", b"more"):
            taken.take(line)

        assert taken.taken == b'\n\xff\r\n{"a":\n'

    def test_a_stream_that_nobody_reads_says_nothing(self) -> None:
        """P14 P5: kept under the same limits."""
        taken = EventLog(None, codex.salvage, lines_most=2)
        answers = [taken.take(line) for line in [*lines(TURN, DONE), b"third"]]

        assert answers == [False, False, False]
        assert taken.events == (Flood(),)
        assert taken.taken == b"".join(line + b"\n" for line in lines(TURN, DONE))
        assert taken.doomed

    def test_a_time_that_is_over_is_still_a_time(self) -> None:
        assert call_limits(-3, Bounds()).wall_seconds == 0.001


def test_completed_turns_carry_their_usage() -> None:
    """P8: the counters come with the terminal marker."""
    taken = log()
    taken.take(lines(DONE)[0])

    (event,) = taken.events
    assert isinstance(event, TurnCompleted)
    assert event.usage.input_tokens == 1200
