from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.arm_errors import ArmCode, ArmError
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.protocol.resources import frozen_folder
from skill_effectiveness.protocol.templates import (
    COMMITTED,
    PendingSelection,
    ProfileTemplate,
    SkillContentTemplate,
    committed_templates,
    load_template,
    parse_template,
    template_hash,
)
from tests.support.frozen import CopiedFs

if TYPE_CHECKING:
    from pathlib import Path

PINNED = {
    "arms/S0.json": "82af920b0ef4b5a18cfdb10f2f154b8481744e3a6dbd8426c40c357abe506a9b",
    "arms/S1.json": "89973ece05b6b161a042340ee21bc4a21840e2b6f01f1221ec604b928d726b48",
    "arms/S2.json": "dc6b56ebc6c77b098f0028621ca0851442a3493b7b982524a2df35b95508a766",
    "arms/Sg.json": "326fc4e7207752aa17f20063422dfb7b3c7dbaba9494c4bc9c45abfcf851c347",
    "arms/M0.json": "e1682edda74520c6a4fb82dc7f945e7ab278c72ecf7f332c2138f8f70de75c04",
    "arms/M1.json": "39b11058be817111d4e6b49d10eddb8095e5eb91b098ead776d152a0adce63cb",
    "arms/M2.json": "33867701dc27f394f46514fe59a67da8decb40e642b00e9081b426555fc8faf9",
    "arms/Mg.json": "e7cbd229b5ebe04b1ed610fffd6e1f7b65ff53c2cbc296d0b42cb5a4cc0d935a",
    "arms/profile/profile-off.json": "e65c2e083e51f38c709a4c4d5204258c18cf3476dfe1733c14142317b2043b6d",
    "arms/profile/profile-full.json": "21b65d073dca5ff1f3bcf2d740ca46248cdeae74d601cd53e1847cd70f8e56c3",
    "arms/profile/profile-reference.json": "72e337e736c122e078b2693b7cb654730daaac185bf87b86e64013dc7fe8b69b",
}
GUIDANCE = ["skill_inventory", "hook_command_config", "ccl_layer"]
D = "sha256:" + 64 * "a"


def committed(ref: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((frozen_folder() / ref).read_bytes())
    return document


def verified(scope: str = "subagent") -> dict[str, Any]:
    return {
        "status": "owner-relative-verified",
        "artifact_hash": D,
        "selected_package_hash": D,
        "selected_scope": scope,
        "selected_scope_content_hash": D,
        "owner_relative_measurement_hash": D,
        "owner_reference_hash": D,
        "owner_commitment_request_hash": D,
    }


def refused(value: object) -> ArmError:
    with pytest.raises(ArmError) as caught:
        parse_template(value)
    return caught.value


class TestCommitted:
    @pytest.mark.parametrize(("ref", "digest"), PINNED.items())
    def test_the_bytes_are_pinned(self, ref: str, digest: str) -> None:
        """T2: every committed template is pinned byte by byte."""
        assert hashlib.sha256((frozen_folder() / ref).read_bytes()).hexdigest() == digest

    def test_nothing_else_is_committed(self) -> None:
        """T2: there is no other template than the pinned ones."""
        found = {
            str(path.relative_to(frozen_folder())) for path in (frozen_folder() / "arms").rglob("*.json")
        }
        assert found == set(PINNED) == set(COMMITTED)

    def test_what_they_are(self) -> None:
        """T1: treatment, scope and difference of every committed arm."""
        found = {
            template.arm_id: (
                template.scope,
                template.treatment,
                list(template.allowlisted_diff),
                template.runnable,
            )
            for template in committed_templates(RealFs()).values()
        }
        assert found == {
            "S0": ("subagent", "off", [], True),
            "S1": ("subagent", "oracle", GUIDANCE, True),
            "S2": ("subagent", "full", ["bootstrap", *GUIDANCE], True),
            "Sg": ("subagent", "active_control", GUIDANCE, False),
            "M0": ("main", "off", [], True),
            "M1": ("main", "oracle", GUIDANCE, True),
            "M2": ("main", "full", ["bootstrap", *GUIDANCE], True),
            "Mg": ("main", "active_control", GUIDANCE, False),
            "profile-off": ("main", "off", [], True),
            "profile-full": ("main", "full", ["profile_payload"], True),
            "profile-reference": ("main", "reference", ["profile_payload"], True),
        }

    @pytest.mark.parametrize("arm", ["Sg", "Mg"])
    def test_the_active_controls_are_pending_and_do_not_run(self, arm: str) -> None:
        """A15: the committed active controls wait for their candidates."""
        template = load_template(RealFs(), f"arms/{arm}.json")
        assert isinstance(template, SkillContentTemplate)
        assert isinstance(template.active_control_selection, PendingSelection)
        assert not template.runnable

    @pytest.mark.parametrize(
        ("arm", "bundle"), [("S1", "oracle-owner-subagent"), ("M1", "oracle-owner-main")]
    )
    def test_an_oracle_names_its_bundle(self, arm: str, bundle: str) -> None:
        template = load_template(RealFs(), f"arms/{arm}.json")
        assert isinstance(template, SkillContentTemplate)
        assert template.bundle_policy is not None
        assert template.bundle_policy.bundle_id == bundle

    @pytest.mark.parametrize("ref", PINNED)
    def test_each_reads_as_itself_and_hashes_as_its_object(self, ref: str) -> None:
        template = parse_template(committed(ref))
        assert template == load_template(RealFs(), ref)
        text = json.dumps(committed(ref), sort_keys=True, separators=(",", ":"))
        assert template_hash(template) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    @pytest.mark.parametrize(
        "ref", ["S1", "arms/S9.json", "arms/../arms/S1.json", "/arms/S1.json", "arms/s1.json", "\x1b[2J", ""]
    )
    def test_another_reference_is_refused(self, ref: str) -> None:
        with pytest.raises(ArmError) as caught:
            load_template(RealFs(), ref)
        assert caught.value.code is ArmCode.TEMPLATE_UNKNOWN
        assert "\x1b" not in str(caught.value)

    def test_a_damaged_file_is_a_fixture_fault(self, tmp_path: Path) -> None:
        fs = CopiedFs(tmp_path)
        fs.edit("arms/S1.json", lambda document: document.update(runnable=False))
        with pytest.raises(ProtocolError) as caught:
            load_template(fs, "arms/S1.json")
        assert caught.value.where == "arms/S1.json"


class TestFields:
    @pytest.mark.parametrize("ref", PINNED)
    def test_each_is_needed_and_no_other_known(self, ref: str) -> None:
        """T1: the fields of a template are exact."""
        document = committed(ref)
        for name in document:
            if name in {"registry_schema", "bundle_policy"}:
                continue
            without = {key: value for key, value in document.items() if key != name}
            assert refused(without).code is ArmCode.BAD_RECORD
        assert refused(document | {"author": "nobody"}).where == "/author"

    def test_the_registry_is_told_by_its_field(self) -> None:
        assert isinstance(parse_template(committed("arms/profile/profile-off.json")), ProfileTemplate)
        assert (
            refused(committed("arms/S0.json") | {"registry_schema": "skill-content"}).where
            == "/registry_schema"
        )
        template = parse_template(committed("arms/S0.json"))
        assert template.registry_schema is RegistrySchema.SKILL_CONTENT

    @pytest.mark.parametrize("value", [None, [], "S0", 1])
    def test_something_else_is_no_template(self, value: object) -> None:
        assert refused(value).code is ArmCode.BAD_RECORD

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("schema_version", 2),
            ("schema_version", True),
            ("arm_id", "S 1"),
            ("arm_id", "-S1"),
            ("arm_id", "../S1"),
            ("arm_id", ""),
            ("arm_id", 65 * "S"),
            ("scope", "both"),
            ("treatment", "reference"),
            ("treatment", "placebo"),
            ("allowlisted_diff", GUIDANCE[:2]),
            ("allowlisted_diff", [*GUIDANCE, "ccl_layer"]),
            ("allowlisted_diff", "ccl_layer"),
            ("allowlisted_diff", [*GUIDANCE, 1]),
            ("runnable", False),
            ("runnable", 1),
            ("runnable", None),
            ("bundle_policy", None),
            ("bundle_policy", {"bundle_id": "my-bundle"}),
            ("bundle_policy", {"bundle_id": "oracle-owner-main"}),
            ("bundle_policy", {"bundle_id": "slot-0123456789abcdef-subagent"}),
            ("active_control_selection", {"status": "pending"}),
            ("active_control_selection", None),
        ],
    )
    def test_each_wrong_value_of_the_oracle_is_refused(self, field: str, value: object) -> None:
        """T1: each field of a skill-content template."""
        assert refused(committed("arms/S1.json") | {field: value}).code is ArmCode.BAD_RECORD

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("registry_schema", "skill-content"),
            ("registry_schema", None),
            ("treatment", "oracle"),
            ("treatment", "active_control"),
            ("allowlisted_diff", []),
            ("runnable", False),
            ("scope", "user"),
            ("active_control_selection", {"status": "not-applicable"}),
        ],
    )
    def test_each_wrong_value_of_a_profile_is_refused(self, field: str, value: object) -> None:
        """T1: each field of a paired-profile template; there is no oracle."""
        assert (
            refused(committed("arms/profile/profile-full.json") | {field: value}).code is ArmCode.BAD_RECORD
        )


class TestArmId:
    @pytest.mark.parametrize("word", ["off", "full", "reference", "oracle", "control", "placebo", "FULL"])
    def test_a_bare_treatment_word_is_refused(self, word: str) -> None:
        """T1: no arm has a name that ordinary text holds."""
        for ref in ("arms/S1.json", "arms/profile/profile-full.json"):
            error = refused(committed(ref) | {"arm_id": word})
            assert (error.code, error.where) == (ArmCode.REGISTRY_MISMATCH, "/arm_id")


class TestDifference:
    @pytest.mark.parametrize(
        ("ref", "added"),
        [
            ("arms/S0.json", "ccl_layer"),
            ("arms/S0.json", "system_prompt"),
            ("arms/S1.json", "bootstrap"),
            ("arms/Sg.json", "bootstrap"),
            ("arms/S2.json", "tool_schema"),
            ("arms/S2.json", "repo_instructions"),
            ("arms/profile/profile-off.json", "profile_payload"),
            ("arms/profile/profile-full.json", "model"),
            ("arms/profile/profile-reference.json", "permission_profile"),
        ],
    )
    def test_a_wider_one_has_its_own_code(self, ref: str, added: str) -> None:
        """T1 T3: a template that declares more than its treatment changes."""
        document = committed(ref)
        error = refused(document | {"allowlisted_diff": [*document["allowlisted_diff"], added]})
        assert (error.code, error.where) == (ArmCode.UNALLOWLISTED_DIFF, added)
        assert f"unallowlisted_diff:{added}" in str(error)

    def test_a_narrower_one_is_refused(self) -> None:
        """T1 T3: a template that leaves out what its treatment changes."""
        error = refused(committed("arms/S2.json") | {"allowlisted_diff": GUIDANCE})
        assert "allowlisted_diff_not_realized:bootstrap" in str(error)


class TestActiveControl:
    def test_the_verified_form_is_accepted_and_still_does_not_run(self) -> None:
        """A13: in neither state of an active control may it run."""
        document = committed("arms/Sg.json")
        for selection in (document["active_control_selection"], verified()):
            control = document | {"active_control_selection": selection}
            assert not parse_template(control).runnable
            assert refused(control | {"runnable": True}).code is ArmCode.BAD_RECORD

    def test_the_scope_is_that_of_the_arm(self) -> None:
        """A13: content selected for another scope."""
        document = committed("arms/Mg.json")
        assert parse_template(document | {"active_control_selection": verified("main")})
        assert refused(document | {"active_control_selection": verified()}).code is ArmCode.BAD_RECORD

    @pytest.mark.parametrize("name", [name for name in verified() if name != "status"])
    def test_no_part_of_the_verified_form_may_be_missing(self, name: str) -> None:
        """A13: each artifact that a verified control rests on."""
        chosen = {key: value for key, value in verified().items() if key != name}
        error = refused(committed("arms/Sg.json") | {"active_control_selection": chosen})
        assert error.code is ArmCode.BAD_RECORD
        assert error.where == f"/active_control_selection/{name}"

    @pytest.mark.parametrize(
        "selection",
        [
            verified() | {"status": "matched-call-contract-declared-no-observation"},
            verified() | {"status": "matched-call-satisfied"},
            verified() | {"matched_call_gate_satisfied": False},
            verified() | {"matched_call_evidence_hash": D},
            {"status": "fixture-pass"},
            {
                "status": "pending",
                "required_independent_candidates": 1,
                "selection_blinded_before_outcomes": True,
            },
            {
                "status": "pending",
                "required_independent_candidates": 2,
                "selection_blinded_before_outcomes": False,
            },
            {"status": "not-applicable"},
        ],
    )
    def test_no_other_state_is_accepted(self, selection: dict[str, object]) -> None:
        """A14: a matched-call status or artifact in an arm."""
        document = committed("arms/Sg.json") | {"active_control_selection": selection}
        assert refused(document).code is ArmCode.BAD_RECORD

    def test_no_other_arm_has_a_selection(self) -> None:
        document = committed("arms/S1.json") | {"active_control_selection": verified()}
        assert refused(document).code is ArmCode.BAD_RECORD

    def test_a_control_may_name_the_bundle_of_its_slot(self) -> None:
        document = committed("arms/Sg.json")
        assert parse_template(document | {"bundle_policy": {"bundle_id": "slot-0123456789abcdef-subagent"}})
        for bundle in ("oracle-owner-subagent", "slot-0123456789abcdef-main", "slot-0123-subagent"):
            assert refused(document | {"bundle_policy": {"bundle_id": bundle}}).code is ArmCode.BAD_RECORD
