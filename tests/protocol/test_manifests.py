from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.arm_errors import ArmCode, ArmError
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.manifests import (
    EMPTY,
    SkillContentManifest,
    component_hash,
    difference_faults,
    freeze_manifest,
    parse_manifest,
)
from skill_effectiveness.protocol.registries import RULES, RegistrySchema
from skill_effectiveness.protocol.templates import load_template, parse_template, template_hash
from tests.support.arms import (
    FULL,
    GUIDANCE,
    OFF,
    ORACLE,
    PROFILE_ARMS,
    profile_arm,
    skill_arm,
    verified_selection,
)

SKILL_COMPONENTS = RULES[RegistrySchema.SKILL_CONTENT].components
PROFILE_COMPONENTS = RULES[RegistrySchema.PAIRED_PROFILE].components


def text_digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def object_digest(value: object) -> str:
    """All numbers and names of these objects are spelled alike by Python and RFC 8785."""
    return text_digest(json.dumps(value, sort_keys=True, separators=(",", ":")))


def refused(ref: str, content: dict[str, Any], **others: Any) -> ArmError:  # noqa: ANN401 - as freezing takes them
    with pytest.raises(ArmError) as caught:
        freeze_manifest(RealFs(), ref, content, **others)
    return caught.value


def unreadable(value: object) -> ArmError:
    with pytest.raises(ArmError) as caught:
        parse_manifest(value)
    return caught.value


def rehashed(document: dict[str, Any]) -> dict[str, Any]:
    """The document under hashes of its own, as somebody who edits it would write."""
    hashes = ("template_hash", "component_hashes", "manifest_hash")
    template = {name: value for name, value in document.items() if name not in hashes}
    body = template | {
        "template_hash": object_digest(template),
        "component_hashes": document["component_hashes"],
    }
    return body | {"manifest_hash": object_digest(body)}


class TestComponentHash:
    def test_text_and_bytes_are_hashed_as_they_are(self) -> None:
        """T1: the digest of a component that is text or bytes."""
        assert component_hash("Läs först.\n") == text_digest("Läs först.\n")
        assert component_hash(b"\xff\x00") == "sha256:" + hashlib.sha256(b"\xff\x00").hexdigest()
        assert component_hash("") == component_hash(b"") == EMPTY
        # echo -n | sha256sum
        assert EMPTY == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    def test_a_structure_is_hashed_as_an_object(self) -> None:
        """T1: the digest of a component that is a structure does not depend on its layout."""
        assert component_hash({"b": [1, None], "a": "x"}) == text_digest('{"a":"x","b":[1,null]}')
        assert component_hash([]) == text_digest("[]")
        assert component_hash({}) != EMPTY

    @pytest.mark.parametrize(
        "value", [None, 1, True, 1.5, ("a",), {"a": 1.0}, {"a": {1: 2}}, [float("nan")], "\ud800"]
    )
    def test_anything_else_is_refused(self, value: Any) -> None:  # noqa: ANN401 - any value
        with pytest.raises(ArmError) as caught:
            component_hash(value)
        assert caught.value.code is ArmCode.BAD_RECORD


class TestFreezing:
    def test_a_manifest_is_the_template_and_the_hashes(self) -> None:
        """T1: fields and hashes of a manifest."""
        document = to_json(skill_arm("S1"))
        template = to_json(load_template(RealFs(), "arms/S1.json"))
        assert document == template | {
            "template_hash": object_digest(template),
            "component_hashes": {
                "system_prompt": text_digest("You mend a small program.\n"),
                "bootstrap": EMPTY,
                "skill_inventory": text_digest('{"skills":["mend"]}'),
                "tool_schema": text_digest('{"tools":["read","write"]}'),
                "hook_command_config": text_digest('{"hooks":[]}'),
                "repo_instructions": text_digest("Keep lines short.\n"),
                "ccl_layer": text_digest("Read before you write.\n"),
            },
            "manifest_hash": document["manifest_hash"],
        }
        body = {name: value for name, value in document.items() if name != "manifest_hash"}
        assert document["manifest_hash"] == object_digest(body)

    def test_a_profile_manifest_too(self) -> None:
        """T1: fields and hashes of a manifest of the paired-profile registry."""
        document = to_json(profile_arm("full"))
        assert document["registry_schema"] == "paired-profile"
        assert document["component_hashes"] == {
            name: text_digest(content) if isinstance(content, str) else object_digest(content)
            for name, content in PROFILE_ARMS["full"].items()
        }

    def test_the_template_can_be_had_back(self) -> None:
        for manifest, ref in (
            (skill_arm("S1"), "arms/S1.json"),
            (profile_arm("full"), "arms/profile/profile-full.json"),
        ):
            assert manifest.template == load_template(RealFs(), ref)
            assert template_hash(manifest.template) == manifest.template_hash

    @pytest.mark.parametrize("name", SKILL_COMPONENTS)
    def test_every_component_is_needed(self, name: str) -> None:
        """T1: each component of the skill-content registry."""
        error = refused("arms/S2.json", {key: value for key, value in FULL.items() if key != name})
        assert (error.code, error.where) == (ArmCode.BAD_RECORD, f"/{name}")

    @pytest.mark.parametrize("name", PROFILE_COMPONENTS)
    def test_every_profile_component_is_needed(self, name: str) -> None:
        """T1: each component of the paired-profile registry."""
        content = {key: value for key, value in PROFILE_ARMS["full"].items() if key != name}
        error = refused("arms/profile/profile-full.json", content)
        assert (error.code, error.where) == (ArmCode.BAD_RECORD, f"/{name}")

    def test_no_other_component_is_known(self) -> None:
        """T1: a component of the other registry, or of none."""
        for ref, content, name in (
            ("arms/S2.json", FULL, "profile_payload"),
            ("arms/profile/profile-full.json", PROFILE_ARMS["full"], "ccl_layer"),
            ("arms/S2.json", FULL, "\x1b[2J"),
        ):
            error = refused(ref, {**content, name: ""})
            assert error.code is ArmCode.BAD_RECORD
            assert "\x1b" not in str(error)

    def test_a_useless_component_is_named(self) -> None:
        error = refused("arms/S2.json", {**FULL, "tool_schema": {"limit": 1.0}})
        assert (error.code, error.where) == (ArmCode.BAD_RECORD, "/tool_schema/limit")

    @pytest.mark.parametrize("name", ["bootstrap", "skill_inventory", "hook_command_config", "ccl_layer"])
    @pytest.mark.parametrize("arm", ["S0", "M0"])
    def test_an_off_arm_holds_nothing_of_the_treatment(self, arm: str, name: str) -> None:
        """T1: each part that an off arm leaves empty; a structure without members is not empty text."""
        for content in ("x", " ", {}, []):
            error = refused(f"arms/{arm}.json", {**OFF, name: content})
            assert (error.code, error.where) == (ArmCode.OFF_NOT_EMPTY, arm)
            assert name in error.sentence
        assert freeze_manifest(RealFs(), f"arms/{arm}.json", {**OFF, name: b""}).is_off

    def test_an_off_profile_is_the_built_in_one_and_may_hold_something(self) -> None:
        assert profile_arm("off", profile_payload={"skills": ["built-in"]}).is_off

    def test_the_committed_template_counts_whatever_is_declared(self) -> None:
        """T1: freezing reads the committed template by itself and refuses a wider declared one."""
        declared = load_template(RealFs(), "arms/S1.json")
        manifest = freeze_manifest(RealFs(), "arms/S1.json", ORACLE, declared=declared)
        assert manifest == skill_arm("S1")
        wider = load_template(RealFs(), "arms/S2.json")
        error = refused("arms/S1.json", ORACLE, declared=wider)
        assert (error.code, error.where) == (ArmCode.UNALLOWLISTED_DIFF, "bootstrap")

    def test_another_declared_template_is_refused(self) -> None:
        for ref, declared, code in (
            ("arms/S2.json", "arms/S1.json", ArmCode.TEMPLATE_CHANGED),
            ("arms/S1.json", "arms/M1.json", ArmCode.TEMPLATE_CHANGED),
            ("arms/S1.json", "arms/profile/profile-full.json", ArmCode.REGISTRY_MISMATCH),
            ("arms/S1.json", "arms/S0.json", ArmCode.TEMPLATE_CHANGED),
        ):
            error = refused(ref, FULL, declared=load_template(RealFs(), declared))
            assert error.code is code

    def test_a_declared_template_of_another_name_is_refused(self) -> None:
        document = to_json(load_template(RealFs(), "arms/S1.json"))
        error = refused("arms/S1.json", ORACLE, declared=parse_template(document | {"arm_id": "X1"}))
        assert (error.code, error.where) == (ArmCode.TEMPLATE_CHANGED, "/arm_id")


class TestActiveControl:
    def test_a_pending_one_is_frozen_as_pending(self) -> None:
        manifest = skill_arm("Sg")
        assert not manifest.runnable
        assert to_json(manifest)["active_control_selection"]["status"] == "pending"  # type: ignore[index,call-overload]

    def test_a_selection_takes_the_place_of_the_pending_one(self) -> None:
        """A13: the verified form binds scope and content, and the arm still does not run."""
        selection = verified_selection()
        manifest = freeze_manifest(RealFs(), "arms/Sg.json", ORACLE, selection=selection)
        assert isinstance(manifest, SkillContentManifest)
        assert manifest.active_control_selection == selection
        assert not manifest.runnable
        assert manifest.template_hash == template_hash(manifest.template)
        assert manifest.manifest_hash != skill_arm("Sg").manifest_hash
        assert parse_manifest(to_json(manifest)) == manifest

    def test_the_layer_is_the_selected_content(self) -> None:
        """A13: another layer than the selected content."""
        error = refused(
            "arms/Sg.json",
            {**ORACLE, "ccl_layer": "Read before you write."},
            selection=verified_selection(),
        )
        assert (error.code, error.where) == (ArmCode.CONTROL_SELECTION, "/component_hashes/ccl_layer")

    def test_the_scope_is_that_of_the_arm(self) -> None:
        """A13: content that was selected for another scope."""
        error = refused("arms/Mg.json", ORACLE, selection=verified_selection())
        assert error.code is ArmCode.CONTROL_SELECTION

    @pytest.mark.parametrize("ref", ["arms/S0.json", "arms/S1.json", "arms/profile/profile-full.json"])
    def test_no_other_arm_takes_one(self, ref: str) -> None:
        content = PROFILE_ARMS["full"] if "profile" in ref else OFF if ref.endswith("S0.json") else ORACLE
        assert refused(ref, content, selection=verified_selection()).code is ArmCode.CONTROL_SELECTION

    def test_a_manifest_that_says_it_runs_is_refused(self) -> None:
        """A13: a control edited to run, under hashes of its own."""
        for document in (
            to_json(skill_arm("Sg")),
            to_json(freeze_manifest(RealFs(), "arms/Sg.json", ORACLE, selection=verified_selection())),
        ):
            assert unreadable(rehashed(document | {"runnable": True})).code is ArmCode.BAD_RECORD

    def test_a_manifest_whose_layer_was_exchanged_is_refused(self) -> None:
        """A13: the digest of the layer is the selected one also when a manifest is read again."""
        document = to_json(freeze_manifest(RealFs(), "arms/Sg.json", ORACLE, selection=verified_selection()))
        exchanged = document | {"component_hashes": {**document["component_hashes"], "ccl_layer": EMPTY}}  # type: ignore[dict-item]
        assert unreadable(rehashed(exchanged)).code is ArmCode.BAD_RECORD

    @pytest.mark.parametrize(
        "extra",
        [
            {"matched_call_evidence": {"status": "matched-call-contract-declared-no-observation"}},
            {"matched_call_gate_satisfied": False},
            {"observation_status": "none-fixtures-only"},
            {"gate_contract_hash": "sha256:" + 64 * "e"},
            {"active_control_selection": {"status": "matched-call-contract-declared-no-observation"}},
        ],
    )
    def test_a_matched_call_artifact_or_status_is_refused(self, extra: dict[str, Any]) -> None:
        """A14: nothing of a matched call stands in a manifest."""
        assert unreadable(rehashed(to_json(skill_arm("Sg")) | extra)).code is ArmCode.BAD_RECORD


class TestReading:
    @pytest.mark.parametrize(
        "manifest", [skill_arm("S0"), skill_arm("M2"), profile_arm("off")], ids=lambda m: m.arm_id
    )
    def test_a_manifest_reads_as_itself(self, manifest: Any) -> None:  # noqa: ANN401 - either kind
        assert parse_manifest(json.loads(json.dumps(to_json(manifest)))) == manifest

    @pytest.mark.parametrize("value", [None, [], 0, {}, {"registry_schema": "paired-profile"}])
    def test_something_else_is_refused(self, value: object) -> None:
        assert unreadable(value).code is ArmCode.BAD_RECORD

    def test_fields_are_exact(self) -> None:
        """T1: no field of a manifest may be missing, none is added."""
        for manifest in (skill_arm("S2"), profile_arm("full")):
            document = to_json(manifest)
            for name in document:
                without = {key: value for key, value in document.items() if key != name}
                assert isinstance(unreadable(without), ArmError)
            assert unreadable(document | {"more": 1}).code is ArmCode.BAD_RECORD

    @pytest.mark.parametrize("field", ["template_hash", "manifest_hash"])
    def test_a_hash_of_something_else_is_named(self, field: str) -> None:
        """T1: both hashes are recomputed."""
        for manifest in (skill_arm("S2"), profile_arm("full")):
            error = unreadable(to_json(manifest) | {field: "sha256:" + 64 * "0"})
            assert (error.code, error.where) == (ArmCode.HASH_MISMATCH, f"/{field}")

    def test_an_edited_field_is_found(self) -> None:
        document = to_json(skill_arm("S1"))
        assert unreadable(document | {"arm_id": "S7"}).where == "/template_hash"
        hashes = {**document["component_hashes"], "ccl_layer": EMPTY}  # type: ignore[dict-item]
        assert unreadable(document | {"component_hashes": hashes}).where == "/manifest_hash"

    def test_an_off_arm_with_content_is_refused(self) -> None:
        """T1: also when the manifest was made elsewhere, under hashes of its own."""
        document = to_json(skill_arm("S0"))
        hashes = {**document["component_hashes"], "ccl_layer": text_digest("x")}  # type: ignore[dict-item]
        assert unreadable(rehashed(document | {"component_hashes": hashes})).code is ArmCode.BAD_RECORD

    def test_an_arm_called_like_a_treatment_is_refused(self) -> None:
        document = to_json(profile_arm("full")) | {"arm_id": "full"}
        assert unreadable(rehashed(document)).code is ArmCode.REGISTRY_MISMATCH


class TestDifference:
    def test_the_arms_differ_as_their_treatments_say(self) -> None:
        """T3: nothing is found on arms that are what they say."""
        for arm in ("S0", "S1", "S2", "Sg"):
            assert difference_faults(skill_arm("S0"), skill_arm(arm)) == ()
        for arm in ("off", "full", "reference"):
            assert difference_faults(profile_arm("off"), profile_arm(arm)) == ()

    @pytest.mark.parametrize("name", ["system_prompt", "tool_schema", "repo_instructions"])
    def test_a_difference_too_many(self, name: str) -> None:
        """T3: one component that no treatment changes."""
        for arm in ("S1", "S2", "Sg"):
            assert difference_faults(skill_arm("S0"), skill_arm(arm, **{name: "other"})) == (
                f"unallowlisted_diff:{name}",
            )

    def test_an_oracle_has_no_bootstrap(self) -> None:
        """T3: what the full arm changes and the oracle must not."""
        assert difference_faults(skill_arm("S0"), skill_arm("S1", bootstrap="x")) == (
            "unallowlisted_diff:bootstrap",
        )

    @pytest.mark.parametrize("name", GUIDANCE)
    def test_a_difference_that_is_missing(self, name: str) -> None:
        """T3: one component that the treatment changes and that is the same."""
        for arm in ("S1", "S2", "Sg"):
            assert difference_faults(skill_arm("S0"), skill_arm(arm, **{name: ""})) == (
                f"allowlisted_diff_not_realized:{name}",
            )

    @pytest.mark.parametrize("name", [name for name in PROFILE_COMPONENTS if name != "profile_payload"])
    def test_everything_but_the_payload_is_equal_across_a_pair(self, name: str) -> None:
        """T1 T3: each component that a profile registry pins."""
        for arm in ("full", "reference"):
            assert difference_faults(profile_arm("off"), profile_arm(arm, **{name: "other"})) == (
                f"unallowlisted_diff:{name}",
            )

    def test_a_payload_that_is_the_built_in_one(self) -> None:
        """T3: the candidate is the same as the off arm."""
        assert difference_faults(profile_arm("off"), profile_arm("full", profile_payload="")) == (
            "allowlisted_diff_not_realized:profile_payload",
        )

    def test_all_faults_are_told_in_the_order_of_the_components(self) -> None:
        """T3: both directions at once."""
        found = difference_faults(
            skill_arm("S0"), skill_arm("S2", system_prompt="o", bootstrap="", ccl_layer="")
        )
        assert found == (
            "unallowlisted_diff:system_prompt",
            "allowlisted_diff_not_realized:bootstrap",
            "allowlisted_diff_not_realized:ccl_layer",
        )

    def test_arms_that_cannot_be_compared(self) -> None:
        for off, arm in (
            (skill_arm("M0"), skill_arm("S1")),
            (skill_arm("S1"), skill_arm("S2")),
            (profile_arm("off"), skill_arm("M2")),
            (profile_arm("full"), profile_arm("off")),
        ):
            with pytest.raises(ArmError) as caught:
                difference_faults(off, arm)
            assert caught.value.code is ArmCode.REGISTRY_MISMATCH

    @given(st.sets(st.sampled_from(SKILL_COMPONENTS)))
    def test_each_component_is_judged_alone(self, changed: set[str]) -> None:
        """T3: any set of differences gives exactly the faults of its members."""
        content = {name: "other" if name in changed else OFF[name] for name in SKILL_COMPONENTS}
        found = difference_faults(skill_arm("S0"), skill_arm("S1", **content))
        wanted = {"skill_inventory", "hook_command_config", "ccl_layer"}
        assert set(found) == {f"unallowlisted_diff:{name}" for name in changed - wanted} | {
            f"allowlisted_diff_not_realized:{name}" for name in wanted - changed
        }
