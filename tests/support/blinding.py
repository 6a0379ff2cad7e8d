"""Registry plans of both contracts and outcomes of two of their arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.manifests import freeze_manifest
from skill_effectiveness.protocol.registry_plan import build_plan
from skill_effectiveness.trials.blinding import BlindOutcome

if TYPE_CHECKING:
    from pydantic import JsonValue

    from skill_effectiveness.protocol.manifests import Component
    from skill_effectiveness.protocol.registry_plan import ArmRegistryPlan

TREATMENT = (
    "Before you change anything, write down which behaviour has to stay, run the oldest test first, and "
    "never delete a check that you cannot explain."
)
OFF_ANSWER: JsonValue = {
    "answer": "I moved the loop out and kept the tests.",
    "files": [{"path": "a.py", "lines": 3}],
}
FULL_ANSWER: JsonValue = {"answer": "The loop is gone; all tests pass.", "files": []}

_SKILL: dict[str, Component] = {
    "system_prompt": "system",
    "bootstrap": "",
    "skill_inventory": "",
    "tool_schema": {},
    "hook_command_config": "",
    "repo_instructions": "",
    "ccl_layer": "",
}
_GUIDED: dict[str, Component] = {
    "skill_inventory": "inventory",
    "hook_command_config": "hooks",
    "ccl_layer": TREATMENT,
}
_PROFILE: dict[str, Component] = {
    "task_builder_template": "builder",
    "task": "task",
    "driver": "driver",
    "model": "model",
    "prompt_template": "prompt",
    "permission_profile": "permissions",
    "profile_payload": "",
}


def skill_content_plan() -> ArmRegistryPlan:
    """Off, oracle and full of the subagent scope: S0, S1, S2."""
    fs = RealFs()
    off = freeze_manifest(fs, "arms/S0.json", _SKILL)
    oracle = freeze_manifest(fs, "arms/S1.json", _SKILL | _GUIDED)
    full = freeze_manifest(fs, "arms/S2.json", _SKILL | _GUIDED | {"bootstrap": "start"})
    return build_plan([off, oracle, full])


def profile_plan() -> ArmRegistryPlan:
    """The built-in profile and the candidate."""
    fs = RealFs()
    off = freeze_manifest(fs, "arms/profile/profile-off.json", _PROFILE)
    full = freeze_manifest(fs, "arms/profile/profile-full.json", _PROFILE | {"profile_payload": TREATMENT})
    return build_plan([off, full])


PLANS = {"skill-content": skill_content_plan(), "paired-profile": profile_plan()}
ARMS = {"skill-content": ("S0", "S2"), "paired-profile": ("profile-off", "profile-full")}


def outcome(plan: ArmRegistryPlan, arm: str, outcome_id: str, payload: JsonValue) -> BlindOutcome:
    """One side of a pair."""
    return BlindOutcome(
        outcome_id=outcome_id,
        arm_id=arm,
        manifest_hash=plan.manifest_hashes[arm],
        arm_registry_plan_hash=plan.plan_hash,
        judge_payload=payload,
    )


def sides(
    registry: str, off: JsonValue = OFF_ANSWER, full: JsonValue = FULL_ANSWER
) -> tuple[BlindOutcome, BlindOutcome]:
    """Outcomes of the off and the full arm of a registry."""
    plan = PLANS[registry]
    first, second = ARMS[registry]
    return outcome(plan, first, "slot-7", off), outcome(plan, second, "slot-2", full)
