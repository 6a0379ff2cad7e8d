from __future__ import annotations

import hashlib
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.canonical import dump_line
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.protocol.arm_errors import ArmCode, ArmError
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.registry_plan import (
    ProfilePlan,
    SkillContentPlan,
    build_plan,
    check_plan,
    parse_plan,
)
from tests.support.arms import profile_arm, profile_arms, skill_arm, skill_arms
from tests.support.examinations import open_out

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skill_effectiveness.protocol.manifests import ArmManifest


def object_digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def refused(manifests: Sequence[ArmManifest]) -> ArmError:
    with pytest.raises(ArmError) as caught:
        build_plan(manifests)
    return caught.value


def unreadable(value: object) -> ArmError:
    with pytest.raises(ArmError) as caught:
        parse_plan(value)
    return caught.value


class TestForm:
    def test_skill_content(self) -> None:
        """T1: fields and hashes of a plan of the skill-content registry."""
        hashes = {arm.arm_id: arm.manifest_hash for arm in skill_arms()}
        registry = {"schema_version": 1, "arm_manifest_hashes": hashes}
        body = registry | {
            "artifact_contract": "skill-effectiveness-arm-registry-plan-v1",
            "arm_registry_hash": object_digest(registry),
        }
        plan = build_plan(skill_arms())
        assert to_json(plan) == body | {"plan_hash": object_digest(body)}
        assert isinstance(plan, SkillContentPlan)
        assert plan.registry_schema == "skill-content"

    def test_paired_profile(self) -> None:
        """T1: the registry is part of both hashes of a plan of profiles."""
        hashes = {arm.arm_id: arm.manifest_hash for arm in profile_arms()}
        registry = {"schema_version": 1, "registry_schema": "paired-profile", "arm_manifest_hashes": hashes}
        body = registry | {
            "artifact_contract": "skill-effectiveness-profile-arm-registry-plan-v1",
            "arm_registry_hash": object_digest(registry),
        }
        plan = build_plan(profile_arms())
        assert to_json(plan) == body | {"plan_hash": object_digest(body)}
        assert isinstance(plan, ProfilePlan)

    def test_the_order_of_the_arms_does_not_matter(self) -> None:
        plans = {build_plan(order).plan_hash for order in itertools.permutations(skill_arms())}
        assert len(plans) == 1

    def test_it_contains_its_arms_and_no_other(self) -> None:
        arms = skill_arms()
        plan = build_plan(arms)
        assert all(plan.contains(arm.arm_id, arm.manifest_hash) for arm in arms)
        assert not plan.contains("S1", arms[2].manifest_hash)
        assert not plan.contains("S1", skill_arm("S1", ccl_layer="other").manifest_hash)
        assert not plan.contains("M1", arms[1].manifest_hash)


class TestWhole:
    def test_what_a_registry_needs(self) -> None:
        """T1: each complete set of arms, of one scope or both, with and without a reference."""
        assert len(build_plan(skill_arms("M")).manifest_hashes) == 3
        assert len(build_plan([*skill_arms("S"), *skill_arms("M")]).manifest_hashes) == 6
        assert len(build_plan(profile_arms("off", "full", "reference")).manifest_hashes) == 3

    @pytest.mark.parametrize("missing", [0, 1, 2])
    def test_no_part_of_skill_content_is_a_plan(self, missing: int) -> None:
        """T1 T4: each arm missing, in the first scope and in the second."""
        part = [arm for index, arm in enumerate(skill_arms()) if index != missing]
        assert refused(part).code is ArmCode.PLAN_INCOMPLETE
        assert refused([*part, *skill_arms("M")]).code is ArmCode.PLAN_INCOMPLETE

    @pytest.mark.parametrize("names", [("off",), ("full",), ("off", "reference"), ("full", "reference")])
    def test_no_part_of_profiles_is_a_plan(self, names: tuple[str, ...]) -> None:
        """T1 T4: each arm missing."""
        assert refused(profile_arms(*names)).code is ArmCode.PLAN_INCOMPLETE

    def test_nothing_is_no_plan(self) -> None:
        """T4: no arm at all."""
        assert refused([]).code is ArmCode.PLAN_INCOMPLETE

    def test_the_registries_are_never_mixed(self) -> None:
        """T1 T4: two whole registries in one plan, and one stray arm."""
        assert refused([*skill_arms("M"), *profile_arms()]).code is ArmCode.REGISTRY_MISMATCH
        assert refused([*skill_arms("M"), profile_arm("reference")]).code is ArmCode.REGISTRY_MISMATCH

    def test_an_arm_twice(self) -> None:
        """T1 T4: the same arm twice, with the same content and with another."""
        for arms, again in (
            (skill_arms(), skill_arm("S2")),
            (skill_arms(), skill_arm("S2", ccl_layer="other")),
            (profile_arms(), profile_arm("full")),
            (profile_arms(), profile_arm("off")),
            (profile_arms("off", "full", "reference"), profile_arm("reference", profile_payload="other")),
        ):
            assert refused([*arms, again]).code is ArmCode.PLAN_INCOMPLETE

    def test_profiles_are_of_one_scope(self) -> None:
        """T1 T4: profiles for two scopes."""
        stray = profile_arm("reference").model_copy(update={"scope": skill_arm("S0").scope})
        assert refused([*profile_arms(), stray]).code is ArmCode.REGISTRY_MISMATCH

    def test_an_active_control_is_not_planned(self) -> None:
        """A13: an arm that may not run is in no plan."""
        error = refused([*skill_arms(), skill_arm("Sg")])
        assert (error.code, error.where) == (ArmCode.NOT_RUNNABLE, "Sg")

    def test_two_arms_of_one_treatment_under_two_names(self) -> None:
        """T1: one arm of each treatment in a scope."""
        second = skill_arm("S2").model_copy(update={"arm_id": "S3"})
        assert refused([*skill_arms(), second]).code is ArmCode.PLAN_INCOMPLETE


class TestDifferences:
    def test_a_difference_too_many(self) -> None:
        """T3 T4: an arm that differs elsewhere is in no plan."""
        off, oracle, _ = skill_arms()
        error = refused([off, oracle, skill_arm("S2", tool_schema={})])
        assert (error.code, error.where) == (ArmCode.UNALLOWLISTED_DIFF, "S2/tool_schema")
        assert "unallowlisted_diff:tool_schema" in str(error)

    def test_a_difference_that_is_missing(self) -> None:
        """T3 T4: an arm that is not treated is in no plan."""
        error = refused([profile_arm("off"), profile_arm("full", profile_payload="")])
        assert (error.code, error.where) == (
            ArmCode.ALLOWLISTED_DIFF_NOT_REALIZED,
            "profile-full/profile_payload",
        )

    def test_each_scope_has_its_own_off_arm(self) -> None:
        main = [skill_arm(f"M{number}", system_prompt="Another host.\n") for number in "012"]
        assert build_plan([*skill_arms(), *main])


class TestReading:
    @pytest.mark.parametrize("arms", [skill_arms(), profile_arms()], ids=["skills", "profiles"])
    def test_a_plan_reads_as_itself(self, arms: list[ArmManifest]) -> None:
        plan = build_plan(arms)
        assert parse_plan(json.loads(json.dumps(to_json(plan)))) == plan
        check_plan(plan, arms)

    @pytest.mark.parametrize("arms", [skill_arms(), profile_arms()], ids=["skills", "profiles"])
    def test_fields_are_exact(self, arms: list[ArmManifest]) -> None:
        """T1: no field of a plan may be missing, none is added."""
        document = to_json(build_plan(arms))
        for name in document:
            unreadable({key: value for key, value in document.items() if key != name})
        assert unreadable(document | {"tier": "causal"}).code is ArmCode.BAD_RECORD

    @pytest.mark.parametrize("field", ["arm_registry_hash", "plan_hash"])
    def test_a_hash_of_something_else_is_named(self, field: str) -> None:
        """T1: both hashes are recomputed."""
        document = to_json(build_plan(skill_arms()))
        error = unreadable(document | {field: "sha256:" + 64 * "0"})
        assert (error.code, error.where) == (ArmCode.HASH_MISMATCH, f"/{field}")

    def test_a_plan_cut_down_is_refused(self) -> None:
        """T4: a plan from which an arm was taken, under hashes of its own."""
        for arms in (skill_arms(), profile_arms()):
            document: dict[str, Any] = to_json(build_plan(arms))
            document["arm_manifest_hashes"].popitem()
            kept = ("schema_version", "registry_schema", "arm_manifest_hashes")
            registry = {name: document[name] for name in kept if name in document}
            document["arm_registry_hash"] = object_digest(registry)
            del document["plan_hash"]
            assert unreadable(document | {"plan_hash": object_digest(document)}).code is ArmCode.BAD_RECORD

    def test_the_other_contract_is_refused(self) -> None:
        """T4: a plan that claims the other registry."""
        skills, profiles = to_json(build_plan(skill_arms())), to_json(build_plan(profile_arms()))
        assert unreadable(skills | {"registry_schema": "paired-profile"}).code is ArmCode.BAD_RECORD
        assert (
            unreadable(skills | {"artifact_contract": profiles["artifact_contract"]}).code
            is ArmCode.BAD_RECORD
        )
        del profiles["registry_schema"]
        assert unreadable(profiles).code is ArmCode.BAD_RECORD

    @pytest.mark.parametrize("value", [None, [], "plan", {}])
    def test_something_else_is_refused(self, value: object) -> None:
        assert unreadable(value).code is ArmCode.BAD_RECORD

    def test_a_plan_of_other_arms(self) -> None:
        """T4: the arms must be those of the plan, all of them."""
        plan = build_plan(skill_arms())
        others = [skill_arm("S0"), skill_arm("S1"), skill_arm("S2", ccl_layer="other")]
        with pytest.raises(ArmError) as caught:
            check_plan(plan, others)
        assert caught.value.code is ArmCode.HASH_MISMATCH


class TestPublishing:
    def test_once_with_one_content(self, tmp_path: Path) -> None:
        """T4: the same plan again changes nothing, another one is refused."""
        first = dump_line(to_json(build_plan(profile_arms())))
        second = dump_line(to_json(build_plan(profile_arms("off", "full", "reference"))))
        with open_out(tmp_path) as out:
            out.publish("arm-registry-plan.json", first)
            out.publish("arm-registry-plan.json", first)
            with pytest.raises(FileError) as caught:
                out.publish("arm-registry-plan.json", second)
            assert caught.value.code is FileCode.EXISTS_DIFFERENT
            assert out.read("arm-registry-plan.json") == first
