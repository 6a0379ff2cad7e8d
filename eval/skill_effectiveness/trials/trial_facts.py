"""Every value of one trial that the gate uses, derived from what its folder holds (trials.md section 9).

A judgement over what `trial_reading` read. Values that only a finished trial can have (grades, account,
proofs) are None as long as nothing on disk says them; what was observed counts in any trial.

| `drift` | when |
|---|---|
| `missing` | no trial is there, or its document is none |
| `misplaced` | the document was made for another place |
| the name of a field of `trial.json` | it is not what the plan says |
| `completion` | the trial says completed, and does not replay |
| `breach` | the trial says completed beside a breach mark |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.protocol.skill_events import evaluate_matched_call
from skill_effectiveness.trials.binding import fingerprint
from skill_effectiveness.trials.budget import check_within, has_limit
from skill_effectiveness.trials.faults import TrialError
from skill_effectiveness.trials.gate_facts import TrialFacts
from skill_effectiveness.trials.grades import deterministic_replay, parse_grade
from skill_effectiveness.trials.isolation import FILE_ITEMS, MEMORY_ITEMS, Breach
from skill_effectiveness.trials.leaks import scan
from skill_effectiveness.trials.models import StopReason, TrialStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import JsonValue

    from skill_effectiveness.protocol.event_rows import HostResidualRow, SkillEventsRow
    from skill_effectiveness.protocol.gates import WaivableItem
    from skill_effectiveness.protocol.registries import RegistrySchema
    from skill_effectiveness.protocol.tasks import Task
    from skill_effectiveness.trials.gate_facts import PlannedTrial
    from skill_effectiveness.trials.leaks import LeakRules
    from skill_effectiveness.trials.models import CompletionIsolation, TrialDocument

FILE_BREACHES: Final = frozenset({Breach.READ_OUTSIDE_ROOTS, Breach.WRITE_OUTSIDE_ROOTS})
MALFORMED_ROW: Final = "malformed_row"
SEVERAL_ROWS: Final = "several_rows"
JUDGE_PAYLOAD: Final = "judge_payload"


@dataclass(frozen=True, slots=True)
class EventRows:
    """The rows of `events.jsonl` that the gate reads; None stands for a malformed one."""

    residuals: Sequence[HostResidualRow | None] = ()
    skill_events: Sequence[SkillEventsRow | None] = ()


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """One trial as it was read.

    Attributes:
        document: `trial.json`.
        misplaced: whether it was made for another place.
        isolation: of a completion that replays; None for every other trial.
        breaches: what the breach mark names; None without a mark.
        events: see `EventRows`.
        outcome: `outcome/result.json`; None where there is none that can be read.
        grade, grade_again: bytes of the two grade files.
    """

    document: TrialDocument
    misplaced: bool = False
    isolation: CompletionIsolation | None = None
    breaches: frozenset[str] | None = None
    events: EventRows = EventRows()
    outcome: Mapping[str, JsonValue] | None = None
    grade: bytes | None = None
    grade_again: bytes | None = None


@dataclass(frozen=True, slots=True)
class TrialContext:
    """What a trial is held against.

    Attributes:
        planned: its plan row.
        task: the full record.
        reference: the public reference of the task.
        registry_schema: of the plan's arms.
        plan_hash: of the registry plan; None where the arms make none.
        bundle_id: what the arm's matching call has to name; None where no call is judged or none is named.
        calls_are_matched: whether a call is judged.
        leaks: what a judge payload is searched for.
    """

    planned: PlannedTrial
    task: Task
    reference: Mapping[str, JsonValue]
    registry_schema: RegistrySchema
    plan_hash: str | None
    bundle_id: str | None
    calls_are_matched: bool
    leaks: LeakRules


def facts(stored: StoredTrial, context: TrialContext) -> TrialFacts:
    """Derive every value of a trial that is on disk."""
    document, isolation = stored.document, stored.isolation
    completed = isolation is not None and stored.breaches is None
    failed = document.status is TrialStatus.FAILED
    breached = stored.breaches is not None
    events_verifiable, shape = _skill_events(stored.events.skill_events)
    return TrialFacts(
        drift=tuple(_drift(stored, context)),
        ended=document.status.is_terminal,
        void=failed and document.stop_reason == StopReason.VOID and not breached,
        runner_completed=completed,
        runner_failure_reason=document.stop_reason if failed else None,
        off_ccl_residual=_residual(stored.events.residuals),
        skill_events_verifiable=events_verifiable,
        skill_event_shape=shape,
        matched_call_compliant=_matched_call(stored.events.skill_events, context),
        blinding_leak=_leak(stored.outcome, context.leaks),
        deterministic_replay_match=_grades(stored),
        contaminated=breached or document.status is TrialStatus.CONTAMINATED,
        budget_complete=_budget(document),
        access_audit_ok=_isolated(stored, FILE_ITEMS, of_files=True),
        memory_isolation_ok=_isolated(stored, MEMORY_ITEMS, of_files=False),
        missing_proofs=frozenset(isolation.coverage_limitations) if isolation and completed else frozenset(),
    )


def _drift(stored: StoredTrial, context: TrialContext) -> Iterator[str]:
    document, planned = stored.document, context.planned
    _task, manifest, runtime, runner, experiment, identity = planned.hashes
    own = fingerprint(
        task=context.task,
        manifest_hash=document.manifest_hash,
        runtime=document.runtime,
        budget=document.budget,
        sample_index=document.sample_index,
        trial_location_hash=document.trial_location_hash,
    )
    if stored.misplaced:
        yield "misplaced"
    for field, holds in (
        ("task", to_json(document.task) == context.reference),
        ("arm_id", document.arm_id == planned.name.arm_id),
        ("sample_index", document.sample_index == planned.name.sample_index),
        ("manifest_hash", document.manifest_hash == manifest),
        ("runtime", digest_object(document.runtime.model_dump(mode="json")) == runtime),
        ("runner_hash", document.runtime.runner_hash == runner),
        ("experiment_plan_hash", document.runtime.experiment_plan_hash == experiment),
        ("trial_fingerprint", document.trial_fingerprint == identity == own),
        ("registry_schema", document.registry_schema == context.registry_schema.value),
        ("registry_plan_hash", document.registry_plan_hash in (None, context.plan_hash)),
    ):
        if not holds:
            yield field
    if document.status is TrialStatus.COMPLETED:
        if stored.breaches is not None:
            yield "breach"
        elif stored.isolation is None:
            yield "completion"


def _residual(rows: Sequence[HostResidualRow | None]) -> bool | None:
    """Whether any row saw something; None where no row says, or one that should say does not."""
    said = [None if row is None else row.residual for row in rows]
    if True in said:
        return True
    return False if said and None not in said else None


def _skill_events(rows: Sequence[SkillEventsRow | None]) -> tuple[bool | None, str | None]:
    """Whether the events can be read, and the shape that was missing when they cannot."""
    if not rows:
        return None, None
    if len(rows) > 1:
        return False, SEVERAL_ROWS
    row = rows[0]
    if row is None:
        return False, MALFORMED_ROW
    return row.verifiable, None if row.unverifiable is None else f"{row.driver}:{row.unverifiable.value}"


def _matched_call(rows: Sequence[SkillEventsRow | None], context: TrialContext) -> bool | None:
    if not context.calls_are_matched or context.bundle_id is None or not rows:
        return None
    row = rows[0]
    if len(rows) > 1 or row is None:
        return False
    return evaluate_matched_call(row.events, context.bundle_id).compliant


def _leak(outcome: Mapping[str, JsonValue] | None, rules: LeakRules) -> bool | None:
    if outcome is None or JUDGE_PAYLOAD not in outcome:
        return None
    return bool(scan(outcome[JUDGE_PAYLOAD], rules))


def _grades(stored: StoredTrial) -> bool | None:
    """Whether both grades are valid, equal, and of this very trial."""
    grade, again = stored.grade, stored.grade_again
    if grade is None or again is None:
        return None
    if grade != again and not deterministic_replay(grade, again):
        return False
    try:
        return parse_grade(grade).trial_fingerprint == stored.document.trial_fingerprint
    except EvidenceError:
        return False


def _budget(document: TrialDocument) -> bool | None:
    if document.resume_cursor is None:
        return False if has_limit(document.budget) and document.status is TrialStatus.COMPLETED else None
    try:
        check_within(document.budget, document.resume_cursor.consumed_budget)
    except TrialError:
        return False
    return True


def _isolated(stored: StoredTrial, items: Sequence[WaivableItem], *, of_files: bool) -> bool | None:
    """Whether this half of isolation is proven; False for an observed breach beside a completion."""
    if stored.document.status is not TrialStatus.COMPLETED:
        return None
    if stored.breaches is not None:
        # A mark that names nothing that we know is a breach of everything.
        seen = stored.breaches & set(Breach) or set(Breach)
        return False if (seen & FILE_BREACHES if of_files else seen - FILE_BREACHES) else None
    if stored.isolation is None:
        return None
    return None if set(items) & set(stored.isolation.coverage_limitations) else True
