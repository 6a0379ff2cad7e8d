"""From the files of a selection to an arm's manifest."""

from __future__ import annotations

import os
from typing import Any

import pytest

from skill_effectiveness.controls import chain
from skill_effectiveness.controls.binding import verified_selection
from skill_effectiveness.controls.candidates import freeze_reference
from skill_effectiveness.controls.documents import Measurement, OwnerReference, Selection
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.evidence.documents import validate
from skill_effectiveness.evidence.fsops import RealFs
from skill_effectiveness.protocol.arm_errors import ArmCode, ArmError
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.manifests import freeze_manifest
from skill_effectiveness.protocol.registries import Scope
from tests.support.arms import ORACLE
from tests.support.controls import contents, decision, plain, reference, rehashed, request

PREPARED = chain.prepare(request(), os.urandom)
SELECTION = chain.select(PREPARED, decision(PREPARED.selector_input))
MEASUREMENT = chain.measure(SELECTION, reference())
ARMS = {Scope.SUBAGENT: "arms/Sg.json", Scope.MAIN: "arms/Mg.json"}


def refused(selection: Selection, measurement: Measurement, owner: OwnerReference) -> ControlCode:
    with pytest.raises(ControlError) as caught:
        verified_selection(selection, measurement, owner, Scope.MAIN)
    return caught.value.code


@pytest.mark.parametrize("scope", Scope)
class TestBinding:
    def arm(self, scope: Scope, layer: str) -> Any:  # noqa: ANN401 - either kind of manifest
        record = verified_selection(SELECTION, MEASUREMENT, reference(), scope)
        return freeze_manifest(RealFs(), ARMS[scope], ORACLE | {"ccl_layer": layer}, selection=record)

    def test_the_manifest_names_every_artifact(self, scope: Scope) -> None:
        """A13: eight fields, and the arm still does not run."""
        manifest = self.arm(scope, SELECTION.selected_scope_contents.of(scope))
        assert to_json(manifest)["active_control_selection"] == {
            "status": "owner-relative-verified",
            "artifact_hash": SELECTION.artifact_hash,
            "selected_package_hash": SELECTION.selected_package_hash,
            "selected_scope": scope.value,
            "selected_scope_content_hash": SELECTION.selected_scope_hashes.of(scope),
            "owner_relative_measurement_hash": MEASUREMENT.measurement_hash,
            "owner_reference_hash": reference().reference_hash,
            "owner_commitment_request_hash": SELECTION.request_hash,
        }
        assert manifest.runnable is False

    def test_the_arm_holds_the_selected_text_of_its_scope(self, scope: Scope) -> None:
        """A13: neither the other scope's text nor one with a line end more."""
        other = Scope.MAIN if scope is Scope.SUBAGENT else Scope.SUBAGENT
        right = SELECTION.selected_scope_contents.of(scope)
        for layer in (SELECTION.selected_scope_contents.of(other), f"{right}\n", ""):
            with pytest.raises(ArmError) as caught:
                self.arm(scope, layer)
            assert caught.value.code is ArmCode.CONTROL_SELECTION

    def test_the_arm_is_of_the_selected_scope(self, scope: Scope) -> None:
        """A13: a record of one scope in an arm of the other."""
        other = Scope.MAIN if scope is Scope.SUBAGENT else Scope.SUBAGENT
        record = verified_selection(SELECTION, MEASUREMENT, reference(), other)
        with pytest.raises(ArmError) as caught:
            freeze_manifest(RealFs(), ARMS[scope], ORACLE, selection=record)
        assert caught.value.code is ArmCode.CONTROL_SELECTION


class TestRefusals:
    def test_a_failed_measurement_binds_nothing(self) -> None:
        """A13: the passing measurement is needed."""
        owner = freeze_reference(contents("owner").model_copy(update={"main": "Be careful."}))
        prepared = chain.prepare(request(owner=owner), os.urandom)
        selection = chain.select(prepared, decision(prepared.selector_input))
        measurement = chain.measure(selection, owner)
        assert refused(selection, measurement, owner) is ControlCode.MEASUREMENT_FAILED
        # And it cannot be edited into a passing one.
        edited = validate(Measurement, rehashed(plain(measurement) | {"status": "pass"}, "measurement_hash"))
        assert refused(selection, edited, owner) is ControlCode.CHAIN_BROKEN

    def test_another_reference_binds_nothing(self) -> None:
        """A13: the owner reference is needed."""
        other = freeze_reference(contents("two"))
        assert refused(SELECTION, MEASUREMENT, other) is ControlCode.REFERENCE_DIFFERS

    def test_a_measurement_of_another_selection_binds_nothing(self) -> None:
        """A13: the sealed selection is needed."""
        other = chain.select(PREPARED, decision(PREPARED.selector_input, place=1))
        assert refused(other, MEASUREMENT, reference()) is ControlCode.CHAIN_BROKEN
