"""What a driver of agents knows of their sessions: tools by number and by end, from real recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.providers.calls import CallKind
from skill_effectiveness.providers.claude_events import ClaudeEvents
from skill_effectiveness.providers.claude_surface import Surface
from skill_effectiveness.providers.driving import tells_cost, tells_tool_calls, tool_calls_of
from skill_effectiveness.providers.events import ToolActivity
from skill_effectiveness.providers.kimi_events import wire_records, wire_tools
from skill_effectiveness.providers.opencode_events import Stream
from skill_effectiveness.providers.recording import Recording
from skill_effectiveness.providers.stream import BOUNDS, EventLog
from tests.support.claude_streams import init, result, said, text, used
from tests.support.json_values import json_values
from tests.support.opencode_fake import exported, step_finish, step_start, stream, tool
from tests.support.provider_calls import lines

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDINGS = Path(__file__).parents[1] / "recordings"
PROVIDERS = ("codex", "claude", "opencode", "kimi", "command", "simulated")


def recorded(folder: str, name: str) -> Recording:
    """A real session; of opencode its export as well."""
    export = RECORDINGS / folder / f"{name}.export.json"
    stdout = (RECORDINGS / folder / f"{name}.jsonl").read_bytes()
    return Recording(stdout, export=export.read_bytes() if export.exists() else None)


def ends(read: Callable[[Any, bytes], list[Any]], recording: Recording) -> list[tuple[str, bool | None]]:
    """Every sign of a tool, and how it ended."""
    log = EventLog(read, lambda *_: [], profile=BOUNDS[CallKind.WORK].line)
    for line in recording.lines:
        log.take(line)
    return [(event.kind, event.succeeded) for event in log.events if isinstance(event, ToolActivity)]


def claude(name: str) -> list[tuple[str, bool | None]]:
    surface = Surface("m", frozenset(), "default", "/c")
    return ends(ClaudeEvents(surface, formed=False).read, recorded("claude", name))


class TestHowToolsEnded:
    """F32 of a pass's floors: what ran, what failed, and what nobody tells."""

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("text", []),
            ("shell", [("Bash", None), ("Bash", True)]),
            ("shell_fail", [("Bash", None), ("Bash", False)]),
            ("skill_call", [("Skill", None), ("Skill", True)]),
            ("skill_call_unknown", [("Skill", None), ("Skill", False)]),
        ],
    )
    def test_claude(self, name: str, expected: list[tuple[str, bool | None]]) -> None:
        """P9: `is_error` of the result with the same id; a command that failed is one."""
        assert claude(name) == expected

    def test_a_tool_that_claude_denied(self) -> None:
        """P9 P13: wanted, denied, told as a failed result, and once more at the end."""
        assert claude("write_denied") == [
            ("Write", None),
            ("Write", None),
            ("Write", False),
            ("Write", None),
        ]

    def test_a_result_of_claude_counts_once_and_only_for_its_own_call(self) -> None:
        """P8 P9: again, of an id that nobody asked for, with an end of no form."""

        def back(call: str, **more: object) -> dict[str, object]:
            block = {"type": "tool_result", "tool_use_id": call, "content": "x"} | more
            return {"type": "user", "message": {"role": "user", "content": [block]}}

        surface = Surface("m", frozenset(), "default", "/c")
        documents = [
            init(),
            said(used("Bash")),
            back("toolu_other"),
            back("toolu_1"),
            back("toolu_1"),
            said(used("Read"), message="msg_2"),
            back("toolu_1", is_error="no"),
        ]
        recording = Recording(b"".join(line + b"\n" for line in lines(*documents)))
        assert ends(ClaudeEvents(surface, formed=False).read, recording) == [
            ("Bash", None),
            ("Bash", True),
            ("Read", None),
            ("Read", None),
        ]

    def test_the_form_of_an_answer_is_no_tool_when_it_comes_back(self) -> None:
        """P9: a judge's only tool, and its result."""
        surface = Surface("m", frozenset({"StructuredOutput"}), "default", "/c")
        block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
        documents = [
            init(),
            said(used("StructuredOutput")),
            {"type": "user", "message": {"content": [block]}},
        ]
        recording = Recording(b"".join(line + b"\n" for line in lines(*documents)))
        assert ends(ClaudeEvents(surface, formed=True).read, recording) == []

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("text", []),
            ("shell", [("bash", True)]),
            ("shell_fail", [("bash", False)]),
            ("shell_ask", [("bash", False)]),
            ("write", [("write", True)]),
            ("skill_call", [("skill", True)]),
            ("skill_call_unknown", [("skill", False)]),
        ],
    )
    def test_opencode(self, name: str, expected: list[tuple[str, bool | None]]) -> None:
        """P9: `state.status`, and of a command its exit code too."""
        assert ends(Stream().read, recorded("opencode", name)) == expected

    @pytest.mark.parametrize("state", [None, {}, {"status": "running"}, {"status": 1}, "completed"])
    def test_an_end_that_opencode_does_not_tell(self, state: object) -> None:
        """P9: unknown is neither."""
        part = tool("bash") | {"state": state}
        recording = Recording(b"".join(line + b"\n" for line in lines(*stream(step_start(), part))))
        assert ends(Stream().read, recording) == [("bash", None)]

    def test_kimi(self) -> None:
        """P9: the wire files alone tell; a command that failed, and a subagent that did not."""
        wire = (RECORDINGS / "kimi-wire.jsonl").read_bytes()
        tools = wire_tools(wire_records([wire]))
        assert [(event.kind, event.succeeded) for event in tools] == [
            ("Bash", True),
            ("Bash", False),
            ("Agent", True),
        ]

    @pytest.mark.parametrize(
        ("result", "expected"),
        [({}, True), ({"isError": True}, False), ({"isError": 1}, None), ("x", None), (None, None)],
    )
    def test_an_end_that_kimi_does_not_tell(self, result: object, expected: bool | None) -> None:  # noqa: FBT001 - a case
        """P9: a flag of another form is none; a call without any result is not over."""

        def event(kind: str, **members: object) -> bytes:
            told = {"type": "context.append_loop_event", "event": {"type": kind, **members}}
            return json.dumps(told).encode() + b"\n"

        wire = event("tool.call", uuid="1", name="Bash") + event("tool.call", uuid="2", name="Read")
        wire += event("tool.result", parentUuid="1", result=result) + event("tool.result", parentUuid="3")
        tools = wire_tools(wire_records([wire]))
        assert [(tool.kind, tool.succeeded) for tool in tools] == [("Bash", expected)]


class TestHowManyTools:
    def test_who_tells(self) -> None:
        """P9 F39: only where every call shows."""
        assert {name for name in PROVIDERS if tells_tool_calls(name)} == {"claude", "opencode", "kimi"}
        assert {name for name in PROVIDERS if tells_cost(name)} == {"claude"}
        for name in PROVIDERS:
            assert tool_calls_of(name, None) is None
        assert tool_calls_of("codex", recorded("codex", "shell")) is None

    @pytest.mark.parametrize(
        ("folder", "name", "count"),
        [
            ("claude", "text", 0), ("claude", "schema", 0), ("claude", "shell", 1),
            ("claude", "write_denied", 1), ("claude", "skill_call", 1), ("claude", "hang_killed", None),
            ("opencode", "text", 0), ("opencode", "shell", 1), ("opencode", "skill_call_unknown", 1),
        ],
    )  # fmt: skip
    def test_recordings(self, folder: str, name: str, count: int | None) -> None:
        """P8 F38: each call once, however often it is told; unknown for a session that did not end."""
        assert tool_calls_of(folder, recorded(folder, name)) == count

    @pytest.mark.parametrize(
        ("documents", "count"),
        [
            ([said(used("Bash")), said(used("Bash")), result()], 1),
            ([said(used("Bash")), said(used("Bash"), message="msg_2"), result()], 2),
            ([said(text("x"), used("Bash")), result()], 1),
            ([said(used("Task")), result()], None),
            ([said({"type": "tool_use", "name": "Bash"}), result()], None),
            ([said({"type": "server_tool_use", "id": "s", "name": "web"}), result()], 1),
            ([{"type": "assistant", "message": {"id": "m"}}, result()], None),
            ([{"type": "assistant"}, result()], None),
            ([said(used("Bash"))], None),
            ([], None),
        ],
    )
    def test_claude(self, documents: list[Any], count: int | None) -> None:
        """P8 P9 F38: repeated messages; a subagent, a call without an id, no end."""
        stdout = b"".join(line + b"\n" for line in lines(*documents))
        assert tool_calls_of("claude", Recording(stdout)) == count
        for broken in (stdout + b"{", b"half\n" + stdout):
            assert tool_calls_of("claude", Recording(broken)) is None

    def test_opencode(self) -> None:
        """P9: by the export, printed or not; a subagent, whose session is another one, makes it unknown."""
        parts = (step_start(), tool("bash"), tool("read", "error", "7"), step_finish())
        export = json.dumps(exported(*parts)).encode()
        assert tool_calls_of("opencode", Recording(b"", export=export)) == 2
        task = json.dumps(exported(*parts, tool("task", "completed", "9"))).encode()
        assert tool_calls_of("opencode", Recording(b"", export=task)) is None
        strange = json.dumps(exported(*parts, {"id": "prt_9", "type": "hologram"})).encode()
        assert tool_calls_of("opencode", Recording(b"", export=strange)) is None
        for nothing in (None, b"", b"{}"):
            assert tool_calls_of("opencode", Recording(b"", export=nothing)) is None

    def test_kimi(self) -> None:
        """P9: of all agents; unknown where the wire files lack one of the stream's, or there is no end."""
        wire = (RECORDINGS / "kimi-wire.jsonl").read_bytes()
        stdout = recorded("kimi-code", "shell").stdout
        assert tool_calls_of("kimi", Recording(stdout, export=wire)) == 3
        records = wire.splitlines(keepends=True)
        without = b"".join(line for line in records if b'"toolCallId":"call_1"' not in line)
        assert tool_calls_of("kimi", Recording(stdout, export=without)) is None
        assert tool_calls_of("kimi", Recording(stdout)) is None
        cut = b"".join(stdout.splitlines(keepends=True)[:-1])
        assert tool_calls_of("kimi", Recording(cut, export=wire)) is None
        assert tool_calls_of("kimi", Recording(b"half\n" + stdout, export=wire)) is None

    def test_the_real_wire_file_is_strict(self) -> None:
        """P5: what is read of it is strict JSON, line by line."""
        for line in (RECORDINGS / "kimi-wire.jsonl").read_bytes().splitlines():
            read_json(line, Profile.DOCUMENT)

    @given(documents=st.lists(json_values, max_size=4))
    def test_nothing_that_is_json_breaks_the_count(self, documents: list[Any]) -> None:
        """P5: of any shape, at every place that is read."""
        places = [
            *documents,
            *({"type": "assistant", "message": inner} for inner in documents),
            *(
                {"type": "assistant", "message": {"id": "m", "content": [inner, {"type": inner}]}}
                for inner in documents
            ),
            *({"type": "context.append_loop_event", "event": inner} for inner in documents),
            *({"tool_calls": inner} for inner in documents),
            {"type": "result"},
            {"type": "session.resume_hint"},
        ]
        stdout = b"".join(json.dumps(document).encode() + b"\n" for document in places)
        session = {"info": {}, "messages": [{"info": {}, "parts": documents}]}
        for export in (stdout, json.dumps(session).encode()):
            for provider in PROVIDERS:
                count = tool_calls_of(provider, Recording(stdout, export=export))
                assert count is None or count >= 0
        wire_tools(wire_records([stdout]))
