"""The documents of a trial: exact fields, exact types, exact places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.models import (
    AuditRow,
    IsolationEvidence,
    ResumeCursor,
    TrialBudget,
    TrialDocument,
    TrialKey,
    TrialRuntime,
    TrialStatus,
    read_record,
    sample_index,
)
from skill_effectiveness.trials.prepare import prepare
from tests.support.trials import LIMITED, NOTHING, RUNTIME, SAFE, Place, order

if TYPE_CHECKING:
    from pathlib import Path


def refused(model: type[Any], value: object) -> str:
    with pytest.raises(TrialError) as caught:
        read_record(model, value)
    assert caught.value.code is TrialCode.BAD_RECORD
    return caught.value.where


class TestKey:
    def test_names_the_folder(self) -> None:
        assert TrialKey("task-a", "S1", 7).path == "task-a/S1/sample-007"
        assert TrialKey("task-a", "S1", 1234).path == "task-a/S1/sample-1234"

    @pytest.mark.parametrize("index", [1, 999, 1000, 999_999_999])
    def test_is_read_back(self, index: int) -> None:
        key = TrialKey("t.1_x-y", "S1", index)
        assert TrialKey.parse(key.path) == key

    @pytest.mark.parametrize(
        "path",
        [
            "task-a/S1",
            "task-a/S1/sample-1",
            "task-a/S1/sample-0001",
            "task-a/S1/sample-000",
            "task-a/S1/sample-00a",
            "task-a/S1/sample-001/more",
            "../S1/sample-001",
            "/S1/sample-001",
            "task-a//sample-001",
            "task a/S1/sample-001",
            "task-a/S1/sample-9999999999",
            "",
        ],
    )
    def test_no_other_path_is_one(self, path: str) -> None:
        with pytest.raises(TrialError) as caught:
            TrialKey.parse(path)
        assert caught.value.code is TrialCode.BAD_RECORD

    @pytest.mark.parametrize("index", [0, -1, 1_000_000_000])
    def test_samples_begin_at_one(self, index: int) -> None:
        with pytest.raises(TrialError) as caught:
            TrialKey("task-a", "S1", index)
        assert caught.value.field == "sample_index"

    def test_other_names_are_no_samples(self) -> None:
        names = [
            ".sample-001.prepare.lock",
            "sample-001.old",
            "sample-",
            "sample-\u0660\u0660\u0661",
            "sample-001\n",
        ]
        assert [sample_index(name) for name in names] == [None] * 5


class TestRuntime:
    def test_keeps_further_keys(self) -> None:
        given = RUNTIME | {
            "temperature": 0.5,
            "tools": ["read", {"x": None}],
            "model_dump": 1,
            "__class__": "",
        }
        runtime = read_record(TrialRuntime, given)
        assert runtime.model_dump(mode="json") == given

    @pytest.mark.parametrize("name", RUNTIME)
    def test_needs_each_of_its_six(self, name: str) -> None:
        assert refused(TrialRuntime, {key: RUNTIME[key] for key in RUNTIME if key != name}) == f"/{name}"

    @pytest.mark.parametrize("name", ["provider", "model", "session_id"])
    @pytest.mark.parametrize("value", ["", None, 1, True])
    def test_texts_are_texts(self, name: str, value: object) -> None:
        assert refused(TrialRuntime, RUNTIME | {name: value}) == f"/{name}"

    @pytest.mark.parametrize("value", ["sha256:" + "A" * 64, "sha256:" + "a" * 63, "a" * 64, None])
    def test_digests_are_digests(self, value: object) -> None:
        assert refused(TrialRuntime, RUNTIME | {"runner_hash": value}) == "/runner_hash"


class TestNumbers:
    @pytest.mark.parametrize("value", [0, -1, "5", True, [5]])
    def test_a_limit_is_above_zero(self, value: object) -> None:
        assert refused(TrialBudget, LIMITED | {"tokens": value}) == "/tokens"

    def test_a_budget_is_exactly_four(self) -> None:
        assert refused(TrialBudget, LIMITED | {"calls": 1}) == "/calls"
        assert refused(TrialBudget, {"tokens": 1, "wall_time_seconds": 1, "tool_calls": 1}) == "/cost_units"

    @pytest.mark.parametrize("value", [-1, -0.5, None, "0", False])
    def test_consumption_is_a_finite_number(self, value: object) -> None:
        found = {"next_run_order": 1, "consumed_budget": NOTHING | {"cost_units": value}}
        assert refused(ResumeCursor, found) == "/consumed_budget/cost_units"

    @pytest.mark.parametrize("value", [0, 1.0, True, "1", None])
    def test_the_run_order_is_an_integer_from_one(self, value: object) -> None:
        found = {"next_run_order": value, "consumed_budget": NOTHING}
        assert refused(ResumeCursor, found) == "/next_run_order"


class TestIsolationEvidence:
    @pytest.mark.parametrize("name", SAFE)
    @pytest.mark.parametrize("value", [0, 1, "yes", "true", "", {}, []])
    def test_takes_no_look_alike(self, name: str, value: object) -> None:
        assert refused(IsolationEvidence, SAFE | {name: value}) == f"/{name}"

    def test_keeps_null_and_absent_apart(self) -> None:
        given = {"fresh_session": None, "provider_persistence": "unverified"}
        assert read_record(IsolationEvidence, given).given() == given


class TestAuditRow:
    @pytest.mark.parametrize(
        "row",
        [
            {"operation": "read", "path": "/x"},
            {"actor": "controller", "operation": "read", "path": "/x"},
            {"actor": "tested-agent", "operation": "delete", "path": "/x"},
            {"actor": "tested-agent", "operation": "read", "path": "x"},
            {"actor": "tested-agent", "operation": "read", "path": ""},
            {"actor": "tested-agent", "operation": "read", "path": "/x\x00y"},
            {"actor": "tested-agent", "operation": "open", "path": "/x"},
            {"actor": "tested-agent", "operation": "open", "access_mode": "append", "path": "/x"},
            {"actor": "tested-agent", "operation": "open", "access_mode": None, "path": "/x"},
            {"actor": "tested-agent", "operation": "read", "access_mode": "read", "path": "/x"},
            {"actor": "tested-agent", "operation": "read", "path": "/x", "time": 1},
        ],
    )
    def test_of_another_form_is_refused(self, row: object) -> None:
        refused(AuditRow, row)

    @pytest.mark.parametrize(
        ("row", "writes"),
        [
            ({"operation": "read"}, False),
            ({"operation": "enumerate"}, False),
            ({"operation": "write"}, True),
            ({"operation": "open", "access_mode": "read"}, False),
            ({"operation": "open", "access_mode": "write"}, True),
        ],
    )
    def test_tells_which_root_it_needs(self, row: dict[str, str], *, writes: bool) -> None:
        assert read_record(AuditRow, row | {"actor": "tested-agent", "path": "/x"}).writes is writes


class TestDocument:
    @pytest.fixture
    def document(self, tmp_path: Path) -> dict[str, Any]:
        place, wanted = Place(tmp_path), order()
        with place.open() as store:
            prepare(store, wanted)
        return place.document(wanted.key)

    def test_has_exactly_its_fields(self, document: dict[str, Any]) -> None:
        assert set(document) == {
            "schema_version", "artifact_contract", "enforcement", "registry_schema", "task", "arm_id",
            "manifest_hash", "runtime", "budget", "sample_index", "trial_location_hash", "trial_fingerprint",
            "status", "state_version", "completion_claim", "resume_cursor", "stop_reason",
            "completion_isolation", "completion_binding_hash",
        }  # fmt: skip
        assert refused(TrialDocument, document | {"note": "x"}) == "/note"

    def test_tells_no_owner(self, document: dict[str, Any]) -> None:
        assert set(document["task"]) == {
            "task_id", "task_family", "cohort", "prompt_ref", "frozen_at_sha", "corpus_version",
            "execution_mode", "task_hash",
        }  # fmt: skip

    @pytest.mark.parametrize("name", ["registry_schema", "registry_plan_hash"])
    def test_what_it_may_lack_is_never_null(self, document: dict[str, Any], name: str) -> None:
        assert refused(TrialDocument, document | {name: None}) == f"/{name}"
        without = {key: value for key, value in document.items() if key != name}
        assert name not in to_json(read_record(TrialDocument, without))

    @pytest.mark.parametrize(
        "changes",
        [
            {"completion_claim": True},
            {"completion_binding_hash": "sha256:" + "0" * 64},
            {"status": "completed", "state_version": 1},
            {"state_version": 1},
            {"status": "running"},
            {"status": "void", "state_version": 1},
            {"state_version": True},
            {"schema_version": 2},
            {"enforcement": "enforced"},
        ],
    )
    def test_contradictions_do_not_load(self, document: dict[str, Any], changes: dict[str, Any]) -> None:
        refused(TrialDocument, document | changes)

    def test_a_failed_trial_may_have_any_words(self, document: dict[str, Any]) -> None:
        failed = document | {"status": "failed", "state_version": 1, "stop_reason": "own words"}
        assert read_record(TrialDocument, failed).status is TrialStatus.FAILED
