"""The plan of a gate: tasks, arms, and one row per trial, every hash of which is computed again (section 9).

`read_design` reads tasks and manifests. `read_plan` then takes the rows one by one, so that a million of them
need no more memory than their compact form, and answers the digest that binds them while it does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from skill_effectiveness.evidence.canonical import (
    digest_chunks,
    digest_object,
    digest_text,
    dump,
    list_chunks,
)
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.arm_errors import ArmError
from skill_effectiveness.protocol.document import DigestText, FrozenModel, to_json, told
from skill_effectiveness.protocol.manifests import SkillContentManifest, difference_faults, parse_manifest
from skill_effectiveness.protocol.registries import RULES, RegistrySchema, SkillTreatment
from skill_effectiveness.protocol.tasks import TaskError, parse_task, public_reference, task_hash
from skill_effectiveness.trials.gate_facts import ArmFacts, PlannedTrial, TrialName
from skill_effectiveness.trials.models import TrialBudget, TrialRuntime
from skill_effectiveness.trials.pilot_errors import PilotCode, PilotError
from skill_effectiveness.trials.pilot_records import Id, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from skill_effectiveness.protocol.manifests import ArmManifest
    from skill_effectiveness.protocol.tasks import Task

TASKS: Final = "expected_tasks"
MANIFESTS: Final = "expected_manifests"
TRIALS: Final = "expected_trials"
_MATCHED: Final = frozenset({SkillTreatment.ORACLE, SkillTreatment.ACTIVE_CONTROL})


class FingerprintInput(FrozenModel):
    """What the fingerprint of a trial is over."""

    task: dict[str, JsonValue]
    manifest_hash: DigestText
    runtime: dict[str, JsonValue]
    budget: TrialBudget
    sample_index: Place
    trial_location_hash: DigestText


class PlanRow(FrozenModel):
    """One planned trial."""

    task_id: Id
    arm_id: Id
    sample_index: Place
    run_order: Place
    task_hash: DigestText
    manifest_hash: DigestText
    runtime_hash: DigestText
    runner_hash: DigestText
    experiment_plan_hash: DigestText
    trial_fingerprint: DigestText
    task_reference: dict[str, JsonValue]
    runtime: TrialRuntime
    fingerprint_input: FingerprintInput


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """One task of a design with what rows are held against."""

    task: Task
    plain: dict[str, JsonValue]
    reference: dict[str, JsonValue]
    task_hash: str


@dataclass(frozen=True, slots=True)
class Design:
    """Tasks and arms of a plan.

    Attributes:
        registry_schema: of every arm.
        tasks: by id.
        manifests: by arm id.
        arms: what the gate needs of them.
    """

    registry_schema: RegistrySchema
    tasks: Mapping[str, PlannedTask]
    manifests: Mapping[str, ArmManifest]
    arms: tuple[ArmFacts, ...]

    @property
    def manifest_hashes(self) -> list[str]:
        """Of all arms, sorted."""
        return sorted(manifest.manifest_hash for manifest in self.manifests.values())

    @property
    def arm_registry_hash(self) -> str:
        """The registry hash of these arms (trials.md section 1), whether or not they make a plan."""
        registry: dict[str, object] = {
            "schema_version": 1,
            "arm_manifest_hashes": {arm: found.manifest_hash for arm, found in self.manifests.items()},
        }
        if self.registry_schema is RegistrySchema.PAIRED_PROFILE:
            registry["registry_schema"] = self.registry_schema.value
        return digest_object(registry)

    @property
    def tasks_hash(self) -> str:
        """Object digest of the sorted task hashes."""
        return digest_object(sorted(task.task_hash for task in self.tasks.values()))


@dataclass(frozen=True, slots=True)
class PlanIndex:
    """The rows of a plan.

    Attributes:
        trials: by name, in the order of the rows.
        provider, model: of every row.
        binding_hash: object digest of `{config_hash, expected_tasks, expected_manifest_hashes,
            expected_trials}`.
    """

    trials: Mapping[TrialName, PlannedTrial]
    provider: str
    model: str
    binding_hash: str


def read_design(tasks: Sequence[JsonValue], manifests: Sequence[JsonValue]) -> Design:
    """Read tasks and arms.

    An arm that differs from its off arm where it must not is no fault here: the gate fails by it.

    Raises:
        PilotError: `plan_invalid`.
    """
    found: dict[str, PlannedTask] = {}
    for index, value in enumerate(tasks):
        try:
            task = parse_task(value)
        except TaskError as error:
            raise _invalid(TASKS, f"/{index}{error.where}", error.sentence) from error
        if task.task_id in found:
            raise _invalid(TASKS, f"/{index}", "the task is there twice; name it once.")
        plain = to_json(task)
        found[task.task_id] = PlannedTask(task, plain, to_json(public_reference(task)), task_hash(task))
    if not found:
        raise _invalid(TASKS, "", "there is no task; give those of the plan.")
    arms = _manifests(manifests)
    schema = next(iter(arms.values())).registry_schema
    return Design(schema, found, arms, tuple(_arm_facts(arm, arms.values()) for arm in arms.values()))


def _manifests(values: Sequence[JsonValue]) -> dict[str, ArmManifest]:
    arms: dict[str, ArmManifest] = {}
    for index, value in enumerate(values):
        try:
            arm = parse_manifest(value)
        except ArmError as error:
            raise _invalid(MANIFESTS, f"/{index}{error.where}", error.sentence) from error
        if arm.arm_id in arms:
            raise _invalid(MANIFESTS, f"/{index}", "the arm is there twice; name it once.")
        if not arm.runnable:
            raise _invalid(MANIFESTS, f"/{index}", "the arm may not run yet, so no plan has it; take it out.")
        arms[arm.arm_id] = arm
    schemas = {arm.registry_schema for arm in arms.values()}
    if len(schemas) != 1:
        raise _invalid(MANIFESTS, "", "the arms are of one registry, and there is at least one.")
    _check_whole(schemas.pop(), arms.values())
    return arms


def _check_whole(schema: RegistrySchema, arms: Iterable[ArmManifest]) -> None:
    """Every scope has the arms its registry needs, once each."""
    rules = RULES[schema]
    times = Counter((arm.scope, str(arm.treatment)) for arm in arms)
    scopes = {scope for scope, _treatment in times}
    if len(scopes) > rules.most_scopes:
        raise _invalid(MANIFESTS, "", "the arms of this registry are all of one scope.")
    for scope in sorted(scopes):
        for treatment in rules.needed:
            if times[scope, str(treatment)] != 1:
                told_of = (
                    f"the scope {scope} needs exactly one {treatment} arm; without it nothing is compared."
                )
                raise _invalid(MANIFESTS, "", told_of)


def _arm_facts(arm: ArmManifest, arms: Iterable[ArmManifest]) -> ArmFacts:
    (off,) = (other for other in arms if other.is_off and other.scope is arm.scope)
    return ArmFacts(
        arm_id=arm.arm_id,
        is_off=arm.is_off,
        calls_are_matched=isinstance(arm, SkillContentManifest) and arm.treatment in _MATCHED,
        diff_faults=difference_faults(off, arm),
    )


def read_plan(design: Design, rows: Iterable[JsonValue], *, config_hash: str, samples_min: int) -> PlanIndex:
    """Read the rows.

    Args:
        design: what they plan.
        rows: plain JSON values, consumed once.
        config_hash: part of what the rows are bound with.
        samples_min: of every cell of task and arm.

    Raises:
        PilotError: `plan_invalid`, naming the row.
        Whatever reading `rows` raises.
    """
    reader = _PlanReader(design, config_hash)
    binding_hash = digest_chunks(reader.chunks(rows))
    reader.check_whole(samples_min)
    ((provider, model),) = reader.runtimes
    return PlanIndex(reader.trials, provider, model, binding_hash)


class _PlanReader:
    """Takes rows and gives the canonical bytes of what binds them."""

    def __init__(self, design: Design, config_hash: str) -> None:
        self._design = design
        self._head = {
            "config_hash": config_hash,
            "expected_manifest_hashes": design.manifest_hashes,
            "expected_tasks": [task.plain for task in design.tasks.values()],
        }
        self._texts: dict[str, str] = {}
        self.trials: dict[TrialName, PlannedTrial] = {}
        self.runtimes: set[tuple[str, str]] = set()

    def chunks(self, rows: Iterable[JsonValue]) -> Iterator[bytes]:
        # Canonical members come sorted, and the rows are the last: the rest of the object stands before them.
        yield dump(self._head)[:-1] + b',"expected_trials":'
        yield from list_chunks(self._taken(rows))
        yield b"}"

    def _taken(self, rows: Iterable[JsonValue]) -> Iterator[bytes]:
        for index, row in enumerate(rows):
            self._take(index, row)
            yield dump(row)

    def _take(self, index: int, value: JsonValue) -> None:
        try:
            row = validate(PlanRow, value)
        except EvidenceError as error:
            raise _invalid(TRIALS, f"/{index}{error.faults[0].where}", told(error)) from error
        # `validate` has seen that it is an object with these members.
        plain = value if isinstance(value, dict) else {}
        name = TrialName(row.task_id, row.arm_id, row.sample_index)
        if name in self.trials:
            raise _invalid(TRIALS, f"/{index}", "the trial is planned twice; plan it once.")
        field = self._differing(row, plain)
        if field is not None:
            sentence = (
                "this is not what the rest of the row, its task and its arm give; plan the trials again."
            )
            raise _invalid(TRIALS, f"/{index}/{field}", sentence)
        self.runtimes.add((row.runtime.provider, row.runtime.model))
        task, arm = self._design.tasks[row.task_id], self._design.manifests[row.arm_id]
        kept = TrialName(task.task.task_id, arm.arm_id, row.sample_index)
        self.trials[kept] = PlannedTrial(
            kept,
            row.run_order,
            task.task.task_family,
            (
                task.task_hash,
                arm.manifest_hash,
                row.runtime_hash,
                self._once(row.runner_hash),
                self._once(row.experiment_plan_hash),
                row.trial_fingerprint,
            ),
            digest_text(row.runtime.session_id),
        )

    def _once(self, text: str) -> str:
        """The text as it was met first, so that a million rows do not hold it a million times."""
        return self._texts.setdefault(text, text)

    def _differing(self, row: PlanRow, plain: dict[str, JsonValue]) -> str | None:
        """The first field that is not what it has to be."""
        task = self._design.tasks.get(row.task_id)
        arm = self._design.manifests.get(row.arm_id)
        if task is None:
            return "task_id"
        if arm is None:
            return "arm_id"
        given = row.fingerprint_input
        for field, holds in (
            ("task_hash", row.task_hash == task.task_hash),
            ("manifest_hash", row.manifest_hash == arm.manifest_hash == given.manifest_hash),
            ("runtime_hash", row.runtime_hash == digest_object(plain["runtime"])),
            ("runner_hash", row.runner_hash == row.runtime.runner_hash),
            ("experiment_plan_hash", row.experiment_plan_hash == row.runtime.experiment_plan_hash),
            ("task_reference", row.task_reference == task.reference),
            ("fingerprint_input/task", given.task == task.plain),
            ("fingerprint_input/runtime", given.runtime == plain["runtime"]),
            ("fingerprint_input/sample_index", given.sample_index == row.sample_index),
            ("trial_fingerprint", row.trial_fingerprint == digest_object(plain["fingerprint_input"])),
        ):
            if not holds:
                return field
        return None

    def check_whole(self, samples_min: int) -> None:
        """Demand run orders 1..n, one runtime, and enough samples of every cell."""
        orders = [trial.run_order for trial in self.trials.values()]
        if set(orders) != set(range(1, len(orders) + 1)) or len(set(orders)) != len(orders):
            raise _invalid(TRIALS, "/run_order", "run orders are 1 to n, each once; number the rows again.")
        if len(self.runtimes) != 1:
            sentence = "all trials run with one provider and one model, and there is at least one trial."
            raise _invalid(TRIALS, "/runtime", sentence)
        cells = Counter((name.task_id, name.arm_id) for name in self.trials)
        for task in self._design.tasks:
            for arm in self._design.manifests:
                if cells[task, arm] < samples_min:
                    sentence = f"every task has at least {samples_min} samples in every arm; plan more."
                    raise _invalid(TRIALS, "", sentence)


def _invalid(name: str, pointer: str, sentence: str) -> PilotError:
    return PilotError(PilotCode.PLAN_INVALID, f"{name}#{pointer}" if pointer else name, sentence)


def plan_row(
    *,
    task: Task,
    manifest: ArmManifest,
    runtime: TrialRuntime,
    budget: TrialBudget,
    sample_index: int,
    run_order: int,
    trial_location_hash: str,
) -> dict[str, JsonValue]:
    """The row of one trial that is going to be prepared."""
    given: dict[str, JsonValue] = {
        "task": to_json(task),
        "manifest_hash": manifest.manifest_hash,
        "runtime": runtime.model_dump(mode="json"),
        "budget": to_json(budget),
        "sample_index": sample_index,
        "trial_location_hash": trial_location_hash,
    }
    return {
        "task_id": task.task_id,
        "arm_id": manifest.arm_id,
        "sample_index": sample_index,
        "run_order": run_order,
        "task_hash": task_hash(task),
        "manifest_hash": manifest.manifest_hash,
        "runtime_hash": digest_object(given["runtime"]),
        "runner_hash": runtime.runner_hash,
        "experiment_plan_hash": runtime.experiment_plan_hash,
        "trial_fingerprint": digest_object(given),
        "task_reference": to_json(public_reference(task)),
        "runtime": given["runtime"],
        "fingerprint_input": given,
    }
