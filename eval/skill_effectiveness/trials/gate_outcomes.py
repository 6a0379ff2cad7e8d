"""Gate rules about what completed trials left: judge payloads, grades and accounts of consumption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skill_effectiveness.trials.gate_words import FailureCode, NotEvaluated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.trials.gate_facts import TrialFacts


class OutcomeRules:
    """Takes the trials that count one by one.

    Attributes:
        leaks: outcomes that tell a judge their arm.
        grade_faults: trials whose grade is malformed or came out differently the second time.
        budget_faults: trials without a complete account of what they used up.
    """

    def __init__(self) -> None:
        self._completed = 0
        self._absent: set[NotEvaluated] = set()
        self.leaks = 0
        self.grade_faults = 0
        self.budget_faults = 0

    def take(self, facts: TrialFacts) -> None:
        """Count one trial; whatever an outcome shows counts, and is needed of completed trials only."""
        self.leaks += facts.blinding_leak is True
        self.grade_faults += facts.deterministic_replay_match is False
        self.budget_faults += facts.budget_complete is False
        if not facts.runner_completed:
            return
        self._completed += 1
        for check, value in (
            (NotEvaluated.BLINDING_LEAK, facts.blinding_leak),
            (NotEvaluated.DETERMINISTIC_GRADER_REPLAY, facts.deterministic_replay_match),
            (NotEvaluated.BUDGET_COMPLETE, facts.budget_complete),
        ):
            if value is None:
                self._absent.add(check)

    def absent(self) -> Iterator[NotEvaluated]:
        """The checks that could not be made."""
        for check in (
            NotEvaluated.BLINDING_LEAK,
            NotEvaluated.DETERMINISTIC_GRADER_REPLAY,
            NotEvaluated.BUDGET_COMPLETE,
        ):
            if check in self._absent or not self._completed:
                yield check

    def failures(self) -> Iterator[FailureCode]:
        """The rules that do not hold."""
        if self.leaks:
            yield FailureCode.BLINDING_LEAK
        if self.grade_faults:
            yield FailureCode.DETERMINISTIC_GRADER_REPLAY
        if self.budget_faults:
            yield FailureCode.BUDGET_MISSING
