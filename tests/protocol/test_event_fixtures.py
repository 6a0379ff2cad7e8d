"""The known answers of skill events: what they hold, and what the evaluator says of them.

Turning the recordings into these events is tested with the extractors, in the adapters of their drivers.
"""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.document import parse_document
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.event_fixtures import EventCase, EventFixtures, load_event_fixtures
from skill_effectiveness.protocol.event_rows import SkillEventsRow
from skill_effectiveness.protocol.skill_events import Decision, evaluate_matched_call
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = load_event_fixtures(RealFs())
FILE = REPOSITORY / "fixtures" / "skill-event-fixtures-v2.json"
PLAIN: dict[str, Any] = json.loads(FILE.read_bytes())

# controls.md section 8, by hand: indexes of skill calls, index of the task, what is unverifiable, the reason.
PINNED: dict[str, tuple[list[int] | None, int | None, str | None, str]] = {
    "claude-code-completed-owner-invocation-before-task-tool": (
        [0],
        1,
        None,
        "fixture_matched_call_satisfied",
    ),
    "claude-code-two-invocations-keep-unique-indexes-and-ids": (
        [0, 1],
        2,
        None,
        "fixture_matched_call_satisfied",
    ),
    "claude-code-invocation-without-matching-result-is-incomplete": ([0], 1, None, "matched_call_required"),
    "claude-code-error-result-does-not-complete-an-invocation": ([0], 1, None, "matched_call_required"),
    "claude-code-invocation-after-first-task-tool-is-late": ([1], 0, None, "matched_call_late"),
    "claude-code-missing-tool-use-id-degrades-the-projection": (
        [],
        1,
        "missing_invocation_field",
        "event_contract_unverifiable",
    ),
    "opencode-completed-skill-tool-before-task-tool": ([0], 1, None, "fixture_matched_call_satisfied"),
    "opencode-denied-invocation-is-not-completed": ([0], 1, None, "matched_call_required"),
    "opencode-repeated-literal-call-id-is-unverifiable-under-the-global-rule": (
        [0, 1],
        2,
        None,
        "event_contract_unverifiable",
    ),
    "codex-cli-skill-md-read-is-observable-but-unregistered": (
        None,
        None,
        "driver_shape_unregistered",
        "event_contract_unverifiable",
    ),
    "cursor-agent-has-no-skill-tool-and-no-grounded-invocation-evidence": (
        None,
        None,
        "driver_shape_unregistered",
        "event_contract_unverifiable",
    ),
    "unknown-driver-shape-is-never-a-compliance-pass": (
        None,
        None,
        "driver_shape_unregistered",
        "event_contract_unverifiable",
    ),
}
INCOMPLETE = {
    "claude-code-invocation-without-matching-result-is-incomplete",
    "claude-code-error-result-does-not-complete-an-invocation",
    "opencode-denied-invocation-is-not-completed",
}
every_case = pytest.mark.parametrize("case", FIXTURES.cases, ids=lambda case: case.case_id)


def case_of(name: str) -> EventCase:
    (found,) = [case for case in FIXTURES.cases if case.case_id == name]
    return found


def leaves(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from leaves(member, name)
    elif isinstance(value, list):
        for member in value:
            yield from leaves(member, key)
    else:
        yield key, value


def keys(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for member in value.values() for name in keys(member)}
    return {name for member in value for name in keys(member)} if isinstance(value, list) else set()


def refused(document: dict[str, Any]) -> str:
    with pytest.raises(ProtocolError) as caught:
        parse_document(EventFixtures, json.dumps(document).encode(), "fixtures")
    return caught.value.sentence


class TestSkillEventsV2Fixture:
    def test_there_are_these_twelve_cases(self) -> None:
        assert [case.case_id for case in FIXTURES.cases] == list(PINNED)
        assert FIXTURES.registered_drivers == ("claude-code", "opencode")

    def test_another_validator_accepts_the_file(self) -> None:
        """It has a contract version instead of a schema version."""
        validator = jsonschema.Draft202012Validator(EventFixtures.model_json_schema())
        validator.validate(PLAIN)
        assert not validator.is_valid(PLAIN | {"schema_version": 1})

    @every_case
    def test_expected_values_are_those_of_the_table(self, case: EventCase) -> None:
        """A29: indexes, flags and reasons of every case."""
        calls, task, unverifiable, reason = PINNED[case.case_id]
        expected = case.expected
        assert (expected.unverifiable, expected.reason_code) == (unverifiable, reason)
        if calls is None:
            assert expected.events is None
            return
        assert expected.events is not None
        assert [call.event_index for call in expected.events.skills_invoked] == calls
        assert expected.events.first_task_tool_event_index == task
        complete = case.case_id not in INCOMPLETE
        for call in expected.events.skills_invoked:
            assert call.completed is complete
            assert call.matching_tool_result is complete

    @every_case
    def test_the_evaluator_answers_as_expected(self, case: EventCase) -> None:
        """A29: the one evaluator, on the projection written by hand."""
        found = evaluate_matched_call(case.expected.events, case.target_bundle_id)
        assert (found.decision, found.reason_code) == (case.expected.decision, case.expected.reason_code)
        assert found.live_gate_eligible is False
        denied = f"complete-required-bundle-before-trial-unlock:{case.target_bundle_id}"
        assert found.deny_message == (None if found.compliant else denied)

    @every_case
    def test_each_makes_a_row_of_a_trial(self, case: EventCase) -> None:
        row = {
            "schema_version": 1,
            "event_contract": "skill-events-v2",
            "driver": case.driver,
            "unverifiable": case.expected.unverifiable,
            "events": None if case.expected.events is None else case.expected.events.model_dump(mode="json"),
        }
        assert SkillEventsRow.model_validate_json(json.dumps(row)).verifiable is (
            case.expected.unverifiable is None
        )

    def test_identities_stay_namespaced_on_one_driver_and_bare_on_the_other(self) -> None:
        """A29: an open question, held by two cases."""
        held = [
            case
            for case in FIXTURES.cases
            if case.open_question == "skill-identities-namespaced-on-one-driver-bare-on-the-other"
        ]
        assert [(case.driver, case.target_bundle_id) for case in held] == [
            ("claude-code", "example-bundle:review-work"),
            ("opencode", "review-work"),
        ]
        for case, other in zip(held, held[::-1], strict=True):
            assert evaluate_matched_call(case.expected.events, case.target_bundle_id).compliant
            assert not evaluate_matched_call(case.expected.events, other.target_bundle_id).compliant

    def test_a_repeated_literal_id_stays_unverifiable(self) -> None:
        """A29: an open question, held by one case."""
        name = "opencode-repeated-literal-call-id-is-unverifiable-under-the-global-rule"
        case = case_of(name)
        assert case.open_question == "short-literal-call-ids-repeat-across-sessions-against-global-uniqueness"
        assert case.expected.events is not None
        assert case.expected.events.event_contract_status == "stable"
        assert [call.tool_use_id for call in case.expected.events.skills_invoked] == ["call_0", "call_0"]
        assert evaluate_matched_call(case.expected.events, case.target_bundle_id).decision is Decision.DENY
        assert [one.case_id for one in FIXTURES.cases if one.open_question == case.open_question] == [name]

    @every_case
    def test_recordings_hold_identities_ids_and_linkage_only(self, case: EventCase) -> None:
        """A28: known keys, short words, no argument, path or result text."""
        recording = json.loads(json.dumps(list(case.transcript)))
        assert keys(recording) <= {
            *("type", "message", "content", "id", "name", "input", "skill", "tool_use_id", "is_error"),
            *("tool", "callID", "state", "status", "item"),
        }
        for key, value in leaves(recording):
            if key == "is_error":
                assert isinstance(value, bool)
            else:
                assert re.fullmatch(r"[A-Za-z0-9_.:-]{1,40}", str(value)), value

    def test_nothing_writes_the_file(self) -> None:
        """A27: no code, tool or test makes expected values; one page reads them."""
        naming = [
            page.relative_to(REPOSITORY).as_posix()
            for folder in ("eval", "tools", "benchmarks", "tests")
            for page in (REPOSITORY / folder).rglob("*.py")
            if "skill-event-fixtures-v2" in page.read_text(encoding="utf-8")
        ]
        readers = [name for name in naming if not name.startswith("tests/")]
        assert readers == ["eval/skill_effectiveness/protocol/event_fixtures.py"]
        for name in naming:
            text = (REPOSITORY / name).read_text(encoding="utf-8")
            assert "write_" + "text" not in text, name
            assert "write_" + "bytes" not in text, name
        assert FIXTURES.known_answer_source == "hand-authored-never-parser-output"

    def test_a_driver_that_is_only_listed_is_refused(self) -> None:
        """Registering takes a note and a known answer; so does unregistering."""
        listed = copy.deepcopy(PLAIN)
        listed["registered_drivers"] = ["claude-code", "codex-cli", "opencode"]
        assert "note" in refused(listed)
        listed["driver_notes"]["codex-cli"] = "It reads the page."
        assert "known answer" in refused(listed)
        fewer = copy.deepcopy(PLAIN)
        fewer["registered_drivers"] = ["claude-code"]
        del fewer["driver_notes"]["opencode"]
        assert "known answer" in refused(fewer)

    def test_what_cannot_be_verified_never_passes(self) -> None:
        """No expected value may say so."""
        for place in (5, 9, 10, 11):
            edited = copy.deepcopy(PLAIN)
            edited["cases"][place]["expected"]["decision"] = "fixture-pass"
            assert "never passes" in refused(edited)
        allowed = copy.deepcopy(PLAIN)
        allowed["cases"][0]["expected"]["decision"] = "allow"
        refused(allowed)

    @given(st.sampled_from(FIXTURES.cases), st.text(max_size=20))
    def test_only_the_exact_target_passes(self, case: EventCase, target: str) -> None:
        """No projection of a case passes for another name."""
        if evaluate_matched_call(case.expected.events, target).compliant:
            assert case.expected.events is not None
            assert target in {call.skill for call in case.expected.events.skills_invoked}
