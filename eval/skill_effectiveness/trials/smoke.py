"""The synthetic smoke run: every step of a trial with invented content, and no model call.

It answers "do preparing, completing, replaying and judging work here", never "does a skill work". What it
runs is real: each trial is prepared, checkpointed and completed in a store like any other; only the tested
agent is this module. So its gate evaluates nothing, and the best a smoke run can come to is "contract
complete, and by intent not evaluated". Source: trials.md, section 10.

Run again in the same folder, completed trials replay; one that is contaminated, failed or no longer what it
was is refused (`TrialError`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import JsonValue

from skill_effectiveness.evidence.canonical import digest_file, digest_object, dump_line
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.protocol.capability import MatrixStatus
from skill_effectiveness.protocol.document import DigestText, FrozenModel, No, One, to_json
from skill_effectiveness.protocol.gates import EvidenceTier, gates_hash
from skill_effectiveness.protocol.manifests import freeze_manifest
from skill_effectiveness.protocol.registry_plan import build_plan
from skill_effectiveness.trials.allocation import AllocationOrder, allocate
from skill_effectiveness.trials.binding import AUDIT, EVENTS, OUTCOME
from skill_effectiveness.trials.capability_matrix import matrix
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.gate import NO_REVIEWERS, GateInputs, evaluate_gate
from skill_effectiveness.trials.gate_facts import TrialEntry
from skill_effectiveness.trials.gate_result import GateResult
from skill_effectiveness.trials.gate_words import EvidenceSource, GateStatus
from skill_effectiveness.trials.models import (
    ExpectedIsolation,
    IsolationEvidence,
    Mode,
    TrialBudget,
    TrialKey,
    TrialRuntime,
    TrialStatus,
    read_record,
)
from skill_effectiveness.trials.pilot_plan import plan_row, read_design, read_plan
from skill_effectiveness.trials.pilot_records import record_of
from skill_effectiveness.trials.prepare import PrepareOrder, prepare
from skill_effectiveness.trials.store import TrialStore
from skill_effectiveness.trials.transitions import read_request
from skill_effectiveness.trials.trial_reading import StoredTrials, TrialReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.protocol.gates import PilotGates
    from skill_effectiveness.protocol.manifests import ArmManifest
    from skill_effectiveness.protocol.registry_plan import ArmRegistryPlan
    from skill_effectiveness.protocol.smoke_fixture import SmokeFixture
    from skill_effectiveness.protocol.tasks import Task
    from skill_effectiveness.trials.allocation import Slot
    from skill_effectiveness.trials.pilot_plan import Design, PlanIndex

RESULT: Final = "smoke-result.json"
CHECKOUTS: Final = "task-checkouts"
TASK_FILE: Final = "task.json"
LOCK: Final = ".smoke.lock"
PROVIDER: Final = "none"
MODEL: Final = "synthetic"
RUNNER_CONTRACT: Final = "skill-effectiveness-synthetic-smoke-runner-v1"
EVENT_CONTRACT: Final = "synthetic-smoke-v1"
_SOURCE: Final = Path(__file__)
_NOTHING_USED: Final = {"tokens": 0, "wall_time_seconds": 0, "tool_calls": 0, "cost_units": 0}
_OUTCOME_FOLDER, _OUTCOME_NAME = OUTCOME.split("/")


class ExecutionStatus(StrEnum):
    """Whether the run did everything it was to do.

    `failed`: an observed violation of isolation. `incomplete`: a trial did not complete for another reason.
    """

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class SyntheticMatrix(FrozenModel):
    """The fixture's capability rows; they prove nothing, and say so."""

    status: Literal["not_evaluated_synthetic"]
    synthetic_contract_status: MatrixStatus
    rows: tuple[dict[str, JsonValue], ...]


class SmokeGate(GateResult):
    """The gate of a run that has no tier, and the tier that was taken out of its gates."""

    evidence_tier_overridden_from: EvidenceTier


class SmokeResult(FrozenModel):
    """What a smoke run comes to.

    Attributes:
        fixture: object digest of the fixture.
        manifest_hashes: by arm.
        manifest_errors: by arm, where it differs from its off arm against its allowlist.
        schedule_count: trials of the schedule.
    """

    schema_version: One
    fixture: DigestText
    enforcement: Literal["advisory"]
    live_model_calls: No
    manifest_hashes: dict[str, DigestText]
    manifest_errors: dict[str, tuple[str, ...]]
    runner_hash: DigestText
    experiment_plan_hash: DigestText
    schedule_count: int
    capability_matrix: SyntheticMatrix
    pilot_gate: SmokeGate
    execution_status: ExecutionStatus
    conclusion_boundary: Literal["runner_validity_not_skill_effectiveness"]

    @property
    def is_contract_complete(self) -> bool:
        """Whether everything was done as contracted; nothing was evaluated even then."""
        return (
            self.execution_status is ExecutionStatus.COMPLETE
            and self.pilot_gate.status is GateStatus.NOT_EVALUATED_SYNTHETIC
            and not self.manifest_errors
        )


def run_smoke(fixture: SmokeFixture, out: PrivateRoot, *, gates: PilotGates) -> SmokeResult:
    """Run every trial of a fixture and judge the run.

    Args:
        fixture: tasks, arms and what is said of isolation.
        out: the open private root; the trial store is made in it.
        gates: those of the caller; their tier is taken out, because a synthetic run has none.

    Raises:
        ArmError: the fixture's arms are no registry.
        TrialError: the folder holds trials of another run, or one that no longer is what it was.
        PilotError: `plan_invalid`: the fixture has too few samples of a cell.
        EvidenceError: the disk failed, or something in the folder is no private file of ours.
    """
    # Before the lock: the identity of a store has one of its own.
    store = TrialStore(out)
    with Lock(out, LOCK).hold(action="smoke run"):
        # First of all: a run that fails must not leave an older result for its own.
        out.archive(RESULT, None)
        result = _Run(fixture, store, gates).result()
        out.publish(RESULT, dump_line(result.model_dump(mode="json")))
    return result


@dataclass(frozen=True, slots=True)
class _Prepared:
    """One trial of the schedule with everything it is prepared from."""

    slot: Slot
    order: PrepareOrder
    row: dict[str, JsonValue]


class _Run:
    """One run over a store."""

    def __init__(self, fixture: SmokeFixture, store: TrialStore, gates: PilotGates) -> None:
        self._fixture = fixture
        self._store = store
        self._gates = gates
        self._tasks: dict[str, Task] = {task.task_id: task for task in fixture.tasks}
        self._manifests = _manifests(fixture, store)
        self._design = read_design(
            [to_json(task) for task in fixture.tasks], [to_json(arm) for arm in self._manifests.values()]
        )
        self._evidence = read_record(IsolationEvidence, fixture.isolation_evidence.stated())
        self._runner_hash = digest_object(
            {"artifact_contract": RUNNER_CONTRACT, "source": digest_file(store.around.fs, _SOURCE)}
        )
        self._slots = allocate(
            seed_bytes(fixture.seed),
            sorted(self._tasks),
            sorted(self._manifests),
            fixture.samples,
            AllocationOrder.FIXED,
        )
        self._fixture_hash = digest_object(fixture.model_dump(mode="json", exclude_unset=True))
        self._plan_hash = digest_object(
            {
                "fixture": self._fixture_hash,
                "manifest_hashes": {arm: found.manifest_hash for arm, found in self._manifests.items()},
                "runner_hash": self._runner_hash,
                "schedule": [[slot.slot, slot.task_id, slot.arm, slot.sample] for slot in self._slots],
            }
        )

    def result(self) -> SmokeResult:
        """Run and judge."""
        plan = self._registry_plan()
        prepared = [self._planned(slot, plan) for slot in self._slots]
        index = read_plan(
            self._design,
            [each.row for each in prepared],
            config_hash=gates_hash(self._gates),
            samples_min=self._gates.thresholds.samples_per_task_arm_min,
        )
        status = ExecutionStatus.COMPLETE
        for each in prepared:
            ended = self._run_trial(each)
            if status is not ExecutionStatus.FAILED and ended is not ExecutionStatus.COMPLETE:
                status = ended
        found = matrix(
            [task.task_family for task in self._fixture.tasks], PROVIDER, (), self._fixture.capability_matrix
        )
        return SmokeResult(
            schema_version=1,
            fixture=self._fixture_hash,
            enforcement="advisory",
            live_model_calls=False,
            manifest_hashes={arm: manifest.manifest_hash for arm, manifest in self._manifests.items()},
            manifest_errors={arm.arm_id: arm.diff_faults for arm in self._design.arms if arm.diff_faults},
            runner_hash=self._runner_hash,
            experiment_plan_hash=self._plan_hash,
            schedule_count=len(self._slots),
            capability_matrix=SyntheticMatrix(
                status="not_evaluated_synthetic",
                synthetic_contract_status=found.status,
                rows=tuple(to_json(row) for row in found.rows),
            ),
            pilot_gate=self._judge(index),
            execution_status=status,
            conclusion_boundary="runner_validity_not_skill_effectiveness",
        )

    def _registry_plan(self) -> ArmRegistryPlan | None:
        """The plan of the arms; none where they differ in what they must not, by which the gate fails."""
        if any(arm.diff_faults for arm in self._design.arms):
            return None
        return build_plan(list(self._manifests.values()))

    def _planned(self, slot: Slot, plan: ArmRegistryPlan | None) -> _Prepared:
        key = TrialKey(slot.task_id, slot.arm, slot.sample)
        runtime = read_record(
            TrialRuntime,
            {
                "provider": PROVIDER,
                "model": MODEL,
                "session_id": f"smoke-{slot.slot}",
                "isolation_config_hash": digest_object(self._evidence.given()),
                "runner_hash": self._runner_hash,
                "experiment_plan_hash": self._plan_hash,
            },
        )
        budget = read_record(TrialBudget, self._gates.budgets.model_dump(mode="json"))
        roots = self._roots(key)
        order = PrepareOrder(
            task=self._tasks[slot.task_id],
            manifest=self._manifests[slot.arm],
            runtime=runtime,
            budget=budget,
            sample_index=slot.sample,
            plan=plan,
            expected=ExpectedIsolation(self._evidence, *roots),
        )
        row = plan_row(
            task=order.task,
            manifest=order.manifest,
            runtime=runtime,
            budget=budget,
            sample_index=slot.sample,
            run_order=slot.slot,
            trial_location_hash=self._store.location(key),
        )
        return _Prepared(slot, order, row)

    def _roots(self, key: TrialKey) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Where the tested agent may read and where it may write."""
        checkout = self._store.root.path / CHECKOUTS / key.task_id / key.arm_id / key.sample_name
        return (str(checkout),), (str(self._store.trial_place(key) / _OUTCOME_FOLDER),)

    # One trial.

    def _run_trial(self, each: _Prepared) -> ExecutionStatus:
        """Prepare a trial and bring it to its end; a completed one has replayed in preparing."""
        key = each.order.key
        self._put_task(key)
        found = prepare(self._store, each.order)
        if found.mode is Mode.COMPLETE:
            return ExecutionStatus.COMPLETE
        if found.mode is Mode.TERMINAL:
            sentence = f"The trial {key.path} ended without completing in an earlier run; give a new folder."
            raise TrialError(TrialCode.TERMINAL, key.path, sentence)
        self._checkpoint(key, TrialStatus.RUNNING, resume_cursor=_cursor(each.slot.slot))
        self._work(key)
        read_roots, write_roots = self._roots(key)
        try:
            self._checkpoint(
                key,
                TrialStatus.COMPLETED,
                resume_cursor=_cursor(each.slot.slot),
                access_audit_complete=True,
                access_roots_enforced=True,
                isolation_evidence=self._evidence.given(),
                read_allow_roots=list(read_roots),
                write_allow_roots=list(write_roots),
            )
        except TrialError as error:
            return self._ended_badly(key, error)
        return ExecutionStatus.COMPLETE

    def _ended_badly(self, key: TrialKey, error: TrialError) -> ExecutionStatus:
        """Record how a trial ended that did not complete."""
        if error.code is TrialCode.ISOLATION_BREACH:
            self._checkpoint(key, TrialStatus.CONTAMINATED, stop_reason=error.code.value)
            return ExecutionStatus.FAILED
        if error.code not in _OF_THE_FIXTURE:
            raise error
        self._checkpoint(key, TrialStatus.FAILED, stop_reason=error.code.value)
        return ExecutionStatus.INCOMPLETE

    def _checkpoint(self, key: TrialKey, status: TrialStatus, **fields: Any) -> None:  # noqa: ANN401 - JSON
        checkpoint(self._store, key, read_request({"status": status.value, **fields}))

    def _put_task(self, key: TrialKey) -> None:
        """The checkout of one trial: the public reference of its task and nothing else."""
        reference = self._design.tasks[key.task_id].reference
        with self._store.root.child(
            CHECKOUTS, key.task_id, key.arm_id, key.sample_name, create=True
        ) as folder:
            folder.sweep()
            folder.publish(TASK_FILE, dump_line(dict(reference)))

    def _work(self, key: TrialKey) -> None:
        """What the tested agent would do: read its task, answer, and leave the traces of both."""
        (checkout,), (outcome,) = self._roots(key)
        accesses: list[dict[str, str]] = [
            {"actor": "tested-agent", "operation": "read", "path": f"{checkout}/{TASK_FILE}"},
            {
                "access_mode": "write",
                "actor": "tested-agent",
                "operation": "open",
                "path": f"{outcome}/{_OUTCOME_NAME}",
            },
        ]
        accesses += [
            event.model_dump(exclude_unset=True) for event in self._fixture.synthetic_extra_access_events
        ]
        with self._store.demand_trial(key) as trial:
            # What a run that was killed left half written; under the lock of the run nobody else writes here.
            trial.sweep()
            trial.replace(EVENTS, dump_line({"event_contract": EVENT_CONTRACT, "kind": "answered"}))
            trial.replace(AUDIT, b"".join(dump_line(access) for access in accesses))
            with trial.child(_OUTCOME_FOLDER) as folder:
                folder.sweep()
                folder.replace(_OUTCOME_NAME, dump_line({"synthetic": True, "task_id": key.task_id}))

    # The gate.

    def _judge(self, index: PlanIndex) -> SmokeGate:
        tier = self._gates.evidence_tier
        found = evaluate_gate(
            GateInputs(
                thresholds=self._gates.thresholds,
                tier=None,
                registry_schema=self._design.registry_schema,
                arms=self._design.arms,
                task_ids=tuple(self._design.tasks),
                entries=self._entries(self._design, index),
                reviewers=NO_REVIEWERS,
                capability=matrix((), PROVIDER, ()),
                source=EvidenceSource.SYNTHETIC,
            )
        )
        fields = {name: getattr(found, name) for name in GateResult.model_fields}
        return SmokeGate(**fields, evidence_tier_overridden_from=tier)

    def _entries(self, design: Design, index: PlanIndex) -> Iterator[TrialEntry]:
        reader = TrialReader(design, StoredTrials(self._store), self._store.gates)
        arms = {arm.arm_id: arm for arm in design.arms}
        for number, planned in enumerate(index.trials.values()):
            there = reader.read(planned)
            yield TrialEntry(number, record_of(planned, there, arms[planned.name.arm_id]), planned, there)


_OF_THE_FIXTURE: Final = frozenset(
    {TrialCode.EVIDENCE_INVALID, TrialCode.PROOF_MISSING, TrialCode.BAD_RECORD, TrialCode.BUDGET_EXCEEDED}
)
"""What a fixture can bring about: a malformed access, or a proof that it leaves out."""


def _manifests(fixture: SmokeFixture, store: TrialStore) -> Mapping[str, ArmManifest]:
    found: dict[str, ArmManifest] = {}
    for arm in fixture.arms:
        manifest = freeze_manifest(store.around.fs, arm.template_ref, arm.components)
        found[manifest.arm_id] = manifest
    return found


def seed_bytes(number: int) -> bytes:
    """The seed of the run order that a whole number in a public fixture stands for.

    The 32 bytes of SHA-256 over the canonical `{"seed": number}`.
    """
    return bytes.fromhex(digest_object({"seed": number}).removeprefix("sha256:"))


def _cursor(order: int) -> dict[str, object]:
    return {"next_run_order": order, "consumed_budget": _NOTHING_USED}
