"""What Kimi's lines, its errors and its wire files mean."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.faults import StrictError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.execution import Ended, ProcessResult
from skill_effectiveness.providers import UNKNOWN_USAGE, Usage
from skill_effectiveness.providers.events import (
    Declined,
    Event,
    Message,
    ModelReported,
    Notice,
    NoticeKind,
    Progress,
    SessionStarted,
    ToolActivity,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Unknown,
    Unreadable,
)
from skill_effectiveness.providers.kimi_events import (
    error_kind,
    other_models,
    read_event,
    read_stderr,
    salvage,
    silent_kind,
    wire_records,
    wire_usage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

SHAPE = "shape"
BASH = {"type": "function", "id": "call_1", "function": {"name": "Bash", "arguments": "{}"}}
NAMELESS = {"type": "function", "id": "call_1", "function": {"arguments": "{}"}}
HINT = {"role": "meta", "type": "session.resume_hint", "session_id": "session_1-a", "command": "c"}


def read(document: dict[str, object]) -> list[Event]:
    line = json.dumps(document).encode()
    return [
        Unreadable(b"", event.reason) if isinstance(event, Unreadable) else event
        for event in read_event(json.loads(line), line)
    ]


class TestLines:
    @pytest.mark.parametrize(
        ("document", "events"),
        [
            ({"role": "meta", "type": "system.version", "version": "2.1.0"}, [Progress("system.version")]),
            (
                {"role": "meta", "type": "turn.step.retrying", "error_message": "500 x", "next_attempt": 2},
                [Notice(NoticeKind.RETRY, "500 x")],
            ),
            (HINT, [SessionStarted("session_1-a"), TurnCompleted(UNKNOWN_USAGE)]),
            ({"role": "assistant", "content": "x"}, [Message("x")]),
            ({"role": "assistant", "tool_calls": [BASH, BASH]}, [ToolActivity("Bash")] * 2 + [TurnStarted()]),
            (
                {"role": "assistant", "content": "x", "tool_calls": [BASH]},
                [Message("x"), ToolActivity("Bash"), TurnStarted()],
            ),
            ({"role": "tool", "tool_call_id": "c", "content": "x"}, [ToolActivity("tool"), TurnStarted()]),
        ],
    )
    def test_what_each_means(self, document: dict[str, object], events: list[Event]) -> None:
        """P5 P9: a text, a wish for a tool, its result, a retry, the terminal marker."""
        assert read(document) == events

    @pytest.mark.parametrize(
        ("document", "kind"),
        [
            ({"role": "meta", "type": "turn.steered"}, "turn.steered"),
            ({"role": "system", "content": "x"}, "system"),
            ({"type": "goal.summary", "status": "complete"}, "goal.summary"),
        ],
    )
    def test_what_is_new_is_unknown(self, document: dict[str, object], kind: str) -> None:
        """P5: typed, never dropped."""
        assert read(document) == [Unknown(kind)]

    @pytest.mark.parametrize(
        "document",
        [
            {},
            {"role": 1},
            {"role": None, "type": None},
            {"role": "meta"},
            {"role": "meta", "type": 1},
            {"role": "meta", "type": "turn.step.retrying"},
            {"role": "meta", "type": "session.resume_hint"},
            {"role": "meta", "type": "session.resume_hint", "session_id": "other_1"},
            {"role": "meta", "type": "session.resume_hint", "session_id": "session_../x"},
            {"role": "assistant"},
            {"role": "assistant", "content": 1},
            {"role": "assistant", "content": ["x"]},
        ],
    )
    def test_what_lacks_its_shape_is_unreadable(self, document: dict[str, object]) -> None:
        """P5 P6: never guessed at."""
        assert read(document) == [Unreadable(b"", SHAPE)]

    @pytest.mark.parametrize("calls", [[], {}, "Bash", 1, [1], [{}], [NAMELESS], [BASH, {"function": {}}]])
    def test_a_wish_that_cannot_be_read_is_one_all_the_same(self, calls: object) -> None:
        """P9: a surface that cannot be read is not empty."""
        events = read({"role": "assistant", "content": "x", "tool_calls": calls})

        assert ToolActivity("unnamed") in events
        assert events[-1] == Unreadable(b"", SHAPE)
        assert Message("x") not in events

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["role", "type", "content", "tool_calls", "function", "name"]),
                    inner | st.sampled_from(["meta", "assistant", "tool", "session.resume_hint"]),
                    max_size=4,
                )
            ),
            max_leaves=12,
        ).filter(lambda value: isinstance(value, dict))
    )
    def test_any_document_becomes_events(self, document: dict[str, object]) -> None:
        """P5: at least one, whatever it is, and no terminal marker without a session."""
        events = read(document)

        assert events
        assert TurnCompleted(UNKNOWN_USAGE) not in events or "session_id" in document


class TestSalvage:
    def salvaged(self, line: bytes) -> list[Event]:
        with pytest.raises(StrictError) as caught:
            read_json(line, Profile.ROW, want_object=True)
        return salvage(caught.value, line)

    @pytest.mark.parametrize(
        "line",
        [
            b'{"role":"tool","tool_call_id":"c","content":"\\ud83d"}',
            b'{"role":"assistant","tool_calls":[{"function":{"name":"Bash","arguments":"\\ud83d"}}]}',
            b'{"role":"assistant","role":"tool"}',
        ],
    )
    def test_a_tool_in_a_line_that_is_not_strict(self, line: bytes) -> None:
        """P9 F18 F22: half a character hides no tool."""
        assert self.salvaged(line) == [ToolActivity("unnamed")]

    @pytest.mark.parametrize(
        "line",
        [
            b'{"role":"assistant","content":"\\ud83d"}',
            b"[1]",
            b"Use the new release.",
            b'{"role":"tool"',
            b"[" * 100_000,
            b"\xff",
        ],
    )
    def test_nothing_is_invented(self, line: bytes) -> None:
        """P5: a line that is no JSON, or has no tool."""
        assert self.salvaged(line) == []


def failed(stderr: str, code: int | None = 1) -> ProcessResult:
    return ProcessResult(ended=Ended.EXITED, exit_code=code, stderr=stderr.encode(), stdin_complete=True)


OPENING = "error: failed to run prompt: "
LOG = "\nSee log: /somewhere/kimi-code.log\n"


class TestErrors:
    @pytest.mark.parametrize(
        ("stderr", "message"),
        [
            (f"error: failed to run prompt: provider.x: y{LOG}", "provider.x: y"),
            ("error: failed to run prompt: provider.x: y\n", "provider.x: y"),
            (f"error: failed to run prompt: 500 It\nbroke{LOG}", "500 It\nbroke"),
            (f"note content\nerror: failed to run prompt: y{LOG}", "y"),
            # A tool prints what it likes; the program's own word is the last one.
            (
                f"{OPENING}provider.rate_limit: 429 x{LOG}{OPENING}provider.auth_error: 401 y{LOG}",
                "provider.auth_error: 401 y",
            ),
        ],
    )
    def test_the_last_word_counts(self, stderr: str, message: str) -> None:
        """P7: after tools have had theirs."""
        assert read_stderr(failed(stderr)) == [TurnFailed(message)]

    @pytest.mark.parametrize("code", [0, None])
    def test_words_without_a_failure_say_nothing(self, code: int | None) -> None:
        """P7 F28: a tool prints on the same stderr."""
        assert read_stderr(failed(f"error: failed to run prompt: provider.rate_limit: x{LOG}", code)) == []

    @pytest.mark.parametrize(
        "stderr", ["", "error: unknown option '--x'\n", "x error: failed to run prompt: y"]
    )
    def test_a_failure_without_words(self, stderr: str) -> None:
        """P7: nothing is guessed."""
        assert read_stderr(failed(stderr)) == []

    def test_bytes_that_are_no_text(self) -> None:
        """P7: they are replaced, and the rest is read."""
        process = ProcessResult(
            ended=Ended.EXITED, exit_code=1, stderr=b"\xff\nerror: failed to run prompt: y\xff\n"
        )
        assert read_stderr(process) == [TurnFailed("y\ufffd")]

    def test_a_provider_that_declines(self) -> None:
        """P6: the program's own word for it, whole; never guessed from a text."""
        sentence = "Provider safety policy blocked the response."
        assert read_stderr(failed(f"error: failed to run prompt: {sentence}{LOG}")) == [Declined()]
        quoted = f"provider.api_error: 400 {sentence}"
        assert read_stderr(failed(f"error: failed to run prompt: {quoted}{LOG}")) == [TurnFailed(quoted)]

    @pytest.mark.parametrize(
        ("message", "kind"),
        [
            ("provider.rate_limit: 429 Slow down", "rate_limited"),
            ("provider.rate_limit: Slow down", "rate_limited"),
            ("provider.api_error: 429 You exceeded your current quota.", "quota_unavailable"),
            ("provider.api_error: 402 Pay", "quota_unavailable"),
            ("provider.auth_error: 401 Bad key", "auth_unavailable"),
            ("provider.auth_error: Bad key", "auth_unavailable"),
            ("provider.auth_error: 403 Not here", "permission_denied"),
            ("auth.login_required: Log in", "auth_unavailable"),
            ("auth.token_missing: Log in", "auth_unavailable"),
            ("auth.token_unauthorized: Log in", "auth_unavailable"),
            ("provider.api_error: 500 It\nbroke", "server_error"),
            ("provider.api_error: 503 Busy", "server_error"),
            ("provider.overloaded: Busy", "server_error"),
            ("provider.overloaded: 529 Busy", "server_error"),
            ("provider.connection_error: terminated", "connection_lost"),
            (
                "provider.api_error: 404 The model `x` does not exist or you do not have access to it.",
                "model_unavailable",
            ),
            ('Model "nope" is not configured in config.toml.', "model_unavailable"),
            ("auth.model_not_resolved: x", "model_unavailable"),
            ("model.not_found: x", "model_unavailable"),
            ("model.not_configured: x", "model_unavailable"),
            ("provider a b has no credential configured", "auth_unavailable"),
            (
                'Provider "a b" declares api_key_env = "K" in config.toml, but the variable is not set.',
                "auth_unavailable",
            ),
            ("provider.api_error: 400 Invalid schema", "other"),
            ("provider.api_error: The API returned an empty response", "other"),
            ("provider.new_word: x", "other"),
            ("Something else", "other"),
            ("", "other"),
            # What follows a code may be a server's, or quote the prompt.
            ("provider.api_error: 400 provider.rate_limit: 429 x", "other"),
            ("Quoted: provider.auth_error: 401", "other"),
            ('x Model "nope" is not configured in config.toml.', "other"),
        ],
    )
    def test_the_kind_of_trouble(self, message: str, kind: str) -> None:
        """P7: by the program's code and the server's status."""
        assert error_kind(message) == kind

    @pytest.mark.parametrize(
        ("stderr", "code", "kind"),
        [
            ("error: unknown option '--agent-file'\n", 1, "unsupported_flag"),
            ("error: option '--output-format <format>' argument 'x' is invalid.\n", 1, "unsupported_flag"),
            ("error: unknown option '--agent-file'\n", None, None),
            ("Killed\n", 1, None),
        ],
    )
    def test_an_option_it_does_not_take(self, stderr: str, code: int | None, kind: str | None) -> None:
        """P7: said before a word on stdout."""
        assert silent_kind(failed(stderr, code)) == kind


def usage_record(*, other: object = 1000, output: object = 34, **members: object) -> dict[str, object]:
    usage = {"inputOther": other, "output": output, "inputCacheRead": 200, "inputCacheCreation": 7}
    return {"type": "usage.record", "agentId": "main", "model": "a", "usage": usage, "time": 1, **members}


def wire_file(*records: Mapping[str, object]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def usage_of(*records: Mapping[str, object]) -> Usage:
    return wire_usage(wire_records([wire_file(*records)]))


def models_of(*records: Mapping[str, object]) -> list[Event]:
    return other_models(wire_records([wire_file(*records)]), "a")


class TestWireFiles:
    def test_records_add_up(self) -> None:
        """P8: of every request and every agent; cached tokens are part of what was sent."""
        found = usage_of(usage_record(), usage_record(time=2), usage_record(agentId="agent-0"))

        assert found == Usage(input_tokens=3621, cached_input_tokens=600, output_tokens=102)

    def test_a_record_twice_counts_once(self) -> None:
        """P8 F38: also across files."""
        line = json.dumps(usage_record()).encode() + b"\n"

        assert wire_usage(wire_records([line + line, line])) == Usage(1207, 200, 34)

    def test_the_last_record_of_an_id_counts(self) -> None:
        """P8 F38: the first may be part of it."""
        first, last = usage_record(id="m", output=1), usage_record(id="m", time=2)

        assert usage_of(first, last) == Usage(1207, 200, 34)

    @pytest.mark.parametrize(
        "records",
        [
            [],
            [{"type": "turn.ended"}],
            [
                {
                    "type": "usage.record",
                    "usage": {"inputOther": 0, "output": 0, "inputCacheRead": 0, "inputCacheCreation": 0},
                }
            ],
            [{"type": "usage.record"}],
            [{"type": "usage.record", "usage": {"inputOther": 1, "output": 1}}],
            [usage_record(), usage_record(time=2, output=None)],
            [usage_record(output=-1)],
            [usage_record(output=True)],
            [usage_record(output=1.5)],
            [usage_record(output="34")],
        ],
    )
    def test_what_is_not_told_is_unknown(self, records: list[dict[str, object]]) -> None:
        """P8 F40: never zero, never part of a sum."""
        assert usage_of(*records) == UNKNOWN_USAGE

    def test_lines_that_are_no_records_are_left_out(self) -> None:
        """P8: what was said, and what a crash left behind."""
        line = json.dumps(usage_record()).encode()
        said = json.dumps({"type": "agent.message.appended", "text": "usage.record"}).encode()
        others = [b"", b'["usage.record"]', b"usage.record", line[:40], said]

        assert wire_records([b"\n".join([*others, line])]) == [usage_record()]

    def test_another_model_that_was_asked(self) -> None:
        """P2 F37: told once; the alias that was asked for attributes nothing."""
        request = {"type": "llm.request", "model": "m", "modelAlias": "a"}
        other = {"type": "llm.request", "model": "m", "modelAlias": "b"}
        unnamed = {"type": "llm.request"}

        assert models_of(request, usage_record(), {"type": "other", "modelAlias": "z"}) == []
        assert models_of(request, other, usage_record(model="b")) == [ModelReported("b")]
        assert models_of(unnamed) == [ModelReported("None")]
