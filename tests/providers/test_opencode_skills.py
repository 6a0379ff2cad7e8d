"""The skill events of opencode: known answers, real recordings, and recordings with something missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.event_fixtures import EventCase, load_event_fixtures
from skill_effectiveness.protocol.skill_events import Decision, evaluate_matched_call
from skill_effectiveness.providers import Recording
from skill_effectiveness.providers.opencode_skills import DRIVER, calls_of, skill_events
from skill_effectiveness.providers.skill_rows import skill_events_row
from tests.support.opencode_fake import Document, exported, stream, tool

FOLDER = Path(__file__).parents[1] / "recordings" / "opencode"
CASES = [case for case in load_event_fixtures(RealFs()).cases if case.driver == "opencode"]


def lines_of(*documents: object) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def streamed(*parts: Document, export: object = None) -> Recording:
    return Recording(
        lines_of(*stream(*parts)), export=None if export is None else json.dumps(export).encode()
    )


class TestKnownAnswers:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.case_id)
    def test_each_case_and_what_the_evaluator_says(self, case: EventCase) -> None:
        """A24: events, their status, the decision and its reason."""
        row = skill_events_row(DRIVER, calls_of(case.transcript))
        judged = evaluate_matched_call(row.events, case.target_bundle_id)

        assert row.unverifiable == case.expected.unverifiable
        assert row.events == case.expected.events
        assert judged.decision == case.expected.decision
        assert judged.reason_code == case.expected.reason_code

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.case_id)
    def test_each_case_as_stream_and_as_export(self, case: EventCase) -> None:
        """A24: the part is the same in both."""
        parts: list[Document] = [
            {**part, "id": f"prt_{number}", "sessionID": "ses_1"}
            for number, part in enumerate(case.transcript)
        ]
        export = {"info": {}, "messages": [{"info": {"role": "assistant"}, "parts": parts}]}

        assert skill_events(streamed(*parts)).events == case.expected.events
        assert skill_events(streamed(*parts, export=export)).events == case.expected.events

    def test_the_driver_is_registered_under_its_name(self) -> None:
        """A25: there is a case of it."""
        assert DRIVER == "opencode"
        assert len(CASES) == 3


class TestRecordings:
    @pytest.mark.parametrize(
        ("name", "invoked"),
        [
            ("text", []),
            ("shell", []),
            ("write", []),
            ("fail401", []),
            ("skill_call", [("sk-wd-agents", 0, "call_1", True)]),
            ("skill_call_unknown", [("no-such", 0, "call_1", False)]),
        ],
    )
    @pytest.mark.parametrize("with_export", [True, False])
    def test_what_real_recordings_show(
        self, name: str, invoked: list[tuple[str, int, str, bool]], *, with_export: bool
    ) -> None:
        """A24: the same from the stream alone and with the export."""
        export = (FOLDER / f"{name}.export.json").read_bytes() if with_export else None
        row = skill_events(Recording((FOLDER / f"{name}.jsonl").read_bytes(), export=export))

        assert row.driver == "opencode"
        assert row.verifiable
        assert row.events is not None
        assert row.events.first_task_tool_event_index is None
        assert [
            (call.skill, call.event_index, call.tool_use_id, call.completed)
            for call in row.events.skills_invoked
        ] == invoked


class TestGaps:
    def test_a_call_that_never_got_a_result_is_in_the_export_alone(self) -> None:
        """F34: asked for before the other, and not completed."""
        first = tool("skill", "running", "1", name="one")
        second = tool("skill", "completed", "2", name="two")
        row = skill_events(streamed(second, export=exported(first, second)))

        assert row.events is not None
        assert [(call.skill, call.event_index, call.completed) for call in row.events.skills_invoked] == [
            ("one", 0, False),
            ("two", 1, True),
        ]

    def test_an_export_that_lacks_what_was_printed(self) -> None:
        """A26: the two disagree, so neither is relied on."""
        row = skill_events(streamed(tool("skill", "completed", "1", name="one"), export=exported()))

        assert row.unverifiable == "missing_invocation_field"

    @pytest.mark.parametrize("export", [b"", b"[]", b"{}"])
    def test_an_export_that_cannot_be_read(self, export: bytes) -> None:
        """A26: what was printed cannot be held against it."""
        printed = streamed(tool("skill", "completed", "1", name="one"))

        assert not skill_events(Recording(printed.stdout, export=export)).verifiable
        assert not skill_events(Recording(b"", export=export)).verifiable

    @pytest.mark.parametrize(
        "stdout",
        [
            b'{"type": "tool_use"',
            b"no JSON\n",
            lines_of({"type": "tool_use", "sessionID": "ses_1"}),
            lines_of({"type": "tool_use", "part": 1}),
            b'{"type": "tool_use", "part": {"type": "tool", "tool": "skill", "x": "\\ud800"}}\n',
        ],
    )
    def test_a_stream_that_cannot_be_read_to_its_end(self, stdout: bytes) -> None:
        """A26: half a line, no JSON, no part."""
        assert not skill_events(Recording(stdout)).verifiable

    @pytest.mark.parametrize("state", [None, {}, {"status": "new"}, {"status": 1}, {"status": "completed"}])
    def test_a_part_without_its_state(self, state: object) -> None:
        """A26: an unknown status and a missing input are no answer."""
        part = {**tool("skill", "completed", "1", name="one"), "state": state}

        assert not skill_events(streamed(part)).verifiable

    @given(
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "type": st.sampled_from(["tool", "tool_use", "text"]),
                    "tool": st.sampled_from(["bash", "Skill", "read", "mcp_skill"]),
                    "name": st.just("review-work"),
                    "callID": st.text(max_size=5),
                },
            )
        )
    )
    def test_other_shapes_never_pass(self, parts: list[dict[str, str]]) -> None:
        """A26: whatever a recording of no skill call holds, the demanded call was not made."""
        row = skill_events(Recording(lines_of(*({"type": "tool_use", "part": part} for part in parts))))

        assert evaluate_matched_call(row.events, "review-work").decision is Decision.DENY
