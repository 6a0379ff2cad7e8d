"""Skill events: what a recording shows of skill calls, and whether the demanded call came in time.

`SkillEvents` is the projection that every driver's recording is turned into (controls.md section 8). It is a
manipulation check, never an outcome: that a skill was called does not prove that it was loaded or heeded.

`evaluate_matched_call` is the one judgement over it (controls.md section 7), the same for the oracle and the
active control. It declares a contract and proves no enforcement: nothing here can let a live gate open.

| found, in this order | decision | reason |
|---|---|---|
| the target is not the name of a bundle | `deny`, without a message | `event_contract_unverifiable` |
| malformed, degraded or unavailable events; another index source | `deny` | `event_contract_unverifiable` |
| a limit exceeded, indexes or ids that cannot all be true | `deny` | `event_contract_unverifiable` |
| a completed call of exactly the target before the task | `fixture-pass` | `fixture_matched_call_satisfied` |
| such a call after it | `deny` | `matched_call_late` |
| anything else | `deny` | `matched_call_required` |
"""

from __future__ import annotations

import re
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.document import FrozenModel, No, One, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENT_CONTRACT: Final = "skill-events-v2"
INDEX_SOURCE: Final = "fixture-modeled-single-monotonic-stream"
MOST_INVOCATIONS: Final = 1_024
LONGEST_ID: Final = 256
LARGEST_INDEX: Final = 1_000_000_000

_NAME: Final = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_TARGET: Final = re.compile(rf"{_NAME}(:{_NAME})?", re.ASCII)


class Decision(StrEnum):
    """What the evaluator can answer; there is no word that lets anything happen."""

    DENY = "deny"
    FIXTURE_PASS = "fixture-pass"  # noqa: S105 - a word, no password


class Reason(StrEnum):
    """Why it answers so."""

    MATCHED_CALL_REQUIRED = "matched_call_required"
    EVENT_CONTRACT_UNVERIFIABLE = "event_contract_unverifiable"
    FIXTURE_MATCHED_CALL_SATISFIED = "fixture_matched_call_satisfied"
    MATCHED_CALL_LATE = "matched_call_late"


class Fixture(StrEnum):
    """The seven deterministic histories that the contract is declared over."""

    MISSING = "missing"
    WRONG_TARGET = "wrong_target"
    INCOMPLETE = "incomplete"
    DEGRADED = "degraded"
    MISSING_TASK_TOOL_INDEX = "missing_task_tool_index"
    COMPLETED = "completed"
    LATE_AFTER_TASK_TOOL = "late_after_task_tool"


class EventStatus(StrEnum):
    """Whether the recording could be turned into events without a gap."""

    STABLE = "stable"
    DEGRADED = "degraded"


EventIndex = Annotated[int, Field(ge=0, le=LARGEST_INDEX)]
"""Position among skill calls and task-tool calls, from 0, in order of appearance; results do not count."""

_RESULT_CONTRACT: Final = MappingProxyType(
    {
        "observation_status": "none-fixtures-only",
        "live_gate_eligible": False,
        "deny_message_semantics": "frozen-deny-template-for-deny-else-null",
    }
)
DENY_TEMPLATE: Final = "complete-required-bundle-before-trial-unlock:{target_bundle_id}"

MATCHED_CALL_CONTRACT: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "schema_version": 1,
        "event_contract_version": EVENT_CONTRACT,
        "deny_template": DENY_TEMPLATE,
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
        "fixture_expected_outcomes": MappingProxyType(
            {
                Fixture.MISSING: (Decision.DENY, Reason.MATCHED_CALL_REQUIRED),
                Fixture.WRONG_TARGET: (Decision.DENY, Reason.MATCHED_CALL_REQUIRED),
                Fixture.INCOMPLETE: (Decision.DENY, Reason.MATCHED_CALL_REQUIRED),
                Fixture.DEGRADED: (Decision.DENY, Reason.EVENT_CONTRACT_UNVERIFIABLE),
                Fixture.MISSING_TASK_TOOL_INDEX: (Decision.DENY, Reason.EVENT_CONTRACT_UNVERIFIABLE),
                Fixture.COMPLETED: (Decision.FIXTURE_PASS, Reason.FIXTURE_MATCHED_CALL_SATISFIED),
                Fixture.LATE_AFTER_TASK_TOOL: (Decision.DENY, Reason.MATCHED_CALL_LATE),
            }
        ),
        "fixture_result_contract": _RESULT_CONTRACT,
        "matched_call_gate_satisfied": False,
        "max_skill_invocations": MOST_INVOCATIONS,
        "max_tool_use_id_characters": LONGEST_ID,
        "max_event_index": LARGEST_INDEX,
    }
)
"""The frozen gate contract."""


class SkillInvocation(FrozenModel):
    """One skill call of a recording."""

    skill: Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
    event_index: EventIndex
    tool_use_id: Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
    matching_tool_result: bool
    completed: bool


class SkillEvents(FrozenModel):
    """The projection of one recording: its skill calls, and where the first task tool stands among them."""

    schema_version: One
    event_contract_version: Literal["skill-events-v2"]
    event_contract_status: EventStatus
    skill_events_available: bool
    task_tool_events_available: bool
    first_task_tool_event_index: EventIndex | None
    event_index_source: Literal["fixture-modeled-single-monotonic-stream"]
    skills_invoked: Annotated[tuple[SkillInvocation, ...], Field(max_length=MOST_INVOCATIONS)]


class MatchedCall(FrozenModel):
    """What the evaluator says of one recording and one target."""

    decision: Decision
    reason_code: Reason
    deny_message: str | None
    observation_status: Literal["none-fixtures-only"]
    live_gate_eligible: No

    @property
    def compliant(self) -> bool:
        """Whether the demanded call was made in time, as far as a recording can show it."""
        return self.decision is Decision.FIXTURE_PASS


def matched_call_contract() -> dict[str, Any]:
    """The gate contract as plain JSON values."""
    contract = dict(MATCHED_CALL_CONTRACT)
    contract["fixture_expected_outcomes"] = {
        str(fixture): [str(word) for word in outcome]
        for fixture, outcome in MATCHED_CALL_CONTRACT["fixture_expected_outcomes"].items()
    }
    contract["fixture_result_contract"] = dict(_RESULT_CONTRACT)
    return contract


def matched_call_contract_hash() -> str:
    """The object digest of the gate contract."""
    return digest_object(matched_call_contract())


def is_bundle_name(target: object) -> bool:
    """Whether something can be the target of a matched call: a name, or a namespace and a name."""
    return isinstance(target, str) and _TARGET.fullmatch(target) is not None


def evaluate_matched_call(events: object, target_bundle_id: object) -> MatchedCall:
    """Whether the target bundle was called, completely, before the first task tool.

    Args:
        events: a `SkillEvents`, or any value that ought to be one.
        target_bundle_id: which bundle the arm demands.

    Returns:
        An answer for any input; what cannot be verified is denied.
    """
    if not (isinstance(target_bundle_id, str) and is_bundle_name(target_bundle_id)):
        return _answer(Reason.EVENT_CONTRACT_UNVERIFIABLE, None)
    read = _read(events)
    if read is None or not _is_verifiable(read):
        return _answer(Reason.EVENT_CONTRACT_UNVERIFIABLE, target_bundle_id)
    return _answer(_judge(read, target_bundle_id), target_bundle_id)


def _read(events: object) -> SkillEvents | None:
    """The events if they are of the exact shape and within the limits."""
    try:
        return validate(SkillEvents, to_json(events) if isinstance(events, SkillEvents) else events)
    except EvidenceError:
        return None


def _is_verifiable(events: SkillEvents) -> bool:
    """Whether the events can all be true and an order can be told from them."""
    first = events.first_task_tool_event_index
    if events.event_contract_status is not EventStatus.STABLE or first is None:
        return False
    if not (events.skill_events_available and events.task_tool_events_available):
        return False
    indexes = [call.event_index for call in events.skills_invoked]
    ids = [call.tool_use_id for call in events.skills_invoked]
    return (
        len({*indexes, first}) == len(indexes) + 1
        and len(set(ids)) == len(ids)
        and all(call.matching_tool_result or not call.completed for call in events.skills_invoked)
        # Otherwise there would be a call between them that the recording does not show.
        and first <= max(indexes, default=-1) + 1
    )


def _judge(events: SkillEvents, target: str) -> Reason:
    first = events.first_task_tool_event_index
    completed = [
        call.event_index for call in events.skills_invoked if call.skill == target and call.completed
    ]
    if first is None or not completed:
        return Reason.MATCHED_CALL_REQUIRED
    return Reason.FIXTURE_MATCHED_CALL_SATISFIED if min(completed) < first else Reason.MATCHED_CALL_LATE


def _answer(reason: Reason, target: str | None) -> MatchedCall:
    passed = reason is Reason.FIXTURE_MATCHED_CALL_SATISFIED
    return MatchedCall(
        decision=Decision.FIXTURE_PASS if passed else Decision.DENY,
        reason_code=reason,
        deny_message=None if passed or target is None else DENY_TEMPLATE.format(target_bundle_id=target),
        observation_status="none-fixtures-only",
        live_gate_eligible=False,
    )
