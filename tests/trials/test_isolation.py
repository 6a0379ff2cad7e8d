"""Observed breach and missing proof, per field; roots."""

from __future__ import annotations

import pytest

from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.protocol.tasks import ExecutionMode
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.isolation import Breach, Protected, assess, check_roots, completion_isolation
from skill_effectiveness.trials.models import IsolationEvidence, read_record
from tests.support.trials import SAFE, Json

MEMORY = WaivableItem.MEMORY_ISOLATION_PROOF
PERSISTENCE = WaivableItem.PROVIDER_SIDE_PERSISTENCE_PROOF

BREACHES = {
    "fresh_session": (False, Breach.SESSION_NOT_FRESH, MEMORY),
    "forked_from_existing": (True, Breach.FORKED_FROM_EXISTING, MEMORY),
    "auto_memory_enabled": (True, Breach.AUTO_MEMORY_ENABLED, MEMORY),
    "vector_retrieval_enabled": (True, Breach.VECTOR_RETRIEVAL_ENABLED, MEMORY),
    "session_recall_enabled": (True, Breach.SESSION_RECALL_ENABLED, MEMORY),
    "cross_session_cache_enabled": (True, Breach.CROSS_SESSION_CACHE_ENABLED, MEMORY),
    "canary_leak_detected": (True, Breach.CANARY_LEAK_DETECTED, MEMORY),
    "provider_persistence": ("enabled", Breach.PROVIDER_PERSISTENCE_ENABLED, PERSISTENCE),
}


def evidence(**changes: object) -> IsolationEvidence:
    given = {name: value for name, value in (SAFE | changes).items() if value is not ...}
    return read_record(IsolationEvidence, given)


def test_every_field_is_judged() -> None:
    assert set(BREACHES) == set(IsolationEvidence.model_fields)


def test_all_safe_is_neither() -> None:
    """T17: safe."""
    found = assess(evidence())
    assert (found.breaches, found.missing) == ((), frozenset())


@pytest.mark.parametrize("name", BREACHES)
def test_an_observed_value_is_a_breach(name: str) -> None:
    """T17: each field's breach, which is no missing proof."""
    value, breach, _ = BREACHES[name]
    found = assess(evidence(**{name: value}))
    assert (found.breaches, found.missing) == ((breach,), frozenset())


@pytest.mark.parametrize("name", BREACHES)
@pytest.mark.parametrize("value", [None, "unverified", ...], ids=["null", "unverified", "absent"])
def test_no_value_is_missing_proof(name: str, value: object) -> None:
    """T17: each field absent, null or unverified, which is no breach."""
    found = assess(evidence(**{name: value}))
    assert (found.breaches, found.missing) == ((), frozenset({BREACHES[name][2]}))


def test_no_evidence_at_all_proves_nothing() -> None:
    assert assess(None) == assess(read_record(IsolationEvidence, {}))
    assert assess(None).missing == {MEMORY, PERSISTENCE}


HERE = Protected("/srv/store/trials/t/a/sample-001", "/srv/store", ("/home/me",))
OUTCOME = f"{HERE.trial}/outcome"


def roots(read: Json, write: Json, mode: ExecutionMode | None = ExecutionMode.ANSWER_ONLY) -> None:
    check_roots(read, write, mode, HERE)


def refused(read: Json, write: Json, mode: ExecutionMode | None = ExecutionMode.ANSWER_ONLY) -> str:
    with pytest.raises(TrialError) as caught:
        roots(read, write, mode)
    assert caught.value.code is TrialCode.BAD_RECORD
    return caught.value.where


class TestRoots:
    def test_separate_folders_pass(self) -> None:
        roots(["/srv/checkout"], [OUTCOME])
        roots(["/srv/store/task-checkouts/t"], [OUTCOME, "/srv/scratch"])

    @pytest.mark.parametrize("root", ["/", "/home/me", "/home"])
    def test_none_is_everything(self, root: str) -> None:
        assert refused([root], [OUTCOME]) == "/read_allow_roots/0"
        assert refused(["/srv/checkout"], [OUTCOME, root]) == "/write_allow_roots/1"

    def test_below_home_is_fine(self) -> None:
        roots(["/home/me/checkout"], ["/home/me/out"])

    @pytest.mark.parametrize("write", ["/srv/checkout", "/srv/checkout/sub", "/srv"])
    def test_read_and_write_do_not_overlap(self, write: str) -> None:
        refused(["/srv/checkout"], [write])
        if write != "/srv/checkout":
            refused(["/srv/checkout"], [write], ExecutionMode.WORKSPACE)

    def test_a_working_copy_may_be_read_and_written(self) -> None:
        roots(["/srv/copy"], ["/srv/copy", OUTCOME], ExecutionMode.WORKSPACE)
        refused(["/srv/copy"], ["/srv/copy", OUTCOME], None)

    def test_a_name_that_begins_alike_is_no_overlap(self) -> None:
        roots(["/srv/check"], ["/srv/checkout"])

    def test_nothing_is_named_twice(self) -> None:
        assert refused(["/srv/x", "/srv/x"], [OUTCOME]) == "/read_allow_roots/1"

    @pytest.mark.parametrize(
        "write",
        [
            HERE.trial,
            f"{HERE.trial}/grading",
            f"{HERE.trial}/breach.json",
            f"{HERE.trial}/trial.json",
            f"{HERE.trial}/events.jsonl",
            f"{HERE.trial}/access-audit.jsonl",
            f"{HERE.trial}/.trial.lock",
            "/srv/store/trials",
            "/srv/store/trials/t/a/sample-002/outcome",
            "/srv/store",
            "/srv",
            "/srv/store/blinding/judge",
            "/srv/store/blinding.key",
            "/srv/store/keys",
            "/srv/store/root.json",
            "/srv/store/bridge-receipts",
        ],
    )
    def test_no_agent_writes_what_the_controller_writes(self, write: str) -> None:
        """T59: grades, breach mark, documents, logs, keys and mappings lie outside every write root."""
        for mode in ExecutionMode:
            assert refused(["/elsewhere"], [OUTCOME, write], mode) == "/write_allow_roots/1"

    @pytest.mark.parametrize(
        "read",
        [
            "/srv/store",
            "/srv",
            "/srv/store/blinding",
            "/srv/store/blinding/mappings",
            "/srv/store/keys/a.key",
        ],
    )
    def test_no_agent_reads_keys_or_mappings(self, read: str) -> None:
        """T59: what tells which arm is which lies outside every read root too."""
        assert refused([read], ["/elsewhere"]) == "/read_allow_roots/0"


class TestRecord:
    @pytest.mark.parametrize(
        ("missing", "file", "memory"),
        [
            ((), "ok", "ok"),
            ((WaivableItem.COMPLETE_ACCESS_AUDIT,), "unverified", "ok"),
            ((WaivableItem.ACCESS_ROOT_ENFORCEMENT,), "unverified", "ok"),
            ((MEMORY,), "ok", "unverified"),
            ((PERSISTENCE,), "ok", "unverified"),
            ((PERSISTENCE, WaivableItem.ACCESS_ROOT_ENFORCEMENT), "unverified", "unverified"),
        ],
    )
    def test_says_what_it_does_without(self, missing: Json, file: str, memory: str) -> None:
        record = completion_isolation(None, ["/r"], ["/w"], EvidenceTierName.ADVISORY_PAIRED, missing)
        assert record.status == ("advisory_limited" if missing else "ok")
        assert (record.file_access_status, record.memory_isolation_status) == (file, memory)
        assert list(record.coverage_limitations) == sorted(missing)
        # SHA-256 of the four bytes `null`, by sha256sum.
        assert record.evidence_hash == (
            "sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"
        )
