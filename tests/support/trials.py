"""A trial store for tests, with frozen arms, tasks, evidence files and requests to fill it with."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.manifests import freeze_manifest
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.protocol.registry_plan import build_plan
from skill_effectiveness.protocol.tasks import parse_task
from skill_effectiveness.trials.models import TrialBudget, TrialKey, TrialRuntime, read_record
from skill_effectiveness.trials.prepare import PrepareOrder
from skill_effectiveness.trials.store import TrialStore
from skill_effectiveness.trials.transitions import read_request
from tests.support.private import surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.protocol.gates import PilotGates
    from skill_effectiveness.protocol.manifests import ArmManifest
    from skill_effectiveness.protocol.registry_plan import ArmRegistryPlan
    from skill_effectiveness.protocol.tasks import Task
    from skill_effectiveness.trials.models import CheckpointRequest

Json: TypeAlias = Any
"""Any JSON value, and options that a test passes on."""

PROFILE, CONTENT = RegistrySchema.PAIRED_PROFILE, RegistrySchema.SKILL_CONTENT
ARM = {PROFILE: "profile-full", CONTENT: "S2"}

UNLIMITED = {"tokens": None, "wall_time_seconds": None, "tool_calls": None, "cost_units": None}
LIMITED = {"tokens": 1000, "wall_time_seconds": 60.5, "tool_calls": None, "cost_units": 2}
NOTHING = {"tokens": 0, "wall_time_seconds": 0, "tool_calls": 0, "cost_units": 0}
SAFE = {
    "fresh_session": True,
    "forked_from_existing": False,
    "auto_memory_enabled": False,
    "vector_retrieval_enabled": False,
    "session_recall_enabled": False,
    "cross_session_cache_enabled": False,
    "canary_leak_detected": False,
    "provider_persistence": "disabled",
}
EVENT = {"event_contract": "test-events-v1", "kind": "ended"}
OUTCOME = {"answer": "42"}


def digest(letter: str) -> str:
    """A digest that is easy to tell from others."""
    return f"sha256:{letter * 64}"


RUNTIME = {
    "provider": "simulated",
    "model": "model-1",
    "session_id": "session-1",
    "isolation_config_hash": digest("a"),
    "runner_hash": digest("b"),
    "experiment_plan_hash": digest("c"),
}


def task(task_id: str = "task-a", **changes: object) -> Task:
    record = {
        "task_id": task_id,
        "task_family": "implementation",
        "cohort": "known-regression",
        "prompt_ref": "fixture://tasks/a",
        "expected_owners": ["demo:refactoring"],
        "frozen_at_sha": "root",
        "corpus_version": "tests-1",
        "execution_mode": "answer_only",
    }
    return parse_task({name: value for name, value in (record | changes).items() if value is not ...})


@cache
def manifests(registry: RegistrySchema) -> dict[str, ArmManifest]:
    """Every runnable committed arm of one scope, frozen."""
    if registry is PROFILE:
        base = ("task_builder_template", "task", "driver", "model", "prompt_template", "permission_profile")
        arms = {
            name: dict.fromkeys(base, "same") | {"profile_payload": name}
            for name in ("profile-off", "profile-full")
        }
        folder = "arms/profile"
    else:
        same = {"system_prompt": "you", "tool_schema": "tools", "repo_instructions": "repo"}
        varied = ("bootstrap", "skill_inventory", "hook_command_config", "ccl_layer")
        arms = {
            "S0": same | dict.fromkeys(varied, ""),
            "S1": same | dict.fromkeys(varied, "oracle") | {"bootstrap": ""},
            "S2": same | dict.fromkeys(varied, "full"),
        }
        folder = "arms"
    return {name: freeze_manifest(RealFs(), f"{folder}/{name}.json", arm) for name, arm in arms.items()}


@cache
def plan(registry: RegistrySchema) -> ArmRegistryPlan:
    return build_plan(list(manifests(registry).values()))


def order(
    registry: RegistrySchema = PROFILE,
    *,
    arm: str = "",
    budget: dict[str, Any] = UNLIMITED,
    runtime: dict[str, Any] = RUNTIME,
    sample: int = 1,
    task_id: str = "task-a",
    **others: Json,
) -> PrepareOrder:
    return PrepareOrder(
        **{
            "task": task(task_id),
            "manifest": manifests(registry)[arm or ARM[registry]],
            "runtime": read_record(TrialRuntime, runtime),
            "budget": read_record(TrialBudget, budget),
            "sample_index": sample,
        }
        | others
    )


def cursor(run_order: int = 1, **used: float) -> dict[str, Any]:
    return {"next_run_order": run_order, "consumed_budget": NOTHING | used}


def request(status: str, **fields: Json) -> CheckpointRequest:
    return read_request({"status": status, **fields})


class Place:
    """A store in a folder, the checkout that its agents read, and what they write."""

    def __init__(self, folder: Path) -> None:
        self.base = folder
        self.root = folder / "root"
        self.checkout = folder / "checkout"
        self.checkout.mkdir(parents=True, exist_ok=True)
        (self.checkout / "main.py").write_text("print()\n", encoding="utf-8")

    def open(
        self, fs: FileSystem | None = None, gates: PilotGates | None = None, **others: Json
    ) -> TrialStore:
        around = surroundings(fs, **others)
        return TrialStore.create(self.root, around=around, checkout=None, gates=gates)

    def trial(self, key: TrialKey) -> Path:
        return self.root / "trials" / key.path

    def document(self, key: TrialKey) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.trial(key) / "trial.json").read_bytes())
        return found

    def edit(self, key: TrialKey, **changes: object) -> None:
        """Change members of `trial.json`; `...` takes one away."""
        changed = {name: value for name, value in (self.document(key) | changes).items() if value is not ...}
        (self.trial(key) / "trial.json").write_text(json.dumps(changed), encoding="utf-8")

    def rows(self, key: TrialKey) -> list[dict[str, str]]:
        """An audit without a breach."""
        return [
            {"actor": "tested-agent", "operation": "enumerate", "path": str(self.checkout)},
            {"actor": "tested-agent", "operation": "read", "path": str(self.checkout / "main.py")},
            {
                "actor": "tested-agent",
                "operation": "open",
                "access_mode": "write",
                "path": str(self.trial(key) / "outcome/result.json"),
            },
        ]

    def fill(
        self,
        key: TrialKey,
        *,
        rows: Iterable[object] | None = None,
        events: Iterable[object] = (EVENT,),
        outcome: object = OUTCOME,
    ) -> None:
        """Write the evidence files of a trial, as a runner does."""
        trial = self.trial(key)
        put_lines(trial / "access-audit.jsonl", self.rows(key) if rows is None else rows)
        put_lines(trial / "events.jsonl", events)
        put(trial / "outcome" / "result.json", json.dumps(outcome).encode())

    def roots(self, key: TrialKey) -> dict[str, list[str]]:
        return {
            "read_allow_roots": [str(self.checkout)],
            "write_allow_roots": [str(self.trial(key) / "outcome")],
        }

    def completion(self, key: TrialKey, **changes: Json) -> CheckpointRequest:
        """A completion with every proof."""
        fields: dict[str, Any] = {
            "access_audit_complete": True,
            "access_roots_enforced": True,
            "isolation_evidence": SAFE,
            **self.roots(key),
            **changes,
        }
        return request("completed", **{name: value for name, value in fields.items() if value is not ...})


def put(path: Path, data: bytes) -> None:
    """Write a private file in place."""
    path.touch(mode=0o600)
    path.write_bytes(data)


def put_lines(path: Path, rows: Iterable[object]) -> None:
    put(path, b"".join(json.dumps(row).encode() + b"\n" for row in rows))
