"""The matched-call contract of one scope, declared over seven histories (controls.md section 7).

One evaluator and one event contract serve both targets; only bundle id and content differ. Nothing is
observed here, and the gate it belongs to stays unsatisfied whatever the histories give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skill_effectiveness.controls.chain import SCHEMA, check_measurement
from skill_effectiveness.controls.documents import (
    EVIDENCE_FILES,
    FixtureResults,
    MatchedCallEvidence,
    Measurement,
    OwnerReference,
    Selection,
    Target,
    Targets,
    sealed,
)
from skill_effectiveness.controls.errors import ControlCode, ControlError
from skill_effectiveness.controls.reading import reads_alike
from skill_effectiveness.protocol.skill_events import (
    EVENT_CONTRACT,
    INDEX_SOURCE,
    Fixture,
    MatchedCall,
    evaluate_matched_call,
    matched_call_contract,
    matched_call_contract_hash,
)

if TYPE_CHECKING:
    from skill_effectiveness.protocol.registries import Scope


def declare(
    selection: Selection, measurement: Measurement, reference: OwnerReference, scope: Scope
) -> MatchedCallEvidence:
    """The evidence document of one scope.

    Raises:
        ControlError: `chain_broken`, `reference_differs`, `measurement_failed` or `contents_equal`.
    """
    check_measurement(selection, reference, measurement)
    if measurement.status != "pass":
        raise ControlError(
            ControlCode.MEASUREMENT_FAILED, "measurement", "the choice is not of the owner's size and form."
        )
    targets = Targets(
        active_control=Target(
            bundle_id=active_bundle_id(selection, scope),
            content_hash=selection.selected_scope_hashes.of(scope),
        ),
        oracle=Target(bundle_id=oracle_bundle_id(scope), content_hash=reference.scope_hashes.of(scope)),
    )
    if reads_alike(selection.selected_scope_contents.of(scope), reference.scope_contents.of(scope)):
        raise ControlError(
            ControlCode.CONTENTS_EQUAL,
            "targets",
            "the control's text is the owner's, gaps and line ends apart; choose another control.",
        )
    return sealed(
        MatchedCallEvidence,
        {
            "schema_version": SCHEMA,
            "artifact_contract": "skill-effectiveness-active-control-matched-call-evidence-v1",
            "selection_artifact_hash": selection.artifact_hash,
            "owner_relative_measurement_hash": measurement.measurement_hash,
            "owner_reference_hash": reference.reference_hash,
            "scope": scope.value,
            "gate_contract": matched_call_contract(),
            "gate_contract_hash": matched_call_contract_hash(),
            "allowed_target_differences": ("bundle_id", "content_hash"),
            "targets": targets,
            "fixture_results": FixtureResults(
                active_control=_results(targets.active_control), oracle=_results(targets.oracle)
            ),
            "observation_status": "none-fixtures-only",
            "matched_call_gate_satisfied": False,
            "status": "matched-call-contract-declared-no-observation",
            "boundary": "deterministic-fixtures-no-observed-call-history-or-live-host-enforcement",
        },
    )


def check_evidence(
    selection: Selection,
    measurement: Measurement,
    reference: OwnerReference,
    evidence: MatchedCallEvidence,
    name: str,
) -> None:
    """Demand that an evidence document is the one these documents give, under the name of its scope.

    Raises:
        ControlError: as `declare`; `scope_mismatch`; `chain_broken`.
    """
    if name != EVIDENCE_FILES[evidence.scope]:
        raise ControlError(
            ControlCode.SCOPE_MISMATCH,
            "evidence",
            f"it is about the scope {evidence.scope} and does not have the name of that scope's file.",
        )
    if declare(selection, measurement, reference, evidence.scope) != evidence:
        raise ControlError(
            ControlCode.CHAIN_BROKEN,
            "evidence",
            f"its artifact_hash {evidence.artifact_hash} is not that of these documents; it was edited, or "
            "belongs to others.",
        )


def active_bundle_id(selection: Selection, scope: Scope) -> str:
    """The only bundle id the chosen control may have in a scope."""
    return f"{selection.decision.selected_opaque_id}-{scope}"


def oracle_bundle_id(scope: Scope) -> str:
    """The only bundle id the oracle may have in a scope."""
    return f"oracle-owner-{scope}"


def check_bundle_ids(selection: Selection, scope: Scope, *, active: str, oracle: str) -> None:
    """Demand the derived ids.

    Raises:
        ControlError: `bundle_id_free`.
    """
    wanted = {"active": active_bundle_id(selection, scope), "oracle": oracle_bundle_id(scope)}
    for name, given in (("active", active), ("oracle", oracle)):
        if given != wanted[name]:
            raise ControlError(
                ControlCode.BUNDLE_ID_FREE,
                f"{name} bundle id",
                f"it must be {wanted[name]}, derived from what was chosen and its scope.",
            )


def history(fixture: Fixture, target: str) -> dict[str, Any]:
    """The events of one of the seven histories, for one target."""
    calls: list[dict[str, Any]] = []
    first: int | None = 1
    if fixture is Fixture.MISSING:
        first = 0
    elif fixture is Fixture.LATE_AFTER_TASK_TOOL:
        first, calls = 0, [_call(target, 1)]
    elif fixture is Fixture.WRONG_TARGET:
        calls = [_call("another-bundle", 0)]
    elif fixture is Fixture.INCOMPLETE:
        calls = [_call(target, 0, completed=False)]
    else:
        calls = [_call(target, 0)]
    if fixture is Fixture.MISSING_TASK_TOOL_INDEX:
        first = None
    return {
        "schema_version": 1,
        "event_contract_version": EVENT_CONTRACT,
        "event_contract_status": "degraded" if fixture is Fixture.DEGRADED else "stable",
        "skill_events_available": True,
        "task_tool_events_available": True,
        "first_task_tool_event_index": first,
        "event_index_source": INDEX_SOURCE,
        "skills_invoked": calls,
    }


def _call(skill: str, index: int, *, completed: bool = True) -> dict[str, Any]:
    return {
        "skill": skill,
        "event_index": index,
        "tool_use_id": f"call-{index}",
        "matching_tool_result": completed,
        "completed": completed,
    }


def _results(target: Target) -> dict[Fixture, MatchedCall]:
    return {
        fixture: evaluate_matched_call(history(fixture, target.bundle_id), target.bundle_id)
        for fixture in Fixture
    }
