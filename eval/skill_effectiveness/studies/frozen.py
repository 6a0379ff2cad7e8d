"""Arms and tasks of a study as protocol records: `frozen.json`, which a plan pins by their hashes.

| part | pinned in the plan by |
|---|---|
| manifests of the arms | `arms[].manifest_hash` |
| the plan of their registry | `arm_registry_plan_hash` |
| full records of the tasks | `tasks[].task_hash` |
| digests of the arms' launches, of a real agent | the component of the driver in every manifest |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.arm_errors import ArmError
from skill_effectiveness.protocol.document import DigestText, FrozenModel, to_json
from skill_effectiveness.protocol.manifests import (
    Component,
    component_hash,
    freeze_manifest,
    parse_manifest,
)
from skill_effectiveness.protocol.registries import RegistrySchema, Scope
from skill_effectiveness.protocol.registry_plan import build_plan, parse_plan
from skill_effectiveness.protocol.task_folders import corpus_version, task_of_folder
from skill_effectiveness.protocol.tasks import TaskError, parse_task, task_hash
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.words import Arm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.protocol.manifests import ArmManifest
    from skill_effectiveness.protocol.registry_plan import ArmRegistryPlan
    from skill_effectiveness.protocol.tasks import Task
    from skill_effectiveness.studies.loading import LoadedStudy
    from skill_effectiveness.studies.payloads import Payload
    from skill_effectiveness.studies.plan import PlanDriver, StudyPlan
    from skill_effectiveness.studies.study_file import Isolation

FROZEN: Final = "frozen.json"

_SKILL_ARMS: Final = {
    (Scope.SUBAGENT, Arm.OFF): "arms/S0.json",
    (Scope.SUBAGENT, Arm.ORACLE): "arms/S1.json",
    (Scope.SUBAGENT, Arm.FULL): "arms/S2.json",
    (Scope.MAIN, Arm.OFF): "arms/M0.json",
    (Scope.MAIN, Arm.ORACLE): "arms/M1.json",
    (Scope.MAIN, Arm.FULL): "arms/M2.json",
}
_MEMBERS: Final = {"schema_version", "manifests", "registry_plan", "tasks"}
_LAUNCHES: Final = "launches"
_BUILDER: Final = "skill-effectiveness.task-folder.v1"
_PROMPT: Final = "instruction.md, byte for byte"


@dataclass(frozen=True, slots=True)
class FrozenStudy:
    """What the rooms below know of a study.

    Attributes:
        manifests: by what the study calls the arm.
        registry_plan: of these manifests.
        tasks: full records, by id.
        launches: what a real agent of each arm is started with, see `treatment_diff.launch_digest`; empty
            for a simulated one.
    """

    manifests: Mapping[Arm, ArmManifest]
    registry_plan: ArmRegistryPlan
    tasks: Mapping[str, Task]
    launches: Mapping[Arm, str] = field(default_factory=dict)

    def line(self) -> bytes:
        """The bytes of `frozen.json`."""
        document = {
            "schema_version": 1,
            "manifests": {str(arm): to_json(held) for arm, held in self.manifests.items()},
            "registry_plan": to_json(self.registry_plan),
            "tasks": [to_json(task) for task in self.tasks.values()],
        }
        launched = {str(arm): digest for arm, digest in self.launches.items()}
        return dump_line(document | ({_LAUNCHES: launched} if launched else {}))

    def task_hash(self, task_id: str) -> str:
        """The hash of a task's full record."""
        return task_hash(self.tasks[task_id])


def freeze_tasks(loaded: LoadedStudy) -> dict[str, Task]:
    """The records of all task folders.

    Raises:
        TaskError: what a folder declares makes no record.
    """
    skills = [skill.name for skill in loaded.payloads[Arm.FULL].skills]
    version = corpus_version(task.facts for task in loaded.tasks)
    return {
        task.task_id: task_of_folder(
            task.facts, study=loaded.study.name, skills=skills, corpus_version=version
        )
        for task in loaded.tasks
    }


def freeze_study(
    fs: FileSystem, loaded: LoadedStudy, driver: PlanDriver, launches: Mapping[Arm, str] | None = None
) -> FrozenStudy:
    """Arms and tasks, frozen by the committed templates.

    Args:
        fs: file operations.
        loaded: the study.
        driver: the tested agent as it is.
        launches: digests of the launches of a real agent's arms; `None` where only the arms are looked at.

    Raises:
        ArmError: the arms make no registry: one differs from off where it must not, or nowhere.
        TaskError: what a task folder declares makes no record.
        ProtocolError: a committed template cannot be read.
    """
    tasks = freeze_tasks(loaded)
    held = launches or {}
    common = _common(loaded, _driver_part(driver, held), tasks)
    manifests = {
        arm: freeze_manifest(fs, _template(loaded, arm), {**common, **_payload(loaded, payload)})
        for arm, payload in loaded.payloads.items()
    }
    return FrozenStudy(manifests, build_plan(list(manifests.values())), tasks, held)


def _driver_part(driver: PlanDriver, launches: Mapping[Arm, str]) -> dict[str, JsonValue]:
    """The driver as the manifests have it, with how it is launched for each arm: the same in all of them."""
    frozen: dict[str, JsonValue] = to_json(driver)
    launched: dict[str, JsonValue] = {str(arm): digest for arm, digest in launches.items()}
    return {"driver": frozen, _LAUNCHES: launched} if launched else frozen


def _tool_schema(driver: dict[str, JsonValue], isolation: Isolation) -> dict[str, JsonValue]:
    return {"driver": driver, "isolation": isolation.model_dump(mode="json")}


def _template(loaded: LoadedStudy, arm: Arm) -> str:
    if loaded.study.registry is RegistrySchema.PAIRED_PROFILE:
        return f"arms/profile/profile-{arm}.json"
    return _SKILL_ARMS[loaded.study.scope, arm]


def _common(
    loaded: LoadedStudy, driver: dict[str, JsonValue], tasks: Mapping[str, Task]
) -> dict[str, Component]:
    """The components that are the same in every arm."""
    records: Component = [{"task_id": name, "task_hash": task_hash(task)} for name, task in tasks.items()]
    if loaded.study.registry is RegistrySchema.SKILL_CONTENT:
        return {
            "system_prompt": "",
            "tool_schema": _tool_schema(driver, loaded.study.isolation),
            "repo_instructions": records,
        }
    return {
        "task_builder_template": _BUILDER,
        "task": records,
        "driver": driver,
        "model": loaded.study.driver.model,
        "prompt_template": _PROMPT,
        "permission_profile": loaded.study.isolation.model_dump(mode="json"),
    }


def _payload(loaded: LoadedStudy, payload: Payload) -> dict[str, Component]:
    """The components that are an arm's own; nothing at all is empty text."""
    skills: list[JsonValue] = [{"name": skill.name, "tree": skill.tree} for skill in payload.skills]
    instructions: list[JsonValue] = [
        {"name": file.name, "sha256": file.sha256} for file in payload.instructions
    ]
    hooks: list[JsonValue] = [{"name": file.name, "sha256": file.sha256} for file in payload.hooks]
    if loaded.study.registry is RegistrySchema.SKILL_CONTENT:
        return {
            "bootstrap": instructions or "",
            "skill_inventory": [skill.name for skill in payload.skills] or "",
            "hook_command_config": hooks or "",
            "ccl_layer": skills or "",
        }
    return {"profile_payload": {"skills": skills, "instructions": instructions, "hooks": hooks}}


def read_frozen_study(data: bytes, plan: StudyPlan) -> FrozenStudy:
    """The frozen records that a plan pins.

    Raises:
        StudyError: `plan_changed`, naming the field of the plan that they do not fit.
    """
    try:
        value = read_json(data, Profile.DOCUMENT, want_object=True)
        frozen = _parsed(value)
    except (EvidenceError, ArmError, TaskError, KeyError, TypeError, ValueError) as error:
        raise _changed(FROZEN) from error
    if frozen.line() != data:
        raise _changed(FROZEN)
    if frozen.registry_plan.plan_hash != plan.arm_registry_plan_hash:
        raise _changed("/arm_registry_plan_hash")
    hashes = {arm: manifest.manifest_hash for arm, manifest in frozen.manifests.items()}
    if hashes != {arm.arm: arm.manifest_hash for arm in plan.arms}:
        raise _changed("/arms")
    records = {name: task_hash(task) for name, task in frozen.tasks.items()}
    if records != {task.task_id: task.task_hash for task in plan.tasks}:
        raise _changed("/tasks")
    if not _launches_are_pinned(frozen, plan):
        raise _changed(f"{FROZEN}/{_LAUNCHES}")
    return frozen


def _launches_are_pinned(frozen: FrozenStudy, plan: StudyPlan) -> bool:
    """Whether there is a launch for each arm of a real agent, and the manifests know of it."""
    if set(frozen.launches) != (set() if plan.synthetic else set(plan.arm_names)):
        return False
    driver = _driver_part(plan.driver, frozen.launches)
    if plan.registry is RegistrySchema.SKILL_CONTENT:
        component, held = "tool_schema", component_hash(_tool_schema(driver, plan.isolation))
    else:
        component, held = "driver", component_hash(driver)
    hashes = (manifest.component_hashes.by_name()[component] for manifest in frozen.manifests.values())
    return all(found == held for found in hashes)


class _Launches(FrozenModel):
    launches: dict[Arm, DigestText]


def _parsed(value: object) -> FrozenStudy:
    if not isinstance(value, dict) or value.keys() - {_LAUNCHES} != _MEMBERS:
        raise ValueError("another form")
    launches = validate(_Launches, {_LAUNCHES: value.get(_LAUNCHES, {})}).launches
    manifests = {Arm(name): parse_manifest(held) for name, held in value["manifests"].items()}
    tasks = [parse_task(held) for held in value["tasks"]]
    by_id = {task.task_id: task for task in tasks}
    return FrozenStudy(manifests, parse_plan(value["registry_plan"]), by_id, launches)


def _changed(field: str) -> StudyError:
    sentence = "what was frozen is no longer what the plan says; restore the study's folder, or plan anew."
    return StudyError(StudyCode.PLAN_CHANGED, field, sentence)
