"""What codex says and how it is started: pure readings of single lines, sentences and arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import read_json
from skill_effectiveness.execution import Ended, ProcessResult
from skill_effectiveness.providers import UNKNOWN_USAGE, ProviderErrorKind, Usage
from skill_effectiveness.providers.codex import (
    error_kind,
    judge_argv,
    login_file,
    read_event,
    read_stderr,
    salvage,
    silent_kind,
)
from skill_effectiveness.providers.events import (
    Event,
    Message,
    ModelReported,
    Notice,
    NoticeKind,
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
from skill_effectiveness.providers.stream import LINE_PROFILE

LINE = b"the line itself"
SHAPE: list[Event] = [Unreadable(LINE, "shape")]


def item(kind: str, **members: object) -> dict[str, object]:
    return {"type": kind, "item": {"id": "item_1", **members}}


def read(document: dict[str, object]) -> list[Event]:
    return read_event(document, LINE)  # type: ignore[arg-type] # plain JSON values


class TestSessionEvents:
    @pytest.mark.parametrize(
        ("document", "event"),
        [
            ({"type": "thread.started", "thread_id": "t-1"}, SessionStarted("t-1")),
            ({"type": "turn.started"}, TurnStarted()),
            ({"type": "turn.failed", "error": {"message": "Quota exceeded."}}, TurnFailed("Quota exceeded.")),
            ({"type": "turn.failed"}, TurnFailed("")),
            ({"type": "turn.failed", "error": "words"}, TurnFailed("")),
            ({"type": "error", "message": "It broke."}, Notice(NoticeKind.ERROR, "It broke.")),
            (
                {"type": "error", "message": "Reconnecting... 2/5 (lost)"},
                Notice(NoticeKind.RETRY, "Reconnecting... 2/5 (lost)"),
            ),
            ({"type": "turn.paused"}, Unknown("turn.paused")),
            ({"type": ""}, Unknown("")),
        ],
    )
    def test_each_type_has_its_event(self, document: dict[str, object], event: Event) -> None:
        """P5 P11: a retry is told apart from an error, an unknown type is typed as that."""
        assert read(document) == [event]

    @pytest.mark.parametrize(
        "document",
        [
            {},
            {"type": 7},
            {"type": None},
            {"type": "thread.started"},
            {"type": "thread.started", "thread_id": ""},
            {"type": "thread.started", "thread_id": 5},
            {"type": "thread.started", "thread_id": "x" * 257},
            {"type": "error"},
            {"type": "error", "message": {"text": "x"}},
            {"type": "item.completed"},
            {"type": "item.started"},
            {"type": "item.updated"},
        ],
    )
    def test_a_known_type_without_what_it_promises_is_unreadable(self, document: dict[str, object]) -> None:
        """P5: a shape that was never seen is not guessed at."""
        assert read(document) == SHAPE


class TestItems:
    def test_messages_and_reasoning_count_when_they_are_finished(self) -> None:
        """P6: half a message is progress, not an answer."""
        assert read(item("item.completed", type="agent_message", text="{}")) == [Message("{}")]
        assert read(item("item.completed", type="reasoning", text="hm")) == [Reasoning("hm")]
        assert read(item("item.started", type="agent_message", text="{")) == [Progress("agent_message")]
        assert read(item("item.updated", type="agent_message", text="{")) == [Progress("agent_message")]
        assert read(item("item.started", type="reasoning")) == [Progress("reasoning")]

    def test_an_error_item_is_a_remark(self) -> None:
        """F14: for example about metadata that is not known."""
        assert read(item("item.completed", type="error", message="Model metadata for `m` not found.")) == [
            Notice(NoticeKind.REMARK, "Model metadata for `m` not found.")
        ]

    def test_a_rerouted_model_is_reported(self) -> None:
        """F37 P2: the one place where the program names the model that answers."""
        sentence = "model rerouted: gpt-a -> gpt-b-2026-01-01 (HighRiskCyberActivity)"

        assert read(item("item.completed", type="error", message=sentence)) == [
            Notice(NoticeKind.REMARK, sentence),
            ModelReported("gpt-b-2026-01-01"),
        ]

    def test_a_model_cannot_report_another_one_in_its_answer(self) -> None:
        """P2: the sentence counts in an error item alone."""
        sentence = "model rerouted: a -> b (X)"

        assert read(item("item.completed", type="agent_message", text=sentence)) == [Message(sentence)]

    @pytest.mark.parametrize(
        ("event", "members", "succeeded"),
        [
            ("item.completed", {"type": "command_execution", "status": "completed", "exit_code": 0}, True),
            ("item.completed", {"type": "command_execution", "status": "failed", "exit_code": 1}, False),
            ("item.completed", {"type": "command_execution", "status": "declined", "exit_code": None}, False),
            (
                "item.completed",
                {"type": "command_execution", "status": "completed", "exit_code": False},
                False,
            ),
            ("item.completed", {"type": "command_execution", "status": "failed", "exit_code": 0}, False),
            ("item.started", {"type": "command_execution", "status": "completed", "exit_code": 0}, None),
            ("item.updated", {"type": "command_execution", "status": "in_progress"}, None),
            ("item.completed", {"type": "mcp_tool_call", "status": "completed"}, True),
            ("item.completed", {"type": "mcp_tool_call", "status": "failed"}, False),
            ("item.completed", {"type": "web_search"}, False),
            ("item.completed", {"type": "file_change", "status": "completed"}, False),
        ],
    )
    def test_how_a_tool_ended(
        self,
        event: str,
        members: dict[str, Any],
        succeeded: bool | None,  # noqa: FBT001 - three words
    ) -> None:
        """M115: the last event of a command or a tool server tells; whatever else there is reads nothing."""
        (tool,) = read(item(event, **members))
        assert isinstance(tool, ToolActivity)
        assert tool.succeeded is succeeded

    @pytest.mark.parametrize("event", ["item.started", "item.updated", "item.completed"])
    @pytest.mark.parametrize(
        "tool",
        [
            "command_execution",
            "file_change",
            "mcp_tool_call",
            "web_search",
            "todo_list",
            "collab_tool_call",
            "never_heard_of",
            "",
        ],
    )
    def test_every_other_item_is_a_tool(self, event: str, tool: str) -> None:
        """P9 R31: also one of a type that nobody has heard of, at its first sign."""
        assert read(item(event, type=tool)) == [ToolActivity(tool)]

    def test_an_item_in_an_unknown_event_is_judged_too(self) -> None:
        """P9: a new event cannot carry a tool past the audit."""
        assert read(item("item.delta", type="command_execution")) == [
            ToolActivity("command_execution"),
            Unknown("item.delta"),
        ]
        assert read(item("item.delta", type="agent_message")) == [Unknown("item.delta")]

    @pytest.mark.parametrize(
        "document",
        [
            {"type": "item.completed", "item": None},
            {"type": "item.completed", "item": []},
            {"type": "item.completed", "item": {}},
            {"type": "item.completed", "item": {"type": 3}},
            {"type": "item.completed", "item": {"type": "agent_message"}},
            {"type": "item.completed", "item": {"type": "agent_message", "text": None}},
            {"type": "item.completed", "item": {"type": "agent_message", "text": ["{}"]}},
            {"type": "item.completed", "item": {"type": "error"}},
            {"type": "thread.started", "thread_id": "t", "item": 1},
        ],
    )
    def test_an_item_without_its_shape_is_unreadable(self, document: dict[str, object]) -> None:
        assert read(document) == SHAPE


class TestUsage:
    def usage(self, counters: object) -> Usage:
        (event,) = read({"type": "turn.completed", "usage": counters})
        assert isinstance(event, TurnCompleted)
        return event.usage

    def test_the_counters_by_name(self) -> None:
        """P8: tokens by kind; the program names no price."""
        assert self.usage(
            {
                "input_tokens": 2400,
                "cached_input_tokens": 400,
                "cache_write_input_tokens": 0,
                "output_tokens": 68,
                "reasoning_output_tokens": 10,
            }
        ) == Usage(2400, 400, 68, 10, None)

    def test_a_counter_of_zero_is_a_zero_beside_others(self) -> None:
        assert self.usage({"input_tokens": 5, "output_tokens": 0}) == Usage(5, None, 0, None, None)

    @pytest.mark.parametrize("counters", [None, {}, [], "many", 5])
    def test_no_counters_are_unknown(self, counters: object) -> None:
        """F40 P8: no usage object means unknown, not zero."""
        assert self.usage(counters) == UNKNOWN_USAGE

    def test_all_zeros_are_unknown(self) -> None:
        """F40: that is what the program writes when the server reported nothing."""
        assert (
            self.usage(
                {
                    "input_tokens": 0,
                    "cached_input_tokens": 0,
                    "cache_write_input_tokens": 0,
                    "output_tokens": 0,
                    "reasoning_output_tokens": 0,
                }
            )
            == UNKNOWN_USAGE
        )

    @pytest.mark.parametrize("value", [True, -1, 1.0, "12", None, [1]])
    def test_a_counter_that_is_no_count_is_unknown(self, value: object) -> None:
        """F40 P8: never coerced."""
        assert self.usage({"input_tokens": value, "output_tokens": 3}) == Usage(None, None, 3, None, None)

    def test_the_marker_counts_without_counters(self) -> None:
        assert read({"type": "turn.completed"}) == [TurnCompleted(UNKNOWN_USAGE)]


class TestSalvage:
    def salvaged(self, line: bytes) -> list[Event]:
        with pytest.raises(StrictError) as caught:
            read_json(line, LINE_PROFILE, want_object=True)
        return salvage(caught.value, line)

    def test_a_web_search_as_the_program_writes_it(self) -> None:
        """P9 R31: it names two members `id`, and is a tool all the same."""
        line = (
            b'{"type":"item.started","item":{"id":"item_1","type":"web_search","id":"ws_1","query":"x",'
            b'"action":{"type":"search","query":"x"}}}'
        )

        assert self.salvaged(line) == [ToolActivity("web_search")]

    @pytest.mark.parametrize(
        "line",
        [
            b'{"type":"item.completed","item":{"type":"command_execution","out":"\\ud800"}}',
            b'{"type":"item.completed","item":{"type":"command_execution","out":"\\ufffe"}}',
            b'{"type":"item.completed","item":{"type":"command_execution","n":NaN}}',
            b'{"type":"item.completed","item":{"type":"command_execution","n":1e999}}',
            b'{"type":"item.completed","item":{"type":"command_execution","n":' + b"9" * 5000 + b"}}",
            b'{"type":"item.completed","item":{"type":"agent_message","type":"command_execution"}}',
            b'{"item":{"type":"command_execution"},"item":{"type":"agent_message"}}',
        ],
    )
    def test_a_tool_in_a_line_with_refused_values(self, line: bytes) -> None:
        """P9 F18: nothing a tool prints can hide it."""
        assert self.salvaged(line) == [ToolActivity("command_execution")]

    @pytest.mark.parametrize(
        "line",
        [
            b'{"type":"item.completed","item":{"type":"agent_message","text":"\\ud800"}}',
            b'{"type":"error","message":"\\ud800"}',
            b'{"type":"a","type":"b"}',
            b'{"item":{"text":"\\ud800"}}',
            b'{"item":"\\ud800"}',
            b'["\\ud800"]',
            b'"command_execution"',
            b'{"item":{"type":"command_execution"}} and more',
            b'{"item":{"type":"command_execution"',
            b"[" * 100_000,
            b'{"item":{"type":"command_execution","x":"\xff"}}',
        ],
    )
    def test_nothing_is_read_into_other_lines(self, line: bytes) -> None:
        """P5: what is no JSON at all, or shows no tool, stays merely unreadable."""
        assert self.salvaged(line) == []


class TestStderr:
    def test_a_refused_tool_call_is_a_tool_call(self) -> None:
        """P9: it leaves no item in the stream."""
        stderr = (
            b"2026-11-30T14:40:26.681363Z ERROR codex_api::endpoint: failed to connect\n"
            b"2026-11-30T14:40:27.355793Z ERROR codex_core::tools::router: error=unsupported call: x\n"
        )

        assert read_stderr(stderr) == [ToolActivity("refused_call")]

    @pytest.mark.parametrize(
        "stderr",
        [
            b"",
            b"2026-11-30T14:40:26.681363Z ERROR codex_api::endpoint: failed to connect\n",
            b"warning: Untrusted project-local configuration is disabled.\n",
            b"\xff\xfe",
        ],
    )
    def test_other_complaints_are_not(self, stderr: bytes) -> None:
        assert read_stderr(stderr) == []


class TestErrorKinds:
    @pytest.mark.parametrize(
        ("message", "kind"),
        [
            (
                "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://h/v1/r",
                "auth_unavailable",
            ),
            (
                "Your access token could not be refreshed. Please log out and sign in again.",
                "auth_unavailable",
            ),
            ("unexpected status 403 Forbidden: Country not supported, url: http://h/", "permission_denied"),
            ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limited"),
            ("rate limit exceeded: Please try again in 20s.", "rate_limited"),
            ("Quota exceeded. Check your plan and billing details.", "quota_unavailable"),
            ("You\u2019ve hit your usage limit. Try again later.", "quota_unavailable"),
            ("You've hit your usage limit. Try again later.", "quota_unavailable"),
            (
                "We\u2019re currently experiencing high demand, which may cause temporary errors.",
                "server_error",
            ),
            ("Selected model is at capacity. Please try a different model.", "server_error"),
            ("unexpected status 500 Internal Server Error: x", "server_error"),
            ("exceeded retry limit, last status: 503 Service Unavailable", "server_error"),
            ("unexpected status 599 Odd: x", "server_error"),
            ("stream disconnected before completion: Transport error: network error", "connection_lost"),
            ("Connection failed: error sending request", "connection_lost"),
            ("The model `x` does not exist or you do not have access to it.", "model_unavailable"),
            ('{"error":{"message":"No.","code":"model_not_found"}}', "model_unavailable"),
            ('{"error":{"message":"Invalid schema","code":"invalid_json_schema"}}', "invalid_schema"),
            ("unexpected status 404 Not Found: x", "other"),
            ("unexpected status 600 Odd: x", "other"),
            ("Codex ran out of room in the model's context window.", "other"),
            ('{"error":{"code":"something_else"}}', "other"),
            ('{"error":{"code":5}}', "other"),
            ('{"error":"model_not_found"}', "other"),
            ('["model_not_found"]', "other"),
            ("", "other"),
            ("\ud800", "other"),
        ],
    )
    def test_the_words_of_the_program(self, message: str, kind: str) -> None:
        """P7: kinds of provider error."""
        assert error_kind(message).value == kind

    @pytest.mark.parametrize(
        "message",
        [
            "The prompt says: Quota exceeded.",
            "unexpected statuses 401",
            "invalid prompt: unexpected status 401 Unauthorized",
            "He said: The model `x` does not exist or you do not have access to it.",
            "The model `x` does not exist or you do not have access to it. Quota exceeded.",
        ],
    )
    def test_only_the_beginning_of_a_sentence_counts(self, message: str) -> None:
        """P7: what a server quotes from a prompt decides nothing."""
        assert error_kind(message) is ProviderErrorKind.OTHER


class TestSilentKind:
    def silent(self, code: int, stderr: bytes) -> ProviderErrorKind | None:
        return silent_kind(ProcessResult(ended=Ended.EXITED, exit_code=code, stderr=stderr))

    def test_an_option_it_does_not_take(self) -> None:
        """P7: unsupported_flag, as the argument parser says it."""
        stderr = b"error: unexpected argument '--ephemeral' found\n\nUsage: codex exec [OPTIONS] [PROMPT]\n"

        assert self.silent(2, stderr) is ProviderErrorKind.UNSUPPORTED_FLAG
        assert (
            self.silent(2, b"error: invalid value 'x' for '--sandbox'\n")
            is ProviderErrorKind.UNSUPPORTED_FLAG
        )

    def test_anything_else_is_not_explained(self) -> None:
        assert self.silent(1, b"error: unexpected argument '--ephemeral' found\n") is None
        assert self.silent(2, b"No such luck\n") is None
        assert self.silent(1, b"Error loading config.toml: no\n") is None


class TestArguments:
    def test_the_judge_call_word_by_word(self) -> None:
        """P1 P4 P9: the documented call; the prompt is read from stdin."""
        assert judge_argv(Path("/opt/codex"), "gpt-5.5", Path("/s/data/schema.json")) == [
            "/opt/codex",
            "exec",
            "--json",
            "--ephemeral",
            "--ignore-user-config",
            "--skip-git-repo-check",
            "--sandbox",
            "read-only",
            "--color",
            "never",
            "--model",
            "gpt-5.5",
            "--output-schema",
            "/s/data/schema.json",
            "-c",
            "analytics.enabled=false",
            "-c",
            "features.apps=false",
            "-c",
            "features.plugins=false",
            "-c",
            "features.remote_plugin=false",
            "-c",
            "project_root_markers=[]",
            "-c",
            "skills.bundled.enabled=false",
            "-c",
            "project_doc_max_bytes=0",
            "-c",
            "skills.include_instructions=false",
            "-",
        ]


class TestLoginFile:
    @pytest.mark.parametrize(
        ("environ", "expected"),
        [
            ({"CODEX_HOME": "/c", "HOME": "/h"}, "/c/auth.json"),
            ({"CODEX_HOME": "", "HOME": "/h"}, "/h/.codex/auth.json"),
            ({"HOME": "/h"}, "/h/.codex/auth.json"),
            ({"CODEX_HOME": "relative", "HOME": "/h"}, None),
            ({"HOME": "relative"}, None),
            ({"HOME": ""}, None),
            ({}, None),
        ],
    )
    def test_where_the_users_login_is(self, environ: dict[str, str], expected: str | None) -> None:
        """P3: one file, in the folder the program itself would use, and only by an absolute path."""
        found = login_file(environ)

        assert (None if found is None else str(found)) == expected
