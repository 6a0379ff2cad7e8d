"""Gate rules about what trials recorded: residuals, skill events and matching calls (section 9).

A completed trial without the row is an absent value, whatever its record says. A trial that did not complete
counts only with the rows it has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING

from skill_effectiveness.calibration.figures import Share, at_least, at_most
from skill_effectiveness.trials.gate_words import FailureCode, NotEvaluated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skill_effectiveness.protocol.gates import Thresholds
    from skill_effectiveness.protocol.words import TaskFamily
    from skill_effectiveness.trials.gate_facts import ArmFacts, PlannedTrial, TrialFacts


class EventRules:
    """Takes the trials that count one by one.

    Attributes:
        read: trials of each arm whose skill events say whether they are verifiable.
        unverifiable: of these, those that are not.
        calls, compliant: trials of oracle and control arms with a judged call, and those that made it.
        residuals: off trials that saw something of the treatment.
    """

    def __init__(self, arms: Mapping[str, ArmFacts]) -> None:
        self._arms = arms
        self._needed: Counter[NotEvaluated] = Counter()
        self._absent: Counter[NotEvaluated] = Counter()
        self._shapes: defaultdict[str, set[TaskFamily]] = defaultdict(set)
        self.read: Counter[str] = Counter()
        self.unverifiable: Counter[str] = Counter()
        self.calls = 0
        self.compliant = 0
        self.residuals = 0

    def take(self, planned: PlannedTrial, facts: TrialFacts) -> None:
        """Count one trial."""
        arm = self._arms[planned.name.arm_id]
        if arm.is_off:
            self._need(NotEvaluated.OFF_RUNTIME_RESIDUAL_EVIDENCE, facts, facts.off_ccl_residual)
            self.residuals += facts.off_ccl_residual is True
        self._need(NotEvaluated.SKILL_EVENT_VERIFIABILITY, facts, facts.skill_events_verifiable)
        if facts.skill_events_verifiable is not None:
            self.read[arm.arm_id] += 1
        if facts.skill_events_verifiable is False:
            self.unverifiable[arm.arm_id] += 1
            if facts.skill_event_shape is not None:
                self._shapes[facts.skill_event_shape].add(planned.family)
        if arm.calls_are_matched:
            self._need(NotEvaluated.MATCHED_CALL_COMPLIANCE, facts, facts.matched_call_compliant)
            self.calls += facts.matched_call_compliant is not None
            self.compliant += facts.matched_call_compliant is True

    def _need(self, check: NotEvaluated, facts: TrialFacts, value: bool | None) -> None:  # noqa: FBT001 - one derived value
        self._needed[check] += facts.runner_completed
        self._absent[check] += facts.runner_completed and value is None

    @property
    def unverifiable_share(self) -> Share:
        """Trials with unverifiable skill events of those that say."""
        return Share.of(self.unverifiable.total(), self.read.total())

    def absent(self) -> Iterator[NotEvaluated]:
        """The checks that could not be made."""
        for check in (
            NotEvaluated.OFF_RUNTIME_RESIDUAL_EVIDENCE,
            NotEvaluated.SKILL_EVENT_VERIFIABILITY,
            NotEvaluated.MATCHED_CALL_COMPLIANCE,
        ):
            if self._absent[check] or not self._needed[check]:
                yield check

    def failures(self, gates: Thresholds) -> Iterator[FailureCode]:
        """The rules that do not hold."""
        if self.residuals:
            yield FailureCode.OFF_CCL_LAYER_RESIDUAL
        most = gates.skill_event_unverifiable_rate_max
        shares = [(self.unverifiable.total(), self.read.total())]
        shares += [(self.unverifiable[arm], self.read[arm]) for arm in self.read]
        if any(whole and not at_most(Fraction(part, whole), most) for part, whole in shares):
            yield FailureCode.SKILL_EVENT_UNVERIFIABLE_RATE
        stop = gates.missing_shape_task_family_stop_count
        if any(len(families) >= stop for families in self._shapes.values()):
            yield FailureCode.SKILL_EVENT_SHAPE_CROSS_FAMILY
        least = gates.matched_call_smoke_rate_min
        if self.calls and not at_least(Fraction(self.compliant, self.calls), least):
            yield FailureCode.MATCHED_CALL_COMPLIANCE
