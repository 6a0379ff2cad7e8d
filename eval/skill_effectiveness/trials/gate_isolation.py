"""Gate rules about isolation: contamination, folders, memory and sessions (sections 5 and 9).

An observed breach is a failure at every tier. A missing proof is an absent value, which only a waiver of that
very proof excuses (`gate_tier`).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from skill_effectiveness.calibration.figures import Share, at_most
from skill_effectiveness.trials.gate_words import FailureCode, NotEvaluated
from skill_effectiveness.trials.isolation import FILE_ITEMS, MEMORY_ITEMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.protocol.gates import Thresholds, WaivableItem
    from skill_effectiveness.trials.gate_facts import PlannedTrial, TrialFacts

PROOFS: Final = {
    NotEvaluated.TRIAL_FILE_ISOLATION: frozenset(FILE_ITEMS),
    NotEvaluated.CROSS_TRIAL_MEMORY_ISOLATION: frozenset(MEMORY_ITEMS),
}
"""The proofs whose absence leaves a check without a value."""


class IsolationRules:
    """Takes the trials that count one by one.

    Attributes:
        known, contaminated: trials of each arm that say whether they are contaminated, and those that are.
        breached: completed trials with an observed breach.
        missing_proofs: by check, every proof that some completed trial lacks.
        unexplained: the checks for which a completed trial has no value and names no missing proof.
    """

    def __init__(self) -> None:
        self._counted = 0
        self._completed = 0
        self._absent: set[NotEvaluated] = set()
        self._failed: set[FailureCode] = set()
        self._sessions: set[str] = set()
        self._shared_session = False
        self.known: Counter[str] = Counter()
        self.contaminated: Counter[str] = Counter()
        self.breached = 0
        self.missing_proofs: dict[NotEvaluated, set[WaivableItem]] = {check: set() for check in PROOFS}
        self.unexplained: set[NotEvaluated] = set()

    def take_session(self, planned: PlannedTrial) -> None:
        """Note the session of a planned trial, void or not."""
        self._shared_session |= planned.session in self._sessions
        self._sessions.add(planned.session)

    def take(self, planned: PlannedTrial, facts: TrialFacts) -> None:
        """Count one trial."""
        arm = planned.name.arm_id
        self._counted += 1
        if facts.contaminated is None:
            self._absent.add(NotEvaluated.CONTAMINATION)
        else:
            self.known[arm] += 1
            self.contaminated[arm] += facts.contaminated
        if facts.access_audit_ok is False:
            self._failed.add(FailureCode.TRIAL_FILE_ISOLATION)
        if facts.memory_isolation_ok is False:
            self._failed.add(FailureCode.CROSS_TRIAL_MEMORY_ISOLATION)
        self.breached += False in (facts.access_audit_ok, facts.memory_isolation_ok)
        if facts.runner_completed:
            self._completed += 1
            self._take_proof(NotEvaluated.TRIAL_FILE_ISOLATION, facts.access_audit_ok, facts)
            self._take_proof(NotEvaluated.CROSS_TRIAL_MEMORY_ISOLATION, facts.memory_isolation_ok, facts)

    def _take_proof(self, check: NotEvaluated, value: bool | None, facts: TrialFacts) -> None:  # noqa: FBT001 - one derived value
        missing = facts.missing_proofs & PROOFS[check]
        self.missing_proofs[check] |= missing
        if value is None or missing:
            self._absent.add(check)
            if not missing:
                self.unexplained.add(check)

    @property
    def contamination(self) -> Share:
        """Contaminated trials of those that say."""
        return Share.of(self.contaminated.total(), self.known.total())

    @property
    def gap(self) -> Fraction | None:
        """The largest difference of two arms' contamination; None when no trial says."""
        shares = [Fraction(self.contaminated[arm], whole) for arm, whole in self.known.items()]
        return max(shares) - min(shares) if shares else None

    def absent(self) -> Iterator[NotEvaluated]:
        """The checks that could not be made."""
        if NotEvaluated.CONTAMINATION in self._absent or not self._counted:
            yield NotEvaluated.CONTAMINATION
        for check in PROOFS:
            if check in self._absent or not self._completed:
                yield check

    def failures(self, gates: Thresholds, *, sessions_matter: bool) -> Iterator[FailureCode]:
        """The rules that do not hold."""
        total = self.contamination
        if total.whole and not at_most(Fraction(total.part, total.whole), gates.contamination_rate_max):
            yield FailureCode.TOTAL_CONTAMINATION_RATE
        # Reaching the gap fails, so "at most" is asked the other way round.
        if self.gap is not None and Fraction(repr(gates.arm_contamination_gap_max)) <= self.gap:
            yield FailureCode.ARM_CONTAMINATION_GAP
        yield from self._failed
        if sessions_matter and self._shared_session:
            yield FailureCode.ADVISORY_FRESH_SESSION_PER_SAMPLE
