"""Gate rules about rows: are they the plan's trials, and do they say what lies on disk (section 9)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from skill_effectiveness.trials.gate_words import FailureCode
from skill_effectiveness.trials.pilot_records import contradicted, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skill_effectiveness.trials.gate_facts import ArmFacts, TrialEntry, TrialName

INDEXED_SHOWN: Final = 100
"""So many rows are named for one code; the rest are counted."""


class RecordRules:
    """Takes the entries of a gate one by one.

    Attributes:
        rows: rows met.
        contradictions: by claim, or by what drifted.
        claims_without_evidence: claims that counted as absent.
    """

    def __init__(self, arms: Mapping[str, ArmFacts]) -> None:
        self._arms = arms
        self._found: Counter[FailureCode] = Counter()
        self._malformed: list[int] = []
        self._seen: set[TrialName] = set()
        self._last_order = 0
        self.rows = 0
        self.contradictions: Counter[str] = Counter()
        self.claims_without_evidence = 0

    def take(self, entry: TrialEntry) -> None:
        """Judge one row, or a planned trial that has none."""
        if entry.index is not None:
            self.rows += 1
        if entry.facts is not None and entry.facts.drift:
            self._found[FailureCode.TRIAL_EVIDENCE_BINDING] += 1
            self.contradictions.update(entry.facts.drift)
        if entry.index is None:
            self._found[FailureCode.TRIAL_PLAN_MEMBERSHIP_MISMATCH] += 1
        elif entry.record is None:
            self._found[FailureCode.TRIAL_RECORD_IDENTITY_INVALID] += 1
            if len(self._malformed) < INDEXED_SHOWN:
                self._malformed.append(entry.index)
        else:
            self._take_record(entry)

    def _take_record(self, entry: TrialEntry) -> None:
        record, planned = entry.record, entry.planned
        if record is None:
            return
        name = record.name if planned is None else planned.name
        twice = name in self._seen
        self._found[FailureCode.DUPLICATE_TRIAL_RECORD] += twice
        self._seen.add(name)
        if planned is None:
            self._found[FailureCode.TRIAL_PLAN_MEMBERSHIP_MISMATCH] += 1
            return
        if record.task_family is not planned.family:
            self._found[FailureCode.TRIAL_TASK_FAMILY_MISMATCH] += 1
        behind = planned.run_order <= self._last_order and not twice
        if record.run_order != planned.run_order or behind:
            self._found[FailureCode.TRIAL_EXECUTION_ORDER] += 1
        self._last_order = max(self._last_order, planned.run_order)
        if record.hashes != planned.hashes:
            self._found[FailureCode.TRIAL_EVIDENCE_BINDING] += 1
            self.contradictions["hashes"] += 1
        if entry.facts is not None:
            differing = contradicted(record, entry.facts, self._arms[record.arm_id])
            self._found[FailureCode.TRIAL_EVIDENCE_BINDING] += bool(differing)
            self.contradictions.update(differing)
            self.claims_without_evidence += len(unsupported(record, entry.facts))

    def failures(self) -> Iterator[FailureCode]:
        """The rules that do not hold."""
        if self.rows == 0:
            yield FailureCode.NO_TRIAL_RECORDS
        yield from (code for code, times in self._found.items() if times)

    def spelled(self, code: FailureCode) -> list[str]:
        """A failure as the result lists it; malformed rows by index, at most `INDEXED_SHOWN` of them."""
        if code is not FailureCode.TRIAL_RECORD_IDENTITY_INVALID:
            return [code.value]
        more = self._found[code] - len(self._malformed)
        named = [f"{code.value}:{index}" for index in self._malformed]
        return [*named, f"{code.value}:+{more}"] if more else named
