"""Arm manifests: a template with the digest of every byte that the arm gives the agent (trials.md section 1).

A manifest is the template's fields and

| field | value |
|---|---|
| `template_hash` | the object digest of those fields |
| `component_hashes` | per component: of text and bytes their digest, of a structure its object digest |
| `manifest_hash` | the object digest of everything else |

`freeze_manifest` makes one from a committed template and the components' contents; `parse_manifest` reads
one and recomputes both hashes. Whether an arm differs from its off arm where it must, and nowhere else, shows
only beside that arm: `difference_faults`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self, TypeAlias

from pydantic import model_validator

from skill_effectiveness.evidence.canonical import check_portable, digest_bytes, digest_object, digest_text
from skill_effectiveness.evidence.documents import RuleBroken, validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.protocol.arm_errors import ArmCode, ArmError, bad_record
from skill_effectiveness.protocol.document import DigestText, FrozenModel, to_json
from skill_effectiveness.protocol.templates import (
    ArmTemplate,
    PendingSelection,
    ProfileTemplate,
    SkillContentTemplate,
    VerifiedSelection,
    load_template,
    refuse_treatment_word,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.protocol.registries import RegistryRules

Component: TypeAlias = "str | bytes | dict[str, JsonValue] | list[JsonValue]"
"""What an arm gives to the agent under one name: a text, the bytes of a file, or a JSON structure."""

EMPTY: Final = digest_text("")


class _ComponentHashes(FrozenModel):
    """Digests by component."""

    def of(self, component: str) -> str:
        """The digest of one component.

        Raises:
            KeyError: the registry has no such component.
        """
        return self.by_name()[component]

    def by_name(self) -> dict[str, str]:
        """All digests, in the order of the registry's components."""
        return self.model_dump()


class SkillComponentHashes(_ComponentHashes):
    """The components of the skill-content registry."""

    system_prompt: DigestText
    bootstrap: DigestText
    skill_inventory: DigestText
    tool_schema: DigestText
    hook_command_config: DigestText
    repo_instructions: DigestText
    ccl_layer: DigestText


class ProfileComponentHashes(_ComponentHashes):
    """The components of the paired-profile registry."""

    task_builder_template: DigestText
    task: DigestText
    driver: DigestText
    model: DigestText
    prompt_template: DigestText
    permission_profile: DigestText
    profile_payload: DigestText


class SkillContentManifest(SkillContentTemplate):
    """A frozen arm of the skill-content registry."""

    template_hash: DigestText
    component_hashes: SkillComponentHashes
    manifest_hash: DigestText

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        check_off_is_empty(self.rules, self.component_hashes.by_name(), is_off=self.is_off)
        chosen = self.active_control_selection
        layer = self.component_hashes.ccl_layer
        if isinstance(chosen, VerifiedSelection) and chosen.selected_scope_content_hash != layer:
            raise RuleBroken("The ccl_layer is not the selected content of this scope.")
        return self

    @property
    def template(self) -> SkillContentTemplate:
        """The template this manifest was frozen from."""
        return SkillContentTemplate.model_validate(_template_fields(self, SkillContentTemplate))


class ProfileManifest(ProfileTemplate):
    """A frozen arm of the paired-profile registry."""

    template_hash: DigestText
    component_hashes: ProfileComponentHashes
    manifest_hash: DigestText

    @property
    def template(self) -> ProfileTemplate:
        """The template this manifest was frozen from."""
        return ProfileTemplate.model_validate(_template_fields(self, ProfileTemplate))


ArmManifest: TypeAlias = SkillContentManifest | ProfileManifest


def _template_fields(manifest: ArmManifest, model: type[ArmTemplate]) -> dict[str, object]:
    return {name: getattr(manifest, name) for name in model.model_fields if name in manifest.model_fields_set}


def check_off_is_empty(rules: RegistryRules, digests: Mapping[str, str], *, is_off: bool) -> None:
    """Demand that an off arm holds nothing of the treatment.

    Raises:
        RuleBroken: naming the first component that is not empty text.
    """
    if not is_off:
        return
    for name in rules.empty_when_off:
        if digests[name] != EMPTY:
            raise RuleBroken(f"The off arm has a {name}; it must be empty text.")


def component_hash(component: Component) -> str:
    """The digest of one component: of text and bytes that of the bytes, of a structure that of the object.

    Raises:
        ArmError: `bad_record` for anything else, for text that is not Unicode and for a structure whose
            digest would depend on who writes it.
    """
    try:
        if isinstance(component, str):
            return digest_text(component)
        if isinstance(component, bytes):
            return digest_bytes(component)
        if isinstance(component, dict | list):
            check_portable(component)
            return digest_object(component)
    except EvidenceError as error:
        raise bad_record("component", error) from error
    raise ArmError(ArmCode.BAD_RECORD, "", "a component is a text, bytes, or a JSON object or array.")


def freeze_manifest(
    fs: FileSystem,
    template_ref: str,
    components: Mapping[str, Component],
    *,
    declared: ArmTemplate | None = None,
    selection: VerifiedSelection | None = None,
) -> ArmManifest:
    """Freeze one arm.

    Args:
        fs: file operations; the committed template is read anew.
        template_ref: which committed template, such as `arms/S1.json`.
        components: the content of every component of the registry, by name.
        declared: the template that the caller worked from; it must be the committed one.
        selection: for an active control alone: the record of its blind selection and measurement, handed in
            by the room that has verified the files behind it (controls.md section 6).

    Raises:
        ArmError: `template_unknown`, `template_changed`, `unallowlisted_diff` (the declared template has a
            wider difference), `registry_mismatch` (of another registry), `bad_record` (missing, unknown or
            unusable component), `off_not_empty`, `control_selection`.
        ProtocolError: `fixture_invalid` when the committed template is not usable.
    """
    template = load_template(fs, template_ref)
    if declared is not None:
        check_declared(template, declared)
    if selection is not None:
        template = _with_selection(template, selection)
    digests = _digests(template.rules, components)
    _check_components(template, digests)
    fields = to_json(template)
    manifest: dict[str, object] = {
        **fields,
        "template_hash": digest_object(fields),
        "component_hashes": digests,
    }
    return parse_manifest({**manifest, "manifest_hash": digest_object(manifest)})


def check_declared(committed: ArmTemplate, declared: ArmTemplate) -> None:
    """Demand that a caller's template is the committed one.

    Raises:
        ArmError: `registry_mismatch`, `unallowlisted_diff`, `template_changed`.
    """
    if declared.registry_schema is not committed.registry_schema:
        sentence = "the declared template is of another registry than the committed one; use that one."
        raise ArmError(ArmCode.REGISTRY_MISMATCH, "/registry_schema", sentence)
    allowed = {str(name) for name in committed.allowlisted_diff}
    for component in declared.allowlisted_diff:
        name = str(component)
        if name not in allowed:
            sentence = (
                f"{ArmCode.UNALLOWLISTED_DIFF}:{name}: the declared template has a wider difference than the "
                "committed one; use that one."
            )
            raise ArmError(ArmCode.UNALLOWLISTED_DIFF, name, sentence)
    ours, theirs = to_json(committed), to_json(declared)
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            sentence = f"{name} of the declared template is not that of the committed one; use that one."
            raise ArmError(ArmCode.TEMPLATE_CHANGED, f"/{name}", sentence)


def _with_selection(template: ArmTemplate, selection: VerifiedSelection) -> SkillContentTemplate:
    """The template of an active control with its selection in the place of the pending one."""
    if not isinstance(template, SkillContentTemplate) or not isinstance(
        template.active_control_selection, PendingSelection
    ):
        sentence = "a selection belongs to an active control, and this arm is none; leave it out."
        raise ArmError(ArmCode.CONTROL_SELECTION, "/active_control_selection", sentence)
    if selection.selected_scope is not template.scope:
        sentence = "the selected content is that of another scope; freeze the arm of that scope."
        raise ArmError(ArmCode.CONTROL_SELECTION, "/active_control_selection/selected_scope", sentence)
    return template.model_copy(update={"active_control_selection": selection})


def _digests(rules: RegistryRules, components: Mapping[str, Component]) -> dict[str, str]:
    given = set(components)
    for name in sorted(given - set(rules.components)):
        sentence = f"the registry {rules.schema} has no component {printable(name[:64])}; take it out."
        raise ArmError(ArmCode.BAD_RECORD, f"/{printable(name[:64])}", sentence)
    digests = {}
    for name in rules.components:
        if name not in given:
            raise ArmError(ArmCode.BAD_RECORD, f"/{name}", f"the component {name} is missing; add it.")
        try:
            digests[str(name)] = component_hash(components[name])
        except ArmError as error:
            raise ArmError(error.code, f"/{name}{error.where}", f"{name}: {error.sentence}") from error
    return digests


def _check_components(template: ArmTemplate, digests: Mapping[str, str]) -> None:
    """What the manifest's own rules say, with the code of each."""
    try:
        check_off_is_empty(template.rules, digests, is_off=template.is_off)
    except RuleBroken as broken:
        raise ArmError(ArmCode.OFF_NOT_EMPTY, template.arm_id, str(broken)) from broken
    if not isinstance(template, SkillContentTemplate):
        return
    chosen = template.active_control_selection
    if isinstance(chosen, VerifiedSelection) and chosen.selected_scope_content_hash != digests["ccl_layer"]:
        sentence = "the ccl_layer is not the selected content of this scope; give exactly that content."
        raise ArmError(ArmCode.CONTROL_SELECTION, "/component_hashes/ccl_layer", sentence)


def parse_manifest(value: object) -> ArmManifest:
    """A manifest that was frozen earlier, with both of its hashes recomputed.

    Raises:
        ArmError: `bad_record`, `registry_mismatch` (the arm id is a treatment word), `hash_mismatch`.
    """
    model: type[ArmManifest] = SkillContentManifest
    if isinstance(value, dict):
        refuse_treatment_word(value.get("arm_id"))
        if "registry_schema" in value:
            model = ProfileManifest
    manifest: ArmManifest
    try:
        manifest = validate(model, value)
    except EvidenceError as error:
        raise bad_record("arm manifest", error) from error
    _check_hash("template_hash", manifest.template_hash, to_json(manifest.template))
    body = to_json(manifest)
    del body["manifest_hash"]
    _check_hash("manifest_hash", manifest.manifest_hash, body)
    return manifest


def _check_hash(field: str, stated: str, value: object) -> None:
    if digest_object(value) != stated:
        sentence = (
            f"{field} is not the hash of this manifest's own fields; it was changed, so freeze the arm again."
        )
        raise ArmError(ArmCode.HASH_MISMATCH, f"/{field}", sentence)


def difference_faults(off: ArmManifest, arm: ArmManifest) -> tuple[str, ...]:
    """How an arm differs from its off arm other than its treatment says, in the order of the components.

    Returns:
        `unallowlisted_diff:<component>` for a difference too many,
        `allowlisted_diff_not_realized:<component>` for one that is missing; empty when the arm is what it
        says.

    Raises:
        ArmError: `registry_mismatch` when the two cannot be compared: another registry, another scope, or the
            first is no off arm.
    """
    if off.registry_schema is not arm.registry_schema or off.scope is not arm.scope or not off.is_off:
        sentence = (
            f"{arm.arm_id} is compared with the off arm of its own registry and scope, and {off.arm_id} is "
            "not that one."
        )
        raise ArmError(ArmCode.REGISTRY_MISMATCH, arm.arm_id, sentence)
    allowed = arm.rules.allowlist[arm.treatment]
    without, with_it = off.component_hashes.by_name(), arm.component_hashes.by_name()
    faults = []
    for name in arm.rules.components:
        differs = without[name] != with_it[name]
        if differs and name not in allowed:
            faults.append(f"{ArmCode.UNALLOWLISTED_DIFF}:{name}")
        elif not differs and name in allowed:
            faults.append(f"{ArmCode.ALLOWLISTED_DIFF_NOT_REALIZED}:{name}")
    return tuple(faults)
