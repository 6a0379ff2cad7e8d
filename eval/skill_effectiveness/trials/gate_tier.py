"""Gate rules about the tier: which absent values a waiver excuses, and what the verdict may be called.

Source: trials.md, sections 6 and 9. A waiver excuses the absence of exactly the proof it names, and only at
the advisory tier; what was observed, and every other absent value, it never touches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.protocol.gates import EvidenceTierName, WaivableItem
from skill_effectiveness.trials.gate_isolation import PROOFS
from skill_effectiveness.trials.gate_words import FailureCode, NotEvaluated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.protocol.gates import EvidenceTier
    from skill_effectiveness.trials.gate_isolation import IsolationRules


@dataclass(frozen=True, slots=True)
class JudgedTier:
    """What the tier makes of absent values.

    Attributes:
        not_evaluated: every check without a value, in the order of `NotEvaluated`.
        limitations: the waived proofs that were absent, sorted.
        failures: of proofs and tier.
    """

    not_evaluated: tuple[NotEvaluated, ...]
    limitations: tuple[WaivableItem, ...]
    failures: frozenset[FailureCode]


def judge_tier(
    tier: EvidenceTier, absent: Iterable[NotEvaluated], isolation: IsolationRules, *, capable: bool
) -> JudgedTier:
    """Judge what is absent.

    Args:
        tier: what the configuration asks for and does without.
        absent: checks without a value, that of capability left out.
        isolation: knows which proofs are missing.
        capable: whether every task family of the plan has an eligible capability row.
    """
    waived = frozenset(tier.waived_items)
    missing = set(absent)
    lacking: set[WaivableItem] = set()
    if not capable:
        lacking.add(WaivableItem.MOUNT_EVIDENCE)
        if WaivableItem.MOUNT_EVIDENCE not in waived:
            missing.add(NotEvaluated.PROVIDER_CAPABILITY_MATRIX)
    uncovered = {check for check in missing if not _is_covered(check, waived, isolation)}
    for proofs in isolation.missing_proofs.values():
        lacking |= proofs
    if NotEvaluated.MATCHED_CALL_COMPLIANCE in missing:
        lacking.add(WaivableItem.LIVE_MATCHED_CALL_GATE)
    failures = set()
    if uncovered:
        failures.add(FailureCode.REQUIRED_EVIDENCE_NOT_EVALUATED)
        if tier.requested_tier is EvidenceTierName.CAUSAL:
            failures.add(FailureCode.CAUSAL_CORE_UNAVAILABLE)
    return JudgedTier(
        not_evaluated=tuple(check for check in NotEvaluated if check in missing),
        limitations=tuple(sorted(lacking & waived)),
        failures=frozenset(failures),
    )


def _is_covered(check: NotEvaluated, waived: frozenset[WaivableItem], isolation: IsolationRules) -> bool:
    """Whether the waivers name every proof whose absence leaves the check without a value."""
    if check is NotEvaluated.MATCHED_CALL_COMPLIANCE:
        return WaivableItem.LIVE_MATCHED_CALL_GATE in waived
    if check not in PROOFS or check in isolation.unexplained:
        return False
    # With no completed trial there is no missing proof that a waiver could name.
    proofs = isolation.missing_proofs[check]
    return bool(proofs) and proofs <= waived
