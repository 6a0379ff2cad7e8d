"""The table of trials, from the journal and what lies in the trials' folders (studies.md section 7).

A slot that was started has a row. One that never was has one only where a person gave the study up: then it
is missing, under the class `not_started`, which no run ends with. Slots that were closed because the evidence
sufficed have none: they are closed and not missing.

| column | from |
|---|---|
| `class, counted, attempts, detail`, usage, times | the journal |
| `reward, passed, safety_failure` | the grade that the journal names, where the slot counts as a value |
| `exposed` | the assays of the slot's batch for its arm: `yes` when the last of each phase passed |
| `invoked` | the row `skill-events-v2` of the trial |
| `model_reported` | `exit.json` of the last attempt |
| `trial_fingerprint` | `trial.json`; `not_prepared` where there is none |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.strict import Profile, read_json
from skill_effectiveness.protocol.event_rows import SkillEventsRow, read_event_row
from skill_effectiveness.studies.attempt_records import AttemptExit, read_exit
from skill_effectiveness.studies.attempts import ATTEMPTS, EXIT
from skill_effectiveness.studies.endings import counts_as
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.pairing import trial_id
from skill_effectiveness.studies.tables import TrialRow
from skill_effectiveness.studies.words import EndClass, Outcome
from skill_effectiveness.trials.binding import EVENTS
from skill_effectiveness.trials.faults import TrialError
from skill_effectiveness.trials.grades import GRADE_NAME, grade_hash, parse_grade
from skill_effectiveness.trials.store import TRIAL, TRIALS, parse_document
from skill_effectiveness.trials.trial_reading import GRADING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skill_effectiveness.protocol.tasks import Task
    from skill_effectiveness.studies.evidence_reading import StudyReader
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.rows import Usage
    from skill_effectiveness.studies.state import AttemptState, BatchState, SlotState, StudyState
    from skill_effectiveness.trials.allocation import Slot
    from skill_effectiveness.trials.grades import GradeDocument

NOT_STARTED: Final = "not_started"
NOT_PREPARED: Final = "not_prepared"
_ABANDONED: Final = "abandoned"
_MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*")
_NO_GRADE: Final = "the grade that lies here is not the one of the journal; restore the study's folder."


@dataclass(frozen=True, slots=True)
class StudyEvidence:
    """Everything that tables are built from.

    Attributes:
        plan: as sealed.
        tasks: full records, by id.
        slots: the run order, opened.
        state: of the whole journal.
        reader: of the study's files.
    """

    plan: StudyPlan
    tasks: Mapping[str, Task]
    slots: Sequence[Slot]
    state: StudyState
    reader: StudyReader


def trial_rows(evidence: StudyEvidence) -> tuple[TrialRow, ...]:
    """The rows of the table of trials, by slot.

    Raises:
        StudyError: `row_invalid`: a file is not what the journal says.
        RootError, FileError: a file cannot be read.
    """
    closed = evidence.state.closed
    abandoned = closed is not None and closed.reason == _ABANDONED
    rows = []
    for slot in sorted(evidence.slots, key=lambda one: one.slot):
        state = evidence.state.slot(slot.slot)
        if state.ended is not None or abandoned:
            rows.append(_row(evidence, slot, state))
    return tuple(rows)


class _Graded(NamedTuple):
    counted: str
    reward: float | None = None
    passed: bool | None = None
    value: float | None = None
    safety: bool | None = None


def _row(evidence: StudyEvidence, slot: Slot, state: SlotState) -> TrialRow:
    plan, name = evidence.plan, trial_id(evidence.plan, slot)
    graded = _graded(evidence, state, name)
    last = state.attempts[-1] if state.attempts else None
    exit_ = None if last is None else _exit(evidence.reader, slot, last)
    task = evidence.tasks[slot.task_id]
    usage = [attempt.usage for attempt in state.attempts]
    return TrialRow(
        slot=slot.slot,
        trial_id=name,
        task_id=slot.task_id,
        family=str(task.task_family),
        cohort=str(task.cohort),
        arm=slot.arm,
        sample=slot.sample,
        attempts=len(state.attempts),
        end_class=_class_of(state),
        detail=None if last is None else last.detail,
        counted=graded.counted,
        reward=graded.reward,
        passed=graded.passed,
        value=graded.value,
        exposed=_exposed(evidence.state.batches.values(), slot),
        invoked=_invoked(evidence.reader.read(f"{TRIALS}/{name}/{EVENTS}")),
        safety_failure=graded.safety,
        model_requested=plan.driver.model,
        model_reported=None if exit_ is None else _named(exit_.model_reported),
        started_at=moment(state.attempts[0].started_at) if state.attempts else None,
        ended_at=None if state.ended_at is None else moment(state.ended_at),
        wall_seconds=_sum([_amount(one, "wall_seconds") for one in usage]),
        input_tokens=_whole([_amount(one, "input_tokens") for one in usage]),
        cached_tokens=_whole([_amount(one, "cached_tokens") for one in usage]),
        output_tokens=_whole([_amount(one, "output_tokens") for one in usage]),
        reasoning_tokens=_whole([_amount(one, "reasoning_tokens") for one in usage]),
        tool_calls=_whole([_amount(one, "tool_calls") for one in usage]),
        cost_units=_sum([_amount(one, "cost_units") for one in usage]),
        grade_hash=state.grade_hash,
        trial_fingerprint=_fingerprint(evidence.reader.read(f"{TRIALS}/{name}/{TRIAL}"), name),
        completion_binding_hash=state.completion_binding_hash,
    )


def _named(model: str | None) -> str | None:
    """A model's name as it was reported; whatever is no name stands between quotes and is safe to print.

    A program tells it, so it may be anything: control characters, or a formula for whoever opens the table.
    """
    return model if model is None or _MODEL.fullmatch(model) else f'"{printable(model)}"'


def moment(text: str) -> datetime:
    """A time of the journal."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _class_of(state: SlotState) -> str:
    """The class of a slot; that of its last attempt where the study was given up before the slot ended."""
    if state.ended is not None:
        return str(state.ended)
    if not state.attempts:
        return NOT_STARTED
    return str(state.attempts[-1].ended or EndClass.INTERRUPTED)


def _graded(evidence: StudyEvidence, state: SlotState, name: str) -> _Graded:
    plan = evidence.plan
    if state.ended is None:
        return _Graded("missing")
    counted = counts_as(state.ended, state.state, plan.analysis)
    measured = plan.outcome.primary is not Outcome.PREFERENCE
    if counted == "failure":
        return _Graded(counted, value=0.0 if measured else None)
    if counted == "missing":
        return _Graded(counted)
    grade = _grade(evidence.reader, state, name)
    if grade.reward is None:
        raise _contradicts(f"{TRIALS}/{name}/{GRADING}/{GRADE_NAME}", _NO_GRADE)
    reward, passed = float(grade.reward), grade.reward >= plan.outcome.pass_at
    value = {Outcome.REWARD: reward, Outcome.PASSED: float(passed)}.get(plan.outcome.primary)
    return _Graded(counted, reward, passed, value, bool(grade.outranking_failures))


def _grade(reader: StudyReader, state: SlotState, name: str) -> GradeDocument:
    where = f"{TRIALS}/{name}/{GRADING}/{GRADE_NAME}"
    data = reader.read(where)
    try:
        grade = None if data is None else parse_grade(data)
    except EvidenceError as error:
        raise _contradicts(where, _NO_GRADE) from error
    if grade is None or grade_hash(grade) != state.grade_hash:
        raise _contradicts(where, _NO_GRADE)
    return grade


def _exit(reader: StudyReader, slot: Slot, attempt: AttemptState) -> AttemptExit | None:
    """What the last attempt left; None where nobody saw its end."""
    where = f"{ATTEMPTS}/{slot.slot}/a{attempt.number}/{EXIT}"
    data = reader.read(where)
    if data is None:
        return None
    try:
        found = read_exit(data)
    except EvidenceError as error:
        raise _contradicts(
            where, "this is no attempt as it was written; restore the study's folder."
        ) from error
    if (found.slot, found.attempt, found.order_digest) != (slot.slot, attempt.number, attempt.order_digest):
        raise _contradicts(where, "this attempt is not the one of the journal; restore the study's folder.")
    return found


def _fingerprint(data: bytes | None, name: str) -> str:
    if data is None:
        return NOT_PREPARED
    try:
        return parse_document(data).trial_fingerprint
    except TrialError as error:
        raise _contradicts(f"{TRIALS}/{name}/{TRIAL}", error.sentence) from error


def _exposed(batches: Iterable[BatchState], slot: Slot) -> str:
    """What the assays of the slot's batch say of its arm; the last one of a phase counts."""
    for batch in batches:
        if batch.first <= slot.slot <= batch.last:
            said = {phase: result for phase, arm, result in batch.assays if arm == slot.arm}
            if "failed" in said.values():
                return "no"
            return "yes" if "passed" in said.values() else "unverified"
    return "unverified"


def _invoked(events: bytes | None) -> str:
    """Whether the agent called a skill, by its own recording; `unverified` where that cannot be told."""
    found: list[SkillEventsRow] = []
    for line in (events or b"").splitlines():
        try:
            row = read_event_row(read_json(line, Profile.ROW))
        except EvidenceError:
            return "unverified"
        if isinstance(row, SkillEventsRow):
            found.append(row)
    if len(found) != 1 or not found[0].verifiable or found[0].events is None:
        return "unverified"
    return "yes" if found[0].events.skills_invoked else "no"


def _amount(usage: Usage | None, name: str) -> float | None:
    amount: float | None = None if usage is None else getattr(usage, name)
    return amount


def _sum(amounts: Sequence[float | None]) -> float | None:
    """The sum of what every attempt used; unknown where one does not tell, or there is none."""
    known = [amount for amount in amounts if amount is not None]
    return float(sum(known)) if known and len(known) == len(amounts) else None


def _whole(amounts: Sequence[float | None]) -> int | None:
    total = _sum(amounts)
    return None if total is None else int(total)


def _contradicts(where: str, sentence: str) -> StudyError:
    return StudyError(StudyCode.ROW_INVALID, where, sentence)
