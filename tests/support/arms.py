"""Contents of arms, and arms frozen from them."""

from __future__ import annotations

from typing import Any

from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.manifests import ArmManifest, freeze_manifest
from skill_effectiveness.protocol.templates import VerifiedSelection

SHARED: dict[str, Any] = {
    "system_prompt": "You mend a small program.\n",
    "tool_schema": {"tools": ["read", "write"]},
    "repo_instructions": "Keep lines short.\n",
}
NOTHING: dict[str, Any] = {
    "bootstrap": "",
    "skill_inventory": "",
    "hook_command_config": "",
    "ccl_layer": "",
}
GUIDANCE: dict[str, Any] = {
    "skill_inventory": {"skills": ["mend"]},
    "hook_command_config": {"hooks": []},
    "ccl_layer": "Read before you write.\n",
}
OFF: dict[str, Any] = {**SHARED, **NOTHING}
ORACLE: dict[str, Any] = {**OFF, **GUIDANCE}
FULL: dict[str, Any] = {**ORACLE, "bootstrap": "List your skills.\n"}
SKILL_ARMS: dict[str, dict[str, Any]] = {"0": OFF, "1": ORACLE, "2": FULL}

PROFILE: dict[str, Any] = {
    "task_builder_template": "{task}",
    "task": {"set": "t"},
    "driver": "driver 1.0",
    "model": "model-1",
    "prompt_template": "Do {task}.",
    "permission_profile": {"write": True},
    "profile_payload": "",
}
PROFILE_ARMS: dict[str, dict[str, Any]] = {
    "off": PROFILE,
    "full": {**PROFILE, "profile_payload": "Read before you write.\n"},
    "reference": {**PROFILE, "profile_payload": "Water is wet, as a rule.\n"},
}


# echo "Read before you write." | sha256sum
LAYER = "sha256:8f62bf3393de3086d2974e4524c88b89b6fb6a36336fa1c89755eb1b10074dac"


def skill_arm(arm: str, **changed: Any) -> ArmManifest:  # noqa: ANN401 - any content
    """An arm such as `S1`, some of its content changed."""
    content = SKILL_ARMS.get(arm[1:], ORACLE)
    return freeze_manifest(RealFs(), f"arms/{arm}.json", {**content, **changed})


def profile_arm(arm: str, **changed: Any) -> ArmManifest:  # noqa: ANN401 - any content
    """An arm such as `full` of the paired-profile registry, some of its content changed."""
    return freeze_manifest(RealFs(), f"arms/profile/profile-{arm}.json", {**PROFILE_ARMS[arm], **changed})


def skill_arms(scope: str = "S") -> list[ArmManifest]:
    """Off, oracle and full of one scope."""
    return [skill_arm(f"{scope}{number}") for number in "012"]


def profile_arms(*names: str) -> list[ArmManifest]:
    """Arms of the paired-profile registry; without names off and full."""
    return [profile_arm(name) for name in names or ("off", "full")]


def verified_selection(**changed: Any) -> VerifiedSelection:  # noqa: ANN401 - any field
    """The record of a selection whose content for subagents is that of `GUIDANCE`."""
    fields: dict[str, Any] = {
        "status": "owner-relative-verified",
        "artifact_hash": "sha256:" + 64 * "1",
        "selected_package_hash": "sha256:" + 64 * "2",
        "selected_scope": "subagent",
        "selected_scope_content_hash": LAYER,
        "owner_relative_measurement_hash": "sha256:" + 64 * "4",
        "owner_reference_hash": "sha256:" + 64 * "5",
        "owner_commitment_request_hash": "sha256:" + 64 * "6",
    }
    return validate(VerifiedSelection, {**fields, **changed})
