from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.capability import eligible
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.manifests import freeze_manifest
from skill_effectiveness.protocol.registry_plan import build_plan
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.protocol.smoke_fixture import (
    SMOKE_FIXTURE,
    FixtureIsolation,
    load_smoke_fixture,
    parse_smoke_fixture,
)
from tests.support.frozen_documents import HELD_OUT
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

COMMITTED = (frozen_folder() / SMOKE_FIXTURE).read_bytes()


def fixture() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(COMMITTED)
    return found


def edited(change: Callable[[dict[str, Any]], object]) -> bytes:
    found = fixture()
    change(found)
    return json.dumps(found).encode()


def refused(data: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        parse_smoke_fixture(data, "my.json")
    assert caught.value.code is ProtocolCode.FIXTURE_INVALID
    assert caught.value.where.startswith("my.json")
    assert "restore" not in caught.value.sentence
    return caught.value.where.removeprefix("my.json").removeprefix("#")


class TestCommitted:
    def test_the_bytes_are_pinned(self) -> None:
        """The committed fixture."""
        assert (
            hashlib.sha256(COMMITTED).hexdigest()
            == "51d16a92ef17010640ec52649791bbf848b13cf4bde02330b58f5a53624cac68"
        )

    def test_two_tasks_three_arms_and_three_samples(self) -> None:
        """18 trials, nothing injected, nobody's provider."""
        found = load_smoke_fixture(RealFs())
        assert [arm.template_ref for arm in found.arms] == ["arms/S0.json", "arms/S1.json", "arms/S2.json"]
        assert len(found.tasks) * len(found.arms) * found.samples == 18
        assert found.synthetic_extra_access_events == ()
        assert [row.provider for row in found.capability_matrix] == ["none", "none"]
        assert not any(eligible(row) for row in found.capability_matrix)
        assert {row.task_family for row in found.capability_matrix} == {
            task.task_family for task in found.tasks
        }
        assert found.calibration.status == "not_evaluated_synthetic"
        assert found.seed == 20261130

    def test_every_isolation_field_is_stated_and_safe(self) -> None:
        assert load_smoke_fixture(RealFs()).isolation_evidence.stated() == {
            "fresh_session": True,
            "forked_from_existing": False,
            "auto_memory_enabled": False,
            "vector_retrieval_enabled": False,
            "session_recall_enabled": False,
            "cross_session_cache_enabled": False,
            "canary_leak_detected": False,
            "provider_persistence": "disabled",
        }

    def test_its_arms_make_a_plan(self) -> None:
        arms = load_smoke_fixture(RealFs()).arms
        assert build_plan([freeze_manifest(RealFs(), arm.template_ref, arm.components) for arm in arms])

    def test_it_reads_as_itself_and_fits_its_schema(self) -> None:
        assert to_json(parse_smoke_fixture(COMMITTED)) == fixture()
        schema = json.loads((REPOSITORY / "schemas/smoke-fixture.schema.json").read_bytes())
        jsonschema.Draft202012Validator(schema).validate(fixture())


class TestRefused:
    @pytest.mark.parametrize("name", fixture())
    def test_every_field_is_needed(self, name: str) -> None:
        """No field of the fixture may be missing."""
        assert refused(edited(lambda found: found.pop(name))) == f"/{name}"

    @pytest.mark.parametrize(
        ("where", "value"),
        [
            ("/schema_version", 2),
            ("/fixture_kind", "live-runner"),
            ("/live_model_calls", True),
            ("/live_model_calls", 0),
            ("/samples", 0),
            ("/samples", 2.5),
            ("/seed", "seed"),
            ("/seed", -1),
            ("/seed", 1.5),
            ("/seed", True),
            ("/tasks", []),
            ("/arms", []),
            ("/arms", {}),
            ("/calibration", {"status": "pass"}),
            ("/capability_matrix", None),
            ("/isolation_evidence", []),
            ("/more", 1),
        ],
    )
    def test_a_wrong_value_is_refused_where_it_stands(self, where: str, value: object) -> None:
        """The fixture is exact, and the pointer is told."""
        assert refused(edited(lambda found: found.update({where[1:]: value}))).startswith(where)

    @pytest.mark.parametrize(
        ("where", "change"),
        [
            ("/tasks/0/execution_mode", lambda found: found["tasks"][0].update(execution_mode="chat")),
            ("/tasks/0", lambda found: found["tasks"][0].update(execution_mode="workspace")),
            ("/tasks/1", lambda found: found["tasks"][1].pop("execution_mode")),
            ("/tasks/0", lambda found: found["tasks"][0].update(cohort="seen")),
            ("/tasks/0/expected_owners", lambda found: found["tasks"][0].update(expected_owners=["x"])),
            ("", lambda found: found["tasks"][1].update(task_id="SMOKE-implementation")),
            ("", lambda found: found["arms"][1].update(template_ref="arms/S0.json")),
            ("/arms/0/template_ref", lambda found: found["arms"][0].update(template_ref="../S0.json")),
            (
                "/arms/0/components/bootstrap",
                lambda found: found["arms"][0]["components"].update(bootstrap=None),
            ),
            ("/arms/0/more", lambda found: found["arms"][0].update(more=1)),
            ("/isolation_evidence/fresh", lambda found: found["isolation_evidence"].update(fresh=True)),
            (
                "/isolation_evidence/fresh_session",
                lambda found: found["isolation_evidence"].update(fresh_session=1),
            ),
            ("/capability_matrix/0", lambda found: found["capability_matrix"][0].update(provider="codex")),
            ("/capability_matrix/1", lambda found: found["capability_matrix"][1].update(evidence_hash="x")),
            (
                "/synthetic_extra_access_events/0/actor",
                lambda found: found.update(synthetic_extra_access_events=[{}]),
            ),
        ],
    )
    def test_parts_too(self, where: str, change: Callable[[dict[str, Any]], object]) -> None:
        """The parts of the fixture are exact."""
        assert refused(edited(change)).startswith(where)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"[]",
            b"null",
            COMMITTED[:-3],
            COMMITTED.replace(b'"samples": 3', b'"samples": NaN'),
            COMMITTED.replace(b'"samples": 3', b'"samples": 3, "samples": 3'),
            COMMITTED.replace(b'"samples": 3', b'"samples": 3.0'),
            b"\xff" + COMMITTED,
        ],
    )
    def test_what_is_no_document(self, data: bytes) -> None:
        """A list, a number that is none, a member twice, other bytes."""
        refused(data)


class TestAccepted:
    def test_a_held_out_task(self) -> None:
        found = parse_smoke_fixture(edited(lambda found: found["tasks"].append(HELD_OUT)))
        assert len(found.tasks) == 3

    def test_violations_can_be_injected(self) -> None:
        """Rows and isolation that a run must find."""
        row = {"actor": "tested-agent", "operation": "read", "path": "/etc/passwd"}
        opened = row | {"operation": "open", "access_mode": "write"}

        def inject(found: dict[str, Any]) -> None:
            found["synthetic_extra_access_events"] = [row, opened]
            found["isolation_evidence"]["auto_memory_enabled"] = True

        found = parse_smoke_fixture(edited(inject))
        assert [to_json(extra) for extra in found.synthetic_extra_access_events] == [row, opened]
        assert found.isolation_evidence.auto_memory_enabled is True

    def test_a_null_is_not_a_missing_field(self) -> None:
        def inject(found: dict[str, Any]) -> None:
            found["isolation_evidence"] = {"fresh_session": None, "provider_persistence": "unverified"}

        stated = parse_smoke_fixture(edited(inject)).isolation_evidence.stated()
        assert stated == {"fresh_session": None, "provider_persistence": "unverified"}
        assert FixtureIsolation().stated() == {}
