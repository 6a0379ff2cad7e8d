"""Requests of the first version, recorded as files, and the members of what they are answered with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.trials.models import TrialKey
from tests.support.bridge import Reply
from tests.support.bridge_pilots import Evaluation
from tests.support.pilots import pair_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.bridge import Bridge, Json

pytestmark = pytest.mark.slow


RECORDED = Path(__file__).parents[1] / "data" / "bridge-v1"
ENVELOPE = {"schema", "request_id", "status", "reason_code", "runtime_binding", "result"}
BOUND = {"protocol_revision", "phase", "bridge_hash", "manifest_hash", "interpreter"}
RUNNING = {
    "configured_executable",
    "resolved_executable",
    "version",
    "implementation",
    "user_site_disabled",
}
PREPARED = {"trial_path", "mode", "state_version", "remaining_budget", "replayed_receipt"}
STEPPED = {"state_version", "evidence_tier", "coverage_limitations", "replayed_receipt"}
RESULTS = {
    "1-probe-manifest": {"phase", "runtime_manifest"},
    "2-probe-full": {
        "phase",
        "supported_actions",
        "reason_codes",
        "configuration",
        "loaded_checkout_modules",
    },
    "3-prepare-paired-profile": PREPARED,
    "4-prepare-skill-content": PREPARED,
    "5-checkpoint-running": STEPPED,
    "6-checkpoint-interim-budget-stop": STEPPED,
    "7-checkpoint-completed": STEPPED,
    "8-checkpoint-failed": STEPPED,
    "9-evaluate": {"verdict", "replayed_receipt"},
}
CONFIGURATION = {
    "pilot_gates_hash",
    "profile_arm_templates",
    "registry_schemas",
    "evidence_tiers",
    "advisory_waivable_items",
    "checkpoint_evidence_tiers",
    "profile_arm_registry_plan_contract",
    "dependencies",
}
VALUES: dict[str, dict[str, Json]] = {
    "3-prepare-paired-profile": {
        "trial_path": "task-a/profile-full/sample-031",
        "mode": "created",
        "state_version": 0,
        "remaining_budget": {
            "tokens": 1000,
            "wall_time_seconds": 60.5,
            "tool_calls": None,
            "cost_units": 2,
        },
        "replayed_receipt": False,
    },
    "5-checkpoint-running": {
        "state_version": 1,
        "evidence_tier": "advisory-paired",
        "coverage_limitations": None,
        "replayed_receipt": False,
    },
    "7-checkpoint-completed": {
        "state_version": 3,
        "evidence_tier": "advisory-paired",
        "coverage_limitations": [],
        "replayed_receipt": False,
    },
    "8-checkpoint-failed": {
        "state_version": 1,
        "evidence_tier": "causal",
        "coverage_limitations": None,
        "replayed_receipt": False,
    },
}


def filled_in(name: str, bridge: Bridge, manifest: Json) -> bytes:
    """A recorded request at this place: only folder, pin and digests are of today."""
    text = (RECORDED / f"{name}.json").read_text(encoding="utf-8")
    text = text.replace("{FOLDER}", str(bridge.folder)).replace('"{PIN}"', json.dumps(manifest))
    for value in ("config", "expected_tasks", "expected_manifests", "expected_trials"):
        place = bridge.root / "inputs" / f"{value}.json"
        text = text.replace(f"{{DIGEST of {value}}}", digest_bytes(place.read_bytes()))
    assert "{DIGEST" not in text
    return text.encode()


def test_requests_of_the_first_version(tmp_path: Path) -> None:
    """B44: each is answered, with exactly the members of the contract, one after the other."""
    assert {path.stem for path in RECORDED.iterdir()} == set(RESULTS)
    # Two reviewers, so that what they agree on is computed as well.
    evaluation = Evaluation(tmp_path, pairs=[pair_bytes("family-1"), pair_bytes("family-2")])
    bridge = evaluation.bridge
    evaluation.referenced()
    manifest = bridge.manifest()
    for name, members in RESULTS.items():
        if name.startswith("7"):
            bridge.place.fill(TrialKey("task-a", "profile-full", 31))
        reply = bridge.send(filled_in(name, bridge, manifest))
        assert (reply.word, reply.exit_code) == ("ok", 0), (name, reply.told)
        document: Mapping[str, Any] = reply.document
        assert document.keys() == ENVELOPE
        assert document["request_id"].startswith("v1-")
        configured = set() if "manifest" in name else {"configuration_hash"}
        assert document["runtime_binding"].keys() == BOUND | configured
        assert document["runtime_binding"]["interpreter"].keys() == RUNNING
        assert reply.result.keys() == members, name
        if name in VALUES:
            assert dict(reply.result) == VALUES[name]
        if "verdict" in members:
            assert reply.result["verdict"]["status"] == "pass"
        if "configuration" in members:
            assert reply.result["configuration"].keys() == CONFIGURATION


def test_a_refusal_of_the_first_version(bridge: Bridge) -> None:
    """B44: the same members, two of them empty."""
    data = (RECORDED / "5-checkpoint-running.json").read_text(encoding="utf-8")
    done = bridge.raw(data.replace("{FOLDER}", str(bridge.folder)).encode())
    assert json.loads(done.stdout) == {
        "schema": "skill-effectiveness.bridge.response.v1",
        "request_id": "v1-checkpoint-1",
        "status": "blocked",
        "reason_code": "artifact_missing",
        "runtime_binding": {},
        "result": {},
    }
    assert Reply.of(done.stdout, done.returncode).exit_code == 3
