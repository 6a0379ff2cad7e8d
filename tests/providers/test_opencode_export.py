"""What an export says beside the stream, and what it has against it."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.providers.events import ModelReported, SurfaceDiffers, ToolActivity
from skill_effectiveness.providers.opencode_events import Stream
from skill_effectiveness.providers.opencode_export import compare, read_export
from tests.support.opencode_fake import (
    GOOD_PARTS,
    MODEL,
    REVIEWER,
    SESSION,
    Document,
    exported,
    part,
    step_finish,
    step_start,
    stream,
    text,
    tool,
)

if TYPE_CHECKING:
    from skill_effectiveness.providers.events import Event

AGREES = [ModelReported(MODEL)]


def compared(document: Document, *printed: Document, session: str = SESSION) -> list[Event]:
    export = read_export(json.dumps(document).encode())
    assert export is not None
    state = Stream()
    for one in stream(*(printed or GOOD_PARTS)):
        state.read(one, b"")
    return compare(export, session=session, agent=REVIEWER, model=MODEL, stream=state)


def changed(path: str, value: object) -> Document:
    """The export of a good answer with one member changed."""
    document = copy.deepcopy(exported(*GOOD_PARTS))
    place: Any = document
    *way, last = path.split(".")
    for step in way:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    return document


class TestAgreement:
    def test_an_export_that_agrees_names_the_model(self) -> None:
        """P2 P6: and nothing else."""
        assert compared(exported(*GOOD_PARTS)) == AGREES

    def test_a_failed_call_has_no_answer_in_it(self) -> None:
        """P2: then the session tells the model."""
        document = exported()
        document["messages"].pop()
        export = read_export(json.dumps(document).encode())

        assert export is not None
        assert not export.asked_model
        assert compared(document, part("9", "unheard of")) == AGREES

    def test_what_changes_after_printing_is_no_difference(self) -> None:
        """P6: times and output are not compared; a tool that was printed is known."""
        printed = tool()
        kept = {**printed, "state": {**printed["state"], "output": "shortened", "time": {"compacted": 1}}}

        assert compared(exported(step_start(), kept), step_start(), printed) == AGREES

    def test_a_summary_is_written_by_another_agent(self) -> None:
        """P13: a long session is shortened, by the same model and without tools."""
        document = exported(*GOOD_PARTS)
        summary = {**document["messages"][1]["info"], "agent": "compaction", "summary": True}
        document["messages"].insert(1, {"info": summary, "parts": []})

        assert compared(document) == AGREES
        document["messages"][1]["info"]["summary"] = False
        assert any(isinstance(event, SurfaceDiffers) for event in compared(document))


class TestDifferences:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("info.id", "ses_other"),
            ("info.agent", "build"),
            ("info.agent", None),
            ("messages.0.info.agent", "build"),
            ("messages.1.info.agent", "build"),
            ("messages.0.info.sessionID", "ses_other"),
            ("messages.1.info.sessionID", None),
            ("messages.1.parts.1.text", "{}"),
            ("messages.1.parts.1.messageID", "msg_9"),
            ("messages.1.parts.1.id", "prt_9"),
            ("messages.1.parts.1.type", "reasoning"),
            ("messages.1.parts.2.reason", "length"),
            ("messages.1.parts", []),
        ],
    )
    def test_another_session_agent_or_part(self, path: str, value: object) -> None:
        """P2 P6 R31: whatever is not as it was asked for, or not as it was printed."""
        told = compared(changed(path, value))

        assert any(isinstance(event, SurfaceDiffers) for event in told)

    @pytest.mark.parametrize(
        "path", ["info.model.id", "messages.0.info.model.modelID", "messages.1.info.modelID"]
    )
    @pytest.mark.parametrize("value", ["other", None, 1])
    def test_another_model(self, path: str, value: object) -> None:
        """P2 F37: on the session or on any message, and never hidden behind the right one."""
        told = compared(changed(path, value))
        reported = [event.model for event in told if isinstance(event, ModelReported)]

        assert reported == [MODEL, f"fake/{value if isinstance(value, str) else '?'}"]

    @pytest.mark.parametrize("path", ["info.model.providerID", "messages.1.info.providerID"])
    def test_another_provider(self, path: str) -> None:
        """P2: a model of the same name is another model."""
        told = compared(changed(path, "other"))

        assert ModelReported("other/fake-model") in told

    def test_a_text_that_was_never_printed(self) -> None:
        """P6: the answer would be another one."""
        told = compared(exported(*GOOD_PARTS, text("More.", "9")))

        assert [type(event) for event in told] == [ModelReported, SurfaceDiffers]

    def test_an_empty_text_is_never_printed(self) -> None:
        """P6: it is what a broken connection leaves."""
        assert compared(exported(*GOOD_PARTS, text("", "9"))) == AGREES

    @pytest.mark.parametrize(
        ("hidden", "kind"),
        [
            (tool("bash", "completed", "9"), "bash"),
            (tool("bash", "pending", "9"), "bash"),
            (part("9", "tool"), "tool"),
            (part("9", "subtask"), "subtask"),
            (part("9", "something new"), "something new"),
            ({"type": 1}, ""),
        ],
    )
    def test_a_tool_that_was_never_printed(self, hidden: Document, kind: str) -> None:
        """P9 R31: also of a type that nobody knows."""
        assert ToolActivity(kind) in compared(exported(*GOOD_PARTS, hidden))

    @pytest.mark.parametrize("harmless", ["reasoning", "snapshot", "patch", "retry", "compaction"])
    def test_parts_that_are_no_tool(self, harmless: str) -> None:
        """P9: the program's own book-keeping."""
        assert compared(exported(*GOOD_PARTS, part("9", harmless))) == AGREES

    def test_a_tool_with_another_input(self) -> None:
        """P6: what was run is not what was printed."""
        printed, kept = tool(command="ls"), tool(command="rm")
        told = compared(
            exported(step_start(), kept, step_finish("x")), step_start(), printed, step_finish("x")
        )

        assert any(isinstance(event, SurfaceDiffers) for event in told)


class TestReading:
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{",
            b"[]",
            b"{}",
            b'{"info":{},"messages":{}}',
            b'{"info":[],"messages":[]}',
            b'{"info":{},"messages":[1]}',
            b'{"info":{},"messages":[{"info":{}}]}',
            b'{"info":{},"messages":[{"info":{},"parts":[1]}]}',
            b'{"info":{},"messages":[],"messages":[]}',
            b'{"info":{"title":"\\ud800"},"messages":[]}',
        ],
    )
    def test_what_is_no_export(self, data: bytes) -> None:
        """P6: nothing is guessed from half of one."""
        assert read_export(data) is None

    @given(st.binary(max_size=64))
    def test_any_bytes_have_an_answer(self, data: bytes) -> None:
        """P6: and it is a plain one."""
        assert read_export(data) is None


@pytest.mark.parametrize("kind", [[], {}, ["text"], None, 7, True])
def test_a_part_whose_type_is_no_word(kind: object) -> None:
    """P6 P9: it is no harmless one, and no traceback after a call that was paid."""
    parts = [*GOOD_PARTS, {**part("9", "text"), "type": kind}]
    found = compared(exported(*parts))
    assert any(isinstance(event, ToolActivity) for event in found)
