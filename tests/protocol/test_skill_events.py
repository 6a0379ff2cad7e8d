from __future__ import annotations

import hashlib
import inspect
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.protocol import skill_events as page
from skill_effectiveness.protocol.skill_events import (
    MATCHED_CALL_CONTRACT,
    Decision,
    Fixture,
    MatchedCall,
    Reason,
    SkillEvents,
    evaluate_matched_call,
    is_bundle_name,
    matched_call_contract,
    matched_call_contract_hash,
)
from tests.support.json_values import json_values

ORACLE = "oracle-owner-subagent"
CONTROL = "slot-0123456789abcdef-subagent"
HASH = "sha256:e422e311ecf9a88eb4f63329a5a27c2ec3242f14b9059bb99bcb64c8402ddaff"

# The table of controls.md section 7, by hand.
CONTRACT: dict[str, Any] = {
    "schema_version": 1,
    "event_contract_version": "skill-events-v2",
    "deny_template": "complete-required-bundle-before-trial-unlock:{target_bundle_id}",
    "gate_phase": "before-first-task-tool",
    "fixture_pass_semantics": "completed-exact-target-call-before-task-tool-passes-fixture",
    "unknown_event_semantics": "deny-as-event-contract-unverifiable",
    "matching_semantics": "exact-bundle-id-and-successful-matching-tool-result",
    "ordering_semantics": "matching-call-index-strictly-before-first-task-tool-index",
    "event_index_uniqueness_semantics": "skill-and-first-task-tool-indexes-globally-unique",
    "tool_use_id_uniqueness_semantics": "globally-unique-across-skill-invocations",
    "ordering_window_semantics": "first-task-index-at-most-max-invocation-index-plus-one",
    "event_index_trust_boundary": "fixture-asserted-not-live-host-attested",
    "live_gate_eligibility": "ineligible-requires-authenticated-single-monotonic-host-stream",
    "live_gate_migration": "new-versioned-live-contract-and-artifact-required",
    "fixture_expected_outcomes": {
        "missing": ["deny", "matched_call_required"],
        "wrong_target": ["deny", "matched_call_required"],
        "incomplete": ["deny", "matched_call_required"],
        "degraded": ["deny", "event_contract_unverifiable"],
        "missing_task_tool_index": ["deny", "event_contract_unverifiable"],
        "completed": ["fixture-pass", "fixture_matched_call_satisfied"],
        "late_after_task_tool": ["deny", "matched_call_late"],
    },
    "fixture_result_contract": {
        "observation_status": "none-fixtures-only",
        "live_gate_eligible": False,
        "deny_message_semantics": "frozen-deny-template-for-deny-else-null",
    },
    "matched_call_gate_satisfied": False,
    "max_skill_invocations": 1024,
    "max_tool_use_id_characters": 256,
    "max_event_index": 1000000000,
}


def call(skill: str = ORACLE, index: Any = 0, use: Any = "u0", **others: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    return {
        "skill": skill,
        "event_index": index,
        "tool_use_id": use,
        "matching_tool_result": True,
        "completed": True,
    } | others


def events(*calls: dict[str, Any], first: Any = None, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    return {
        "schema_version": 1,
        "event_contract_version": "skill-events-v2",
        "event_contract_status": "stable",
        "skill_events_available": True,
        "task_tool_events_available": True,
        "first_task_tool_event_index": len(calls) if first is None else first,
        "event_index_source": "fixture-modeled-single-monotonic-stream",
        "skills_invoked": list(calls),
    } | others


def reason(value: object, target: object = ORACLE) -> str:
    return evaluate_matched_call(value, target).reason_code.value


def history(fixture: Fixture, target: str) -> dict[str, Any]:
    """The seven histories, by hand."""
    return {
        Fixture.MISSING: events(first=0),
        Fixture.WRONG_TARGET: events(call("another-bundle")),
        Fixture.INCOMPLETE: events(call(target, completed=False, matching_tool_result=False)),
        Fixture.DEGRADED: events(call(target), event_contract_status="degraded"),
        Fixture.MISSING_TASK_TOOL_INDEX: events(call(target)) | {"first_task_tool_event_index": None},
        Fixture.COMPLETED: events(call(target)),
        Fixture.LATE_AFTER_TASK_TOOL: events(call(target, 1), first=0),
    }[fixture]


class TestContract:
    def test_it_is_the_table(self) -> None:
        """A17: the contract, member by member."""
        assert matched_call_contract() == CONTRACT

    def test_its_hash_reproduces(self) -> None:
        """A17: the hash is that of the table, computed here without the product."""
        text = json.dumps(CONTRACT, sort_keys=True, separators=(",", ":"))
        assert "sha256:" + hashlib.sha256(text.encode()).hexdigest() == HASH
        assert matched_call_contract_hash() == HASH

    def test_nobody_can_change_it(self) -> None:
        with pytest.raises(TypeError):
            MATCHED_CALL_CONTRACT["gate_phase"] = "never"  # type: ignore[index]
        with pytest.raises(TypeError):
            MATCHED_CALL_CONTRACT["fixture_expected_outcomes"]["missing"] = ("fixture-pass", "x")
        matched_call_contract()["fixture_result_contract"]["live_gate_eligible"] = True
        assert matched_call_contract_hash() == HASH


class TestFixtures:
    @pytest.mark.parametrize("fixture", Fixture)
    @pytest.mark.parametrize("target", [ORACLE, CONTROL])
    def test_each_comes_out_as_declared(self, target: str, fixture: Fixture) -> None:
        """A18: the seven fixtures for both targets."""
        found = evaluate_matched_call(history(fixture, target), target)
        assert [found.decision, found.reason_code] == CONTRACT["fixture_expected_outcomes"][fixture.value]
        assert found.observation_status == "none-fixtures-only"
        assert found.live_gate_eligible is False

    @pytest.mark.parametrize("fixture", Fixture)
    def test_both_targets_are_treated_alike(self, fixture: Fixture) -> None:
        """A18: the answers differ in the id alone."""
        one = evaluate_matched_call(history(fixture, ORACLE), ORACLE).model_dump_json()
        other = evaluate_matched_call(history(fixture, CONTROL), CONTROL).model_dump_json()
        assert one.replace(ORACLE, CONTROL) == other

    def test_the_answer_has_these_members(self) -> None:
        """A18: the form of a result."""
        assert evaluate_matched_call(history(Fixture.COMPLETED, ORACLE), ORACLE).model_dump(mode="json") == {
            "decision": "fixture-pass",
            "reason_code": "fixture_matched_call_satisfied",
            "deny_message": None,
            "observation_status": "none-fixtures-only",
            "live_gate_eligible": False,
        }

    def test_the_projection_itself_can_be_judged(self) -> None:
        value = history(Fixture.COMPLETED, ORACLE)
        assert evaluate_matched_call(SkillEvents.model_validate_json(json.dumps(value)), ORACLE).compliant


MALFORMED_TARGETS: list[object] = [
    None,
    "",
    3,
    ["a"],
    "a b",
    "a\n",
    "\x1b[2J",
    "a:b:c",
    ":a",
    "a:",
    300 * "a",
    "{x}",
]


class TestOrder:
    @pytest.mark.parametrize("target", MALFORMED_TARGETS)
    def test_a_malformed_target_comes_first(self, target: object) -> None:
        """A19 A20: no message for a malformed id, whatever the events are."""
        for value in (events(call()), None, events(call(), event_contract_status="degraded")):
            found = evaluate_matched_call(value, target)
            assert found.reason_code is Reason.EVENT_CONTRACT_UNVERIFIABLE
            assert found.deny_message is None

    @pytest.mark.parametrize("target", [ORACLE, CONTROL, "ccl-skills:review", "bare_name", "A.b-c:D_9"])
    def test_names_of_bundles_and_skills_are_targets(self, target: str) -> None:
        assert is_bundle_name(target)
        assert evaluate_matched_call(events(call(target)), target).compliant

    @pytest.mark.parametrize("name", list(events()))
    def test_a_missing_field(self, name: str) -> None:
        """A19: shape, each field of the projection."""
        value = events(call())
        del value[name]
        assert reason(value) == "event_contract_unverifiable"

    @pytest.mark.parametrize("name", list(call()))
    def test_a_missing_field_of_a_call(self, name: str) -> None:
        """A19: shape, each field of an invocation."""
        broken = call()
        del broken[name]
        assert reason(events(broken)) == "event_contract_unverifiable"

    @pytest.mark.parametrize(
        "others",
        [
            {"more": 1},
            {"schema_version": 2},
            {"event_contract_version": "skill-events-v1"},
            {"event_contract_status": "unknown"},
            {"skill_events_available": "yes"},
            {"skills_invoked": {}},
            {"skills_invoked": [None]},
            {"skills_invoked": [call() | {"more": 1}]},
            {"skills_invoked": [call(skill="")]},
            {"skills_invoked": [call(use="")]},
            {"skills_invoked": [call(completed=1)]},
        ],
    )
    def test_another_shape(self, others: dict[str, Any]) -> None:
        """A19: shape, wrong types and unknown fields."""
        assert reason(events(call()) | others) == "event_contract_unverifiable"

    def test_degraded_events(self) -> None:
        """A19: not stable, even with a call in time."""
        assert reason(events(call(), event_contract_status="degraded")) == "event_contract_unverifiable"

    @pytest.mark.parametrize("name", ["skill_events_available", "task_tool_events_available"])
    def test_events_that_are_not_available(self, name: str) -> None:
        """A19: not available, either kind."""
        assert reason(events(call()) | {name: False}) == "event_contract_unverifiable"

    def test_another_index_source(self) -> None:
        """A19: indexes of another source, a live host's included."""
        for source in ("host-stream", "authenticated-single-monotonic-host-stream", ""):
            assert reason(events(call()) | {"event_index_source": source}) == "event_contract_unverifiable"

    def test_the_number_of_calls_is_limited(self) -> None:
        """A19: 1,024 calls pass, 1,025 do not."""
        calls = [call("other" if index else ORACLE, index, f"u{index}") for index in range(1_025)]
        assert reason(events(*calls[:1_024])) == "fixture_matched_call_satisfied"
        assert reason(events(*calls)) == "event_contract_unverifiable"

    def test_the_length_of_an_id_is_limited(self) -> None:
        """A19: 256 characters pass, 257 do not."""
        assert reason(events(call(use=256 * "ü"))) == "fixture_matched_call_satisfied"
        assert reason(events(call(use=257 * "u"))) == "event_contract_unverifiable"

    def test_indexes_are_limited(self) -> None:
        """A19: a thousand million passes, one more does not, in a call and of the task tool."""
        assert reason(events(call(index=10**9 - 1), first=10**9)) == "fixture_matched_call_satisfied"
        assert reason(events(call(index=10**9), first=10**9 - 1)) == "matched_call_late"
        assert reason(events(call(index=10**9 + 1), first=0)) == "event_contract_unverifiable"
        assert reason(events(call(index=10**9), first=10**9 + 1)) == "event_contract_unverifiable"

    @pytest.mark.parametrize("index", [None, "0", 0.0, 0.5, True, -1])
    def test_an_index_is_a_whole_number(self, index: object) -> None:
        """A19: indexes that are no integers, in a call and of the task tool."""
        assert reason(events(call(index=index), first=1)) == "event_contract_unverifiable"
        value = events(call()) | {"first_task_tool_event_index": index}
        assert reason(value) == "event_contract_unverifiable"

    def test_an_index_is_nobody_elses(self) -> None:
        """A19: an index twice among calls, and that of the task tool."""
        assert reason(events(call(), call("other", 0, "u1"), first=1)) == "event_contract_unverifiable"
        assert reason(events(call(), first=0)) == "event_contract_unverifiable"

    def test_an_id_is_nobody_elses(self) -> None:
        """A19: a tool_use_id twice."""
        assert reason(events(call(), call("other", 1, "u0"))) == "event_contract_unverifiable"

    def test_completed_needs_a_result(self) -> None:
        """A19: completed without a matching result, of any call."""
        assert reason(events(call(matching_tool_result=False))) == "event_contract_unverifiable"
        odd = call("other", 1, "u1", matching_tool_result=False)
        assert reason(events(call(), odd)) == "event_contract_unverifiable"

    def test_the_task_tool_stands_at_most_one_after_the_calls(self) -> None:
        """A19: a gap before the task tool, with calls and without."""
        assert reason(events(call(), first=1)) == "fixture_matched_call_satisfied"
        assert reason(events(call(), first=2)) == "event_contract_unverifiable"
        assert reason(events(first=0)) == "matched_call_required"
        assert reason(events(first=1)) == "event_contract_unverifiable"

    def test_in_time_wins_over_late(self) -> None:
        """A19: a second call after the task tool changes nothing."""
        assert reason(events(call(), call(index=2, use="u2"), first=1)) == "fixture_matched_call_satisfied"

    def test_incomplete_before_and_complete_after_is_late(self) -> None:
        """A19: what counts is the completed call."""
        before = call(completed=False, matching_tool_result=True)
        assert reason(events(before, call(index=2, use="u2"), first=1)) == "matched_call_late"

    def test_nothing_but_the_exact_id_counts(self) -> None:
        """A19: neither another case nor a longer or shorter id."""
        for skill in (ORACLE.upper(), f"{ORACLE}-2", ORACLE[:-1], f"ccl-skills:{ORACLE}", f" {ORACLE}"):
            assert reason(events(call(skill))) == "matched_call_required"


class TestMessage:
    @pytest.mark.parametrize("fixture", [fixture for fixture in Fixture if fixture is not Fixture.COMPLETED])
    @pytest.mark.parametrize("target", [ORACLE, CONTROL])
    def test_every_denial_names_the_bundle(self, target: str, fixture: Fixture) -> None:
        """A20: each denial for a valid id has the rendered template."""
        found = evaluate_matched_call(history(fixture, target), target)
        assert found.deny_message == f"complete-required-bundle-before-trial-unlock:{target}"

    def test_also_for_events_that_are_none(self) -> None:
        """A20: malformed events are denied with the message."""
        for value in (None, [], "x", {"a": object()}, float("nan")):
            found = evaluate_matched_call(value, CONTROL)
            assert found.reason_code is Reason.EVENT_CONTRACT_UNVERIFIABLE
            assert found.deny_message == f"complete-required-bundle-before-trial-unlock:{CONTROL}"


ANY_CALL = st.fixed_dictionaries(
    {
        "skill": st.sampled_from([ORACLE, CONTROL, "other"]),
        "event_index": st.integers(min_value=-1, max_value=4),
        "tool_use_id": st.sampled_from(["u0", "u1", "u2", "u3"]),
        "matching_tool_result": st.booleans(),
        "completed": st.booleans(),
    }
)
ANY_EVENTS = st.builds(
    lambda calls, first, status: (
        events(*calls, event_contract_status=status) | {"first_task_tool_event_index": first}
    ),
    st.lists(ANY_CALL, max_size=4),
    st.none() | st.integers(min_value=0, max_value=5),
    st.sampled_from(["stable", "stable", "stable", "degraded"]),
)


class TestNoWayToALiveGate:
    def test_the_words_do_not_exist(self) -> None:
        """A21: no answer lets anything happen, by the enums and by the source."""
        assert set(Decision) == {"deny", "fixture-pass"}
        assert len(Reason) == 4
        source = inspect.getsource(page)
        assert not re.search(r"\ballow", source, re.IGNORECASE)
        assert not re.search(r"live_gate_eligible\W+True", source)

    def test_the_model_of_an_answer_takes_no_other_word(self) -> None:
        """A21: an answer that says more cannot be made."""
        found = evaluate_matched_call(events(call()), ORACLE).model_dump(mode="json")
        for wrong in (
            {"live_gate_eligible": True},
            {"live_gate_eligible": 0},
            {"decision": "allow"},
            {"observation_status": "observed"},
        ):
            with pytest.raises(ValueError, match="validation error"):
                MatchedCall.model_validate_json(json.dumps(found | wrong))

    @given(json_values, json_values | st.sampled_from([ORACLE, CONTROL]))
    def test_any_value_is_denied(self, value: object, target: object) -> None:
        """A21: whatever comes in, the answer is one of two and never live."""
        found = evaluate_matched_call(value, target)
        assert found.decision is Decision.DENY
        assert found.live_gate_eligible is False

    @given(ANY_EVENTS)
    def test_a_pass_is_a_completed_exact_call_before_the_task(self, value: dict[str, Any]) -> None:
        """A21: over well-shaped histories, a pass has its reason in the events and is never live."""
        found = evaluate_matched_call(value, ORACLE)
        assert found.live_gate_eligible is False
        if found.compliant:
            first = value["first_task_tool_event_index"]
            assert any(
                one["skill"] == ORACLE
                and one["completed"]
                and one["matching_tool_result"]
                and one["event_index"] < first
                for one in value["skills_invoked"]
            )
            assert value["event_contract_status"] == "stable"
