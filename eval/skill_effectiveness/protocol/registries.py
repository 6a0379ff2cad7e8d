"""The two registries of arms and the rules of each (trials.md section 1).

| | `skill-content` | `paired-profile` |
|---|---|---|
| what an arm varies | four parts of what the agent is given | the profile payload alone |
| treatments | off, active_control, oracle, full | off, full, reference |
| verdicts | causal | advisory-paired |

A registry is never mixed with the other, and its rules never bend: what a treatment may change is a constant
of this page, whatever a template declares.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

from skill_effectiveness.evidence.documents import RuleBroken
from skill_effectiveness.protocol.gates import EvidenceTierName

if TYPE_CHECKING:
    from collections.abc import Mapping


class RegistrySchema(StrEnum):
    """The two contracts an arm can belong to."""

    SKILL_CONTENT = "skill-content"
    PAIRED_PROFILE = "paired-profile"


class Scope(StrEnum):
    """Who works under the arm: an agent that another one called, or the one a person called."""

    SUBAGENT = "subagent"
    MAIN = "main"


class SkillTreatment(StrEnum):
    """What an arm of the skill-content registry does to the agent."""

    OFF = "off"
    ACTIVE_CONTROL = "active_control"
    ORACLE = "oracle"
    FULL = "full"


class ProfileTreatment(StrEnum):
    """What an arm of the paired-profile registry does to the agent."""

    OFF = "off"
    FULL = "full"
    REFERENCE = "reference"


Treatment: TypeAlias = SkillTreatment | ProfileTreatment


class SkillComponent(StrEnum):
    """The parts of what an agent is given in a skill-content arm."""

    SYSTEM_PROMPT = "system_prompt"
    BOOTSTRAP = "bootstrap"
    SKILL_INVENTORY = "skill_inventory"
    TOOL_SCHEMA = "tool_schema"
    HOOK_COMMAND_CONFIG = "hook_command_config"
    REPO_INSTRUCTIONS = "repo_instructions"
    CCL_LAYER = "ccl_layer"


class ProfileComponent(StrEnum):
    """The parts of what an agent is given in a paired-profile arm.

    Skills, instruction files and hooks together are the payload.
    """

    TASK_BUILDER_TEMPLATE = "task_builder_template"
    TASK = "task"
    DRIVER = "driver"
    MODEL = "model"
    PROMPT_TEMPLATE = "prompt_template"
    PERMISSION_PROFILE = "permission_profile"
    PROFILE_PAYLOAD = "profile_payload"


@dataclass(frozen=True, slots=True)
class RegistryRules:
    """Everything that holds for all arms of one registry.

    Attributes:
        schema: which registry.
        components: the names of an arm's components, all of them needed.
        allowlist: per treatment, the components that differ from the off arm of the same scope.
        empty_when_off: components that are empty text in an off arm.
        plan_contract: `artifact_contract` of the plan.
        needed: treatments that every scope of a plan has, once each.
        optional: treatments that a scope of a plan may have besides, once each.
        most_scopes: how many scopes one plan may have.
        tier: the only tier of a verdict over these arms.
    """

    schema: RegistrySchema
    components: tuple[str, ...]
    allowlist: Mapping[Treatment, frozenset[str]]
    empty_when_off: tuple[str, ...]
    plan_contract: str
    needed: tuple[Treatment, ...]
    optional: tuple[Treatment, ...]
    most_scopes: int
    tier: EvidenceTierName


_GUIDANCE: Final = frozenset(
    {SkillComponent.SKILL_INVENTORY, SkillComponent.HOOK_COMMAND_CONFIG, SkillComponent.CCL_LAYER}
)
_PAYLOAD: Final = frozenset({ProfileComponent.PROFILE_PAYLOAD})

RULES: Final[Mapping[RegistrySchema, RegistryRules]] = MappingProxyType(
    {
        RegistrySchema.SKILL_CONTENT: RegistryRules(
            schema=RegistrySchema.SKILL_CONTENT,
            components=tuple(SkillComponent),
            allowlist=MappingProxyType(
                {
                    SkillTreatment.OFF: frozenset(),
                    SkillTreatment.ACTIVE_CONTROL: _GUIDANCE,
                    SkillTreatment.ORACLE: _GUIDANCE,
                    SkillTreatment.FULL: _GUIDANCE | {SkillComponent.BOOTSTRAP},
                }
            ),
            empty_when_off=(
                SkillComponent.BOOTSTRAP,
                SkillComponent.SKILL_INVENTORY,
                SkillComponent.HOOK_COMMAND_CONFIG,
                SkillComponent.CCL_LAYER,
            ),
            plan_contract="skill-effectiveness-arm-registry-plan-v1",
            needed=(SkillTreatment.OFF, SkillTreatment.ORACLE, SkillTreatment.FULL),
            optional=(),
            most_scopes=len(Scope),
            tier=EvidenceTierName.CAUSAL,
        ),
        RegistrySchema.PAIRED_PROFILE: RegistryRules(
            schema=RegistrySchema.PAIRED_PROFILE,
            components=tuple(ProfileComponent),
            allowlist=MappingProxyType(
                {
                    ProfileTreatment.OFF: frozenset(),
                    ProfileTreatment.FULL: _PAYLOAD,
                    ProfileTreatment.REFERENCE: _PAYLOAD,
                }
            ),
            empty_when_off=(),
            plan_contract="skill-effectiveness-profile-arm-registry-plan-v1",
            needed=(ProfileTreatment.OFF, ProfileTreatment.FULL),
            optional=(ProfileTreatment.REFERENCE,),
            most_scopes=1,
            tier=EvidenceTierName.ADVISORY_PAIRED,
        ),
    }
)

TREATMENT_WORDS: Final = frozenset({"off", "full", "reference", "oracle", "control", "placebo"})
"""Words that ordinary text holds; an arm named by one would make every leak scan cry wolf."""


def is_treatment_word(arm_id: str) -> bool:
    """Whether an arm id is a bare English treatment word, in any case."""
    return arm_id.casefold() in TREATMENT_WORDS


def _no_treatment_word(arm_id: str) -> str:
    if is_treatment_word(arm_id):
        raise RuleBroken("An arm id is no bare treatment word; write for example profile-off instead.")
    return arm_id


ArmId = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$"), AfterValidator(_no_treatment_word)]
"""The name of an arm: a letter, then letters, digits and hyphens; no bare treatment word."""
