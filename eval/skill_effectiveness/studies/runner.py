"""Running a study: every slot once, whatever dies meanwhile (studies.md section 3).

One thread, the coordinator, decides and writes the journal; attempts and their trials are handled by the
executor, several at a time. For each slot the journal says first what is about to happen:

| row | then |
|---|---|
| `slot_started` | the trial is prepared, the agent runs, the attempt is published, its exit last |
| `attempt_ended` | the trial is completed, or recorded as what it is; its tree is graded twice |
| `slot_ended`, `graded` | |

Rows of several slots that are due at one moment are appended together. A run that starts again reads the
journal and goes on from what each slot is: an attempt with an exit is taken as it is, one without was
interrupted; a slot that ended without its grade is graded and nothing else.
"""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from skill_effectiveness.execution import leftovers
from skill_effectiveness.execution.carriers import kill_carriers
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.agent import AgentUnreachableError, AttemptLostError
from skill_effectiveness.studies.amendments import effective_budgets
from skill_effectiveness.studies.attempt_records import (
    AttemptBrief,
    AttemptExit,
    AttemptOrder,
    brief_of,
    ended_row,
    lost_row,
)
from skill_effectiveness.studies.attempts import AttemptFolders, judged
from skill_effectiveness.studies.batches import FAILED, AssayParts, Batch, assay, assayed, batches, is_closed
from skill_effectiveness.studies.deciding import Deciding
from skill_effectiveness.studies.endings import (
    MOST_GRADINGS,
    SlotStep,
    Step,
    blocks,
    counts_as,
    is_graded,
    next_step,
)
from skill_effectiveness.studies.slot_trials import Settled, SlotTrials
from skill_effectiveness.studies.spending import Spending, consumed, left_of
from skill_effectiveness.studies.words import EndClass, Outcome
from skill_effectiveness.trials.allocation import salt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Executor, Future

    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.protocol.gates import Budgets
    from skill_effectiveness.studies.agent import AttemptResult, Elsewhere, TestedAgent
    from skill_effectiveness.studies.halting import Halt
    from skill_effectiveness.studies.root import StudyJournal, StudyRoot
    from skill_effectiveness.studies.state import SlotState, StudyState
    from skill_effectiveness.studies.status import StudyStatus
    from skill_effectiveness.trials.allocation import Slot
    from skill_effectiveness.trials.store import TrialStore

LOCK_WAIT: Final = 2.0
_LOOK: Final = 0.1
"""Seconds between two looks at whether the run is to end."""

_ASSAY: Final = "exposure_assay"
_BUDGET: Final = "study_budget"


class RunStatus(StrEnum):
    """How a run ended."""

    COMPLETE = "complete"
    BLOCKED = "blocked"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run came to.

    Attributes:
        status: in a word.
        reason: of a blocked run, the kind of what blocks it.
        counts: of the study, none of them per arm.
    """

    status: RunStatus
    reason: str | None
    counts: StudyStatus


class RunObserver(Protocol):
    """Who watches a run; told nothing of arms."""

    def resumed(self, interrupted: int, kept: int, leftovers: int) -> None:
        """A run was killed: attempts without an end and with one, and processes that had to be ended."""

    def progressed(self, status: StudyStatus) -> None:
        """Something ended."""

    def resting(self, seconds: float) -> None:
        """Nothing can be done for a while: the provider had trouble."""


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run works with.

    Attributes:
        study: the open study; its lock is held for the whole run.
        state: the root with copies of pins; None gives up noticing a rollback.
        agent: that is tested.
        executor: for attempts; stays the caller's.
        jobs: attempts at a time, and no more than there are workers.
        halt: tells the run to end.
        observer: watches.
        elsewhere: where the agent does its work; None for here.
    """

    study: StudyRoot
    state: PrivateRoot | None
    agent: TestedAgent
    executor: Executor
    jobs: int
    halt: Halt
    observer: RunObserver
    elsewhere: Elsewhere | None = None


def run_study(parts: RunParts) -> RunOutcome:
    """Run what is left of a study; of a complete one nothing is left, and nothing changes.

    Raises:
        StudyError: `plan_changed`: a frozen input is not what it was; `row_invalid`.
        LockError: another run works on this study.
        TrialError, EvidenceError: the disk failed, or something in the folder is not what was written there;
            everything acknowledged stays, and the same call goes on once the cause is gone.
    """
    study = parts.study
    with study.store() as store, study.lock().hold(LOCK_WAIT, "run a study"):
        study.check_inputs()
        folders = AttemptFolders(study.root)
        try:
            with study.journal(parts.state) as journal:
                return _Run(parts, store, folders, journal).run()
        finally:
            folders.close()


class _Lost(NamedTuple):
    """An attempt that nobody saw the end of."""

    order: AttemptOrder


@dataclass(frozen=True, slots=True)
class _Work:
    """What one future is for; `slot` is None for none."""

    slot: Slot
    settles: bool


@dataclass(slots=True)
class _Book:
    """What the coordinator remembers beside the journal's state."""

    gradings: Counter[int] = field(default_factory=Counter)
    graded_now: set[int] = field(default_factory=set)
    values: dict[int, float | None] = field(default_factory=dict)
    not_before: dict[int, float] = field(default_factory=dict)
    blocked: str | None = None
    decided: bool = False
    error: BaseException | None = None


class _Run:
    """One run, by its coordinator."""

    def __init__(
        self, parts: RunParts, store: TrialStore, folders: AttemptFolders, journal: StudyJournal
    ) -> None:
        self._parts = parts
        self._plan = parts.study.plan
        self._around: Surroundings = parts.study.around
        self._journal = journal
        self._folders = folders
        self._root_id = store.root_id
        self._trials = SlotTrials(store, self._plan, parts.study.frozen(), folders, parts.agent)
        self._slots = {slot.slot: slot for slot in parts.study.slots()}
        self._seed = parts.study.seed()
        self._spending = Spending(self._plan.budgets.trial)
        self._book = _Book()
        self._deciding = Deciding(self._plan, tuple(self._slots.values()))
        self._assays = AssayParts(parts.study.root, self._plan, parts.agent)
        self._pending: dict[Future[Any], _Work] = {}
        self._arms = {str(arm.arm): arm for arm in self._plan.arms}
        self._briefs: dict[str, AttemptBrief] = {}
        self._remember()

    @property
    def _state(self) -> StudyState:
        return self._journal.state

    # From first to last.

    def run(self) -> RunOutcome:
        """Go on until nothing is left, or nothing may be started."""
        if self._anything_left():
            self._go_on()
        return self._outcome()

    def _go_on(self) -> None:
        try:
            self._recover()
            self._work(self._ungraded())
            self._book.decided = self._decided()
            self._work_through()
        except AgentUnreachableError as error:
            # Asked for an assay or for what an earlier run left; what was out is waited for below.
            self._block(error)
        except BaseException:
            self._parts.halt.stop()
            raise
        finally:
            # Nobody may write here any more once the lock is given back.
            wait(self._pending)
        if self._book.error is not None:
            raise self._book.error

    def _work_through(self) -> None:
        for batch in batches(self._plan):
            if is_closed(self._state.batches.get(batch.batch), self._plan):
                continue
            if self._may_start() and self._open(batch):
                self._work(_numbers(batch))
            if self._book.error is not None or not (self._book.decided or self._through(batch)):
                break
            if batch.batch in self._state.batches:
                self._close(batch)
            if self._book.decided:
                open_slots = self._plan.allocation.slots - self._state.ended()
                self._append(rows.SlotsClosed(reason="decided", slots=open_slots))
                break
        if self._parts.halt.draining() and not self._parts.halt.stopping() and not self._all_done():
            self._append(rows.Drained())

    def _outcome(self) -> RunOutcome:
        counts = self._journal.status()
        if self._state.complete(self._plan.allocation.slots):
            return RunOutcome(RunStatus.COMPLETE, None, counts)
        if self._book.blocked is not None:
            return RunOutcome(RunStatus.BLOCKED, self._book.blocked, counts)
        return RunOutcome(RunStatus.DRAINED, None, counts)

    def _anything_left(self) -> bool:
        if self._state.closed is not None or self._state.unblinded is not None:
            return False
        return not self._all_done() or bool(self._ungraded())

    def _ungraded(self) -> list[int]:
        """Slots that have ended and lack their grade."""
        held = sorted(self._state.slots)
        return [number for number in held if self._step(number).step is Step.GRADE]

    def _all_done(self) -> bool:
        return all(is_closed(self._state.batches.get(each.batch), self._plan) for each in batches(self._plan))

    def _may_start(self) -> bool:
        book = self._book
        going_on = book.blocked is None and book.error is None and not book.decided
        return going_on and not self._parts.halt.draining()

    def _append(self, *bodies: rows.StudyRow) -> None:
        for start in range(0, len(bodies), self._journal.journal.group_max):
            self._journal.append(*bodies[start : start + self._journal.journal.group_max])

    def _block(self, error: AgentUnreachableError) -> None:
        self._book.blocked = self._book.blocked or error.reason

    # What an earlier run left.

    def _remember(self) -> None:
        """What the journal knows that its state does not say: gradings, spending and values."""
        for row in self._journal.journal.rows():
            body = rows.read_study_row(row)
            if isinstance(body, rows.Graded):
                self._book.gradings[body.slot] += 1
            elif isinstance(body, rows.AttemptEnded):
                self._spending.add(body.ended, body.usage)
        if self._deciding.applies:
            for slot in self._state.slots.values():
                self._value(slot, self._reward_of(slot))

    def _reward_of(self, slot: SlotState) -> float | None:
        return None if slot.grade_hash is None else self._trials.reward(self._slots[slot.slot])

    def _recover(self) -> None:
        """Find what a killed run left: its processes first, then attempts that nobody saw the end of."""
        started = self._state.started_slots()
        if not started:
            return
        found = end_leftovers(self._around)
        if found:
            self._append(rows.LeftoversEnded(processes=found))
        ended, kept = [], 0
        for slot in started:
            attempt = slot.attempts[-1]
            exit_ = self._folders.found(slot.slot, attempt) or self._fetched(slot)
            kept += exit_ is not None
            ended.append(lost_row(slot.slot, attempt.number) if exit_ is None else ended_row(exit_))
        self._end_attempts(ended)
        self._parts.observer.resumed(len(ended) - kept, kept, found)

    def _fetched(self, held: SlotState) -> AttemptExit | None:
        """The exit of an attempt whose runner died, if it was carried out elsewhere and came to its end."""
        elsewhere = self._parts.elsewhere
        if elsewhere is None:
            return None
        attempt, slot = held.attempts[-1], self._slots[held.slot]
        before = replace(held, attempts=held.attempts[:-1])
        order = self._order(slot, before)
        if order.digest != attempt.order_digest:
            # Of another executor or version; nobody can have it.
            return None
        place = self._folders.place(order.slot, order.attempt)
        if (result := elsewhere.finished(order, place, self._parts.halt.stopping)) is None:
            return None
        self._trials.begin(slot, before)
        return self._publish(slot, before, order, result, datetime.fromisoformat(attempt.started_at))

    # Batches.

    def _open(self, batch: Batch) -> bool:
        """Open a batch, if it is not open; whether its slots may run."""
        held = self._state.batches.get(batch.batch)
        before = assayed(held, "open")
        if len(before) < len(self._plan.arms) or FAILED in before.values():
            opened = () if held is not None else (rows.BatchOpened(**batch._asdict()),)
            found = assay(self._assays, held, batch.batch, "open")
            self._append(*opened, *found)
        if FAILED in assayed(self._state.batches.get(batch.batch), "open").values():
            self._book.blocked = _ASSAY
            return False
        return True

    def _close(self, batch: Batch) -> None:
        held = self._state.batches.get(batch.batch)
        found = assay(self._assays, held, batch.batch, "close")
        failed = FAILED in [*assayed(held, "close").values(), *(each.result for each in found)]
        void = [rows.BatchVoid(batch=batch.batch)] if failed else []
        self._append(*found, *void)
        if failed:
            self._book.values.update(dict.fromkeys(range(batch.first, batch.last + 1)))

    def _through(self, batch: Batch) -> bool:
        return all(self._state.slot(number).ended is not None for number in _numbers(batch))

    # Slots.

    def _work(self, numbers: Iterable[int]) -> None:
        """Bring these slots to their end, as long as anything may be started."""
        waiting = deque(numbers)
        while True:
            self._start_some(waiting)
            if not self._pending:
                if not waiting or not self._may_start():
                    return
                self._rest(waiting)
                continue
            self._take_some(waiting)

    def _start_some(self, waiting: deque[int]) -> None:
        """Hand out as much work as there are jobs; the rows of all starts go into the journal together."""
        starts: list[tuple[Slot, SlotState]] = []
        for _ in range(len(waiting)):
            if len(self._pending) + len(starts) >= self._jobs:
                break
            number = waiting.popleft()
            step = self._step(number)
            if step.step is Step.START:
                if not self._may_start():
                    continue
                if self._book.not_before.get(number, 0.0) > self._around.monotonic():
                    waiting.append(number)
                    continue
                starts.append((self._slots[number], self._state.slot(number)))
            elif step.step in {Step.END, Step.GRADE} and step.ended is not None:
                self._settle(number, step.ended)
        self._start(starts)

    @property
    def _jobs(self) -> int:
        """How much may be worked on at a time; where it is elsewhere, no more than there are workers."""
        elsewhere = self._parts.elsewhere
        return self._parts.jobs if elsewhere is None else min(self._parts.jobs, max(1, elsewhere.capacity()))

    def _step(self, number: int) -> SlotStep:
        slot = self._state.slot(number)
        gradings = MOST_GRADINGS if number in self._book.graded_now else self._book.gradings[number]
        step = next_step(slot, self._plan.analysis, self._plan.attempts, gradings)
        if step.step is not Step.START or self._left(slot) is not None:
            return step
        return SlotStep(Step.END, EndClass.LIMIT)

    def _left(self, slot: SlotState) -> Budgets | None:
        return left_of(self._plan.budgets.trial, consumed(slot.attempts))

    def _start(self, starts: Sequence[tuple[Slot, SlotState]]) -> None:
        if not starts:
            return
        budget = effective_budgets(self._plan, self._state)
        if (spent := self._spending.exhausted(budget)) is not None:
            self._book.blocked = f"{_BUDGET}.{spent}"
            return
        if self._parts.elsewhere is not None:
            try:
                self._parts.elsewhere.ready(self._parts.halt.draining)
            except AgentUnreachableError as error:
                # Before anything is said to have started.
                self._block(error)
            if not self._may_start():
                return
        orders = [self._order(slot, before) for slot, before in starts]
        self._append(
            *(
                rows.SlotStarted(slot=order.slot, attempt=order.attempt, order_digest=order.digest)
                for order in orders
            )
        )
        for order, (slot, before) in zip(orders, starts, strict=True):
            future = self._parts.executor.submit(self._attempt, slot, before, order)
            self._pending[future] = _Work(slot, settles=False)

    def _order(self, slot: Slot, before: SlotState) -> AttemptOrder:
        return AttemptOrder(
            kind="attempt",
            root_id=self._root_id,
            plan_digest=self._plan.plan_digest,
            slot=slot.slot,
            attempt=len(before.attempts) + 1,
            task_id=slot.task_id,
            arm=self._arms[slot.arm].arm,
            sample=slot.sample,
            salt=salt(self._seed, slot.slot),
            driver=dict(self._parts.agent.told(slot, before)),
            budget=self._left(before) or self._plan.budgets.trial,
            isolation=self._plan.isolation,
            inputs=self._inputs(slot),
            runtime_manifest_hash=self._plan.runtime_manifest_hash,
        )

    def _inputs(self, slot: Slot) -> tuple[str, ...]:
        """What an agent is shown: its arm's files, the task's environment and its instruction; no test."""
        payload = self._arms[slot.arm].tree
        if slot.task_id not in self._briefs:
            task = self._parts.study.task(slot.task_id)
            self._briefs[slot.task_id] = brief_of(task, self._plan.registry, payload)
        return self._briefs[slot.task_id].model_copy(update={"payload": payload}).inputs

    def _attempt(self, slot: Slot, before: SlotState, order: AttemptOrder) -> AttemptExit | _Lost:
        """One attempt from its trial to its exit; runs in the executor."""
        self._trials.begin(slot, before)
        started = self._around.now()
        place = self._folders.place(order.slot, order.attempt)
        try:
            result = self._parts.agent.attempt(order, place, self._parts.halt.stopping)
        except AttemptLostError:
            return _Lost(order)
        return self._publish(slot, before, order, result, started)

    def _publish(
        self, slot: Slot, before: SlotState, order: AttemptOrder, result: AttemptResult, started: datetime
    ) -> AttemptExit:
        """Everything of an attempt on disk, its exit last."""
        self._trials.keep(slot, result)
        used = consumed(before.attempts, result.usage)
        found = judged(result, self._plan.driver.model, self._plan.budgets.trial, used)
        exit_ = self._folders.publish(order, result, found, (started, self._around.now()))
        if self._parts.elsewhere is not None:
            self._parts.elsewhere.kept(order)
        return exit_

    def _settle(self, number: int, ended: EndClass) -> None:
        slot, state = self._slots[number], self._state.slot(number)
        future = self._parts.executor.submit(self._trials.settle, slot, state, ended)
        self._pending[future] = _Work(slot, settles=True)

    # What comes back.

    def _take_some(self, waiting: deque[int]) -> None:
        done, _ = wait(self._pending, timeout=_LOOK, return_when=FIRST_COMPLETED)
        exits: list[rows.AttemptEnded] = []
        settled: list[tuple[Slot, Settled]] = []
        for future in done:
            work = self._pending.pop(future)
            error = future.exception()
            if isinstance(error, AgentUnreachableError):
                self._block(error)
                continue
            if error is not None:
                self._book.error = self._book.error or error
                continue
            found = future.result()
            if isinstance(found, AttemptExit):
                exits.append(ended_row(found))
            elif isinstance(found, _Lost):
                exits.append(lost_row(found.order.slot, found.order.attempt))
            elif isinstance(found, Settled):
                settled.append((work.slot, found))
        if self._parts.elsewhere is not None:
            # Who has gone is told before what that did to its attempts.
            self._append(*self._parts.elsewhere.losses())
        self._end_attempts(exits)
        waiting.extendleft(row.slot for row in exits)
        self._end_slots(settled)
        if settled and self._decided():
            self._book.decided = True
        if exits or settled:
            self._parts.observer.progressed(self._journal.status())

    def _end_attempts(self, ended: Sequence[rows.AttemptEnded]) -> None:
        if not ended:
            return
        self._append(*ended)
        for row in ended:
            self._spending.add(row.ended, row.usage)
            pause = self._parts.agent.wait_before(self._state.slot(row.slot))
            if pause:
                self._book.not_before[row.slot] = self._around.monotonic() + pause
            if blocks(row.ended, row.detail):
                self._book.blocked = self._book.blocked or row.detail or str(row.ended)

    def _end_slots(self, settled: Sequence[tuple[Slot, Settled]]) -> None:
        found = [row for _, each in settled for row in (each.ended, each.graded) if row is not None]
        if not found:
            return
        self._append(*found)
        for slot, each in settled:
            if each.graded is not None:
                self._book.gradings[slot.slot] += 1
                self._book.graded_now.add(slot.slot)
            if self._deciding.applies:
                self._value(self._state.slot(slot.slot), each.reward)

    # Waiting and deciding.

    def _rest(self, waiting: Iterable[int]) -> None:
        """Wait for the first slot whose provider has had its rest."""
        now = self._around.monotonic()
        until = min((self._book.not_before.get(number, now) for number in waiting), default=now)
        if until > now:
            self._parts.observer.resting(until - now)
        while (left := until - self._around.monotonic()) > 0 and self._may_start():
            self._around.sleep(min(left, _LOOK))

    def _value(self, slot: SlotState, reward: float | None) -> None:
        """Note what a slot counts for, once that cannot change any more."""
        if slot.ended is None:
            return
        analysis = self._plan.analysis
        counted = counts_as(slot.ended, slot.state, analysis)
        gradable = is_graded(slot, slot.ended, analysis)
        if counted == "missing" and gradable and self._book.gradings[slot.slot] < MOST_GRADINGS:
            return
        passed = reward is not None and reward >= self._plan.outcome.pass_at
        value = float(passed) if self._by_passes else reward
        self._book.values[slot.slot] = {"failure": 0.0, "missing": None}.get(counted, value)

    @property
    def _by_passes(self) -> bool:
        return self._plan.outcome.primary is Outcome.PASSED

    def _decided(self) -> bool:
        open_slots = self._state.ended() < self._plan.allocation.slots
        return self._deciding.applies and open_slots and self._deciding.decided(self._book.values)


def _numbers(batch: Batch) -> range:
    return range(batch.first, batch.last + 1)


def end_leftovers(around: Surroundings) -> int:
    """End the processes that killed runs of this user left behind, and that nobody watches over any more.

    Returns:
        How many there were.
    """
    tokens = {found.token for found in leftovers() if not found.supervised}
    return sum(kill_carriers(token, None, around)[0] for token in sorted(tokens))
