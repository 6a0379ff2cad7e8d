"""A store with one arm, for the benchmarks of trials; no benchmark itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.protocol.manifests import freeze_manifest
from skill_effectiveness.protocol.tasks import parse_task
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.models import TrialBudget, TrialKey, TrialRuntime, read_record
from skill_effectiveness.trials.prepare import PrepareOrder, prepare
from skill_effectiveness.trials.replay import replay
from skill_effectiveness.trials.store import TrialStore
from skill_effectiveness.trials.transitions import read_request

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.trials.models import CheckpointRequest

DIGEST = "sha256:" + "a" * 64
EVENT = b'{"event_contract":"bench-v1"}\n'
OUTCOME = b'{"answer":"42"}'
CURSOR = {
    "next_run_order": 1,
    "consumed_budget": {"tokens": 1, "wall_time_seconds": 1, "tool_calls": 1, "cost_units": 1},
}
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


class Bench:
    """An open store and all that a trial in it needs."""

    def __init__(self, base: Path, checkout: Path, fs: FileSystem | None = None) -> None:
        around = Surroundings.real()
        if fs is not None:
            around = Surroundings(
                fs, around.now, around.monotonic, around.sleep, around.entropy, {}, around.pid, "", ""
            )
        self.checkout = checkout
        self.store = TrialStore.create(base / "root", around=around, checkout=None)
        names = ("task_builder_template", "task", "driver", "model", "prompt_template", "permission_profile")
        components = dict.fromkeys((*names, "profile_payload"), "text")
        self._manifest = freeze_manifest(around.fs, "arms/profile/profile-full.json", components)
        self._runtime = read_record(
            TrialRuntime,
            {
                "provider": "simulated",
                "model": "model-1",
                "session_id": "session-1",
                "isolation_config_hash": DIGEST,
                "runner_hash": DIGEST,
                "experiment_plan_hash": DIGEST,
            },
        )
        unlimited = dict.fromkeys(("tokens", "wall_time_seconds", "tool_calls", "cost_units"))
        self._budget = read_record(TrialBudget, unlimited)
        self._running = read_request({"status": "running", "resume_cursor": CURSOR})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def order(self, sample: int, task_id: str = "task-a") -> PrepareOrder:
        task = parse_task(
            {
                "task_id": task_id,
                "task_family": "implementation",
                "cohort": "known-regression",
                "prompt_ref": "fixture://tasks/a",
                "expected_owners": ["demo:refactoring"],
                "frozen_at_sha": "root",
                "corpus_version": "bench-1",
                "execution_mode": "answer_only",
            }
        )
        return PrepareOrder(
            task=task,
            manifest=self._manifest,
            runtime=self._runtime,
            budget=self._budget,
            sample_index=sample,
        )

    def prepare(self, order: PrepareOrder) -> TrialKey:
        prepare(self.store, order)
        return order.key

    def run(self, key: TrialKey) -> None:
        checkpoint(self.store, key, self._running)

    def fill(self, key: TrialKey, audit: bytes = b"") -> None:
        """Write the evidence files in a runner's spelling; not part of what is measured."""
        trial = self.store.trial_place(key)
        row = {"actor": "tested-agent", "operation": "read", "path": str(self.checkout)}
        for name, data in (
            ("events.jsonl", EVENT),
            ("access-audit.jsonl", audit or dump_line(row)),
            ("outcome/result.json", OUTCOME),
        ):
            (trial / name).touch(mode=0o600)
            (trial / name).write_bytes(data)

    def completion(self, key: TrialKey) -> CheckpointRequest:
        request = {
            "status": "completed",
            "access_audit_complete": True,
            "access_roots_enforced": True,
            "isolation_evidence": SAFE,
            "read_allow_roots": [str(self.checkout)],
            "write_allow_roots": [str(self.store.trial_place(key) / "outcome")],
        }
        return read_request(request)

    def complete(self, key: TrialKey, request: CheckpointRequest) -> None:
        checkpoint(self.store, key, request)

    def replay(self, key: TrialKey) -> None:
        replay(self.store, key)
