from __future__ import annotations

import json
from typing import Any

import pytest

from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.caller_gates import caller_gates
from skill_effectiveness.protocol.errors import ProtocolCode, ProtocolError
from skill_effectiveness.protocol.gates import GATES_FILE, PilotGates, gates_hash, load_gates
from skill_effectiveness.protocol.resources import frozen_folder

FROZEN = load_gates(RealFs())
THRESHOLDS = json.loads((frozen_folder() / GATES_FILE).read_bytes())["thresholds"]


def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((frozen_folder() / GATES_FILE).read_bytes())
    return found


def edited(pointer: str, value: object) -> dict[str, Any]:
    changed = document()
    *folders, last = pointer.strip("/").split("/")
    inner: Any = changed
    for name in folders:
        inner = inner[name]
    inner[last] = value
    return changed


def refused(value: object) -> str:
    with pytest.raises(ProtocolError) as caught:
        caller_gates(FROZEN, value)
    assert caught.value.code is ProtocolCode.GATES_CHANGED
    assert caught.value.where.startswith("pilot-gates#")
    return caught.value.where.removeprefix("pilot-gates#")


class TestAllowed:
    def test_the_frozen_file_itself(self) -> None:
        """T7: a caller's copy is the frozen gates."""
        assert caller_gates(FROZEN, document()) == FROZEN
        assert gates_hash(caller_gates(FROZEN, document())) == gates_hash(FROZEN)

    def test_other_budgets(self) -> None:
        """T7: each budget may be chosen."""
        for name in document()["budgets"]:
            gates = caller_gates(FROZEN, edited(f"/budgets/{name}", 1000))
            assert getattr(gates.budgets, name) == 1000

    def test_another_tier(self) -> None:
        """T7: the tier may be chosen, with fewer waivers or as causal."""
        tier = {"schema_version": 1, "requested_tier": "advisory-paired", "waived_items": ["mount_evidence"]}
        assert caller_gates(FROZEN, edited("/evidence_tier", tier)).evidence_tier.waived_items == (
            "mount_evidence",
        )
        causal = {"schema_version": 1, "requested_tier": "causal", "waived_items": []}
        assert caller_gates(FROZEN, edited("/evidence_tier", causal)).evidence_tier.requested_tier == "causal"

    def test_no_tier_is_the_causal_one_without_waivers(self) -> None:
        """T7: what is not declared is not waived."""
        value = document()
        del value["evidence_tier"]
        gates = caller_gates(FROZEN, value)
        assert gates.evidence_tier.requested_tier == "causal"
        assert gates.evidence_tier.waived_items == ()

    def test_the_frozen_gates_are_left_as_they_are(self) -> None:
        caller_gates(FROZEN, edited("/budgets/tokens", 5))
        assert load_gates(RealFs()) == FROZEN


class TestRefused:
    @pytest.mark.parametrize("name", THRESHOLDS)
    def test_each_threshold(self, name: str) -> None:
        """T7: one threshold edited, downwards and upwards, taken away, or of another type."""
        value = THRESHOLDS[name]
        for other in (value / 2, value + 1, str(value), None, value == 1, 0):
            assert refused(edited(f"/thresholds/{name}", other)) == f"/thresholds/{name}"
        changed = document()
        del changed["thresholds"][name]
        assert refused(changed) == f"/thresholds/{name}"

    def test_one_is_not_true_and_not_a_fraction(self) -> None:
        """T7: values that Python holds equal are still edits."""
        assert refused(edited("/thresholds/matched_call_smoke_rate_min", value=True)).endswith("_min")
        assert refused(edited("/thresholds/matched_call_smoke_rate_min", 1.0)).endswith("_min")
        assert refused(edited("/schema_version", 1.0)) == "/schema_version"

    @pytest.mark.parametrize(
        ("pointer", "value"),
        [
            ("/schema_version", 2),
            ("/frozen_before_outcomes", False),
            ("/enforcement", "mandatory"),
            ("/meaning", "skill_effectiveness"),
            ("/reviewer_calibration_fixture_hash", "sha256:" + 64 * "0"),
            ("/reviewer_calibration_case_fixture_hash", "sha256:" + 64 * "0"),
            ("/thresholds/new_rate_max", 1),
            ("/primary_outcomes/plan", "steps"),
            ("/minimum_effects/plan", 0.01),
            ("/active_control/status", "owner-relative-verified"),
            ("/active_control/allowed_comparisons", []),
            ("/active_control/allowed_comparisons/0", "content"),
            ("/author", "nobody"),
        ],
    )
    def test_each_other_part(self, pointer: str, value: object) -> None:
        """T7: every other difference is refused by its pointer."""
        if pointer.endswith("/0"):
            changed = document()
            changed["active_control"]["allowed_comparisons"][0] = value
            assert refused(changed) == pointer
        else:
            assert refused(edited(pointer, value)) == pointer

    @pytest.mark.parametrize("name", [name for name in document() if name != "evidence_tier"])
    def test_nothing_may_be_left_out(self, name: str) -> None:
        """T7: each member missing, the budgets too."""
        value = document()
        del value[name]
        assert refused(value) == f"/{name}"

    @pytest.mark.parametrize(
        ("pointer", "value"),
        [
            ("/budgets/tokens", 0),
            ("/budgets/tokens", -1),
            ("/budgets/tokens", "many"),
            ("/budgets/tokens", 5.0),
            ("/budgets/dollars", 1),
            ("/budgets", None),
            ("/evidence_tier", None),
            ("/evidence_tier/requested_tier", "replicated-advisory"),
            ("/evidence_tier/waived_items", ["blinding"]),
        ],
    )
    def test_what_may_be_chosen_must_still_be_well_formed(self, pointer: str, value: object) -> None:
        """T7: budgets and tiers of the wrong form are refused by pointer."""
        assert refused(edited(pointer, value)).startswith(pointer)

    @pytest.mark.parametrize("value", [None, [], "gates", 1])
    def test_something_else_is_refused(self, value: object) -> None:
        assert refused(value) == ""

    def test_a_member_name_cannot_steer_a_terminal(self) -> None:
        assert "\x1b" not in refused(document() | {"\x1b[2J": 1})


def test_the_answer_is_the_model_of_the_frozen_file() -> None:
    assert isinstance(caller_gates(FROZEN, document()), PilotGates)
