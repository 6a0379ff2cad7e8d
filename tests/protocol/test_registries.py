from __future__ import annotations

import pytest

from skill_effectiveness.protocol.gates import EvidenceTierName
from skill_effectiveness.protocol.registries import (
    RULES,
    TREATMENT_WORDS,
    RegistrySchema,
    Scope,
    is_treatment_word,
)

SKILLS = RULES[RegistrySchema.SKILL_CONTENT]
PROFILES = RULES[RegistrySchema.PAIRED_PROFILE]


class TestTheTable:
    def test_skill_content(self) -> None:
        """T1: components, allowlists, empty parts, contract and tier of the skill-content registry."""
        assert SKILLS.schema == "skill-content"
        assert SKILLS.components == (
            "system_prompt",
            "bootstrap",
            "skill_inventory",
            "tool_schema",
            "hook_command_config",
            "repo_instructions",
            "ccl_layer",
        )
        guidance = {"skill_inventory", "hook_command_config", "ccl_layer"}
        assert dict(SKILLS.allowlist) == {
            "off": set(),
            "active_control": guidance,
            "oracle": guidance,
            "full": guidance | {"bootstrap"},
        }
        assert set(SKILLS.empty_when_off) == guidance | {"bootstrap"}
        assert SKILLS.plan_contract == "skill-effectiveness-arm-registry-plan-v1"
        assert (SKILLS.needed, SKILLS.optional, SKILLS.most_scopes) == (("off", "oracle", "full"), (), 2)
        assert SKILLS.tier is EvidenceTierName.CAUSAL

    def test_paired_profile(self) -> None:
        """T1: components, allowlists, contract and tier of the paired-profile registry."""
        assert PROFILES.schema == "paired-profile"
        assert PROFILES.components == (
            "task_builder_template",
            "task",
            "driver",
            "model",
            "prompt_template",
            "permission_profile",
            "profile_payload",
        )
        assert dict(PROFILES.allowlist) == {
            "off": set(),
            "full": {"profile_payload"},
            "reference": {"profile_payload"},
        }
        assert PROFILES.empty_when_off == ()
        assert PROFILES.plan_contract == "skill-effectiveness-profile-arm-registry-plan-v1"
        assert (PROFILES.needed, PROFILES.optional, PROFILES.most_scopes) == (
            ("off", "full"),
            ("reference",),
            1,
        )
        assert PROFILES.tier is EvidenceTierName.ADVISORY_PAIRED

    def test_there_are_two_registries_and_two_scopes(self) -> None:
        assert set(RULES) == set(RegistrySchema)
        assert list(Scope) == ["subagent", "main"]

    def test_nobody_can_change_it(self) -> None:
        with pytest.raises(TypeError):
            RULES[RegistrySchema.SKILL_CONTENT] = PROFILES  # type: ignore[index]
        with pytest.raises(TypeError):
            SKILLS.allowlist["off"] = frozenset({"ccl_layer"})  # type: ignore[index]


class TestTreatmentWords:
    @pytest.mark.parametrize("word", ["off", "full", "reference", "oracle", "control", "placebo"])
    def test_each_is_one_in_any_case(self, word: str) -> None:
        assert word in TREATMENT_WORDS
        assert is_treatment_word(word)
        assert is_treatment_word(word.upper())

    @pytest.mark.parametrize("arm_id", ["S0", "profile-off", "offside", "full-2", ""])
    def test_other_names_are_not(self, arm_id: str) -> None:
        assert not is_treatment_word(arm_id)
