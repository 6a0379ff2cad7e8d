"""What a study's journal amounts to: slots, attempts, grades, votes and phases (studies.md section 2).

`fold(rows)` is pure and sees the journal alone, so a runner that starts again, a report and a stranger with a
bundle all come to the same state. A row that contradicts those before it is refused: nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from skill_effectiveness.studies import rows
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.words import EndClass, GradeState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skill_effectiveness.evidence.journal import Row
    from skill_effectiveness.studies.rows import StudyRow, Usage


class Phase(StrEnum):
    """How far a study has come."""

    PLANNED = "planned"
    RUNNING = "running"
    COMPLETE = "complete"
    UNBLINDED = "unblinded"
    ANALYSED = "analysed"
    SEALED = "sealed"


class SlotPhase(StrEnum):
    """How far a slot has come: `open` has no attempt that runs, `started` has one."""

    OPEN = "open"
    STARTED = "started"
    ENDED = "ended"
    GRADED = "graded"


@dataclass(frozen=True, slots=True)
class AttemptState:
    """One attempt; `ended` is None while it runs."""

    number: int
    order_digest: str
    started_at: str
    ended: EndClass | None = None
    detail: str | None = None
    tree: str | None = None
    usage: Usage | None = None
    ended_at: str | None = None


@dataclass(frozen=True, slots=True)
class SlotState:
    """One slot.

    Attributes:
        attempts: in order, the last of them perhaps running.
        ended: the class it ended with; None while it has not.
        completion_binding_hash: of its trial, where that completed.
        state: of its last grading; None before the first.
        grade_hash: of the valid grade.
    """

    slot: int
    attempts: tuple[AttemptState, ...] = ()
    ended: EndClass | None = None
    ended_at: str | None = None
    completion_binding_hash: str | None = None
    state: GradeState | None = None
    grade_hash: str | None = None

    @property
    def phase(self) -> SlotPhase:
        """How far it has come."""
        if self.ended is not None:
            return SlotPhase.GRADED if self.state is GradeState.VALID else SlotPhase.ENDED
        running = bool(self.attempts) and self.attempts[-1].ended is None
        return SlotPhase.STARTED if running else SlotPhase.OPEN


@dataclass(frozen=True, slots=True)
class BatchState:
    """One batch; `assays` are (phase, arm, result)."""

    batch: int
    first: int
    last: int
    assays: tuple[tuple[str, str, str], ...] = ()
    void: bool = False


@dataclass(frozen=True, slots=True)
class VoteState:
    """One vote; `state` is None until it has ended."""

    vote_id: str
    licence_id: str
    pair_id: str
    position: int
    started_at: str
    state: str | None = None
    vote_hash: str | None = None
    usage: Usage | None = None
    void: bool = False


@dataclass(slots=True)
class StudyState:
    """Everything that happened, as one `Folding` has left it; to be read, not written.

    Attributes:
        seq: number of the last row taken; -1 before the first.
        slots: those that were started, by number.
        canaries: by licence, right or wrong, in order.
        guesses: (licence, pair, position) to A, B or unsure.
        closed: why open slots will not be run; None while they may.
    """

    seq: int = -1
    plan_digest: str | None = None
    slots: dict[int, SlotState] = field(default_factory=dict)
    batches: dict[int, BatchState] = field(default_factory=dict)
    amendments: list[rows.Amendment] = field(default_factory=list)
    votes: dict[str, VoteState] = field(default_factory=dict)
    canaries: dict[str, list[rows.Canary]] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)
    guesses: dict[tuple[str, str, int], str] = field(default_factory=dict)
    workers_lost: int = 0
    leftovers_ended: int = 0
    drained: int = 0
    closed: rows.SlotsClosed | None = None
    unblinded: str | None = None
    unblinded_at: str | None = None
    results_digest: str | None = None
    sealed: bool = False

    def slot(self, number: int) -> SlotState:
        """A slot, started or not."""
        return self.slots.get(number) or SlotState(number)

    def ended(self) -> int:
        """How many slots have ended."""
        return sum(slot.ended is not None for slot in self.slots.values())

    def started_slots(self) -> tuple[SlotState, ...]:
        """Slots with an attempt that nobody has seen the end of, by number."""
        held = [slot for slot in self.slots.values() if slot.phase is SlotPhase.STARTED]
        return tuple(sorted(held, key=lambda slot: slot.slot))

    def complete(self, slots: int) -> bool:
        """Whether nothing is left to run.

        Args:
            slots: of the plan.
        """
        return self.closed is not None or self.ended() == slots

    def phase(self, slots: int) -> Phase:
        """How far the study has come.

        Args:
            slots: of the plan.
        """
        for reached, phase in (
            (self.sealed, Phase.SEALED),
            (self.results_digest is not None, Phase.ANALYSED),
            (self.unblinded is not None, Phase.UNBLINDED),
            (self.complete(slots), Phase.COMPLETE),
            (bool(self.slots), Phase.RUNNING),
        ):
            if reached:
                return phase
        return Phase.PLANNED

    def voted(self, licence_id: str) -> bool:
        """Whether a reviewer was ever asked."""
        return any(vote.licence_id == licence_id for vote in self.votes.values())


def fold(journal: Iterable[Row]) -> StudyState:
    """The state after all rows of a journal, from its first.

    Raises:
        StudyError: `row_invalid`: a row is not of its form, or contradicts those before it.
    """
    folding = Folding()
    for row in journal:
        folding.take(row)
    return folding.state


class Folding:
    """A fold that goes on: for whoever appends rows and needs the state after each."""

    def __init__(self) -> None:
        self.state = StudyState()

    def take(self, row: Row) -> StudyRow | None:
        """Take the next row; answers its body, None for one of the journal's own.

        Raises:
            StudyError: `row_invalid`; the state is as before.
        """
        body = rows.read_study_row(row)
        if body is None:
            self.state.seq = row.seq
        else:
            self.follow(row.seq, body, row.time)
        return body

    def follow(self, seq: int, body: StudyRow, time: str) -> None:
        """Take the next row, whose body is known already; errors as `take`."""
        if (self.state.plan_digest is None) is not isinstance(body, rows.PlanSealed):
            raise _contradiction(seq, body, "a plan is sealed in the first row and nowhere else")
        if self.state.unblinded is not None and not isinstance(body, _AFTER_UNBLINDING):
            raise _contradiction(seq, body, "arms are known, and nothing is run, graded or asked after that")
        fault = _STEPS[type(body)](self.state, body, time)
        if fault is not None:
            raise _contradiction(seq, body, fault)
        self.state.seq = seq


def _contradiction(seq: int, body: StudyRow, told: str) -> StudyError:
    sentence = f"a row {body.type} contradicts the rows before it: {told}. The journal is not one run's."
    return StudyError(StudyCode.ROW_INVALID, f"journal row {seq}", sentence)


# One step per type of row; it answers what is wrong, or changes the state.


def _plan_sealed(state: StudyState, row: rows.PlanSealed, _time: str) -> str | None:
    state.plan_digest = row.plan_digest
    return None


def _amendment(state: StudyState, row: rows.Amendment, _time: str) -> str | None:
    state.amendments.append(row)
    return None


def _batch_opened(state: StudyState, row: rows.BatchOpened, _time: str) -> str | None:
    if row.batch != len(state.batches) + 1 or row.last < row.first:
        return "batches are numbered as they open"
    state.batches[row.batch] = BatchState(row.batch, row.first, row.last)
    return None


def _assay(state: StudyState, row: rows.Assay, _time: str) -> str | None:
    batch = state.batches.get(row.batch)
    if batch is None:
        return "its batch was never opened"
    found = (row.phase, str(row.arm), row.result)
    state.batches[row.batch] = replace(batch, assays=(*batch.assays, found))
    return None


def _batch_void(state: StudyState, row: rows.BatchVoid, time: str) -> str | None:
    batch = state.batches.get(row.batch)
    if batch is None or row.batch != len(state.batches) or batch.void:
        return "only the last batch becomes void, and once"
    state.batches[row.batch] = replace(batch, void=True)
    for number in range(batch.first, batch.last + 1):
        held = state.slots.get(number)
        if held is not None and held.ended is not None:
            state.slots[number] = replace(held, ended=EndClass.VOID, ended_at=time)
    return None


def _slot_started(state: StudyState, row: rows.SlotStarted, time: str) -> str | None:
    held = state.slot(row.slot)
    if held.phase is not SlotPhase.OPEN or row.attempt != len(held.attempts) + 1:
        return f"slot {row.slot} cannot begin attempt {row.attempt}"
    if state.closed is not None or state.unblinded is not None:
        return "nothing is started once slots are closed or arms are known"
    begun = AttemptState(row.attempt, row.order_digest, time)
    state.slots[row.slot] = replace(held, attempts=(*held.attempts, begun))
    return None


def _attempt_ended(state: StudyState, row: rows.AttemptEnded, time: str) -> str | None:
    held = state.slot(row.slot)
    if held.phase is not SlotPhase.STARTED or held.attempts[-1].number != row.attempt:
        return f"attempt {row.attempt} of slot {row.slot} does not run"
    done = replace(
        held.attempts[-1],
        ended=row.ended,
        detail=row.detail,
        tree=row.tree,
        usage=row.usage,
        ended_at=time,
    )
    state.slots[row.slot] = replace(held, attempts=(*held.attempts[:-1], done))
    return None


def _worker_lost(state: StudyState, _row: rows.WorkerLost, _time: str) -> str | None:
    state.workers_lost += 1
    return None


def _leftovers_ended(state: StudyState, row: rows.LeftoversEnded, _time: str) -> str | None:
    state.leftovers_ended += row.processes
    return None


def _slot_ended(state: StudyState, row: rows.SlotEnded, time: str) -> str | None:
    held = state.slot(row.slot)
    if not held.attempts or held.phase is not SlotPhase.OPEN:
        return f"slot {row.slot} has no ended attempt, or has ended already"
    state.slots[row.slot] = replace(
        held, ended=row.ended, ended_at=time, completion_binding_hash=row.completion_binding_hash
    )
    return None


def _graded(state: StudyState, row: rows.Graded, _time: str) -> str | None:
    held = state.slot(row.slot)
    if not held.attempts or held.attempts[-1].ended is None:
        return f"slot {row.slot} has nothing to grade"
    if held.state is GradeState.VALID:
        return f"slot {row.slot} has a grade"
    if (row.grade_hash is None) is (row.state is GradeState.VALID):
        return "a valid grade has a hash, and no other has"
    state.slots[row.slot] = replace(held, state=row.state, grade_hash=row.grade_hash)
    return None


def _drained(state: StudyState, _row: rows.Drained, _time: str) -> str | None:
    state.drained += 1
    return None


def _vote_started(state: StudyState, row: rows.VoteStarted, time: str) -> str | None:
    if row.vote_id in state.votes:
        return f"the vote {row.vote_id} was started before"
    if state.unblinded is not None:
        return "nobody votes once arms are known"
    state.votes[row.vote_id] = VoteState(row.vote_id, row.licence_id, row.pair_id, row.position, time)
    return None


def _vote_ended(state: StudyState, row: rows.VoteEnded, _time: str) -> str | None:
    vote = state.votes.get(row.vote_id)
    if vote is None or vote.state is not None:
        return f"the vote {row.vote_id} does not run"
    state.votes[row.vote_id] = replace(vote, state=row.state, vote_hash=row.vote_hash, usage=row.usage)
    return None


def _canary(state: StudyState, row: rows.Canary, _time: str) -> str | None:
    state.canaries.setdefault(row.licence_id, []).append(row)
    return None


def _licence_revoked(state: StudyState, row: rows.LicenceRevoked, _time: str) -> str | None:
    state.revoked.add(row.licence_id)
    return None


def _votes_void(state: StudyState, row: rows.VotesVoid, _time: str) -> str | None:
    for vote_id in row.vote_ids:
        vote = state.votes.get(vote_id)
        if vote is None or vote.licence_id != row.licence_id:
            return f"the vote {vote_id} is none of this licence"
    for vote_id in row.vote_ids:
        state.votes[vote_id] = replace(state.votes[vote_id], void=True)
    return None


def _guess(state: StudyState, row: rows.Guess, _time: str) -> str | None:
    about = (row.licence_id, row.pair_id, row.position)
    if about in state.guesses:
        return "this guess was made before"
    state.guesses[about] = row.guess
    return None


def _slots_closed(state: StudyState, row: rows.SlotsClosed, _time: str) -> str | None:
    if state.closed is not None:
        return "slots are closed once"
    state.closed = row
    return None


def _unblinded(state: StudyState, row: rows.Unblinded, time: str) -> str | None:
    if state.unblinded is not None:
        return "arms are made known once"
    state.unblinded, state.unblinded_at = row.reason, time
    return None


def _analysed(state: StudyState, row: rows.Analysed, _time: str) -> str | None:
    if state.unblinded is None:
        return "nothing is analysed before arms are known"
    state.results_digest = row.results_digest
    return None


def _sealed(state: StudyState, _row: rows.Sealed, _time: str) -> str | None:
    if state.results_digest is None:
        return "nothing is sealed before it was analysed"
    state.sealed = True
    return None


_AFTER_UNBLINDING: Final = (rows.Unblinded, rows.Analysed, rows.Sealed)

_STEPS: Final[Mapping[type[StudyRow], Callable[..., str | None]]] = {
    rows.PlanSealed: _plan_sealed,
    rows.Amendment: _amendment,
    rows.BatchOpened: _batch_opened,
    rows.Assay: _assay,
    rows.BatchVoid: _batch_void,
    rows.SlotStarted: _slot_started,
    rows.AttemptEnded: _attempt_ended,
    rows.WorkerLost: _worker_lost,
    rows.LeftoversEnded: _leftovers_ended,
    rows.SlotEnded: _slot_ended,
    rows.Graded: _graded,
    rows.Drained: _drained,
    rows.VoteStarted: _vote_started,
    rows.VoteEnded: _vote_ended,
    rows.Canary: _canary,
    rows.LicenceRevoked: _licence_revoked,
    rows.VotesVoid: _votes_void,
    rows.Guess: _guess,
    rows.SlotsClosed: _slots_closed,
    rows.Unblinded: _unblinded,
    rows.Analysed: _analysed,
    rows.Sealed: _sealed,
}
