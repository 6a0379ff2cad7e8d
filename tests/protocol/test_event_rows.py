from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from skill_effectiveness.evidence.faults import DocumentError
from skill_effectiveness.protocol.event_rows import HostResidualRow, SkillEventsRow, read_event_row
from tests.support.frozen_documents import EVENTS, SKILLS
from tests.support.private import REPOSITORY

RESIDUAL: dict[str, Any] = {
    "schema_version": 1,
    "event_contract": "host-residual-v1",
    "status": "clean",
    "layers": [],
}
DEGRADED = EVENTS | {"event_contract_status": "degraded", "skills_invoked": []}


def is_valid(name: str, value: object) -> bool:
    document = json.loads((REPOSITORY / "schemas" / f"{name}.schema.json").read_bytes())
    return jsonschema.Draft202012Validator(document).is_valid(value)


def refused(value: object) -> str:
    with pytest.raises(DocumentError) as caught:
        read_event_row(value)
    return caught.value.faults[0].where


class TestHeading:
    def test_other_contracts_are_left_alone(self) -> None:
        assert read_event_row({"event_contract": "runner-log-v1", "anything": [1]}) is None

    @pytest.mark.parametrize(
        "value", [{}, {"event_contract": None}, {"event_contract": ""}, {"event_contract": 2}]
    )
    def test_a_row_says_its_contract(self, value: object) -> None:
        assert refused(value) == "/event_contract"

    @pytest.mark.parametrize("value", [None, [], "row", 1])
    def test_a_row_is_an_object(self, value: object) -> None:
        assert refused(value) == ""


class TestHostResidual:
    @pytest.mark.parametrize(
        ("status", "layers", "residual"),
        [
            ("clean", [], False),
            ("residual", ["ccl_layer"], True),
            ("residual", ["bootstrap", "skill_inventory"], True),
            ("unverified", [], None),
        ],
    )
    def test_what_was_found(self, status: str, layers: list[str], residual: bool | None) -> None:  # noqa: FBT001 - a column
        value = RESIDUAL | {"status": status, "layers": layers}
        row = read_event_row(value)
        assert isinstance(row, HostResidualRow)
        assert row.residual is residual
        assert is_valid("host-residual-row", value)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"status": "clean", "layers": ["ccl_layer"]},
            {"status": "unverified", "layers": ["ccl_layer"]},
            {"status": "residual", "layers": []},
            {"status": "residual", "layers": ["b", "a"]},
            {"status": "residual", "layers": ["a", "a"]},
            {"status": "residual", "layers": ["/home/someone/skills"]},
            {"status": "dirty"},
            {"status": None},
            {"schema_version": 2},
            {"more": 1},
        ],
    )
    def test_a_contradiction_is_refused(self, wrong: dict[str, Any]) -> None:
        refused(RESIDUAL | wrong)

    @pytest.mark.parametrize("name", ["schema_version", "status", "layers"])
    def test_every_field_is_needed(self, name: str) -> None:
        value = {key: found for key, found in RESIDUAL.items() if key != name}
        assert refused(value) == f"/{name}"
        assert not is_valid("host-residual-row", value)


class TestSkillEvents:
    @pytest.mark.parametrize(
        ("unverifiable", "events", "verifiable"),
        [
            (None, EVENTS, True),
            (None, EVENTS | {"skills_invoked": [], "first_task_tool_event_index": None}, True),
            ("driver_shape_unregistered", None, False),
            ("missing_invocation_field", DEGRADED, False),
        ],
    )
    def test_what_a_recording_came_to(
        self, unverifiable: str | None, events: object, *, verifiable: bool
    ) -> None:
        value = SKILLS | {"unverifiable": unverifiable, "events": events}
        row = read_event_row(value)
        assert isinstance(row, SkillEventsRow)
        assert row.verifiable is verifiable
        assert is_valid("skill-events-row", value)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"events": None},
            {"events": DEGRADED},
            {"unverifiable": "driver_shape_unregistered"},
            {"unverifiable": "missing_invocation_field"},
            {
                "unverifiable": "missing_invocation_field",
                "events": EVENTS | {"event_contract_status": "degraded"},
            },
            {"unverifiable": "missing_invocation_field", "events": None},
            {"unverifiable": "invocation_unverifiable", "events": None},
            {"driver": "Claude Code"},
            {"events": EVENTS | {"transcript": "text"}},
            {"schema_version": True},
        ],
    )
    def test_no_path_leads_from_unverifiable_to_verifiable(self, wrong: dict[str, Any]) -> None:
        """A row whose events do not fit what is said about them is no row."""
        refused(SKILLS | wrong)

    def test_repeated_ids_are_kept_as_they_were_seen(self) -> None:
        """The projection may repeat an id; judging it is the evaluator's."""
        again = EVENTS["skills_invoked"][0] | {"event_index": 1}
        value = EVENTS | {
            "skills_invoked": [EVENTS["skills_invoked"][0], again],
            "first_task_tool_event_index": 2,
        }
        row = read_event_row(SKILLS | {"events": value})
        assert isinstance(row, SkillEventsRow)
        assert row.verifiable
