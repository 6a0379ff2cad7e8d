"""What single lines of claude mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.execution import Ended, ProcessResult
from skill_effectiveness.providers import UNKNOWN_USAGE, CallKind, CallOutcome, Ending, Usage
from skill_effectiveness.providers.classification import CallFacts, outcome_of
from skill_effectiveness.providers.claude import ClaudeProvider
from skill_effectiveness.providers.claude_events import ClaudeEvents, error_kind, session_usage
from skill_effectiveness.providers.events import Event, Progress, Reasoning, ToolActivity, Unreadable
from skill_effectiveness.providers.stream import EventLog
from tests.support.claude_streams import (
    GOOD,
    JUDGING,
    MODEL,
    SESSION,
    TOTALS,
    failed,
    init,
    result,
    said,
    text,
    used,
)
from tests.support.json_values import json_values
from tests.support.provider_calls import ANSWER, lines

WELL = ProcessResult(ended=Ended.EXITED, exit_code=0, stdin_complete=True)
BADLY = ProcessResult(ended=Ended.EXITED, exit_code=1, stdin_complete=True)


def log_of(*documents: object, formed: bool = True) -> EventLog:
    events = ClaudeEvents(JUDGING, formed=formed)
    log = EventLog(events.read, events.salvage)
    for line in lines(*documents):
        log.take(line)
    return log


def came_to(
    *documents: object, process: ProcessResult = WELL, formed: bool = True, kind: CallKind = CallKind.JUDGE
) -> CallOutcome:
    log = log_of(*documents, formed=formed)
    return outcome_of(CallFacts(process, log.events, MODEL, 0, kind), ClaudeProvider.vocabulary)


def events_of(document: object) -> tuple[Event, ...]:
    """The events of one line after the first."""
    return log_of(init(), document).events[len(log_of(init()).events) :]


class TestAnswers:
    def test_the_form_is_the_answer(self) -> None:
        """P6 P12: canonical text of the object, the whole session's cost, one session."""
        outcome = came_to(*GOOD)

        assert outcome.ending is Ending.SUCCESS
        assert outcome.answer == ANSWER
        assert outcome.usage == Usage(1250, 200, 34, 5, 0.00472)
        assert (outcome.session_id, outcome.observed_model) == (SESSION, MODEL)
        assert outcome.warnings == ()

    def test_free_text_is_the_result(self) -> None:
        """P6: and no text of a message is."""
        stream = [init(), said(text("Let me see.")), result(result="Done.")]
        assert came_to(*stream, formed=False).answer == "Done."

    def test_a_form_that_was_ignored_is_no_answer(self) -> None:
        """P12 F16: success, a text, and no `structured_output`."""
        marker = result()
        del marker["structured_output"]
        outcome = came_to(init(), said(text(ANSWER)), marker)

        assert (outcome.ending, outcome.answer) == (Ending.NO_ANSWER, None)

    @pytest.mark.parametrize("words", ["", " \n"])
    def test_an_empty_result_is_no_answer(self, words: str) -> None:
        """F16: none is taken from a message."""
        stream = [init(), said(text("The answer is yes.")), result(result=words)]
        assert came_to(*stream, formed=False).ending is Ending.NO_ANSWER

    def test_key_order_says_nothing(self) -> None:
        """P5: the program changes it from run to run."""
        turned = [dict(reversed(document.items())) for document in GOOD]
        assert came_to(*turned).answer == ANSWER

    def test_the_program_itself_refuses_the_form(self) -> None:
        """P6 P12: text came, and not of the asked form; what it cost is known."""
        marker = failed(
            subtype="error_max_structured_output_retries",
            terminal_reason="structured_output_retry_exhausted",
            errors=["Failed to provide valid structured output after 1 attempts"],
            modelUsage={MODEL: TOTALS},
            total_cost_usd=0.5,
        )
        outcome = came_to(init(), said(used("StructuredOutput")), marker, process=BADLY)

        assert outcome.ending is Ending.ANSWER_INVALID
        assert outcome.usage == Usage(1250, 200, 34, 5, 0.5)

    def test_a_later_turn_takes_the_marker_back(self) -> None:
        """F15: and its own result is the answer, with the totals of both."""
        more = result(result="More.", modelUsage={MODEL: {**TOTALS, "outputTokens": 68}}, total_cost_usd=0.01)
        first = [init(), said(text("x")), result(result="First.")]

        assert came_to(*first, init(), formed=False).ending is Ending.STREAM_INVALID
        assert came_to(*first, said(text("y")), formed=False).ending is Ending.STREAM_INVALID
        outcome = came_to(*first, init(), said(text("y")), more, formed=False)
        assert (outcome.answer, outcome.usage.output_tokens) == ("More.", 68)


class TestRefusals:
    @pytest.mark.parametrize("process", [WELL, BADLY])
    def test_the_providers_own_word(self, process: ProcessResult) -> None:
        """P6: `stop_reason`, whatever the exit and the text."""
        marker = failed("API Error: safeguards flagged this message", None, stop_reason="refusal")
        outcome = came_to(init(), said(text("")), marker, process=process)

        assert outcome.ending is Ending.REFUSED
        assert [warning.code for warning in outcome.warnings] == ["provider_notice"]

    def test_a_text_alone_is_no_refusal(self) -> None:
        """P6: never guessed from text."""
        stream = [init(), result(result="I cannot help with that request.")]
        assert came_to(*stream, formed=False).ending is Ending.SUCCESS


class TestFailures:
    @pytest.mark.parametrize(
        ("marker", "kind"),
        [
            (failed("Invalid API key · Fix external API key", 401), "auth_unavailable"),
            (failed("Failed to authenticate. API Error: 403 nope", 403), "permission_denied"),
            (failed("API Error: 402 Pay", 402), "quota_unavailable"),
            (failed("There's an issue with the selected model (x).", 404), "model_unavailable"),
            (failed("API Error: Request rejected (429) · slow", 429), "rate_limited"),
            (failed("You've hit your limit", 429, api_error="usage_limit_reached"), "quota_unavailable"),
            (failed("API Error: 500 It broke.", 500), "server_error"),
            (failed("API Error: 529 Overloaded.", 529), "server_error"),
            (failed("API Error: Connection", None, api_error="connection_failed"), "connection_lost"),
            (failed("Credit balance is too low", 400), "quota_unavailable"),
            (failed("API Error: 400 tools.0.custom.input_schema: is invalid", 400), "invalid_schema"),
            (failed("Not logged in · Please run /login", None), "auth_unavailable"),
            (failed("API Error: 400 messages: too many", 400), "other"),
            (failed("", None), "other"),
            (failed("401", api_error_status=True), "other"),
        ],
    )
    @pytest.mark.parametrize("process", [WELL, BADLY])
    def test_each_trouble_has_its_kind(
        self, marker: dict[str, Any], kind: str, process: ProcessResult
    ) -> None:
        """P7 F13: the subtype is `success` in all of them, and the exit code may be."""
        outcome = came_to(init(), marker, process=process)

        assert outcome.ending is Ending.PROVIDER_ERROR
        assert outcome.error_kind == kind
        assert outcome.usage == UNKNOWN_USAGE

    @pytest.mark.parametrize(
        "changed",
        [
            {"is_error": True},
            {"subtype": "error_during_execution"},
            {"terminal_reason": "api_error"},
            {"terminal_reason": None},
            {"api_error_status": 500},
            {"api_error": "connection_failed"},
        ],
        ids=str,
    )
    def test_one_bad_word_spoils_a_result(self, changed: dict[str, Any]) -> None:
        """P6 F13: all of them have to be good."""
        assert came_to(init(), result(**changed)).ending is Ending.PROVIDER_ERROR

    def test_a_synthetic_message_is_not_the_model(self) -> None:
        """P2: it names no model and no answer, and is told."""
        outcome = came_to(init(), said(text("API Error: 500"), model="<synthetic>"), failed(), process=BADLY)

        assert outcome.ending is Ending.PROVIDER_ERROR
        assert outcome.observed_model == MODEL
        assert [warning.text for warning in outcome.warnings] == ["API Error: 500"]

    def test_a_synthetic_message_is_no_answer(self) -> None:
        """P6 F16: what the program wrote itself, in a turn that it says went well."""
        words = said(text("Compacted."), model="<synthetic>")
        stream = [init(), words, result(result="Compacted.")]

        assert came_to(*stream, formed=False).ending is Ending.NO_ANSWER
        assert came_to(*stream, said(text("x")), result(result="x"), formed=False).answer == "x"

    @pytest.mark.parametrize("block", [used("StructuredOutput"), {"type": "thinking", "thinking": "hm"}])
    def test_nobody_hides_behind_that_name(self, block: dict[str, Any]) -> None:
        """P2 P9 R31: a server that calls its model so is another model; a tool of it is a tool."""
        assert came_to(init(), said(block, model="<synthetic>"), result()).ending is Ending.MODEL_MISMATCH
        tool = said(used("Bash"), model="<synthetic>")
        assert came_to(init(), tool, result()).ending is Ending.TOOL_ACTIVITY

    def test_retries_are_recorded_and_never_final(self) -> None:
        """P11: another result may follow."""
        retry = {"type": "system", "subtype": "api_retry", "error": "overloaded", "error_status": 529}
        good = came_to(init(), retry, *GOOD[1:])

        assert good.ending is Ending.SUCCESS
        assert [warning.text for warning in good.warnings] == ["overloaded (status 529)"]
        assert came_to(init(), retry, process=BADLY).ending is Ending.STREAM_INVALID

    def test_an_unknown_sentence_is_other(self) -> None:
        assert error_kind("Something new") == "other"
        assert error_kind("You\u2019ve hit your weekly limit") == "quota_unavailable"


class TestModels:
    @pytest.mark.parametrize("kind", [CallKind.JUDGE, CallKind.WORK])
    def test_another_model_in_any_init_or_message(self, kind: CallKind) -> None:
        """F37 P2 R31: an alias that was resolved, a server that moved it, a later turn."""
        for stream in (
            [init(model="other"), *GOOD[1:]],
            [init(), said(used("StructuredOutput"), model="other"), result()],
            [*GOOD, init(model="other"), *GOOD[1:]],
        ):
            assert came_to(*stream, kind=kind).ending is Ending.MODEL_MISMATCH


class TestTools:
    @pytest.mark.parametrize(
        "block",
        [
            used("Bash", command="ls"),
            used("Skill", skill="x"),
            {"type": "tool_use", "id": "x"},
            {"type": "server_tool_use", "name": "web_search"},
            {"type": "mcp_tool_use", "name": "StructuredOutput"},
            {"type": "never_heard_of"},
            {"type": None},
            {},
        ],
    )
    def test_whatever_is_not_known_to_be_none(self, block: dict[str, Any]) -> None:
        """P9 R31: a surface that cannot be read is not empty."""
        log = log_of(init(), said(text("hm"), block))

        assert log.doomed
        assert came_to(init(), said(block), result()).ending is Ending.TOOL_ACTIVITY

    @pytest.mark.parametrize("block", [text("x"), {"type": "redacted_thinking", "data": "x"}])
    def test_what_is_none(self, block: dict[str, Any]) -> None:
        assert isinstance(events_of(said(block))[-1], Progress)

    def test_thinking_is_reasoning(self) -> None:
        assert events_of(said({"type": "thinking", "thinking": "hm"}))[-1] == Reasoning("hm")

    def test_the_tool_for_an_answer_is_one_where_no_form_was_asked_for(self) -> None:
        """P9: a name does not make a tool harmless."""
        assert came_to(*GOOD, formed=False).ending is Ending.TOOL_ACTIVITY

    def test_a_denial_shows_a_tool_too(self) -> None:
        """P9: as an event and at the end."""
        denied = {"type": "system", "subtype": "permission_denied", "tool_name": "Write", "message": "no"}
        at_the_end = result(permission_denials=[{"tool_name": "Write"}])

        assert came_to(init(), denied, result()).ending is Ending.TOOL_ACTIVITY
        assert came_to(init(), at_the_end).ending is Ending.TOOL_ACTIVITY

    def test_a_tool_that_the_server_used_by_itself(self) -> None:
        """P9: the stream need not show it."""
        marker = result(usage={"server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0}})
        assert came_to(init(), marker).ending is Ending.TOOL_ACTIVITY

    def test_a_tool_in_a_line_that_is_not_strict(self) -> None:
        """P9 F18: half a surrogate pair in a command hides nothing."""
        events = ClaudeEvents(JUDGING, formed=True)
        line = json.dumps(said(used("Bash", command="\ud83d"))).encode()
        log = EventLog(events.read, events.salvage)
        log.take(line)

        assert [type(event) for event in log.events[-2:]] == [ToolActivity, Unreadable]
        assert log.doomed

    @pytest.mark.parametrize(
        "line", [b"[]", b"{", b'{"type":"assistant","x":1,"x":2}', b"\xff", b'{"a":NaN}']
    )
    def test_other_lines_salvage_nothing(self, line: bytes) -> None:
        events = ClaudeEvents(JUDGING, formed=True)
        log = EventLog(events.read, events.salvage)
        log.take(line)

        assert [type(event) for event in log.events] == [Unreadable]

    @pytest.mark.parametrize(
        ("message", "tools"),
        [
            ('{"model":"m","content":[],"content":[{"type":"tool_use","name":"Bash"}]}', ["Bash"]),
            ('{"model":"m","content":[{"type":"tool_use","name":"Bash"}],"content":[]}', ["Bash"]),
            ('{"content":[{"type":"text","type":"tool_use","name":"Bash"}]}', ["Bash"]),
            (
                '{"content":[{"type":"tool_use","name":"StructuredOutput","name":"Bash"}]}',
                ["StructuredOutput", "Bash"],
            ),
            ('{"content":[{"type":"tool_use","name":"StructuredOutput"}]}', []),
            ('{"content":[{"type":"text"},{"type":"thinking"},{"type":"redacted_thinking"}]}', []),
            ('{"content":[{"type":"hologram"}]}', ["hologram"]),
            ('{"content":["bare",{},[]]}', ["unreadable"] * 3),
        ],
    )  # fmt: skip
    def test_a_name_that_stands_twice_hides_nothing(self, message: str, tools: list[str]) -> None:
        """P9 F18: every member of a name is looked at, in lines that the strict reader refuses."""
        events = ClaudeEvents(JUDGING, formed=True)
        log = EventLog(events.read, events.salvage)
        log.take(f'{{"type":"assistant","message":{message},"x":1,"x":2}}'.encode())

        assert [event.kind for event in log.events if isinstance(event, ToolActivity)] == tools
        assert isinstance(log.events[-1], Unreadable)

    @given(inner=json_values)
    def test_no_value_breaks_it(self, inner: object) -> None:
        """P5 F18: a type or a name that is no text, anywhere."""
        text_of = json.dumps(inner)
        for block in (text_of, f'{{"type":{text_of}}}', f'{{"type":"tool_use","name":{text_of}}}'):
            line = f'{{"type":"assistant","message":{{"content":[{block}]}},"x":1,"x":{text_of}}}'
            events = ClaudeEvents(JUDGING, formed=True)
            log = EventLog(events.read, events.salvage)
            log.take(line.encode())
            assert isinstance(log.events[-1], Unreadable)


class TestSurfaces:
    def test_another_surface_ends_the_call_at_once(self) -> None:
        """P9 R31: before the model is asked, where that is possible."""
        log = log_of(init(tools=["StructuredOutput", "Bash"]))

        assert log.doomed
        outcome = came_to(init(tools=["StructuredOutput", "Bash"]), *GOOD[1:])
        assert outcome.ending is Ending.STREAM_INVALID
        assert [(warning.code, warning.text) for warning in outcome.warnings] == [
            ("surface_differs", "tools: not those asked for")
        ]

    def test_every_beginning_of_a_turn_is_looked_at(self) -> None:
        """P9 R31: a session that is widened later."""
        outcome = came_to(*GOOD, init(mcp_servers=[{"name": "x"}]), *GOOD[1:])
        assert outcome.ending is Ending.STREAM_INVALID

    @pytest.mark.parametrize("stream", [GOOD[1:], GOOD[2:], [said(text("x"))]])
    def test_a_session_that_never_said_what_it_is(self, stream: list[dict[str, Any]]) -> None:
        """P9 R31: nothing is believed of it."""
        outcome = came_to(*stream)

        assert outcome.ending is Ending.STREAM_INVALID
        assert "surface_differs" in [warning.code for warning in outcome.warnings]


class TestSessions:
    def test_two_sessions_are_none(self) -> None:
        """R31 P6: in any event, not in the first alone."""
        for position in range(3):
            stream = [dict(document) for document in GOOD]
            stream[position]["session_id"] = "another"
            outcome = came_to(*stream)
            assert outcome.ending is Ending.STREAM_INVALID
            assert outcome.session_id is None

    @pytest.mark.parametrize("session", [None, "", 7, "x" * 257])
    def test_a_session_without_an_id(self, session: object) -> None:
        """R31: two of them could not be told apart."""
        stream = [{**document, "session_id": session} for document in GOOD]
        assert came_to(*stream).ending is Ending.STREAM_INVALID


class TestShapes:
    @pytest.mark.parametrize(
        "document",
        [
            {"type": 1},
            {},
            {"type": "system"},
            {"type": "assistant"},
            {"type": "assistant", "message": {"content": []}},
            {"type": "assistant", "message": {"model": MODEL, "content": "text"}},
            {"type": "user"},
            {"type": "user", "message": {"content": 1}},
            {"type": "result"},
            {"type": "result", "is_error": False},
            {"type": "result", "is_error": "false", "subtype": "success"},
        ],
        ids=str,
    )
    def test_a_line_without_what_its_type_promises(self, document: dict[str, Any]) -> None:
        """P5: unreadable, so that the call is no success."""
        assert isinstance(events_of(document)[-1], Unreadable)
        assert came_to(*GOOD, document).ending is Ending.STREAM_INVALID

    @pytest.mark.parametrize(
        ("document", "kind"),
        [({"type": "novelty"}, "novelty"), ({"type": "system", "subtype": "novelty"}, "system/novelty")],
    )
    def test_an_unknown_event_stays_in_the_record(self, document: dict[str, Any], kind: str) -> None:
        """P5 F14: typed as unknown, told, and no reason to fail."""
        outcome = came_to(init(), document, *GOOD[1:])

        assert outcome.ending is Ending.SUCCESS
        assert [(w.code, w.text) for w in outcome.warnings] == [("unknown_event", kind)]

    def test_a_rate_limit_that_was_reached_is_told(self) -> None:
        """P8: and one that was not is no trouble."""
        told = [
            came_to(init(), {"type": "rate_limit_event", "rate_limit_info": {"status": status}}, *GOOD[1:])
            for status in ("allowed", "rejected")
        ]

        assert [len(outcome.warnings) for outcome in told] == [0, 1]

    @given(json_values, st.sampled_from(["system", "assistant", "user", "result", "x"]))
    def test_no_value_breaks_the_reader(self, value: object, kind: str) -> None:
        """P5: whatever stands in a line becomes at least one event, and never a success by itself."""
        for document in (value, {"type": kind, "message": value}, {"type": kind, **_as_object(value)}):
            log = log_of(document)
            assert log.events
            assert came_to(document).ending is not Ending.SUCCESS


def _as_object(value: object) -> dict[str, object]:
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {"subtype": value}


class TestUsage:
    def test_models_are_added_up_and_kinds_told_apart(self) -> None:
        """P8: what went into a cache or came from one is input as well."""
        marker = result(modelUsage={MODEL: TOTALS, "another": TOTALS}, total_cost_usd=1)
        assert session_usage(marker) == Usage(2500, 400, 68, 10, 1.0)

    @pytest.mark.parametrize("models", [None, {}, [], "x"])
    def test_no_totals_are_unknown_and_not_zero(self, models: object) -> None:
        """F40: also where the program prints a cost of 0."""
        assert session_usage(result(modelUsage=models, total_cost_usd=0)) == UNKNOWN_USAGE

    @pytest.mark.parametrize("value", [None, -1, True, "1", 1.5])
    def test_a_total_that_cannot_be_read_spoils_the_sum(self, value: object) -> None:
        """F40: half a sum is no sum."""
        models = {MODEL: TOTALS, "another": {**TOTALS, "outputTokens": value}}
        usage = session_usage(result(modelUsage=models))

        assert usage.output_tokens is None
        assert usage.input_tokens == 2500

    def test_repeated_counters_of_a_message_count_for_nothing(self) -> None:
        """F38: the first is partial, the last is right, and neither is a total."""
        partial = said(text("x"), message="msg_1")
        assert came_to(init(), partial, partial, *GOOD[1:]).usage == Usage(1250, 200, 34, 5, 0.00472)

    def test_without_a_result_the_cost_is_unknown(self) -> None:
        """F40 F38: counters of messages are no total."""
        assert came_to(init(), said(text("x")), process=BADLY).usage == UNKNOWN_USAGE
