"""Lines of opencode's stream to typed events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.execution import Ended, ProcessResult
from skill_effectiveness.providers import UNKNOWN_USAGE, Usage
from skill_effectiveness.providers.events import (
    Message,
    Progress,
    Reasoning,
    SessionStarted,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unknown,
    Unreadable,
)
from skill_effectiveness.providers.opencode_events import Stream, failure, salvage, silent_kind
from skill_effectiveness.providers.stream import EventLog
from tests.support.opencode_fake import (
    SESSION,
    TOKENS,
    Document,
    failed,
    line,
    part,
    step_finish,
    step_start,
    stream,
    text,
    tool,
)

if TYPE_CHECKING:
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.providers.events import Event

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


def events_of(*documents: Document) -> list[Event]:
    """The events of some lines, without the start of the session."""
    state = Stream()
    told = [event for document in documents for event in state.read(document, b"")]
    return [event for event in told if not isinstance(event, SessionStarted)]


class TestLines:
    def test_the_lines_of_a_good_answer(self) -> None:
        """P5: one session, a turn, a message, the terminal marker."""
        state = Stream()
        documents = stream(step_start(), text("Yes."), step_finish())

        assert [event for document in documents for event in state.read(document, b"")] == [
            SessionStarted(SESSION),
            TurnStarted(),
            Message("Yes."),
            TurnCompleted(Usage(1200, 200, 34, 5, None)),
        ]

    def test_the_texts_of_a_step_are_one_answer(self) -> None:
        """P12: nothing around the answer is dropped, and what an earlier step said is no part of it."""
        told = events_of(
            *stream(
                step_start(),
                text("Let me see.", "a"),
                tool(),
                step_finish("tool-calls"),
                step_start("b"),
                text("First.", "c"),
                text("Second.", "d"),
                text("First, again.", "c"),
            )
        )

        assert told[-1] == Message("First, again.\nSecond.")

    def test_reasoning_is_no_answer(self) -> None:
        """P5: it has its own event."""
        assert events_of(line("reasoning", part("1", "reasoning", text="Hm."))) == [Reasoning("Hm.")]

    def test_a_step_with_a_tool_is_never_the_last(self) -> None:
        """P6: some servers say `stop` where the model wants a tool."""
        told = events_of(*stream(step_start(), tool(), step_finish("stop")))

        assert told == [TurnStarted(), ToolActivity("bash"), Progress("step_finish")]

    def test_a_tool_without_a_name_is_a_tool(self) -> None:
        """P9: of any shape."""
        assert events_of(line("tool_use", part("1", "tool"))) == [ToolActivity("")]

    @pytest.mark.parametrize(
        "document",
        [
            {},
            {"type": 1, "sessionID": SESSION},
            {"type": "text"},
            {"type": "text", "sessionID": ""},
            {"type": "text", "sessionID": "x" * 257},
            {"type": "text", "sessionID": SESSION},
            {"type": "text", "sessionID": SESSION, "part": 1},
            line("text", {**text(), "sessionID": "ses_other"}),
            line("text", {**text(), "id": None}),
            line("text", {**text(), "text": None}),
            line("reasoning", part("1", "reasoning")),
            line("step_finish", {**step_finish(), "reason": None}),
        ],
    )
    def test_a_line_that_lacks_what_its_type_promises(self, document: Document) -> None:
        """P5: it cannot be read, and is kept as it came."""
        told = Stream().read(document, b"the line")

        assert told[-1] == Unreadable(b"the line", "shape")

    def test_a_type_that_nobody_knows(self) -> None:
        """P5: typed as unknown."""
        assert events_of(line("news", part("1", "news"))) == [Unknown("news")]

    @given(st.dictionaries(st.sampled_from(["type", "sessionID", "part", "error", "x"]), json_values))
    def test_every_line_has_an_event(self, document: dict[str, Any]) -> None:
        """P5: whatever it holds, nothing is dropped and nothing is raised."""
        assert Stream().read(document, b"")

    @given(st.sampled_from(["text", "step_start", "step_finish", "tool_use", "reasoning"]), json_values)
    def test_every_part_has_an_event(self, kind: str, value: object) -> None:
        """P5: of any shape."""
        about = {
            "id": "prt_1",
            "sessionID": SESSION,
            "text": value,
            "reason": value,
            "tokens": value,
            "tool": value,
        }

        assert events_of(line(kind, about))


class TestUsage:
    def used(self, *parts: Document) -> Usage:
        state = Stream()
        for document in stream(*parts):
            state.read(document, b"")
        return state.usage

    def test_steps_are_added_up(self) -> None:
        """P8 F15: counters of a step are its own; what came from a cache and reasoning are included."""
        other: Document = {"input": 10, "output": 3, "reasoning": 2, "cache": {"write": 7, "read": 5}}

        assert self.used(
            step_finish(name="1", cost=0.5), step_finish(name="2", tokens=other, cost=0.25)
        ) == Usage(
            input_tokens=1222,
            cached_input_tokens=205,
            output_tokens=39,
            reasoning_output_tokens=7,
            cost_units=0.75,
        )

    def test_a_step_that_is_told_twice_counts_once(self) -> None:
        """F38: first in part, then right."""
        partial = {**TOKENS, "output": 1}

        assert self.used(step_finish(tokens=partial), step_finish()) == Usage(1200, 200, 34, 5, None)

    @pytest.mark.parametrize("cost", [0, 0.0, -1, None, "1", True])
    def test_a_price_that_is_not_known(self, cost: object) -> None:
        """F40: zero is what the program says of a model without a price."""
        assert self.used({**step_finish(), "cost": cost}).cost_units is None

    def test_one_step_without_a_price_leaves_the_sum_unknown(self) -> None:
        """F40: half a sum is none."""
        assert self.used(step_finish(name="1", cost=0.5), step_finish(name="2")).cost_units is None

    @pytest.mark.parametrize(
        "tokens", [{}, {"input": None}, {"input": -1, "output": "3"}, {"input": 0, "output": 0}]
    )
    def test_counters_that_are_not_told(self, tokens: Document) -> None:
        """P8 F40: unknown, never zero."""
        assert self.used(step_finish(tokens=tokens)) == UNKNOWN_USAGE

    def test_a_counter_that_one_step_lacks(self) -> None:
        """P8: that one is unknown, the others are not."""
        lacking = {**TOKENS, "cache": None}

        assert self.used(step_finish(name="1"), step_finish(name="2", tokens=lacking)) == Usage(
            input_tokens=None, cached_input_tokens=None, output_tokens=68, reasoning_output_tokens=10
        )

    def test_a_subagent_costs_what_is_not_told(self) -> None:
        """P8: its steps are in another session."""
        assert self.used(step_start(), tool("task"), step_finish("tool-calls")) == UNKNOWN_USAGE


class TestTrouble:
    @pytest.mark.parametrize(
        ("data", "kind"),
        [
            ({"statusCode": 401}, "auth_unavailable"),
            ({"statusCode": 402}, "quota_unavailable"),
            ({"statusCode": 403}, "permission_denied"),
            ({"statusCode": 404}, "other"),
            ({"statusCode": 429, "isRetryable": True}, "rate_limited"),
            ({"statusCode": 500}, "server_error"),
            ({"statusCode": 599}, "server_error"),
            ({"statusCode": 600}, "other"),
            ({"statusCode": True}, "other"),
            ({"isRetryable": True}, "connection_lost"),
            ({"isRetryable": False}, "other"),
            ({}, "other"),
            (
                {"statusCode": 429, "responseBody": '{"error":{"code":"insufficient_quota"}}'},
                "quota_unavailable",
            ),
            (
                {"statusCode": 404, "responseBody": '{"error":{"code":"model_not_found"}}'},
                "model_unavailable",
            ),
            (
                {"statusCode": 400, "responseBody": '{"error":{"code":"invalid_json_schema"}}'},
                "invalid_schema",
            ),
            ({"statusCode": 429, "responseBody": '{"error":{"code":7}}'}, "rate_limited"),
            ({"statusCode": 429, "responseBody": "insufficient_quota"}, "rate_limited"),
            ({"statusCode": 429, "responseBody": '{"error":"insufficient_quota"}'}, "rate_limited"),
            ({"statusCode": 429, "responseBody": "[]"}, "rate_limited"),
        ],
    )
    def test_the_kind_of_a_failed_request(self, data: Document, kind: str) -> None:
        """P7 F13: from fields, never from a sentence."""
        (event,) = events_of(failed(message="insufficient_quota 401", **data))

        assert isinstance(event, TurnFailed)
        assert event.kind == kind

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("ProviderAuthError", "auth_unavailable"),
            ("ProviderModelNotFoundError", "model_unavailable"),
            ("UnknownError", "other"),
            ("MessageAbortedError", "other"),
        ],
    )
    def test_the_kind_of_other_failures(self, name: str, kind: str) -> None:
        """P7: by the program's own name for them; a status beside it is not one of a request."""
        (event,) = events_of(failed(name, message="words", statusCode=500))

        assert event == TurnFailed("words", event.kind if isinstance(event, TurnFailed) else None)
        assert isinstance(event, TurnFailed)
        assert event.kind == kind

    @pytest.mark.parametrize("error", [None, 1, [], {}, {"name": 1}, {"name": "APIError", "data": 1}])
    def test_a_failure_without_a_reason_is_one(self, error: JsonValue) -> None:
        """P6: of any shape."""
        assert failure(error).kind == "other"

    def test_an_option_that_the_program_does_not_have(self) -> None:
        """P7: it prints its help and says nothing."""

        def ended(code: int, stderr: bytes) -> ProcessResult:
            return ProcessResult(ended=Ended.EXITED, exit_code=code, stderr=stderr)

        assert silent_kind(ended(1, b"opencode run [message..]\n\nrun opencode\n")) == "unsupported_flag"
        assert silent_kind(ended(1, b"Error: no\n")) is None
        assert silent_kind(ended(0, b"opencode run [message..]\n")) is None

    def test_what_a_step_came_to_is_forgotten_by_a_failure(self) -> None:
        """P6: then there is nothing to be without an answer."""
        state = Stream()
        for document in [*stream(step_start(), step_finish("length")), failed()]:
            state.read(document, b"")

        assert not state.unanswered


class TestSalvage:
    def told(self, line: bytes) -> list[Event]:
        with pytest.raises(StrictError) as caught:
            read_json(line, Profile.ROW, want_object=True)
        return salvage(caught.value, line)

    def test_a_tool_in_a_line_that_cannot_be_read(self) -> None:
        """P9 F18: half a character hides nothing."""
        about = line("tool_use", tool(command="\ud800"))

        assert self.told(json.dumps(about).encode()) == [ToolActivity("bash")]

    @pytest.mark.parametrize(
        ("raw", "events"),
        [
            (b'{"type":"tool_use","x":"\\ud800"}', [ToolActivity("")]),
            (
                b'{"type":"text","type":"tool_use","part":{"tool":"a","tool":"b"}}',
                [ToolActivity("a"), ToolActivity("b")],
            ),
            (b'{"type":"text","part":{"tool":"bash","text":"\\ud800"}}', []),
            (b'{"type":"tool_use"', []),
            (b'["tool_use","\\ud800"]', []),
        ],
    )
    def test_what_can_be_told_from_it(self, raw: bytes, events: list[Event]) -> None:
        """P9 F22: every member counts, also those that share a name."""
        assert self.told(raw) == events

    def test_the_line_itself_stays_unreadable(self) -> None:
        """P5: and it comes after what was told against the call."""
        state = Stream()
        log = EventLog(state.read, salvage)
        log.take(json.dumps(line("tool_use", tool(command="\ud800"))).encode())

        assert [type(event) for event in log.events] == [ToolActivity, Unreadable]


def test_more_texts_than_a_model_says() -> None:
    """P5: they are not put together without end."""
    state = Stream()
    shown = [
        state.read(one, b"line")[-1] for one in stream(step_start(), *(text("x", str(n)) for n in range(70)))
    ]
    assert isinstance(shown[64], Message)
    assert all(isinstance(event, Unreadable) for event in shown[65:])
