"""The trial of a slot: prepared, moved on, completed and graded, only through the room `trials`.

Whatever is done here may be done again after a crash: a trial that has ended is found to have ended, and the
same grade is written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_object, dump_line
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.protocol.document import to_json
from skill_effectiveness.studies.endings import is_graded
from skill_effectiveness.studies.rewards import grade_json, grading_of
from skill_effectiveness.studies.rows import Graded, SlotEnded
from skill_effectiveness.studies.spending import consumed
from skill_effectiveness.studies.words import EndClass
from skill_effectiveness.trials.binding import AUDIT, EVENTS
from skill_effectiveness.trials.checkpoint import checkpoint
from skill_effectiveness.trials.faults import TrialCode, TrialError
from skill_effectiveness.trials.grades import GRADE_NAME, REPLAY_NAME, parse_grade
from skill_effectiveness.trials.models import (
    CheckpointRequest,
    ResumeCursor,
    TrialBudget,
    TrialKey,
    TrialRuntime,
    TrialStatus,
    read_record,
)
from skill_effectiveness.trials.prepare import PrepareOrder, prepare
from skill_effectiveness.trials.replay import replay
from skill_effectiveness.trials.store import OUTCOME_FOLDER, read_document_bytes

if TYPE_CHECKING:
    from skill_effectiveness.evidence.root import PrivateRoot
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.studies.agent import AttemptResult, TestedAgent
    from skill_effectiveness.studies.attempt_records import AttemptExit
    from skill_effectiveness.studies.attempts import AttemptFolders
    from skill_effectiveness.studies.file_trees import HeldTree
    from skill_effectiveness.studies.frozen import FrozenStudy
    from skill_effectiveness.studies.plan import StudyPlan
    from skill_effectiveness.studies.rewards import Grading
    from skill_effectiveness.studies.state import SlotState
    from skill_effectiveness.trials.allocation import Slot
    from skill_effectiveness.trials.models import TrialDocument
    from skill_effectiveness.trials.store import TrialStore

GRADING: Final = "grading"
OUTCOME_NAME: Final = "result.json"
OUTCOME_CONTRACT: Final = "skill-effectiveness-study-outcome-v1"


@dataclass(frozen=True, slots=True)
class Settled:
    """What settling a slot came to, as rows for the journal.

    Attributes:
        ended: None where the slot had ended before.
        graded: None where nothing was to be graded.
        reward: of the valid grade.
    """

    ended: SlotEnded | None
    graded: Graded | None
    reward: float | None = None


class _Over:
    """A slot that is over, while it is settled: its open trial, and what its last attempt left, read once.

    Args:
        slot: of the run order.
        state: of the slot.
        trial: its folder; stays the caller's.
        folders: of attempts.
    """

    def __init__(self, slot: Slot, state: SlotState, trial: PrivateRoot, folders: AttemptFolders) -> None:
        self.slot = slot
        self.state = state
        self.trial = trial
        self._folders = folders

    @cached_property
    def files(self) -> HeldTree:
        """The collected files; errors as `AttemptFolders.files`."""
        return self._folders.files(self.slot.slot, self.state.attempts[-1])


class SlotTrials:
    """The trials of a study's slots; safe to be used by several threads, each with its own slots.

    Args:
        store: of the study.
        plan: of the study.
        frozen: its arms and tasks.
        folders: its attempts.
        agent: grades.
    """

    def __init__(
        self,
        store: TrialStore,
        plan: StudyPlan,
        frozen: FrozenStudy,
        folders: AttemptFolders,
        agent: TestedAgent,
    ) -> None:
        self._store = store
        self._plan = plan
        self._frozen = frozen
        self._folders = folders
        self._agent = agent
        self._tasks = {task.task_id: task for task in plan.tasks}
        self._arms = {str(arm.arm): arm for arm in plan.arms}
        self._budget = read_record(TrialBudget, plan.budgets.trial.model_dump(mode="json"))
        self._isolation_hash = digest_object(plan.isolation.model_dump(mode="json"))

    def key(self, slot: Slot) -> TrialKey:
        """Which trial belongs to a slot."""
        return TrialKey(slot.task_id, self._arms[slot.arm].arm_id, slot.sample)

    def order(self, slot: Slot) -> PrepareOrder:
        """What a slot's trial is prepared with."""
        manifests = {str(arm): manifest for arm, manifest in self._frozen.manifests.items()}
        runtime = {
            "provider": self._plan.driver.provider,
            "model": self._plan.driver.model,
            "session_id": f"slot-{slot.slot}",
            "isolation_config_hash": self._isolation_hash,
            "runner_hash": self._plan.runtime_manifest_hash,
            "experiment_plan_hash": self._plan.plan_digest,
        }
        return PrepareOrder(
            task=self._frozen.tasks[slot.task_id],
            manifest=manifests[slot.arm],
            runtime=read_record(TrialRuntime, runtime),
            budget=self._budget,
            sample_index=slot.sample,
            plan=self._frozen.registry_plan,
            study=True,
        )

    def begin(self, slot: Slot, before: SlotState) -> None:
        """Have a slot's trial run, whether it is new or had an attempt before.

        Args:
            slot: that has started.
            before: its state, with the attempts that ended.

        Raises:
            TrialError: as `prepare` and `checkpoint`.
            LockError, EvidenceError: the disk failed, or something there is not ours.
        """
        prepare(self._store, self.order(slot))
        self._move(slot, TrialStatus.RUNNING, cursor=self._cursor(slot, before))

    def keep(self, slot: Slot, result: AttemptResult) -> None:
        """Write what was observed during an attempt: events and audit; that of the last attempt counts.

        Raises:
            TrialError, EvidenceError: as `begin`.
        """
        rows = (to_json(result.residual), to_json(result.events))
        audit = (row.model_dump(mode="json", exclude_unset=True) for row in result.observed.audit)
        observed: dict[str, bytes | None] = {EVENTS: b"".join(map(dump_line, rows))}
        if result.observed.audit:
            observed[AUDIT] = b"".join(map(dump_line, audit))
        with self._store.demand_trial(self.key(slot)) as trial:
            trial.replace_all(observed)

    def settle(self, slot: Slot, state: SlotState, ended: EndClass) -> Settled:
        """End a slot's trial, and grade what it left where its class has a grade.

        Args:
            slot: that is over.
            state: of the slot, with all attempts.
            ended: the class it ends with.

        Raises:
            TrialError, StudyError, LockError, EvidenceError: see `begin` and `AttemptFolders.files`.
        """
        trial = self._store.trial(self.key(slot))
        if trial is None:
            # Its runner died between the journal and the store, as often as a slot may begin.
            prepare(self._store, self.order(slot))
            trial = self._store.demand_trial(self.key(slot))
        with trial:
            return self._settled(_Over(slot, state, trial, self._folders), ended)

    def _settled(self, over: _Over, ended: EndClass) -> Settled:
        document = self._document(over)
        row: SlotEnded | None = None
        if over.state.ended is None:
            document, ended = self._end(over, ended, document)
            row = SlotEnded(
                slot=over.slot.slot,
                **{"class": ended},
                completion_binding_hash=document.completion_binding_hash,
            )
        if not is_graded(over.state, ended, self._plan.analysis):
            return Settled(row, None)
        grading = self._grade(over, document)
        graded = Graded(slot=over.slot.slot, grade_hash=grading.grade_hash, state=grading.state)
        reward = None if grading.reward is None else grading.reward.reward
        return Settled(row, graded, reward)

    def _end(self, over: _Over, ended: EndClass, document: TrialDocument) -> tuple[TrialDocument, EndClass]:
        """The trial of a slot as it ended, and the class that this makes of the slot."""
        slot = over.slot
        if document.status is TrialStatus.COMPLETED:
            replay(self._store, self.key(slot))
            return document, EndClass.COMPLETED
        if document.status is TrialStatus.CONTAMINATED:
            return document, EndClass.CONTAMINATED
        if document.status is TrialStatus.FAILED:
            return document, ended
        cursor = self._cursor(slot, over.state)
        if ended is EndClass.COMPLETED:
            try:
                self._complete(over, cursor)
            except TrialError as error:
                if error.code is not TrialCode.ISOLATION_BREACH:
                    raise
                ended = EndClass.CONTAMINATED
        if ended is EndClass.CONTAMINATED:
            self._move(slot, TrialStatus.CONTAMINATED, cursor=cursor, reason="contaminated")
        elif ended is not EndClass.COMPLETED:
            self._move(slot, TrialStatus.FAILED, cursor=cursor, reason=str(ended))
        return self._document(over), ended

    def _complete(self, over: _Over, cursor: ResumeCursor) -> None:
        slot, last = over.slot, over.state.attempts[-1]
        exit_ = self._folders.exit_of(slot.slot, last)
        if exit_ is None:
            raise ValueError("an attempt that completed has no exit")
        with over.trial.child(OUTCOME_FOLDER) as folder:
            folder.replace(OUTCOME_NAME, dump_line(_outcome(slot, exit_, over.files)))
        places = self._places(slot, last.number, audited=exit_.isolation.audit_complete)
        request = CheckpointRequest(
            status=TrialStatus.COMPLETED,
            access_audit_complete=exit_.isolation.audit_complete,
            access_roots_enforced=exit_.isolation.roots_enforced,
            isolation_evidence=exit_.isolation.evidence,
            read_allow_roots=exit_.isolation.read_roots or tuple(f"{place}/work" for place in places),
            write_allow_roots=exit_.isolation.write_roots or tuple(f"{place}/collected" for place in places),
            resume_cursor=cursor,
        )
        checkpoint(self._store, self.key(slot), request)

    def _places(self, slot: Slot, attempt: int, *, audited: bool) -> list[str]:
        """Where an attempt lies, as an audit names it that was written before the study was moved."""
        here = self._folders.place(slot.slot, attempt)
        if not audited:
            return [here]
        inside = here.removeprefix(str(self._store.root.path))
        return sorted({here, *(f"{place}{inside}" for place in self._store.located_at)})

    def _move(
        self, slot: Slot, status: TrialStatus, *, cursor: ResumeCursor, reason: str | None = None
    ) -> None:
        request = CheckpointRequest(status=status, resume_cursor=cursor, stop_reason=reason)
        checkpoint(self._store, self.key(slot), request)

    def _cursor(self, slot: Slot, state: SlotState) -> ResumeCursor:
        ended = [attempt for attempt in state.attempts if attempt.ended is not None]
        return ResumeCursor(next_run_order=slot.slot, consumed_budget=consumed(ended))

    def _document(self, over: _Over) -> TrialDocument:
        return self._store.read(read_document_bytes(over.trial))

    def _grade(self, over: _Over, document: TrialDocument) -> Grading:
        task = self._tasks[over.slot.task_id]
        first, second = self._agent.grade(task, over.files)
        grading = grading_of(
            first,
            second,
            trial_fingerprint=document.trial_fingerprint,
            grader_hash=task.grader_hash,
            pass_at=self._plan.outcome.pass_at,
        )
        with over.trial.child(GRADING, create=True) as folder:
            _write_grades(folder, grading)
        return grading

    def reward(self, slot: Slot) -> float | None:
        """The reward of a slot whose valid grade the journal has.

        Raises:
            EvidenceError: the grade cannot be read.
        """
        with self._store.demand_trial(self.key(slot)) as trial, trial.child(GRADING) as folder:
            return parse_grade(folder.read(GRADE_NAME)).reward


def _write_grades(folder: PrivateRoot, grading: Grading) -> None:
    grades = ((GRADE_NAME, grading.grade), (REPLAY_NAME, grading.replay))
    folder.replace_all(
        {name: None if grade is None else dump_line(grade_json(grade)) for name, grade in grades}
    )


def _outcome(slot: Slot, exit_: AttemptExit, files: HeldTree) -> dict[str, JsonValue]:
    """What a trial shows for itself; the payload alone is for reviewers and tells nothing of the arm."""
    return {
        "schema_version": 1,
        "artifact_contract": OUTCOME_CONTRACT,
        "slot": slot.slot,
        "attempt": exit_.attempt,
        "order_digest": exit_.order_digest,
        "class": str(exit_.ended),
        "tree": exit_.tree,
        "model_requested": exit_.model_requested,
        "model_reported": exit_.model_reported,
        "judge_payload": judge_payload(files),
    }


def judge_payload(files: HeldTree) -> dict[str, JsonValue]:
    """What a reviewer is shown of a tree: its files in the order of their names."""
    shown: list[JsonValue] = [_shown(entry.path, files.blob(entry)) for entry in files.tree.files]
    return {"files": shown}


def _shown(path: str, data: bytes) -> dict[str, JsonValue]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"path": printable(path), "bytes": len(data)}
    return {"path": printable(path), "text": text}
