"""Evidence tiers: which one a registry allows, what it waives, and verdicts that never change kind.

Source: trials.md, section 6. The tier is never asked for: it follows from the registry that a trial stored
when it was prepared. A caller may say which one it expects, and is refused when it errs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from skill_effectiveness.protocol.gates import EvidenceTier, EvidenceTierName, WaivableItem
from skill_effectiveness.protocol.registries import RULES, RegistrySchema
from skill_effectiveness.trials.faults import TrialCode, TrialError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.protocol.gates import PilotGates

CAUSAL: Final = EvidenceTier(schema_version=1, requested_tier=EvidenceTierName.CAUSAL, waived_items=())
"""What an absent declaration means."""


@dataclass(frozen=True, slots=True)
class CausalVerdict:
    """A verdict with every proof present."""

    passed: bool
    tier: Literal[EvidenceTierName.CAUSAL] = field(default=EvidenceTierName.CAUSAL, init=False)


@dataclass(frozen=True, slots=True)
class AdvisoryVerdict:
    """A verdict over paired profiles, which says what it does without.

    Attributes:
        coverage_limitations: copied verbatim into whatever cites the verdict.
    """

    passed: bool
    coverage_limitations: tuple[WaivableItem, ...]
    tier: Literal[EvidenceTierName.ADVISORY_PAIRED] = field(
        default=EvidenceTierName.ADVISORY_PAIRED, init=False
    )


def known_registry(registry_schema: str | None) -> RegistrySchema | None:
    """The stored registry; `None` where none is stored.

    Raises:
        TrialError: `evidence_invalid`: not a registry of this product.
    """
    if registry_schema is None:
        return None
    try:
        return RegistrySchema(registry_schema)
    except ValueError:
        sentence = "The trial stores a registry that is not known here; use the version that wrote it."
        raise TrialError(
            TrialCode.EVIDENCE_INVALID, "/registry_schema", sentence, field="registry_schema"
        ) from None


def derived_tier(registry_schema: str | None) -> EvidenceTierName | None:
    """The only tier of a trial under this registry; `None` where no registry is stored.

    Raises:
        TrialError: as `known_registry`.
    """
    registry = known_registry(registry_schema)
    return None if registry is None else RULES[registry].tier


def required_tier(registry_schema: str | None) -> EvidenceTierName:
    """The tier of a trial that completes, or has.

    Raises:
        TrialError: `registry_mismatch`: no registry is stored, so no tier follows; as `known_registry`.
    """
    tier = derived_tier(registry_schema)
    if tier is None:
        sentence = "The trial stores no registry, so it has no evidence tier; prepare it again with one."
        raise TrialError(TrialCode.REGISTRY_MISMATCH, "/registry_schema", sentence, field="registry_schema")
    return tier


def check_in_force(tier: EvidenceTierName, gates: PilotGates) -> None:
    """Demand that verdicts of this tier exist: advisory ones do while the frozen gates declare the tier.

    Raises:
        TrialError: `registry_mismatch`.
    """
    if tier is EvidenceTierName.ADVISORY_PAIRED and gates.evidence_tier.requested_tier is not tier:
        sentence = "The frozen gates do not declare the advisory tier, so no advisory trial counts."
        raise TrialError(TrialCode.REGISTRY_MISMATCH, "/evidence_tier", sentence, field="evidence_tier")


def waivers(
    tier: EvidenceTierName, gates: PilotGates, declared: EvidenceTier | None = None
) -> frozenset[WaivableItem]:
    """The proofs that may be absent.

    Args:
        tier: as derived.
        gates: the frozen gates; they may waive fewer than all six.
        declared: what a caller says; `None` leaves it to the derivation.

    Raises:
        TrialError: `registry_mismatch`: the caller says another tier, or the tier is not in force.
    """
    check_in_force(tier, gates)
    if declared is not None and declared.requested_tier is not tier:
        sentence = f"Trials of this registry have the tier {tier}; a tier cannot be chosen."
        raise TrialError(TrialCode.REGISTRY_MISMATCH, "/evidence_tier", sentence, field="evidence_tier")
    if tier is EvidenceTierName.CAUSAL:
        return frozenset()
    frozen = frozenset(gates.evidence_tier.waived_items)
    return frozen if declared is None else frozen & frozenset(declared.waived_items)


def check_proofs(missing: Iterable[WaivableItem], waived: frozenset[WaivableItem]) -> None:
    """Demand every proof that is not waived.

    Raises:
        TrialError: `proof_missing`, naming the first.
    """
    for item in sorted(set(missing) - waived):
        sentence = f"The proof {item} is absent and this tier does not waive it; the trial cannot complete."
        raise TrialError(TrialCode.PROOF_MISSING, "/isolation_evidence", sentence, field=str(item))
