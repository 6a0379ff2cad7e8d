"""Arm templates: what an arm is called and which parts of it differ from the off arm (trials.md section 1).

The committed templates lie under `arms/` and are part of the frozen protocol. `load_template(fs,
"arms/S1.json")` reads one by itself; `parse_template(value)` reads one that somebody else wrote.

| arm | scope | treatment |
|---|---|---|
| S0, M0 | subagent, main | off |
| S1, M1 | subagent, main | oracle: the owner's skills, offered as the only ones |
| S2, M2 | subagent, main | full: as it is used, bootstrap included |
| Sg, Mg | subagent, main | active control: pending, so it cannot run (controls.md section 6) |
| profile-off, profile-full, profile-reference | main | the built-in profile, the candidate, a reference |
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.protocol.arm_errors import ArmCode, ArmError, bad_record
from skill_effectiveness.protocol.document import (
    DigestText,
    FrozenModel,
    One,
    Stated,
    Two,
    Yes,
    read_document,
    to_json,
)
from skill_effectiveness.protocol.registries import (
    RULES,
    ArmId,
    ProfileComponent,
    ProfileTreatment,
    RegistryRules,
    RegistrySchema,
    Scope,
    SkillComponent,
    SkillTreatment,
    Treatment,
    is_treatment_word,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skill_effectiveness.evidence.fsops import FileSystem

UNIQUE: Final[dict[str, Any]] = {"uniqueItems": True}
ORACLE_BUNDLE: Final = "oracle-owner-"
SLOT: Final = r"slot-[0-9a-f]{16}"

BundleId = Annotated[str, Field(pattern=rf"^({ORACLE_BUNDLE.removesuffix('-')}|{SLOT})-(subagent|main)$")]
"""The bundle whose call an arm demands first: the oracle's or a chosen control's (controls.md section 7)."""


class BundlePolicy(FrozenModel):
    """Which bundle the agent must have called before it touches the task."""

    bundle_id: BundleId


class NotApplicable(FrozenModel):
    """The arm is no active control."""

    status: Literal["not-applicable"]


class PendingSelection(FrozenModel):
    """An active control for which no fair opponent has been chosen yet."""

    status: Literal["pending"]
    required_independent_candidates: Two
    selection_blinded_before_outcomes: Yes


class VerifiedSelection(FrozenModel):
    """An active control whose content was chosen blind and measured against the owner's.

    Whoever hands this record in has verified the files behind its digests; here they are only bound.
    """

    status: Literal["owner-relative-verified"]
    artifact_hash: DigestText
    selected_package_hash: DigestText
    selected_scope: Scope
    selected_scope_content_hash: DigestText
    owner_relative_measurement_hash: DigestText
    owner_reference_hash: DigestText
    owner_commitment_request_hash: DigestText


Selection = Annotated[NotApplicable | PendingSelection | VerifiedSelection, Field(discriminator="status")]


class SkillContentTemplate(FrozenModel):
    """An arm of the skill-content registry."""

    schema_version: One
    arm_id: ArmId
    scope: Scope
    treatment: SkillTreatment
    allowlisted_diff: Annotated[tuple[SkillComponent, ...], Field(json_schema_extra=UNIQUE)]
    runnable: bool
    active_control_selection: Selection
    bundle_policy: Annotated[BundlePolicy | SkipJsonSchema[None], Stated] = None

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        check_allowlist(self.allowlisted_diff, self.rules.allowlist[self.treatment])
        control = self.treatment is SkillTreatment.ACTIVE_CONTROL
        if self.runnable is control:
            raise RuleBroken("An active control is not runnable, and every other arm is.")
        if control is isinstance(self.active_control_selection, NotApplicable):
            raise RuleBroken(
                "An active control has a selection, pending or verified, and no other arm has one."
            )
        self._check_selected_scope()
        self._check_bundle()
        return self

    def _check_selected_scope(self) -> None:
        chosen = self.active_control_selection
        if isinstance(chosen, VerifiedSelection) and chosen.selected_scope is not self.scope:
            raise RuleBroken("The selected content is that of another scope.")

    def _check_bundle(self) -> None:
        if self.bundle_policy is None:
            return
        bundle = self.bundle_policy.bundle_id
        kinds = {SkillTreatment.ORACLE: True, SkillTreatment.ACTIVE_CONTROL: False}
        if kinds.get(self.treatment) is not bundle.startswith(ORACLE_BUNDLE):
            raise RuleBroken("The bundle policy belongs to another treatment.")
        if not bundle.endswith(f"-{self.scope}"):
            raise RuleBroken("The bundle policy belongs to another scope.")

    @property
    def registry_schema(self) -> RegistrySchema:
        """The registry of this arm."""
        return RegistrySchema.SKILL_CONTENT

    @property
    def rules(self) -> RegistryRules:
        """The rules of its registry."""
        return RULES[RegistrySchema.SKILL_CONTENT]

    @property
    def is_off(self) -> bool:
        """Whether other arms are held against this one."""
        return self.treatment is SkillTreatment.OFF


class ProfileTemplate(FrozenModel):
    """An arm of the paired-profile registry."""

    schema_version: One
    registry_schema: Literal[RegistrySchema.PAIRED_PROFILE]
    arm_id: ArmId
    scope: Scope
    treatment: ProfileTreatment
    allowlisted_diff: Annotated[tuple[ProfileComponent, ...], Field(json_schema_extra=UNIQUE)]
    runnable: Yes

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        check_allowlist(self.allowlisted_diff, self.rules.allowlist[self.treatment])
        return self

    @property
    def rules(self) -> RegistryRules:
        """The rules of its registry."""
        return RULES[RegistrySchema.PAIRED_PROFILE]

    @property
    def is_off(self) -> bool:
        """Whether other arms are held against this one."""
        return self.treatment is ProfileTreatment.OFF


ArmTemplate: TypeAlias = SkillContentTemplate | ProfileTemplate

COMMITTED: Final[Mapping[str, type[ArmTemplate]]] = MappingProxyType(
    {
        **{
            f"arms/{arm}.json": SkillContentTemplate
            for arm in ("S0", "S1", "S2", "Sg", "M0", "M1", "M2", "Mg")
        },
        **{f"arms/profile/profile-{arm}.json": ProfileTemplate for arm in ("off", "full", "reference")},
    }
)
"""Reference of every committed template, and its model."""

_REFERENCE: Final = re.compile(r"arms/(profile/)?[A-Za-z0-9-]{1,64}\.json")


def check_allowlist(declared: Iterable[str], allowed: frozenset[str]) -> None:
    """Demand that a template declares exactly what its treatment changes.

    Raises:
        RuleBroken: naming the first difference, by its diff code.
    """
    listed = list(declared)
    if len(listed) != len(set(listed)):
        raise RuleBroken("A component is declared twice.")
    for name in sorted(set(listed) - allowed):
        raise RuleBroken(f"{ArmCode.UNALLOWLISTED_DIFF}:{name}: the treatment must not change it.")
    for name in sorted(allowed - set(listed)):
        raise RuleBroken(f"{ArmCode.ALLOWLISTED_DIFF_NOT_REALIZED}:{name}: the treatment changes it.")


def parse_template(value: object) -> ArmTemplate:
    """A template that somebody wrote; one with a `registry_schema` is of the paired-profile registry.

    Raises:
        ArmError: `registry_mismatch` for an arm id that is a treatment word; `unallowlisted_diff` for a
            wider difference than the treatment has; `bad_record` otherwise.
    """
    model: type[ArmTemplate] = SkillContentTemplate
    if isinstance(value, dict):
        refuse_treatment_word(value.get("arm_id"))
        if "registry_schema" in value:
            model = ProfileTemplate
        _refuse_wider_difference(model, value)
    try:
        return validate(model, value)
    except EvidenceError as error:
        raise bad_record("arm template", error) from error


def refuse_treatment_word(arm_id: object) -> None:
    """Refuse an arm id that is a bare treatment word.

    Raises:
        ArmError: `registry_mismatch`.
    """
    if isinstance(arm_id, str) and is_treatment_word(arm_id):
        sentence = (
            f"an arm is not called {arm_id}, which ordinary text holds too; name it arm-{arm_id.lower()}."
        )
        raise ArmError(ArmCode.REGISTRY_MISMATCH, "/arm_id", sentence)


def _refuse_wider_difference(model: type[ArmTemplate], value: dict[str, object]) -> None:
    """A wider difference gets its own code; every other fault of the same fields is the model's to name."""
    schema = RegistrySchema.PAIRED_PROFILE if model is ProfileTemplate else RegistrySchema.SKILL_CONTENT
    allowed = RULES[schema].allowlist.get(_treatment(model, value.get("treatment")))  # type: ignore[arg-type]
    declared = value.get("allowlisted_diff")
    if allowed is None or not isinstance(declared, list):
        return
    for name in RULES[schema].components:
        if name in declared and name not in allowed:
            sentence = (
                f"{ArmCode.UNALLOWLISTED_DIFF}:{name}: the template declares a wider difference than its "
                "treatment has; take it out."
            )
            raise ArmError(ArmCode.UNALLOWLISTED_DIFF, name, sentence)


def _treatment(model: type[ArmTemplate], word: object) -> Treatment | None:
    kinds: type[SkillTreatment | ProfileTreatment] = (
        ProfileTreatment if model is ProfileTemplate else SkillTreatment
    )
    return kinds(word) if isinstance(word, str) and word in list(kinds) else None


def load_template(fs: FileSystem, ref: str) -> ArmTemplate:
    """A committed template by its reference, such as `arms/S1.json`.

    Raises:
        ArmError: `template_unknown`.
        ProtocolError: `fixture_invalid` when the committed file is missing or malformed.
    """
    model = COMMITTED.get(ref) if _REFERENCE.fullmatch(ref) else None
    if model is None:
        known = ", ".join(COMMITTED)
        sentence = f"{printable(ref[:128])} is no committed arm template; there are {known}."
        raise ArmError(ArmCode.TEMPLATE_UNKNOWN, "", sentence)
    return read_document(fs, ref, model)


def committed_templates(fs: FileSystem) -> dict[str, ArmTemplate]:
    """Every committed template by its reference; errors as `load_template`."""
    return {ref: load_template(fs, ref) for ref in COMMITTED}


def template_hash(template: ArmTemplate) -> str:
    """The object digest of a template, which its manifest states."""
    return digest_object(to_json(template))
