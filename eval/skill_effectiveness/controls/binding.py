"""From a verified selection to what an arm manifest may carry of it (controls.md section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.controls.chain import check_measurement
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.protocol.templates import VerifiedSelection

if TYPE_CHECKING:
    from skill_effectiveness.controls.documents import Measurement, OwnerReference, Selection
    from skill_effectiveness.protocol.registries import Scope


def verified_selection(
    selection: Selection, measurement: Measurement, reference: OwnerReference, scope: Scope
) -> VerifiedSelection:
    """The record that `protocol.manifests.freeze_manifest` takes, once every file behind it was verified.

    The manifest it goes into stays not runnable: a selection and a measurement are two of five entry gates.

    Raises:
        ControlError: `chain_broken`, `reference_differs` or `measurement_failed`.
    """
    check_measurement(selection, reference, measurement)
    if measurement.status != "pass":
        raise ControlError(
            ControlCode.MEASUREMENT_FAILED, "measurement", "only a passing measurement binds a control."
        )
    return VerifiedSelection(
        status="owner-relative-verified",
        artifact_hash=selection.artifact_hash,
        selected_package_hash=selection.selected_package_hash,
        selected_scope=scope,
        selected_scope_content_hash=selection.selected_scope_hashes.of(scope),
        owner_relative_measurement_hash=measurement.measurement_hash,
        owner_reference_hash=reference.reference_hash,
        owner_commitment_request_hash=selection.request_hash,
    )
