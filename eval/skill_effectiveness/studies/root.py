"""The folder R of a study: its layout, its plan, its journal and its hidden run order (studies.md section 3).

```
R/  root.json  study.yaml  plan.json  plan.dsse.json  frozen.json  commitments.jsonl  status.json  journal/
    private/allocation.json  inputs/<64 hex>  licences/<licence id>.dsse.json
    trials/  assays/  attempts/  votes/  blinding/  report/  crash/        (made by whoever fills them)
```

The normal way: `with StudyRoot.open(path, around=…, checkout=…) as study, study.journal(state) as journal:`.
Whoever appends does it through `StudyJournal`, which keeps state and counts beside the rows.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field

from skill_effectiveness.evidence.canonical import digest_bytes, dump_line
from skill_effectiveness.evidence.documents import Canonical, parse
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, RootError
from skill_effectiveness.evidence.journal import Journal
from skill_effectiveness.evidence.journal_layout import SEGMENTED
from skill_effectiveness.evidence.journal_pin import SegmentedPin
from skill_effectiveness.evidence.journal_rows import Row, RowForm, fits, read_row, row_time
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.strict import Profile
from skill_effectiveness.protocol.document import FrozenModel, One
from skill_effectiveness.studies import rows
from skill_effectiveness.studies.agreement import disagreement
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.file_trees import HeldTree
from skill_effectiveness.studies.frozen import FROZEN, FrozenStudy, read_frozen_study
from skill_effectiveness.studies.inputs import Inputs
from skill_effectiveness.studies.plan import StudyPlan, TimeText, read_plan
from skill_effectiveness.studies.plan_seal import (
    COMMITMENTS,
    PLAN,
    PLAN_SEAL,
    check_commitments,
    check_own_seal,
)
from skill_effectiveness.studies.state import Folding, StudyState
from skill_effectiveness.studies.status import Counting, StudyStatus, first_status, read_status, status_line
from skill_effectiveness.studies.study_file import STUDY_FILE, StudyFile, read_study
from skill_effectiveness.studies.task_folder import TaskFolder, task_of_tree
from skill_effectiveness.trials.allocation import (
    Slot,
    allocate,
    commitments,
    commitments_hash,
    seed_commitment,
)
from skill_effectiveness.trials.store import TrialStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType

    from skill_effectiveness.evidence.identity import RootDocument
    from skill_effectiveness.evidence.journal import Acknowledged
    from skill_effectiveness.evidence.strict import JsonValue
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.studies.rows import StudyRow

PURPOSE: Final = "study"
JOURNAL: Final = "journal"
STATUS: Final = "status.json"
PRIVATE: Final = "private"
ALLOCATION: Final = "allocation.json"
LICENCES: Final = "licences"
STUDY_LOCK: Final = ".study.lock"
ALLOCATION_CONTRACT: Final = "skill-effectiveness-study-allocation-v1"
GROUP_MAX: Final = 1_024
STATUS_EVERY: Final = 256
"""Rows after which the snapshot of counts is written anew."""

_SEGMENT_BYTES: Final = 2 * 67_108_864


class AllocationDocument(FrozenModel):
    """`private/allocation.json`: what alone tells the arm of a slot that has not started."""

    schema_version: One
    artifact_contract: Literal["skill-effectiveness-study-allocation-v1"]
    created_at: TimeText
    seed: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    def __repr_args__(self) -> list[tuple[str | None, object]]:
        """The seed appears in no text of this object."""
        return [("created_at", self.created_at)]

    @property
    def seed_bytes(self) -> bytes:
        """32 bytes."""
        return bytes.fromhex(self.seed)


def allocation_line(document: AllocationDocument) -> bytes:
    """The bytes of `private/allocation.json`."""
    return dump_line(document.model_dump(mode="json"))


class StudyRoot:
    """An open study that was planned; made by `open` only.

    Opening reads plan and seal and demands that they belong together; frozen inputs are held against the plan
    by `check_inputs`, because that reads all of them.
    """

    def __init__(self, root: PrivateRoot, plan: StudyPlan) -> None:
        self._root = root
        self.plan = plan
        self.inputs = Inputs(root)

    @classmethod
    def open(cls, path: str | Path, *, around: Surroundings, checkout: Path | None) -> Self:
        """Open the study in a folder.

        Raises:
            StudyError: `plan_missing`, `plan_invalid`, `plan_seal`, `plan_changed`.
            RootError, FileError: the folder is not private, or cannot be read.
        """
        root = PrivateRoot.open(path, RootKind.OUT, around=around, checkout=checkout)
        try:
            return cls(root, read_sealed_plan(root))
        except BaseException:
            root.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder; closing again does nothing."""
        self._root.close()

    @property
    def root(self) -> PrivateRoot:
        """The private root."""
        return self._root

    @property
    def around(self) -> Surroundings:
        """The surroundings it was opened in."""
        return self._root.around

    def study(self) -> StudyFile:
        """The study file as it lies here; `check_study` holds it against the plan.

        Raises:
            StudyFileError: `study_invalid`.
            FileError: it cannot be read.
        """
        return read_study(self._root.read(STUDY_FILE))

    def check_study(self) -> None:
        """Demand that the study file says what the plan says.

        Raises:
            StudyError: `plan_changed`; `where` is the field of the plan that differs.
            StudyFileError, FileError: as `study`.
        """
        if (field := disagreement(self.study(), self.plan)) is not None:
            sentence = (
                f"{STUDY_FILE} in this folder is not the one that was planned; restore it, or plan anew."
            )
            raise StudyError(StudyCode.PLAN_CHANGED, field, sentence)

    def frozen(self) -> FrozenStudy:
        """Manifests, registry plan and task records.

        Raises:
            StudyError: `plan_changed`.
            FileError: they cannot be read.
        """
        return read_frozen_study(self._root.read(FROZEN), self.plan)

    def store(self) -> TrialStore:
        """The store of trials in this folder, over a descriptor of its own; the caller closes it."""
        return TrialStore.open(self._root.path, around=self.around, checkout=None)

    def identity(self) -> RootDocument:
        """The identity of the folder, which a move keeps."""
        return self._root.identity()

    def lock(self) -> Lock:
        """The lock under which one process at a time works on the study."""
        return Lock(self._root, STUDY_LOCK)

    # The hidden run order.

    def seed(self) -> bytes:
        """The seed of the plan.

        Raises:
            StudyError: `plan_changed`: it is not the one the plan commits to.
            RootError, FileError: it cannot be read.
        """
        with self._root.child(PRIVATE) as private:
            document = read_allocation(private.read(ALLOCATION))
        if seed_commitment(document.seed_bytes) != self.plan.allocation.seed_commitment:
            sentence = "this is not the seed of the plan; restore the study's folder."
            raise StudyError(StudyCode.PLAN_CHANGED, "/allocation/seed_commitment", sentence)
        return document.seed_bytes

    def slots(self) -> tuple[Slot, ...]:
        """The whole run order; errors as `seed`, and `plan_changed` when it is not what was committed to."""
        seed = self.seed()
        slots = allocation_of(seed, self.plan)
        if commitments_hash(commitments(seed, slots)) != self.plan.allocation.commitments_hash:
            sentence = "the run order is not the one that was committed to; restore the study's folder."
            raise StudyError(StudyCode.PLAN_CHANGED, "/allocation/commitments_hash", sentence)
        return slots

    # Frozen inputs.

    def task(self, task_id: str) -> TaskFolder:
        """A task as it was frozen, out of the inputs.

        Raises:
            KeyError: the plan has no such task.
            StudyError: `plan_changed`.
            RootError, FileError: it cannot be read.
        """
        return task_of_tree(task_id, self.inputs.held(self.plan.task(task_id).tree))

    def task_files(self, task_id: str, part: str) -> HeldTree:
        """One of a task's three sets of files: `environment`, `tests` or `solution`.

        Raises:
            As `task`.
        """
        whole = self.inputs.held(self.plan.task(task_id).tree)
        return HeldTree(whole.tree.below(part), whole.blob)

    def payload_files(self, arm: str) -> HeldTree:
        """What an arm gives its agent; errors as `task`."""
        return self.inputs.held(self.plan.arm(arm).tree)

    def check_inputs(self) -> None:
        """Demand that every frozen input is what the plan says, byte for byte, and the study file as well.

        Raises:
            StudyError: `plan_changed`; `where` is the field of the plan whose input changed.
            RootError, FileError: something cannot be read.
        """
        self.check_study()
        self.frozen()
        pinned = [(f"/arms/{index}/tree", arm.tree) for index, arm in enumerate(self.plan.arms)]
        for index, task in enumerate(self.plan.tasks):
            pinned.append((f"/tasks/{index}/tree", task.tree))
            pinned.append((f"/tasks/{index}/grader_hash", task.grader_hash))
        seen: set[str] = set()
        for where, digest in pinned:
            try:
                self._check_tree(digest, seen)
            except StudyError as error:
                raise StudyError(error.code, where, error.sentence) from error
        for index, reviewer in enumerate(self.plan.reviewers):
            self.licence(reviewer.licence_id, f"/reviewers/{index}/licence_hash", reviewer.licence_hash)

    def _check_tree(self, digest: str, seen: set[str]) -> None:
        for entry in self.inputs.tree(digest).files:
            if entry.sha256 is not None and entry.sha256 not in seen:
                self.inputs.read(entry.sha256)
                seen.add(entry.sha256)

    def licence(self, licence_id: str, where: str = "/reviewers", digest: str | None = None) -> bytes:
        """The bytes of a reviewer's licence as it was frozen.

        Args:
            licence_id: of the licence.
            where: field of the plan, for errors.
            digest: of the bytes, where it is known.

        Raises:
            StudyError: `plan_changed`: it is missing or another one.
        """
        sentence = "a reviewer's licence is no longer the one that was frozen; restore the study's folder."
        try:
            with self._root.child(LICENCES) as folder:
                data = folder.read(licence_name(licence_id))
        except (RootError, FileError) as error:
            raise StudyError(StudyCode.PLAN_CHANGED, where, sentence) from error
        if digest is not None and digest_bytes(data) != digest:
            raise StudyError(StudyCode.PLAN_CHANGED, where, sentence)
        return data

    # The journal.

    def journal(self, state: PrivateRoot | None) -> StudyJournal:
        """The open journal with the state it amounts to; the caller closes it.

        Args:
            state: the root with copies of pins; stays the caller's and open as long.

        Raises:
            StudyError: `plan_changed`: the journal is of another plan; `row_invalid`.
            JournalError, LockError, FileError: as `Journal.open`.
        """
        return StudyJournal(self, state)

    def status(self) -> StudyStatus:
        """The counts now: the snapshot, and the rows after it that the journal has acknowledged.

        Takes no lock and writes nothing. The chain is not held against the pin: `Journal.verify` does that.

        Raises:
            StudyError: `row_invalid`; `plan_changed`: the snapshot is of another plan.
            FileError, RootError: something cannot be read.
        """
        return status_now(self._root, self.plan)


def read_sealed_plan(root: PrivateRoot) -> StudyPlan:
    """The plan of a folder with a seal over it and its commitments.

    Raises:
        StudyError: `plan_missing`, `plan_invalid`, `plan_seal`, `plan_changed`.
    """
    try:
        plan_file = root.read(PLAN)
        seal, committed = root.read(PLAN_SEAL), root.read(COMMITMENTS)
    except FileError as error:
        if error.code is not FileCode.MISSING:
            raise
        sentence = "there is no whole plan in this folder; make one with `study plan`."
        raise StudyError(StudyCode.PLAN_MISSING, PLAN, sentence) from error
    plan = read_plan(plan_file)
    check_own_seal(seal, plan, plan_file, committed)
    check_commitments(committed, plan)
    return plan


def read_allocation(data: bytes) -> AllocationDocument:
    """The document of the hidden run order.

    Raises:
        StudyError: `plan_changed`.
    """
    try:
        return parse(AllocationDocument, data, Profile.DOCUMENT, canonical=Canonical.LINE)
    except EvidenceError as error:
        sentence = "the seed cannot be read as it was written; restore the study's folder."
        raise StudyError(StudyCode.PLAN_CHANGED, f"{PRIVATE}/{ALLOCATION}", sentence) from error


def allocation_of(seed: bytes, plan: StudyPlan) -> tuple[Slot, ...]:
    """The run order of a plan under a seed."""
    tasks = [task.task_id for task in plan.tasks]
    return allocate(seed, tasks, plan.arm_names, plan.samples, plan.order)


def licence_name(licence_id: str) -> str:
    """The name of a frozen licence file."""
    return f"{licence_id}.dsse.json"


class _Clock:
    """A clock that can be stopped, so that a row's time is known to whoever appends it."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._held: datetime | None = None

    def __call__(self) -> datetime:
        return self._held or self._now()

    @contextmanager
    def stopped(self) -> Iterator[datetime]:
        """Within it the time stands still."""
        self._held = self._now()
        try:
            yield self._held
        finally:
            self._held = None


class StudyJournal:
    """The journal of a study, its state and its counts, which every append moves on together.

    Made by `StudyRoot.journal` alone.
    """

    def __init__(self, study: StudyRoot, state: PrivateRoot | None) -> None:
        self._plan = study.plan
        self._clock = _Clock(study.around.now)
        around = replace(study.around, now=self._clock)
        self._root = PrivateRoot.open(study.root.path, RootKind.OUT, around=around, checkout=None)
        try:
            self._journal = Journal.open(self._root, purpose=PURPOSE, state=state, create=False)
            try:
                self._replay()
            except BaseException:
                self._journal.close()
                raise
        except BaseException:
            self._root.close()
            raise
        self._saved = 0

    def _replay(self) -> None:
        self._folding = Folding()
        self._counting = Counting(first_status(self._plan))
        for row in self._journal.rows():
            self._counting.take(row.seq, self._folding.take(row), row.time)
        if self.state.plan_digest != self._plan.plan_digest:
            sentence = "the journal is of another plan than the one that lies here; restore the folder."
            raise StudyError(StudyCode.PLAN_CHANGED, "/plan_digest", sentence)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.save_status()
        finally:
            self._journal.close()
            self._root.close()

    @property
    def state(self) -> StudyState:
        """What all rows so far amount to."""
        return self._folding.state

    @property
    def journal(self) -> Journal:
        """The journal below, for reading."""
        return self._journal

    def append(self, *bodies: StudyRow) -> Acknowledged:
        """Append rows; once this returns they survive a power loss, and the state has moved on.

        A row that contradicts those before it is refused before anything is written; after any fault the
        state is that of what was acknowledged.

        Raises:
            StudyError: `row_invalid`.
            JournalError, LockError, FileError: as `Journal.append`.
        """
        with self._clock.stopped() as moment:
            try:
                time, first = row_time(moment), self._journal.count
                for number, body in enumerate(bodies):
                    self._folding.follow(first + number, body, time)
                acknowledged = self._journal.append([rows.entry(body) for body in bodies])
            except BaseException:
                self._replay()
                raise
        self.state.seq = acknowledged.last
        for number, body in enumerate(bodies):
            self._counting.take(acknowledged.first + number, body, time)
        if self._journal.count - self._saved >= STATUS_EVERY:
            self.save_status()
        return acknowledged

    def status(self) -> StudyStatus:
        """The counts as they are now."""
        with self._root.child(JOURNAL) as folder:
            pin = _read_pin(folder)
        return self._counting.at(pin.segment, pin.offset)

    def save_status(self) -> None:
        """Write the snapshot of counts."""
        with self._root.child(JOURNAL) as folder:
            pin = _read_pin(folder)
        status = self._counting.at(pin.segment, pin.offset)
        if status.seq == pin.count - 1:
            self._root.replace(STATUS, status_line(status))
            self._saved = self._journal.count


def begin_journal(root: PrivateRoot, state: PrivateRoot | None, plan: StudyPlan) -> None:
    """Make the journal of a plan, if it is not there, with its first row.

    Raises:
        StudyError: `plan_changed`: it is there, of another plan.
        JournalError, LockError, FileError: as `Journal.open` and `append`.
    """
    with Journal.open(root, purpose=PURPOSE, state=state, group_max=GROUP_MAX) as journal:
        held = [body for row in journal.rows() if (body := rows.read_study_row(row)) is not None]
        if not held:
            journal.append([rows.entry(rows.PlanSealed(plan_digest=plan.plan_digest))])
        elif held[0] != rows.PlanSealed(plan_digest=plan.plan_digest):
            sentence = "the journal is of another plan than the one that lies here; restore the folder."
            raise StudyError(StudyCode.PLAN_CHANGED, "/plan_digest", sentence)


# Counts without opening the journal.


def status_now(root: PrivateRoot, plan: StudyPlan) -> StudyStatus:
    """See `StudyRoot.status`."""
    held = _snapshot(root, plan)
    counting = Counting(held)
    with root.child(JOURNAL) as folder:
        pin = _read_pin(folder)
        for row in _rows_between(folder, held, pin):
            counting.take(row.seq, rows.read_study_row(row), row.time)
    return counting.at(pin.segment, pin.offset)


def _snapshot(root: PrivateRoot, plan: StudyPlan) -> StudyStatus:
    """The snapshot that lies there; the empty one where there is none, or none that can be read."""
    try:
        held = read_status(root.read(STATUS))
    except EvidenceError:
        return first_status(plan)
    if held.plan_digest != plan.plan_digest:
        sentence = "status.json is of another plan than the one that lies here; remove it."
        raise StudyError(StudyCode.PLAN_CHANGED, STATUS, sentence)
    return held


def _read_pin(folder: PrivateRoot) -> SegmentedPin:
    return parse(SegmentedPin, folder.read(SEGMENTED.pin), Profile.DOCUMENT)


def _rows_between(folder: PrivateRoot, held: StudyStatus, pin: SegmentedPin) -> Iterator[Row]:
    """The rows from where a snapshot ends to where the pin stands."""
    seq = held.seq
    for segment in range(held.segment, pin.segment + 1):
        data = folder.read(SEGMENTED.segment_name(segment), _SEGMENT_BYTES)
        end = pin.offset if segment == pin.segment else len(data)
        lines = BytesIO(data)
        lines.seek(held.offset if segment == held.segment else 0)
        while lines.tell() < end:
            value = _line_of(lines.readline().removesuffix(b"\n"))
            seq += 1
            if value is None or value["seq"] != seq:
                raise _unreadable(seq)
            yield Row(seq, "", value)
    if seq != pin.count - 1:
        raise _unreadable(seq)


def _line_of(line: bytes) -> dict[str, JsonValue] | None:
    try:
        value = read_row(line)
    except EvidenceError:
        return None
    return value if fits(value, RowForm.KERNEL) else None


def _unreadable(seq: int) -> StudyError:
    sentence = "the journal is not what the counts were made of; verify it with `journal verify`."
    return StudyError(StudyCode.ROW_INVALID, f"journal row {seq}", sentence)
