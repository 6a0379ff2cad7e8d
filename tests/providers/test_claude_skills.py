"""Skill events of claude's recordings, against answers that were written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.event_fixtures import load_event_fixtures
from skill_effectiveness.protocol.skill_events import evaluate_matched_call
from skill_effectiveness.providers import Recording
from skill_effectiveness.providers.claude_skills import DRIVER, skill_events
from tests.support.claude_streams import GOOD, init, result, said, text, used
from tests.support.json_values import json_values
from tests.support.provider_calls import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.protocol.event_fixtures import EventCase
    from skill_effectiveness.protocol.event_rows import SkillEventsRow

RECORDINGS = Path(__file__).parents[1] / "recordings" / "claude"
FIXTURES = load_event_fixtures(RealFs())
CASES = [case for case in FIXTURES.cases if case.driver == DRIVER]


def recording(*documents: object) -> Recording:
    return Recording(b"".join(line + b"\n" for line in lines(*documents)))


def answered(call: str, **told: object) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call}
    return {"type": "user", "message": {"content": [block | told]}}


def called(name: str, call: str | None, **given: object) -> dict[str, Any]:
    block = {"type": "tool_use", "name": name, "input": given} | ({} if call is None else {"id": call})
    return {"type": "assistant", "message": {"content": [block]}}


def invoked(row: SkillEventsRow) -> list[tuple[str, int, str, bool]]:
    assert row.events is not None
    return [
        (each.skill, each.event_index, each.tool_use_id, each.completed) for each in row.events.skills_invoked
    ]


class TestKnownAnswers:
    def test_the_driver_is_registered(self) -> None:
        """A25: by a note, and by a known answer."""
        assert DRIVER in FIXTURES.registered_drivers
        assert DRIVER in FIXTURES.driver_notes
        assert any(case.expected.unverifiable is None for case in CASES)

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.case_id)
    def test_a_recorded_case(self, case: EventCase) -> None:
        """A24: through the extractor and the evaluator; nothing of the expectation is computed."""
        row = skill_events(recording(*case.transcript))
        verdict = evaluate_matched_call(row.events, case.target_bundle_id)

        assert row.unverifiable == case.expected.unverifiable
        assert row.events == case.expected.events
        assert (verdict.decision, verdict.reason_code) == (case.expected.decision, case.expected.reason_code)


class TestRealStreams:
    def row(self, name: str) -> SkillEventsRow:
        return skill_events(Recording((RECORDINGS / f"{name}.jsonl").read_bytes()))

    def test_a_skill_that_was_launched(self) -> None:
        """A24: one call, completed; what it expands to is no event."""
        row = self.row("skill_call")

        assert row.verifiable
        assert invoked(row) == [("sk-wd-claude", 0, "toolu_fake1", True)]

    def test_a_skill_that_is_not_there(self) -> None:
        """A24: an error completes nothing."""
        assert invoked(self.row("skill_call_unknown")) == [("no-such-skill", 0, "toolu_fake1", False)]

    @pytest.mark.parametrize("name", ["text", "schema", "shell", "write_denied", "fail401"])
    def test_other_tools_are_no_skills(self, name: str) -> None:
        row = self.row(name)
        assert (row.verifiable, invoked(row)) == (True, [])


class TestTheWholeStream:
    def test_a_skill_after_hundreds_of_other_tools(self) -> None:
        """F34: neither the first other tool nor any time ends the scan."""
        others = [said(used("Bash", command="ls"), message=f"msg_{n}") for n in range(500)]
        row = skill_events(
            recording(init(), *others, called("Skill", "t", skill="a:b"), answered("t"), result())
        )

        assert invoked(row) == [("a:b", 0, "t", True)]

    def test_a_skill_behind_the_result(self) -> None:
        """F34: a later turn belongs to the stream."""
        row = skill_events(recording(*GOOD, called("Skill", "t", skill="a:b"), answered("t")))
        assert invoked(row) == [("a:b", 0, "t", True)]

    def test_several_blocks_in_one_message_keep_their_order(self) -> None:
        blocks = [text("hm"), {**used("Task"), "id": "1"}, {**used("Skill", skill="a:b"), "id": "2"}]
        row = skill_events(recording(said(*blocks)))

        assert row.events is not None
        assert row.events.first_task_tool_event_index == 0
        assert invoked(row) == [("a:b", 1, "2", False)]

    def test_a_message_that_is_printed_again_is_one_message(self) -> None:
        """F38: the same call in the same message counts once; in another message it is another."""
        again = said(used("Skill", skill="a:b"), message="msg_1")
        assert len(invoked(skill_events(recording(again, again)))) == 1
        other = said(used("Skill", skill="a:b"), message="msg_2")
        assert len(invoked(skill_events(recording(again, other)))) == 2

    def test_a_result_before_its_call_or_far_behind_it(self) -> None:
        """F34: linkage is by id, not by distance."""
        call = called("Skill", "t", skill="a:b")
        assert invoked(skill_events(recording(answered("t"), call)))[0][3] is True
        assert invoked(skill_events(recording(call, *GOOD, answered("t"))))[0][3] is True

    @pytest.mark.parametrize(
        "results",
        [
            [],
            [answered("other")],
            [answered("t", is_error=True)],
            [answered("t", is_error="no")],
            [answered("t"), answered("t", is_error=True)],
            [answered("t", is_error=True), answered("t")],
            [{**answered("t"), "tool_use_result": {"success": False, "commandName": "a:b"}}],
        ],
    )
    def test_what_completes_nothing(self, results: Sequence[dict[str, Any]]) -> None:
        """A24: no result, another's, an error, one that contradicts another."""
        assert invoked(skill_events(recording(called("Skill", "t", skill="a:b"), *results)))[0][3] is False


class TestGaps:
    @pytest.mark.parametrize(
        "call",
        [
            called("Skill", None, skill="a:b"),
            called("Skill", "", skill="a:b"),
            called("Skill", "x" * 257, skill="a:b"),
            called("Skill", "t"),
            called("Skill", "t", skill=""),
            called("Skill", "t", skill=7),
        ],
    )
    def test_a_call_that_lacks_something(self, call: dict[str, Any]) -> None:
        """A26: degraded, and never a pass."""
        row = skill_events(recording(call, answered("t"), called("Task", "u")))

        assert row.unverifiable == "missing_invocation_field"
        assert row.events is not None
        assert row.events.skills_invoked == ()
        assert row.events.first_task_tool_event_index == 1

    @pytest.mark.parametrize("hole", [b"{\n", b"\xff\n", b'{"type":"x","x":"\\ud83d"}\n', b'{"half"'])
    def test_a_line_that_cannot_be_read(self, hole: bytes) -> None:
        """A26: a call may have stood in it."""
        whole = recording(called("Skill", "t", skill="a:b"), answered("t"), called("Task", "u")).stdout
        row = skill_events(Recording(whole + hole))

        assert row.unverifiable == "missing_invocation_field"
        assert not evaluate_matched_call(row.events, "a:b").compliant

    def test_nothing_at_all(self) -> None:
        row = skill_events(Recording(b""))
        assert (row.verifiable, invoked(row)) == (True, [])


@given(st.lists(json_values, max_size=6))
def test_random_recordings_never_pass(documents: list[object]) -> None:
    """A26: whatever their lines hold."""
    row = skill_events(Recording(b"".join(json.dumps(each).encode() + b"\n" for each in documents)))
    assert not evaluate_matched_call(row.events, "a:b").compliant


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["assistant", "user", "system"]),
                "message": st.fixed_dictionaries(
                    {
                        "content": st.lists(
                            st.fixed_dictionaries(
                                {
                                    "type": st.sampled_from(["tool_use", "tool_result", "skill"]),
                                    "name": st.sampled_from(["Skill", "Task", "skill"]),
                                    "id": st.sampled_from(["1", "2"]) | st.none(),
                                    "tool_use_id": st.sampled_from(["1", "2"]),
                                    "input": st.sampled_from([{"name": "a:b"}, {"skill": "x"}, {}]),
                                }
                            ),
                            max_size=3,
                        )
                    }
                ),
            }
        ),
        max_size=5,
    )
)
def test_recordings_that_name_no_such_skill_never_pass(documents: list[dict[str, Any]]) -> None:
    """A26: shapes that are close to the registered one and are not it."""
    row = skill_events(recording(*documents))
    assert not evaluate_matched_call(row.events, "a:b").compliant
