"""Checks 4 to 7 and 10: journal, plan, allocation, flow and assays of a bundle (studies.md section 8)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.journal_faults import JournalStatus
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.agreement import disagreement
from skill_effectiveness.studies.attempt_records import is_of, read_exit
from skill_effectiveness.studies.attempts import ATTEMPTS, EXIT, TREE
from skill_effectiveness.studies.batches import ASSAY_CONTRACT, ASSAYS, FAILED, assayed, batches
from skill_effectiveness.studies.bundle_case import CheckFailedError, named
from skill_effectiveness.studies.bundle_contents import demand_assays_known, demand_attempts_known
from skill_effectiveness.studies.bundle_form import OPENINGS, openings
from skill_effectiveness.studies.deciding import may_stop
from skill_effectiveness.studies.endings import KILLED, SlotStep, Step, next_step
from skill_effectiveness.studies.plan_seal import (
    COMMITMENTS,
    PLAN,
    PLAN_SEAL,
    PlanPredicate,
    commitment_lines,
    verify_plan_seal,
)
from skill_effectiveness.studies.root import PURPOSE, STATUS
from skill_effectiveness.studies.spending import consumed, left_of
from skill_effectiveness.studies.state import SlotState
from skill_effectiveness.studies.status import Counting, first_status, read_status, status_line
from skill_effectiveness.studies.study_file import STUDY_FILE, read_study
from skill_effectiveness.studies.words import EndClass
from skill_effectiveness.trials.allocation import commitments, commitments_hash, seed_commitment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.studies.batches import Batch, Phase
    from skill_effectiveness.studies.bundle_case import BundleCase
    from skill_effectiveness.studies.state import AttemptState, BatchState

_WHOLE: Final = frozenset({JournalStatus.INTACT, JournalStatus.INTACT_WITH_TEARS})
_ABANDONED: Final = "abandoned"
DECIDED: Final = "decided"


def check_journal(case: BundleCase) -> None:
    """Check 4: the journal is intact and as long as pinned."""
    found, pinned = case.journal, case.predicate.journal
    if found.status not in _WHOLE:
        told = found.findings[0].sentence if found.findings else found.sentence
        raise CheckFailedError(f"the journal is {found.status}: {told}")
    if (found.journal_id, found.count, found.head) != (pinned.journal_id, pinned.count, pinned.head):
        raise CheckFailedError("the journal is not the one that was sealed, or not as long.")


def check_plan(case: BundleCase) -> None:
    """Check 5: plan digest in the first row, plan seal, no outcome before it."""
    digest = case.predicate.plan_digest
    if not case.rows or case.rows[0].body.get("purpose") != PURPOSE:
        raise CheckFailedError("the journal is not that of a study.")
    bodies = (body for row in case.rows if (body := rows.read_study_row(row)) is not None)
    first = next(bodies, None)
    if not isinstance(first, rows.PlanSealed):
        raise CheckFailedError("the journal does not begin with the plan; something was done before it.")
    if not first.plan_digest == digest == case.plan.plan_digest:
        raise CheckFailedError("the plan is not the one that the journal begins with and the seal names.")
    if any(isinstance(body, rows.PlanSealed) for body in bodies):
        raise CheckFailedError("a plan was sealed again later.")
    sealed = verify_plan_seal(
        case.files.demand(PLAN_SEAL),
        [case.key],
        plan_file=case.files.demand(PLAN),
        commitments=case.files.demand(COMMITMENTS),
    )
    if not sealed.passed:
        raise CheckFailedError(f"the seal of the plan does not hold: {sealed.failures[0].sentence}")
    predicate = sealed.predicate
    if not isinstance(predicate, PlanPredicate) or (
        predicate.plan_digest,
        predicate.commitments_hash,
    ) != (digest, case.plan.allocation.commitments_hash):
        raise CheckFailedError("the seal of the plan is over another plan.")
    if (field := disagreement(read_study(case.files.demand(STUDY_FILE)), case.plan)) is not None:
        raise CheckFailedError(f"the study file is not the one that was planned: {field} differs.")


def check_allocation(case: BundleCase) -> None:
    """Check 6: seed and commitments open, and the allocation follows from them."""
    planned = case.plan.allocation
    if seed_commitment(case.seed) != planned.seed_commitment:
        raise CheckFailedError("the opened seed is not the one that the plan committed to.")
    published = commitments(case.seed, case.slots)
    if commitments_hash(published) != planned.commitments_hash:
        raise CheckFailedError("the run order under the seed is not the one that was committed to.")
    if commitment_lines(published) != case.files.demand(COMMITMENTS):
        raise CheckFailedError("the published commitments are not those of the run order.")
    if openings(case.seed, case.slots) != case.files.demand(OPENINGS):
        raise CheckFailedError("the openings are not those of the seed.")


def check_flow(case: BundleCase) -> None:
    """Check 7: planned - reported = explained; attempts in order, each with what it left."""
    state, planned = case.state, case.plan.allocation.slots
    explained = 0 if state.closed is None else state.closed.slots
    if planned - state.ended() != explained:
        told = f"of {planned} planned slots {state.ended()} ended and {explained} are explained"
        raise CheckFailedError(f"{told}; {planned - state.ended() - explained} are missing.")
    if state.unblinded is None:
        raise CheckFailedError("arms were never made known.")
    if any(not 1 <= number <= planned for number in state.slots):
        raise CheckFailedError("a slot was run that the plan does not have.")
    if state.closed is not None and state.closed.reason == DECIDED and not may_stop(case.plan):
        raise CheckFailedError("slots were closed early, and the plan does not let the study stop early.")
    for slot in state.slots.values():
        _check_course(case, slot)
        for attempt in slot.attempts:
            _check_attempt(case, slot, attempt)
    demand_attempts_known(case)
    _check_status(case)


def _check_course(case: BundleCase, slot: SlotState) -> None:
    """A slot was begun again only where the plan says so, and ended as its last attempt did."""
    plan = case.plan
    for number in range(1, len(slot.attempts)):
        if _next(case, slot, number).step is not Step.START:
            told = f"attempt {number} of slot {slot.slot} had ended it, and another one was begun"
            raise CheckFailedError(f"{told}.")
    if slot.ended is None or slot.ended is EndClass.CONTAMINATED:
        return
    void = any(held.void and held.first <= slot.slot <= held.last for held in case.state.batches.values())
    if void and slot.ended is EndClass.VOID:
        return
    found = _next(case, slot, len(slot.attempts))
    spent = left_of(plan.budgets.trial, consumed(slot.attempts)) is None
    expected = EndClass.LIMIT if found.step is Step.START and spent else found.ended
    if slot.ended is not expected:
        raise CheckFailedError(f"slot {slot.slot} ended otherwise than its attempts.")


def _next(case: BundleCase, slot: SlotState, attempts: int) -> SlotStep:
    """What the plan wanted after the first attempts of a slot."""
    before = SlotState(slot.slot, slot.attempts[:attempts])
    return next_step(before, case.plan.analysis, case.plan.attempts)


def _check_status(case: BundleCase) -> None:
    """The counts that lie there are those of the whole journal."""
    data = case.files.demand(STATUS)
    with named(STATUS):
        held = read_status(data)
    counting = Counting(first_status(case.plan))
    for row in case.rows:
        counting.take(row.seq, rows.read_study_row(row), row.time)
    if status_line(counting.at(held.segment, held.offset)) != data:
        raise CheckFailedError(f"{STATUS} does not count what the journal says.")


def _check_attempt(case: BundleCase, slot: SlotState, attempt: AttemptState) -> None:
    where = f"{ATTEMPTS}/{slot.slot}/a{attempt.number}"
    data = case.files.read(f"{where}/{EXIT}")
    unseen = attempt.ended is None or (attempt.ended, attempt.detail) == (EndClass.INTERRUPTED, KILLED)
    if data is None:
        if unseen:
            return
        raise CheckFailedError(f"{where} has no exit, and the journal says that it ended.")
    if attempt.ended is None:
        return
    with named(f"{where}/{EXIT}"):
        found = read_exit(data)
    if found.model_requested != case.plan.driver.model:
        raise CheckFailedError(f"{where} asked for another model than the planned one.")
    said = (found.ended, found.detail, found.tree, found.usage)
    if (
        unseen
        or not is_of(found, slot.slot, attempt)
        or said
        != (
            attempt.ended,
            attempt.detail,
            attempt.tree,
            attempt.usage,
        )
    ):
        raise CheckFailedError(f"{where} ended otherwise than the journal says.")
    if attempt.tree is not None and digest_bytes(case.files.demand(f"{where}/{TREE}")) != attempt.tree:
        raise CheckFailedError(f"{where} left another tree than the journal says.")


def check_assays(case: BundleCase) -> None:
    """Check 10: every batch lies between two assays of every arm."""
    planned = {batch.batch: batch for batch in batches(case.plan)}
    state = case.state
    _check_order(case, planned.values())
    demand_assays_known(case)
    covered: set[int] = set()
    for number, held in state.batches.items():
        batch = planned.get(number)
        if batch is None or (held.first, held.last) != (batch.first, batch.last):
            raise CheckFailedError(f"the batch {number} is not one of the plan.")
        covered.update(range(batch.first, batch.last + 1))
        _check_batch(case, batch, held)
    if outside := sorted(set(state.slots) - covered):
        raise CheckFailedError(f"the slot {outside[0]} was run outside of every batch.")


def _check_order(case: BundleCase, planned: Iterable[Batch]) -> None:
    """Every arm was assayed before the first slot of a batch began and after the last of them ended."""
    batch_of = {slot: batch.batch for batch in planned for slot in range(batch.first, batch.last + 1)}
    arms = {str(arm.arm) for arm in case.plan.arms}
    opened: dict[int, set[str]] = defaultdict(set)
    closing: set[int] = set()
    for row in case.rows:
        match body := rows.read_study_row(row):
            case rows.Assay(phase="open"):
                opened[body.batch].add(str(body.arm))
            case rows.Assay():
                closing.add(body.batch)
            case rows.SlotStarted() | rows.AttemptEnded() | rows.SlotEnded():
                number = batch_of.get(body.slot, 0)
                if opened[number] != arms or number in closing:
                    told = f"slot {body.slot} was run before its batch was opened or after it was closed"
                    raise CheckFailedError(f"{told}.")


def _check_batch(case: BundleCase, batch: Batch, held: BatchState) -> None:
    arms = {str(arm.arm) for arm in case.plan.arms}
    given_up = case.state.closed is not None and case.state.closed.reason == _ABANDONED
    started = any(batch.first <= number <= batch.last for number in case.state.slots)
    phases: tuple[Phase, ...] = ("open", "close")
    for phase in phases:
        found = assayed(held, phase)
        if phase == "close" and given_up and not found:
            continue
        if set(found) != arms and (started or found):
            raise CheckFailedError(f"the batch {batch.batch} lacks an assay at its {phase}.")
        document = {
            "schema_version": 1,
            "artifact_contract": ASSAY_CONTRACT,
            "batch": batch.batch,
            "phase": phase,
            "results": found,
        }
        if found and case.files.demand(f"{ASSAYS}/{batch.batch}-{phase}.json") != dump_line(document):
            raise CheckFailedError(f"the assay at the {phase} of batch {batch.batch} is not the journal's.")
        if FAILED in found.values() and (started if phase == "open" else not held.void):
            raise CheckFailedError(f"the batch {batch.batch} counts although an assay failed.")
    if held.void and FAILED not in assayed(held, "close").values():
        raise CheckFailedError(f"the batch {batch.batch} is void although no assay failed.")
