"""The private store: where runs lie, their lock, their journal.

Source: milestone.md, section 3; evidence.md, sections 4, 6 and 7.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError
from skill_effectiveness.acceptance.milestone.rows import JournalRow, RunRows
from skill_effectiveness.acceptance.outside import lies_in_checkout
from skill_effectiveness.evidence.faults import EvidenceError, FileError, LockCode, LockError, RootCode
from skill_effectiveness.evidence.journal_faults import JournalError
from skill_effectiveness.evidence.journal_verify import verify_file
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.names import check_outside_id
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.single_file import FileJournal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from skill_effectiveness.acceptance.milestone.words import RowType
    from skill_effectiveness.evidence.journal_faults import JournalReport
    from skill_effectiveness.evidence.surroundings import Surroundings

JOURNAL: Final = "journal.jsonl"
LOCK: Final = "lock"
_FOLDERS: Final = ("milestone", "runs")
_NOT_AT_ONCE: Final = 30.0


class MilestoneStore:
    """The open store; made by `create` and `open` only."""

    def __init__(self, root: PrivateRoot, runs: PrivateRoot) -> None:
        self.root: Final = root
        self._runs = runs

    @classmethod
    def create(cls, path: Path, around: Surroundings, checkout: Path) -> Self:
        """Open the store, making it where it is missing.

        Args:
            path: absolute; nothing is written when it is not.
            around: the surroundings.
            checkout: a checkout that it must keep away from, beside any that it lies in.

        Raises:
            MilestoneError: `store_unsafe`.
        """
        _demand_form(path, around)
        try:
            root = PrivateRoot.create(path, RootKind.STATE, around=around, checkout=checkout)
        except EvidenceError as error:
            raise _unsafe(str(error)) from error
        return cls._with_runs(root, create=True)

    @classmethod
    def open(cls, path: Path, around: Surroundings) -> Self:
        """Open the store where a run was begun; nothing is made.

        Raises:
            MilestoneError: `store_unsafe`; `run_unknown`: there is no store, or nothing in it.
        """
        _demand_form(path, around)
        try:
            root = PrivateRoot.open(path, RootKind.STATE, around=around, checkout=None)
        except EvidenceError as error:
            raise _absent_or_unsafe(error) from error
        return cls._with_runs(root, create=False)

    @classmethod
    def _with_runs(cls, root: PrivateRoot, *, create: bool) -> Self:
        try:
            return cls(root, root.child(*_FOLDERS, create=create))
        except EvidenceError as error:
            root.close()
            raise _absent_or_unsafe(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._runs.close()
        self.root.close()

    def names(self) -> tuple[str, ...]:
        """The runs there are."""
        return tuple(name for name in self._runs.names() if not name.startswith("."))

    @contextmanager
    def locked(self, action: str) -> Iterator[None]:
        """Hold the lock under which runs are begun.

        Raises:
            MilestoneError: `run_locked`, `store_unsafe`.
        """
        with _locked(self._runs, ".lock", _NOT_AT_ONCE, action):
            yield

    def begin(self, run: str) -> RunFolder:
        """The folder of a new run.

        Raises:
            MilestoneError: `run_exists`, `row_not_written`.
        """
        _demand_id(run)
        if self._runs.exists(run):
            raise MilestoneError(MilestoneCode.RUN_EXISTS, run, "Choose another name with --run.")
        try:
            return RunFolder(run, self._runs.child(run, create=True), self.root)
        except EvidenceError as error:
            raise not_written(error) from error

    def run(self, run: str) -> RunFolder:
        """The folder of a run.

        Raises:
            MilestoneError: `run_unknown`.
        """
        _demand_id(run)
        try:
            return RunFolder(run, self._runs.child(run), self.root)
        except EvidenceError as error:
            told = "There is no such run in the store; see `milestone status`."
            raise MilestoneError(MilestoneCode.RUN_UNKNOWN, run, told) from error


class RunFolder:
    """One run's folder. Closing it again does nothing."""

    def __init__(self, run: str, root: PrivateRoot, store: PrivateRoot) -> None:
        self.run: Final = run
        self.root: Final = root
        self._store = store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.root.close()

    @property
    def path(self) -> Path:
        """Where it is, for children and for prompts."""
        return self.root.path

    @contextmanager
    def locked(self, action: str) -> Iterator[None]:
        """Hold the run lock, taken without waiting.

        Raises:
            MilestoneError: `run_locked`; the other process is not disturbed.
        """
        with _locked(self.root, LOCK, 0, action):
            yield

    def journal(self, *, create: bool = False) -> RunJournal:
        """The open journal; what a crash left is settled.

        Raises:
            MilestoneError: `journal_broken`, `row_not_written`, `run_unknown`.
        """
        return RunJournal(self.root, self._store, create=create)

    def rows(self) -> RunRows:
        """The rows as they lie there; nothing is written, and a torn last line is no row.

        Raises:
            MilestoneError: `journal_broken`; `run_unknown`: there is no journal.
        """
        found: list[JournalRow] = []
        report = verify_file(
            self.root.around.fs,
            self.root.path / JOURNAL,
            state=self._store,
            on_row=lambda row: found.append(JournalRow.of(row)),
        )
        if not report.sound:
            raise _broken(report, self.run)
        return RunRows(found)

    # Files beside the journal.

    def keep(self, data: bytes, *segments: str) -> Path:
        """Keep a file once and for all; its path.

        Raises:
            MilestoneError: `row_not_written`.
        """
        *folders, name = segments
        try:
            if not folders:
                self.root.publish(name, data)
            else:
                with self.root.child(*folders, create=True) as folder:
                    folder.publish(name, data)
        except EvidenceError as error:
            raise not_written(error) from error
        return self.path.joinpath(*segments)

    def replace(self, data: bytes, *segments: str) -> Path:
        """Write a file that is made anew from the same rows; its path.

        Raises:
            MilestoneError: `row_not_written`.
        """
        *folders, name = segments
        try:
            with self.root.child(*folders, create=True) as folder:
                folder.replace(name, data)
        except EvidenceError as error:
            raise not_written(error) from error
        return self.path.joinpath(*segments)

    def read(self, *segments: str) -> bytes | None:
        """The bytes of a file; `None` where it is not there or is not private."""
        *folders, name = segments
        try:
            if not folders:
                return self.root.read(name)
            with self.root.child(*folders) as folder:
                return folder.read(name)
        except EvidenceError:
            return None


class RunJournal:
    """The open journal of a run."""

    def __init__(self, root: PrivateRoot, state: PrivateRoot, *, create: bool) -> None:
        self._around = root.around
        try:
            self._journal = FileJournal.open(root, JOURNAL, state=state, create=create)
            self.rows: Final = RunRows([JournalRow.of(row) for row in self._journal.rows()])
        except JournalError as error:
            raise _refused(error) from error
        except EvidenceError as error:
            raise not_written(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._journal.close()

    def note(self, kind: RowType, **body: Any) -> JournalRow:  # noqa: ANN401 - plain JSON values
        """Append one row; it is durable when this returns.

        Raises:
            MilestoneError: `row_not_written`: the step does not count as done; `journal_broken`.
        """
        moment = self._around.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        row: dict[str, Any] = {"body": body, "time": moment, "type": kind.value}
        try:
            done = self._journal.append([row])
        except JournalError as error:
            raise _refused(error) from error
        except EvidenceError as error:
            raise not_written(error) from error
        added = JournalRow(done.last, done.head, kind.value, moment, body)
        self.rows.add(added)
        return added


@contextmanager
def _locked(root: PrivateRoot, name: str, wait: float, action: str) -> Iterator[None]:
    try:
        with Lock(root, name).hold(wait, action):
            yield
    except LockError as error:
        if error.code is LockCode.LOCK_BUSY:
            raise MilestoneError(MilestoneCode.RUN_LOCKED, "", str(error)) from error
        raise _unsafe(str(error)) from error


def _demand_id(run: str) -> None:
    try:
        check_outside_id(run)
    except FileError as error:
        raise MilestoneError(MilestoneCode.RUN_UNKNOWN, "", str(error)) from error


def _demand_form(path: Path, around: Surroundings) -> None:
    """Refuse a store that is named by a relative path or lies in any checkout, whoever's."""
    if not path.is_absolute():
        raise _unsafe("The store is named by a relative path; name it by an absolute one.")
    try:
        inside = lies_in_checkout(path, around)
    except EvidenceError as error:
        raise _unsafe(str(error)) from error
    if inside:
        raise _unsafe("The store lies in a checkout; name a private folder outside with --store.")


def _absent_or_unsafe(error: EvidenceError) -> MilestoneError:
    if error.code is RootCode.ROOT_MISSING:
        return MilestoneError(MilestoneCode.RUN_UNKNOWN, "", "No run was begun in this store.")
    return _unsafe(str(error))


def _unsafe(sentence: str) -> MilestoneError:
    return MilestoneError(MilestoneCode.STORE_UNSAFE, "", sentence)


def not_written(error: EvidenceError) -> MilestoneError:
    """The refusal for a write that failed: the step does not count as done."""
    return MilestoneError(MilestoneCode.ROW_NOT_WRITTEN, "", str(error))


def _refused(error: JournalError) -> MilestoneError:
    return not_written(error) if error.report is None else _broken(error.report, "")


def _broken(report: JournalReport, run: str) -> MilestoneError:
    if not report.findings:
        told = "There is no journal that can be read."
        return MilestoneError(MilestoneCode.RUN_UNKNOWN, run, told)
    seq = next((found.seq for found in report.findings if found.seq is not None), report.count)
    told = "It is left as it is; keep it as evidence and start a new run."
    return MilestoneError(MilestoneCode.JOURNAL_BROKEN, f"at row {seq}", told)
