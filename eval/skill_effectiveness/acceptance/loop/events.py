"""What a run writes down while it goes on: a closed set of events, chained and fsynced one by one.

Source: loop.md, section 7; L20, L21, L62, L63, L70. The file is a journal of the kernel's single-file form:
an event is a row with `seq` and `prev`, its pin and torn tails lie beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from skill_effectiveness.acceptance.loop.errors import EventNotWrittenError
from skill_effectiveness.acceptance.loop.words import Outcome, Reason, VerdictFault, VerdictWord
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.journal_rows import row_time
from skill_effectiveness.evidence.single_file import FileJournal

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.root import PrivateRoot

EVENTS: Final = "events.ndjson"


class Event(BaseModel):
    """What every event says besides `seq`, `ts`, `run`, `job`, `attempt` and `prev`."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Owner(Event):
    """The process of a run.

    Attributes:
        pid: its number.
        start: mark of its start, which no later process of that number has.
    """

    pid: int
    start: str


class RunStarted(Event):
    """A run begins; `head` is the commit of the user, `jobs` are names in order."""

    type: Literal["run_started"] = "run_started"
    config_digest: str
    repo: str
    head: str
    jobs: tuple[str, ...]
    owner: Owner


class JobStarted(Event):
    """A job begins in a working tree whose content has this digest."""

    type: Literal["job_started"] = "job_started"
    baseline_digest: str
    isolate: bool
    max: int


class BlockStarted(Event):
    """A block begins; `stepIndex` is null for everything but an invocation of an agent."""

    type: Literal["block_started"] = "block_started"
    kind: str
    name: str
    stepIndex: int | None  # noqa: N815 - the contract's own spelling


class BlockFinished(Event):
    """The same block is over."""

    type: Literal["block_finished"] = "block_finished"
    kind: str
    name: str
    stepIndex: int | None  # noqa: N815 - the contract's own spelling
    ok: bool


class AgentStarted(Event):
    """An agent starts; the prompt in `argv` is replaced by its digest, and given whole when verbose."""

    type: Literal["worker_started", "reviewer_started"]
    argv: tuple[str, ...]
    prompt_digest: str
    prompt_bytes: int
    prompt: str | None = None


class AgentExited(Event):
    """An agent is over; its output as digests, and its ends when verbose. No condition sees any of it."""

    type: Literal["worker_exited", "reviewer_exited"]
    exit: int | None
    signal: int | None
    timed_out: bool
    seconds: float
    stdout_digest: str
    stderr_digest: str
    repo_changed: bool
    out_manifest_digest: str
    stdout: str | None = None
    stderr: str | None = None


class CheckResult(Event):
    """A command that a condition ran."""

    type: Literal["check_result"] = "check_result"
    argv: tuple[str, ...]
    exit: int | None
    seconds: float
    output_digest: str
    output_bytes: int
    output_tail: str | None = None


class VerdictEvent(Event):
    """A judged verdict; `reason` is null unless it is invalid."""

    type: Literal["verdict"] = "verdict"
    verdict: VerdictWord
    reason: VerdictFault | None
    feedback_digest: str
    feedback_bytes: int
    feedback: str | None = None


class AttemptFinished(Event):
    """An attempt is over."""

    type: Literal["attempt_finished"] = "attempt_finished"
    ok: bool
    reason: Reason
    content_digest: str
    decision_digest: str
    diff: str | None = None


class JobFinished(Event):
    """A job is over, or was never reached."""

    type: Literal["job_finished"] = "job_finished"
    outcome: Outcome
    attempts: int
    worktree: str | None
    kept: bool


class Cleanup(Event):
    """A worktree was to be removed."""

    type: Literal["cleanup"] = "cleanup"
    path: str
    removed: bool
    certain: bool


class RunFinished(Event):
    """The last event of a run."""

    type: Literal["run_finished"] = "run_finished"
    outcome: Outcome
    attempts: int
    seconds: float
    exit: int


AnyEvent = (
    RunStarted
    | JobStarted
    | BlockStarted
    | BlockFinished
    | AgentStarted
    | AgentExited
    | CheckResult
    | VerdictEvent
    | AttemptFinished
    | JobFinished
    | Cleanup
    | RunFinished
)
EVENT_TYPES: Final = frozenset(
    {
        "run_started",
        "job_started",
        "block_started",
        "block_finished",
        "worker_started",
        "reviewer_started",
        "worker_exited",
        "reviewer_exited",
        "check_result",
        "verdict",
        "attempt_finished",
        "job_finished",
        "cleanup",
        "run_finished",
    }
)
_VERBOSE_ONLY: Final = frozenset({"prompt", "stdout", "stderr", "output_tail", "feedback", "diff"})


class EventLog:
    """The open log of a run.

    Args:
        root: the run directory; stays the caller's.
        run: id of the run.
        observer: hears every event once it is durable.

    Raises:
        EventNotWrittenError: it cannot be begun.
    """

    def __init__(self, root: PrivateRoot, run: str, observer: Callable[[dict[str, Any]], None]) -> None:
        self._around = root.around
        self._run = run
        self._observer = observer
        self._broken = False
        try:
            self._journal = FileJournal.open(root, EVENTS, state=None)
        except EvidenceError as error:
            raise EventNotWrittenError from error

    def note(
        self, event: AnyEvent, *, job: str | None = None, attempt: int | None = None, verbose: bool = False
    ) -> None:
        """Write one event down; it is durable when this returns.

        Args:
            event: what happened; bodies that only a verbose log holds may always be given.
            job: name of the job.
            attempt: its number.
            verbose: keep the bodies.

        Raises:
            EventNotWrittenError: it could not be written.
        """
        members = event.model_dump(mode="json")
        if not verbose:
            members = {name: value for name, value in members.items() if name not in _VERBOSE_ONLY}
        row = {
            "attempt": attempt,
            "job": job,
            "run": self._run,
            "ts": row_time(self._around.now()),
            **members,
        }
        if self._broken:
            # There may be room again, but whoever reads the log would not see that an event is missing.
            raise EventNotWrittenError
        try:
            self._journal.append([row])
        except EvidenceError as error:
            self._broken = True
            raise EventNotWrittenError from error
        self._observer(row)

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


@dataclass(frozen=True, slots=True)
class Labelled:
    """The log for events of one attempt of one job.

    Attributes:
        job: its name.
        attempt: its number.
        verbose: whether bodies are kept.
    """

    _log: EventLog
    job: str | None
    attempt: int
    verbose: bool

    def note(self, event: AnyEvent) -> None:
        """See `EventLog.note`."""
        self._log.note(event, job=self.job, attempt=self.attempt, verbose=self.verbose)
