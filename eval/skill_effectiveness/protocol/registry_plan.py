"""The plan of a registry: which frozen arms belong together (trials.md section 1).

A plan names its arms by the hashes of their manifests and says nothing else about them, so that it can be
published before anything runs. It is whole or it is none: every scope has the arms its registry needs, each
of them differs from its off arm exactly as its treatment says, and no arm of the other registry is in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.arm_errors import ArmCode, ArmError, bad_record
from skill_effectiveness.protocol.document import DigestText, FrozenModel, One, to_json
from skill_effectiveness.protocol.manifests import difference_faults
from skill_effectiveness.protocol.registries import RULES, ArmId, RegistryRules, RegistrySchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skill_effectiveness.protocol.manifests import ArmManifest
    from skill_effectiveness.protocol.registries import Scope


class _Plan(FrozenModel):
    """What both contracts have in common."""

    schema_version: One
    arm_registry_hash: DigestText
    plan_hash: DigestText

    def contains(self, arm_id: str, manifest_hash: str) -> bool:
        """Whether exactly this manifest of the arm belongs to the plan."""
        return self.manifest_hashes.get(arm_id) == manifest_hash

    @property
    def manifest_hashes(self) -> Mapping[str, str]:
        """Manifest hash by arm id."""
        hashes: Mapping[str, str] = self.model_dump()["arm_manifest_hashes"]
        return hashes


class SkillContentPlan(_Plan):
    """A plan of the skill-content registry: off, oracle and full of one scope or of both."""

    artifact_contract: Literal["skill-effectiveness-arm-registry-plan-v1"]
    arm_manifest_hashes: Annotated[dict[ArmId, DigestText], Field(min_length=3, max_length=6)]

    @property
    def registry_schema(self) -> RegistrySchema:
        """The registry of the plan."""
        return RegistrySchema.SKILL_CONTENT


class ProfilePlan(_Plan):
    """A plan of the paired-profile registry: off, full and perhaps a reference, of one scope."""

    artifact_contract: Literal["skill-effectiveness-profile-arm-registry-plan-v1"]
    registry_schema: Literal[RegistrySchema.PAIRED_PROFILE]
    arm_manifest_hashes: Annotated[dict[ArmId, DigestText], Field(min_length=2, max_length=3)]


ArmRegistryPlan: TypeAlias = SkillContentPlan | ProfilePlan


def build_plan(manifests: Sequence[ArmManifest]) -> ArmRegistryPlan:
    """The plan of these arms; their order does not matter.

    Raises:
        ArmError: `registry_mismatch` (two registries, or more scopes than a plan may have), `not_runnable`,
            `plan_incomplete` (an arm missing, twice, or none at all), `unallowlisted_diff`,
            `allowlisted_diff_not_realized`.
    """
    rules = _common_rules(manifests)
    _check_runnable(manifests)
    by_scope: dict[Scope, list[ArmManifest]] = defaultdict(list)
    for manifest in manifests:
        by_scope[manifest.scope].append(manifest)
    if len(by_scope) > rules.most_scopes:
        sentence = "the arms of this registry are all of one scope; plan one scope at a time."
        raise ArmError(ArmCode.REGISTRY_MISMATCH, "scope", sentence)
    for scope, arms in by_scope.items():
        _check_whole(rules, scope, arms)
        _check_differences(arms)
    return parse_plan(_document(rules, manifests))


def check_plan(plan: ArmRegistryPlan, manifests: Sequence[ArmManifest]) -> None:
    """Demand that these arms, all of them and no others, are those of the plan.

    Raises:
        ArmError: as `build_plan`; `hash_mismatch` when their plan is another one.
    """
    if build_plan(manifests) != plan:
        sentence = (
            "the plan was made from other arms than these; give exactly the manifests it was made from."
        )
        raise ArmError(ArmCode.HASH_MISMATCH, "/plan_hash", sentence)


def parse_plan(value: object) -> ArmRegistryPlan:
    """A plan that was published earlier, with both of its hashes recomputed.

    Raises:
        ArmError: `bad_record`, `hash_mismatch`.
    """
    named = isinstance(value, dict) and "registry_schema" in value
    model: type[ArmRegistryPlan] = ProfilePlan if named else SkillContentPlan
    plan: ArmRegistryPlan
    try:
        plan = validate(model, value)
    except EvidenceError as error:
        raise bad_record("arm registry plan", error) from error
    _check_hash("arm_registry_hash", plan.arm_registry_hash, _registry(plan))
    body = to_json(plan)
    del body["plan_hash"]
    _check_hash("plan_hash", plan.plan_hash, body)
    return plan


def _document(rules: RegistryRules, manifests: Iterable[ArmManifest]) -> dict[str, object]:
    registry: dict[str, object] = {
        "schema_version": 1,
        "arm_manifest_hashes": {manifest.arm_id: manifest.manifest_hash for manifest in manifests},
    }
    if rules.schema is RegistrySchema.PAIRED_PROFILE:
        registry["registry_schema"] = str(rules.schema)
    body = registry | {
        "artifact_contract": rules.plan_contract,
        "arm_registry_hash": digest_object(registry),
    }
    return body | {"plan_hash": digest_object(body)}


def _registry(plan: ArmRegistryPlan) -> dict[str, object]:
    """What the registry hash is over."""
    kept = ("schema_version", "registry_schema", "arm_manifest_hashes")
    return {name: value for name, value in to_json(plan).items() if name in kept}


def _check_hash(field: str, stated: str, value: object) -> None:
    if digest_object(value) != stated:
        sentence = (
            f"{field} is not the hash of the plan's own fields; it was changed, so make the plan again."
        )
        raise ArmError(ArmCode.HASH_MISMATCH, f"/{field}", sentence)


def _common_rules(manifests: Sequence[ArmManifest]) -> RegistryRules:
    schemas = {manifest.registry_schema for manifest in manifests}
    if not schemas:
        raise ArmError(ArmCode.PLAN_INCOMPLETE, "", "a plan needs arms; give their manifests.")
    if len(schemas) > 1:
        sentence = "a plan never mixes arms of the two registries; make one plan for each."
        raise ArmError(ArmCode.REGISTRY_MISMATCH, "registry_schema", sentence)
    return RULES[schemas.pop()]


def _check_runnable(manifests: Iterable[ArmManifest]) -> None:
    for manifest in manifests:
        if not manifest.runnable:
            sentence = f"{manifest.arm_id} may not run (its opponent is not proven fair yet); leave it out."
            raise ArmError(ArmCode.NOT_RUNNABLE, manifest.arm_id, sentence)


def _check_whole(rules: RegistryRules, scope: Scope, arms: Sequence[ArmManifest]) -> None:
    for arm_id, times in Counter(arm.arm_id for arm in arms).items():
        if times > 1:
            raise ArmError(ArmCode.PLAN_INCOMPLETE, arm_id, f"the arm {arm_id} is given twice; give it once.")
    found = Counter(str(arm.treatment) for arm in arms)
    for treatment in rules.needed:
        if not found[str(treatment)]:
            sentence = (
                f"the scope {scope} has no {treatment} arm, and no part of a registry is a plan; add it."
            )
            raise ArmError(ArmCode.PLAN_INCOMPLETE, str(scope), sentence)
    for treatment in (*rules.needed, *rules.optional):
        if found[str(treatment)] > 1:
            sentence = f"the scope {scope} has more than one {treatment} arm; give one."
            raise ArmError(ArmCode.PLAN_INCOMPLETE, str(scope), sentence)


def _check_differences(arms: Sequence[ArmManifest]) -> None:
    """Hold every arm of one scope against its off arm."""
    (off,) = (arm for arm in arms if arm.is_off)
    for arm in arms:
        faults = difference_faults(off, arm)
        if faults:
            code, _, component = faults[0].partition(":")
            sentence = (
                f"{', '.join(faults)}: an arm differs from {off.arm_id} where its treatment says, only there."
            )
            raise ArmError(ArmCode(code), f"{arm.arm_id}/{component}", sentence)
