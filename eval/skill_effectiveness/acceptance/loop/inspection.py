"""Looking at runs from outside, without ever standing in their way.

Source: loop.md, sections 7 to 10; L64, L66 to L70. Nothing here takes a lock or writes.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict

from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.acceptance.loop.events import EVENT_TYPES, EVENTS
from skill_effectiveness.acceptance.loop.repository import LOCK, RUNS
from skill_effectiveness.acceptance.loop.words import RunState
from skill_effectiveness.evidence import files
from skill_effectiveness.evidence.chunks import CHUNK
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError, RootError
from skill_effectiveness.evidence.fsops import closing
from skill_effectiveness.evidence.journal_faults import JournalStatus
from skill_effectiveness.evidence.journal_rows import ORIGIN, RowForm, fits, read_row, row_digest
from skill_effectiveness.evidence.journal_verify import verify_file
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.execution.git import Git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.acceptance.loop.repository import Repository
    from skill_effectiveness.evidence.surroundings import Surroundings

_RUN: Final = re.compile(r"[0-9]{8}t[0-9]{9}-[0-9a-f]{6}")

Event = dict[str, Any]


class BrokenLineError(LoopRefusedError):
    """A stored line is not what was written."""

    def __init__(self, number: int) -> None:
        super().__init__(f"events line {number} is broken")


class LastAttempt(BaseModel):
    """The last attempt that was finished."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    job: str | None
    attempt: int
    ok: bool
    reason: str
    content_digest: str


class RunStatus(BaseModel):
    """What can be told of a run.

    Attributes:
        run: its id.
        state: whether it is going on.
        outcome: once it is finished.
        exit: likewise.
        started: when.
        job: the one it is at, or was.
        attempts: finished ones.
        last_attempt: the last of them.
        worktrees: those of it that git knows.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    run: str
    state: RunState
    outcome: str | None = None
    exit: int | None = None
    started: str | None = None
    job: str | None = None
    attempts: int = 0
    last_attempt: LastAttempt | None = None
    worktrees: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a repository.

    Attributes:
        repository: whose.
        around: the surroundings.
    """

    repository: Repository
    around: Surroundings

    def ids(self) -> tuple[str, ...]:
        """The ids of all runs, oldest first.

        Raises:
            LoopRefusedError: `repo: <reason>`: their folder cannot be trusted.
        """
        with ExitStack() as stack:
            try:
                root = stack.enter_context(self._root())
                names = stack.enter_context(root.child(RUNS)).names()
            except RootError as error:
                if error.code == "root_missing":
                    return ()
                raise LoopRefusedError(f"repo: {error.faults[0].sentence}") from error
            except FileError as error:
                raise LoopRefusedError(f"repo: {error.faults[0].sentence}") from error
        return tuple(sorted(name for name in names if _RUN.fullmatch(name)))

    def chosen(self, run: str | None) -> str:
        """An id that there is; the newest when none is given.

        Raises:
            LoopRefusedError: `no run <id>`, or no run at all.
        """
        ids = self.ids()
        if run is None and ids:
            return ids[-1]
        if run is None or run not in ids:
            raise LoopRefusedError("no run yet" if run is None else f"no run {run}")
        return run

    def _root(self) -> PrivateRoot:
        return PrivateRoot.open(self.repository.runs, RootKind.REPO, around=self.around, checkout=None)

    def status(self, run: str) -> RunStatus:
        """What can be told of a run.

        Raises:
            BrokenLineError: a line of its log is not what was written.
            LoopRefusedError: the log cannot be read.
        """
        events = self.events(run)
        return _status(run, events, self._state(events), self._worktrees(run))

    def events(self, run: str) -> list[Event]:
        """Every event of a run, a torn last line left out.

        Raises:
            BrokenLineError, LoopRefusedError: as `status`.
        """
        events: list[Event] = []
        place = self.repository.runs / RUNS / run / EVENTS
        report = verify_file(self.around.fs, place, on_row=lambda row: events.append(row.value))
        if report.status is JournalStatus.DAMAGED:
            raise BrokenLineError(
                min([each.seq for each in report.findings if each.seq is not None] or [len(events)]) + 1
            )
        if report.status is JournalStatus.UNREADABLE:
            with self._root() as root, root.child(RUNS, run) as folder:
                if EVENTS not in folder.names():
                    return []
            raise BrokenLineError(1)
        for number, event in enumerate(events, 1):
            _demand_known(event, number)
        return events

    def _state(self, events: list[Event]) -> RunState:
        if events and events[-1]["type"] == "run_finished":
            return RunState.FINISHED
        if not events:
            with self._root() as root:
                holder = Lock(root, LOCK).holder()
            if holder is None:
                return RunState.CRASHED
            return self._alive(holder.pid, f"{holder.boot_id}/{holder.process_start}")
        owner = events[0]["owner"]
        return self._alive(owner["pid"], owner["start"])

    def _alive(self, pid: int, mark: str) -> RunState:
        now = f"{self.around.boot_id}/{self.around.fs.process_start(pid)}"
        return RunState.RUNNING if now == mark else RunState.CRASHED

    def _worktrees(self, run: str) -> tuple[str, ...]:
        said = Git(self.repository.top, self.around).ask("worktree", "list", "--porcelain", "-z")
        lines = said.out.decode(errors="replace").split("\0")
        paths = [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]
        return tuple(path for path in paths if f"/closedloop-{run}/" in path)

    @contextmanager
    def followed(self, run: str) -> Iterator[Follower]:
        """Follow the log of a run.

        Raises:
            LoopRefusedError: it cannot be read.
        """
        with ExitStack() as stack:
            try:
                root = stack.enter_context(self._root())
                folder = stack.enter_context(root.child(RUNS, run))
                fd = stack.enter_context(closing(self.around.fs, files.open_private(folder.folder, EVENTS)))
            except EvidenceError as error:
                missing = error.code is FileCode.MISSING
                told = "has no event yet" if missing else f"cannot be read ({error.code})"
                raise LoopRefusedError(f"run {run} {told}") from error
            yield Follower(self, fd)


class Follower:
    """The lines of an open log, as they come; made by `Runs.followed`."""

    def __init__(self, runs: Runs, fd: int) -> None:
        self._runs = runs
        self._fd = fd
        self._held = b""
        self._count = 0
        self._head = ORIGIN
        self._events: list[Event] = []

    def lines(self) -> list[tuple[bytes, Event]]:
        """The lines that were completed since, with LF, and what they say.

        Raises:
            BrokenLineError: one is not what was written.
            FileError: reading failed.
        """
        fs = self._runs.around.fs
        with reported(EVENTS, reading=True):
            while chunk := fs.read(self._fd, CHUNK):
                self._held += chunk
        *whole, self._held = self._held.split(b"\n")
        return [(line + b"\n", self._event(line)) for line in whole]

    def _event(self, line: bytes) -> Event:
        number = self._count + 1
        try:
            event = dict(read_row(line))
        except EvidenceError as error:
            raise BrokenLineError(number) from error
        expected = (self._count, self._head)
        if not fits(event, RowForm.OWN) or (event["seq"], event["prev"]) != expected:
            raise BrokenLineError(number)
        _demand_known(event, number)
        self._count, self._head = number, row_digest(line)
        if not self._events or event["type"] == "run_finished":
            self._events.append(event)
        return event

    def over(self) -> bool:
        """Whether nothing more will come."""
        return self._runs._state(self._events) is not RunState.RUNNING  # noqa: SLF001 - one module


def _demand_known(event: Event, number: int) -> None:
    if event.get("type") not in EVENT_TYPES or (number == 1) != (event["type"] == "run_started"):
        raise BrokenLineError(number)


def _status(run: str, events: list[Event], state: RunState, worktrees: tuple[str, ...]) -> RunStatus:
    finished = [event for event in events if event["type"] == "attempt_finished"]
    jobs = [event["job"] for event in events if event["type"] == "job_started"]
    last = None
    if finished:
        members = ("job", "attempt", "ok", "reason", "content_digest")
        last = LastAttempt(**{name: finished[-1][name] for name in members})
    end = events[-1] if state is RunState.FINISHED else {}
    return RunStatus(
        run=run,
        state=state,
        outcome=end.get("outcome"),
        exit=end.get("exit"),
        started=events[0]["ts"] if events else None,
        job=jobs[-1] if jobs else None,
        attempts=len(finished),
        last_attempt=last,
        worktrees=worktrees,
    )
