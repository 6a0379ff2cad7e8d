"""From a prepare or checkpoint payload to a planned change of one trial (bridge.md, section 4).

Nothing is decided here: orders, requests, tiers and limitations are those of `trials`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from skill_effectiveness.bridge.payloads import check_declarations, relative
from skill_effectiveness.bridge.transaction import Planned
from skill_effectiveness.bridge.words import BridgeError, ReasonCode
from skill_effectiveness.protocol.registries import RegistrySchema
from skill_effectiveness.trials.checkpoint import apply, plan_checkpoint
from skill_effectiveness.trials.models import Mode, TrialKey
from skill_effectiveness.trials.orders import read_order
from skill_effectiveness.trials.prepare import apply_prepare, plan_prepare
from skill_effectiveness.trials.store import TRIAL, TRIALS
from skill_effectiveness.trials.transitions import read_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.trials.store import TrialStore

PLAN: Final = "registry_plan_path"
REGISTRY: Final = "registry_schema"


def plan_of_prepare(store: TrialStore, payload: Mapping[str, Any]) -> Planned:
    """What preparing comes to.

    Raises:
        BridgeError: `evidence_invalid`: the trial has ended; the plan's path is unsafe.
        TrialError, EvidenceError: as `plan_prepare` and `read_order`.
    """
    fields = {name: value for name, value in payload.items() if name != PLAN}
    order = read_order(fields | {"manifest": undeclared(fields["manifest"])})
    if PLAN in payload:
        relative(payload[PLAN])
        order = replace(order, plan=store.plan(payload[PLAN]))
    change = plan_prepare(store, order)
    found = change.result
    if found.mode is Mode.TERMINAL:
        raise BridgeError(ReasonCode.EVIDENCE_INVALID, "terminal")
    result: dict[str, JsonValue] = {
        "trial_path": found.trial_path,
        "mode": found.mode.value,
        "state_version": found.state_version,
        "remaining_budget": found.remaining_budget.model_dump(mode="json"),
    }
    return Planned(
        target_of(change.key), change.before, change.after, result, partial(apply_prepare, store, change)
    )


def plan_of_checkpoint(store: TrialStore, payload: Mapping[str, Any]) -> Planned:
    """What a checkpoint comes to; an observed breach is marked.

    Raises:
        BridgeError: `evidence_invalid`: a declaration is no boolean; the path of the trial is unsafe.
        TrialError, EvidenceError: as `plan_checkpoint` and `read_request`.
    """
    check_declarations(payload)
    relative(payload["trial_path"])
    key = TrialKey.parse(payload["trial_path"])
    request = read_request({name: value for name, value in payload.items() if name != "trial_path"})
    change = plan_checkpoint(store, key, request)
    made = change.result
    limitations = made.coverage_limitations
    result: dict[str, JsonValue] = {
        "state_version": made.state_version,
        "evidence_tier": None if made.evidence_tier is None else made.evidence_tier.value,
        "coverage_limitations": None if limitations is None else [item.value for item in limitations],
    }
    return Planned(target_of(key), change.before, change.after, result, partial(apply, store, change))


def undeclared(manifest: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A manifest as it was frozen: one of skill-content names no registry, unlike on the wire."""
    declared = manifest.get(REGISTRY) == RegistrySchema.SKILL_CONTENT.value
    return {name: value for name, value in manifest.items() if name != REGISTRY or not declared}


def target_of(key: TrialKey) -> str:
    """The file that changes when a trial does, below the artifact root."""
    return f"{TRIALS}/{key.path}/{TRIAL}"
