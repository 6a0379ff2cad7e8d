"""Planning a study: check, freeze, sign, once (studies.md section 2).

The seed is written first and read back, so a planning that was cut off ends, when it is repeated, with the
same plan. What counts is the last row: a folder is planned once its journal begins with `plan_sealed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import FileCode, FileError, RootCode, RootError
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.protocol.gates import gates_hash, load_gates
from skill_effectiveness.studies.analysis.power import Design, Power, planned_power
from skill_effectiveness.studies.chance import Chance
from skill_effectiveness.studies.checks import CheckReport, check_study
from skill_effectiveness.studies.drivers import bound_provider, frozen_driver
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.frozen import FROZEN, freeze_study
from skill_effectiveness.studies.inputs import Inputs
from skill_effectiveness.studies.launches import launch_digests
from skill_effectiveness.studies.plan import (
    StudyPlan,
    batch_slots,
    build_plan,
    changed_field,
    plan_line,
)
from skill_effectiveness.studies.plan_seal import (
    COMMITMENTS,
    PLAN,
    PLAN_SEAL,
    commitment_lines,
    seal_plan,
)
from skill_effectiveness.studies.root import (
    ALLOCATION,
    ALLOCATION_CONTRACT,
    LICENCES,
    PRIVATE,
    STATUS,
    STUDY_LOCK,
    AllocationDocument,
    allocation_line,
    begin_journal,
    licence_name,
    read_allocation,
    read_sealed_plan,
    status_now,
)
from skill_effectiveness.studies.runtime import runtime_manifest_hash
from skill_effectiveness.studies.status import status_line
from skill_effectiveness.studies.study_file import STUDY_FILE
from skill_effectiveness.studies.words import SIMULATED, Stopping
from skill_effectiveness.trials.allocation import (
    SEED_BYTES,
    AllocationOrder,
    allocate,
    commitments,
    commitments_hash,
    seed_commitment,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.protocol.gates import PilotGates
    from skill_effectiveness.studies.frozen import FrozenStudy
    from skill_effectiveness.studies.loading import LoadedStudy
    from skill_effectiveness.studies.plan import PlanDriver
    from skill_effectiveness.studies.words import Arm
    from skill_effectiveness.trials.allocation import Commitment

_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a plan is made of, and where.

    Attributes:
        loaded: the study.
        out: folder for the study, absolute; made if missing.
        key: signs the plan.
        trusted: keys that may have signed a licence.
        around: files, clock and randomness.
        checkout: the source checkout that `out` must keep away from.
        state: the root with copies of pins.
        allow_missing_oracle: a task without a solution is no fault.
        seed: for a study whose run order is public; drawn where it is None.
        checked: a report that was just made of the same study, so that scripts are not run twice.
        on_task: told the id of each task before its scripts are run.
        manifest: gives the hash of the runtime manifest.
    """

    loaded: LoadedStudy
    out: Path
    key: Ed25519PrivateKey
    trusted: Sequence[Ed25519PublicKey]
    around: Surroundings
    checkout: Path | None
    state: PrivateRoot | None
    allow_missing_oracle: bool = False
    seed: bytes | None = None
    checked: CheckReport | None = None
    on_task: Callable[[str], None] = lambda _task_id: None
    manifest: Callable[[], str] = runtime_manifest_hash


@dataclass(frozen=True, slots=True)
class Planned:
    """What planning came to; without a plan a check failed and nothing was written."""

    report: CheckReport
    plan: StudyPlan | None


def plan_study(request: PlanRequest) -> Planned:
    """Check a study, freeze it and sign the plan.

    Planning the same study again in the same folder changes nothing and answers the plan that is there.

    Raises:
        StudyError: `plan_exists`: the folder holds a plan of another study, the field is named; or an input
            changed while it was frozen.
        ArmError, TaskError, ProtocolError: as `frozen.freeze_study`.
        CalibrationError: the runtime manifest cannot be made.
        RootError, FileError, LockError, JournalError: the folder cannot be used or written.
    """
    _demand_place(request)
    report = request.checked or check_study(
        request.loaded,
        trusted=request.trusted,
        around=request.around,
        allow_missing_oracle=request.allow_missing_oracle,
        scripts_last=True,
        on_task=request.on_task,
    )
    if not report.passed:
        return Planned(report, None)
    freezing = _Freezing(request)
    with PrivateRoot.create(
        request.out, RootKind.OUT, around=request.around, checkout=request.checkout
    ) as root:
        root.identity()
        with Lock(root, STUDY_LOCK).hold(action="study plan"):
            return Planned(report, freezing.publish(root))


def _demand_place(request: PlanRequest) -> None:
    """Refuse a folder that will not do before scripts are tried out; nothing is made.

    Raises:
        RootError, FileError: the folder cannot be used.
    """
    try:
        PrivateRoot.open(request.out, RootKind.OUT, around=request.around, checkout=request.checkout).close()
    except RootError as error:
        if error.code is not RootCode.ROOT_MISSING:
            raise


class _Freezing:
    """A study that passed its checks, on its way to a plan."""

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self._loaded = request.loaded
        self._fs = request.around.fs
        study = self._loaded.study
        self._driver = frozen_driver(study, request.around)
        launches: Mapping[Arm, str] = {}
        if not study.driver.simulated:
            provider = bound_provider(study, request.around)
            launches = launch_digests(self._loaded, provider, request.around)
        self._frozen = freeze_study(self._fs, self._loaded, self._driver, launches)
        self._gates = load_gates(self._fs)
        self._manifest = request.manifest()

    def publish(self, root: PrivateRoot) -> StudyPlan:
        allocation = self._allocation(root)
        chance = Chance(allocation.seed_bytes)
        published = self._commitments(chance)
        if root.exists(PLAN) and root.exists(PLAN_SEAL):
            plan = self._held_plan(root, allocation, published)
        else:
            power = self._power(chance)
            plan = build_plan(self._fields(allocation, published, power))
            self._write(root, plan, published)
        begin_journal(root, self._request.state, plan)
        root.replace(STATUS, status_line(status_now(root, plan)))
        return plan

    def _held_plan(
        self, root: PrivateRoot, allocation: AllocationDocument, published: Sequence[Commitment]
    ) -> StudyPlan:
        """The plan that lies there, if it is one of this very study.

        Raises:
            StudyError: `plan_exists`.
        """
        held = read_sealed_plan(root)
        power = Power(held.power.at_minimum_effect, held.power.detectable, held.power.draws)
        found = build_plan(self._fields(allocation, published, power))
        field = changed_field(held, found)
        if field is not None:
            sentence = "this folder holds the plan of another study; plan into a new folder."
            raise StudyError(StudyCode.PLAN_EXISTS, field, sentence)
        return held

    def _allocation(self, root: PrivateRoot) -> AllocationDocument:
        """The seed and the time of the plan, made once."""
        around = self._request.around
        with root.child(PRIVATE, create=True) as private:
            if not private.exists(ALLOCATION):
                seed = self._request.seed or around.entropy(SEED_BYTES)
                made = AllocationDocument(
                    schema_version=1,
                    artifact_contract=ALLOCATION_CONTRACT,
                    created_at=around.now().strftime(_TIME),
                    seed=seed.hex(),
                )
                private.publish(ALLOCATION, allocation_line(made))
            return read_allocation(private.read(ALLOCATION))

    def _commitments(self, chance: Chance) -> tuple[Commitment, ...]:
        study = self._loaded.study
        anytime = study.analysis.stopping is Stopping.ANYTIME
        slots = allocate(
            chance.seed,
            sorted(self._frozen.tasks),
            [str(arm) for arm in self._loaded.payloads],
            study.samples,
            AllocationOrder.ANYTIME if anytime else AllocationOrder.FIXED,
        )
        return commitments(chance.seed, slots)

    def _power(self, chance: Chance) -> Power:
        study, analysis = self._loaded.study, self._loaded.study.analysis
        design = Design(
            tasks=len(self._frozen.tasks),
            samples=study.samples,
            alpha=analysis.alpha,
            sides=analysis.sides,
            anytime=analysis.stopping is Stopping.ANYTIME,
            base_rate=analysis.base_rate,
            task_sd=analysis.task_sd,
        )
        return planned_power(design, minimum_effect(self._loaded, self._frozen, self._gates), chance)

    def _fields(
        self, allocation: AllocationDocument, published: Sequence[Commitment], power: Power
    ) -> dict[str, object]:
        return plan_fields(
            self._loaded,
            self._frozen,
            self._driver,
            self._gates,
            {
                "created_at": allocation.created_at,
                "runtime_manifest_hash": self._manifest,
                "power": {
                    "at_minimum_effect": power.at_minimum_effect,
                    "detectable": power.detectable,
                    "draws": power.draws,
                },
                "allocation": {
                    "slots": len(published),
                    "seed_commitment": seed_commitment(allocation.seed_bytes),
                    "commitments_hash": commitments_hash(published),
                },
            },
        )

    def _write(self, root: PrivateRoot, plan: StudyPlan, published: Sequence[Commitment]) -> None:
        """Everything but the journal; the plan itself comes last, and its seal after it."""
        inputs = Inputs(root)
        for payload in self._loaded.payloads.values():
            for entry in payload.tree.files:
                inputs.keep(payload.held.blob(entry))
            inputs.keep_tree(payload.tree)
        for task in self._loaded.tasks:
            inputs.keep_folder(self._fs, self._loaded.task_path(task.task_id), task.tree)
            for part in (task.environment, task.tests, task.solution):
                inputs.keep_tree(part)
        if self._loaded.licences:
            with root.child(LICENCES, create=True) as folder:
                for held in self._loaded.licences:
                    folder.publish(licence_name(held.claimed.licence_id), held.data)
        committed = commitment_lines(published)
        _publish(root, STUDY_FILE, self._loaded.data)
        _publish(root, FROZEN, self._frozen.line())
        _publish(root, COMMITMENTS, committed)
        _publish(root, PLAN, plan_line(plan))
        root.publish(PLAN_SEAL, seal_plan(plan, plan_line(plan), committed, self._request.key))


def _publish(root: PrivateRoot, name: str, data: bytes) -> None:
    try:
        root.publish(name, data)
    except FileError as error:
        if error.code is not FileCode.EXISTS_DIFFERENT:
            raise
        sentence = "a planning of another study was begun in this folder; plan into a new folder."
        raise StudyError(StudyCode.PLAN_EXISTS, name, sentence) from error


def minimum_effect(loaded: LoadedStudy, frozen: FrozenStudy, gates: PilotGates) -> float:
    """Delta: the study's own, else the largest that the gates have for a family of its tasks."""
    stated = loaded.study.outcome.minimum_effect
    if stated is not None:
        return stated
    families = {task.task_family for task in frozen.tasks.values()}
    return max(float(getattr(gates.minimum_effects, str(family))) for family in families)


def plan_fields(
    loaded: LoadedStudy,
    frozen: FrozenStudy,
    driver: PlanDriver,
    gates: PilotGates,
    drawn: Mapping[str, object],
) -> dict[str, object]:
    """Every field that `plan.build_plan` takes.

    Args:
        loaded: the study.
        frozen: its arms and tasks.
        driver: the tested agent.
        gates: the frozen ones.
        drawn: `created_at`, `power`, `allocation` and `runtime_manifest_hash`.
    """
    study = loaded.study
    analysis = study.analysis.model_dump(mode="json")
    analysis["estimand"] = {str(ended): str(rule) for ended, rule in study.rules().items()}
    outcome = study.outcome.model_dump(mode="json")
    outcome["minimum_effect"] = minimum_effect(loaded, frozen, gates)
    return {
        "name": study.name,
        "question": study.question,
        "registry": str(study.registry),
        "tier": str(study.tier),
        "scope": str(study.scope),
        "synthetic": study.driver.provider == SIMULATED,
        "driver": driver.model_dump(mode="json"),
        "arms": [
            {
                "arm": str(arm),
                "arm_id": frozen.manifests[arm].arm_id,
                "manifest_hash": frozen.manifests[arm].manifest_hash,
                "tree": payload.tree.digest,
            }
            for arm, payload in loaded.payloads.items()
        ],
        "arm_registry_plan_hash": frozen.registry_plan.plan_hash,
        "tasks": _tasks(loaded, frozen),
        "samples": study.samples,
        "attempts": study.attempts,
        "batch_slots": batch_slots(len(loaded.payloads)),
        "budgets": study.budgets.model_dump(mode="json"),
        "isolation": study.isolation.model_dump(mode="json"),
        "reviewers": [
            {
                "family": held.claimed.reviewer.reviewer_family,
                "licence_id": held.claimed.licence_id,
                "licence_hash": held.digest,
            }
            for held in loaded.licences
        ],
        "outcome": outcome,
        "analysis": analysis,
        "gates_hash": gates_hash(gates),
        **drawn,
    }


def _tasks(loaded: LoadedStudy, frozen: FrozenStudy) -> list[dict[str, object]]:
    return [
        {
            "task_id": task.task_id,
            "task_hash": frozen.task_hash(task.task_id),
            "tree": task.tree.digest,
            "grader_hash": task.tests.digest,
            "family": str(frozen.tasks[task.task_id].task_family),
            "limits": task.limits.model_dump(mode="json"),
        }
        for task in sorted(loaded.tasks, key=lambda held: held.task_id)
    ]
