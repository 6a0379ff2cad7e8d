"""Runs: the jobs of a configuration one after another, or one workflow of the library.

Source: loop.md, sections 2, 4, 8 and 9; L5, L22 to L28, L71, L75, L78.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.loop.config import LONGEST_SECONDS, Configuration, Job, with_context
from skill_effectiveness.acceptance.loop.errors import (
    EventNotWrittenError,
    LoopRefusedError,
)
from skill_effectiveness.acceptance.loop.events import EventLog, JobFinished, Owner, RunFinished, RunStarted
from skill_effectiveness.acceptance.loop.job_run import (
    INTERRUPTED,
    Assignment,
    JobEnd,
    JobRun,
    Line,
    Site,
    assignment_of,
)
from skill_effectiveness.acceptance.loop.preset import workflow_of
from skill_effectiveness.acceptance.loop.prompts import Duty, Places, compose, material_of
from skill_effectiveness.acceptance.loop.repository import (
    RUNS,
    Repository,
    alone,
    demand_clean,
    new_run_id,
    repository_at,
)
from skill_effectiveness.acceptance.loop.steps import StepStore
from skill_effectiveness.acceptance.loop.summary import SUMMARY, JobSummary, RunSummary
from skill_effectiveness.acceptance.loop.texts import is_text
from skill_effectiveness.acceptance.loop.words import EXITS, Outcome
from skill_effectiveness.acceptance.loop.workplace import Settings
from skill_effectiveness.evidence.canonical import digest_text
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.signals import Terminated, TerminationWindow
from skill_effectiveness.evidence.surroundings import Surroundings
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.worktree import sweep_worktrees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skill_effectiveness.acceptance.loop.blocks import Block
    from skill_effectiveness.evidence.root import PrivateRoot

    Observer = Callable[[dict[str, Any]], None]

DEFAULT_SECONDS = 900
# As long as any path of a mirror is; the prompt is measured with it before anything runs.
_LONG = Path("/" + "x" * 250)


def unheard(_event: dict[str, Any]) -> None:
    """Nobody observes."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What became of a workflow of the library.

    Attributes:
        outcome: how it ended.
        run_id: of the run.
        attempts: how many were made.
        seconds: how long it took.
        reason: why, for people.
    """

    outcome: Outcome
    run_id: str
    attempts: int
    seconds: float
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether the measured state passed."""
        return self.outcome is Outcome.PASSED


@dataclass(slots=True)
class OpenRun:
    """A run while it goes on.

    Attributes:
        run: its id.
        root: its folder.
        log: its events.
        steps: its steps.
        around: the surroundings.
        began: monotonic seconds at its start.
        jobs: what became of jobs so far.
    """

    run: str
    root: PrivateRoot
    log: EventLog
    steps: StepStore
    around: Surroundings
    began: float
    jobs: list[JobSummary] = field(default_factory=list)
    attempts: int = 0

    def started(self, repository: Repository, digest: str, jobs: Sequence[str]) -> None:
        """Write down that it has begun.

        Raises:
            EventNotWrittenError: it could not be written.
        """
        around = self.around
        mark = f"{around.boot_id}/{around.fs.process_start(around.pid)}"
        self.log.note(
            RunStarted(
                config_digest=digest,
                repo=printable(str(repository.top)),
                head=repository.head,
                jobs=tuple(jobs),
                owner=Owner(pid=around.pid, start=mark),
            )
        )

    def finished(self, outcome: Outcome, reason: str) -> RunSummary:
        """Write down that it is over, and publish the summary; what could not be written makes it aborted."""
        seconds = round(self.around.monotonic() - self.began, 3)
        summary = RunSummary(
            outcome=outcome,
            exit=EXITS[outcome],
            run=self.run,
            attempts=self.attempts,
            seconds=seconds,
            reason=reason,
            jobs=tuple(self.jobs),
        )
        try:
            self.log.note(
                RunFinished(outcome=outcome, attempts=self.attempts, seconds=seconds, exit=summary.exit)
            )
            self.root.publish(SUMMARY, summary.line())
        except (EventNotWrittenError, EvidenceError):
            return unwritten(summary)
        return summary


def unwritten(summary: RunSummary) -> RunSummary:
    """The summary of a run whose log could not be written to its end."""
    told = f"aborted: {EventNotWrittenError()}"
    return summary.model_copy(
        update={"outcome": Outcome.ABORTED, "exit": EXITS[Outcome.ABORTED], "reason": told}
    )


@contextmanager
def _opened(
    repository: Repository, around: Surroundings, observer: Observer
) -> Iterator[Callable[[], OpenRun]]:
    """Be alone in a clean repository; gives what begins the run, once everything else is known to be good.

    Raises:
        LoopRefusedError: nothing ran.
    """
    with ExitStack() as stack:
        kept = stack.enter_context(alone(repository, around))
        demand_clean(repository, around)
        sweep_worktrees(Git(repository.top, around), around)

        def begin() -> OpenRun:
            run = new_run_id(around)
            root = stack.enter_context(kept.child(RUNS, run, create=True))
            log = EventLog(root, run, observer)
            stack.callback(log.close)
            return OpenRun(run, root, log, StepStore(root), around, around.monotonic())

        yield begin


def run_jobs(
    configuration: Configuration, *, around: Surroundings, keep: bool = False, observer: Observer = unheard
) -> RunSummary:
    """Run the jobs of a configuration; the first that does not pass ends it.

    Args:
        configuration: as read.
        around: the surroundings.
        keep: failed worktrees stay.
        observer: hears every event once it is durable.

    Raises:
        LoopRefusedError: nothing ran.
    """
    repository = repository_at(configuration.repo, around)
    with _opened(repository, around, observer) as begin:
        loaded = with_context(configuration, around.fs, repository.top)
        for job in loaded.jobs:
            _demand_prompts(job)
        try:
            run = begin()
        except (EventNotWrittenError, EvidenceError) as error:
            return RunSummary(
                outcome=Outcome.ABORTED,
                exit=EXITS[Outcome.ABORTED],
                run=None,
                reason=f"aborted: {_told(error)}",
            )
        return _carried_out(run, repository, loaded, keep=keep)


def _told(error: EvidenceError | EventNotWrittenError) -> str:
    return (
        str(error)
        if isinstance(error, EventNotWrittenError)
        else f"the run folder cannot be made ({error.code})"
    )


def _demand_prompts(job: Job) -> None:
    """Demand that the prompts of a job are not too long, before anything runs."""
    places = Places(_LONG, _LONG, _LONG)
    material = material_of(job.context, job.keys.constraints)
    duty = None if job.reviewer is None else Duty("verdict.json", bound=True)
    try:
        compose(job.keys.task, material, places, duty=duty, content="x" * 100)
    except LoopRefusedError as error:
        raise LoopRefusedError(f"job {job.name}: {error}") from None


def _carried_out(run: OpenRun, repository: Repository, loaded: Configuration, *, keep: bool) -> RunSummary:
    site = Site(run.run, repository, loaded.path, run.log, run.steps, run.around, keep)
    line = Line(repository.head, repository.head)
    names = [job.name for job in loaded.jobs]
    end = JobEnd(Outcome.PASSED)
    try:
        run.started(repository, loaded.digest, names)
        for job in loaded.jobs:
            end = JobRun(site, assignment_of(job, workflow_of(job)), line).carry_out()
            run.attempts += end.attempts
            run.jobs.append(end.summary(job.name))
            if end.interruption is not None:
                end = JobEnd(Outcome.ABORTED, reason=f"aborted: {INTERRUPTED}")
            if end.outcome is not Outcome.PASSED:
                break
        _tell_unreached(run, names)
    except EventNotWrittenError as error:
        end = JobEnd(Outcome.ABORTED, reason=f"aborted: {error}")
    except (KeyboardInterrupt, Terminated):
        end = JobEnd(Outcome.ABORTED, reason=f"aborted: {INTERRUPTED}")
    unreached = names[len(run.jobs) :]
    run.jobs += [JobSummary(name=name, outcome=Outcome.NOT_RUN) for name in unreached]
    summary, _ = _finished(run, end)
    return summary


def _finished(run: OpenRun, end: JobEnd) -> tuple[RunSummary, BaseException | None]:
    """Write down that a run is over; a signal that comes meanwhile is too late to change that."""
    summary: RunSummary | None = None
    late: BaseException | None = None
    try:
        with TerminationWindow(insist=False):
            summary = run.finished(end.outcome, end.reason)
    except (KeyboardInterrupt, Terminated) as signal:
        late = signal
    return run.finished(end.outcome, end.reason) if summary is None else summary, late


def _tell_unreached(run: OpenRun, names: Sequence[str]) -> None:
    for name in names[len(run.jobs) :]:
        event = JobFinished(outcome=Outcome.NOT_RUN, attempts=0, worktree=None, kept=False)
        run.log.note(event, job=name)


def execute(
    workflow: Block,
    *,
    task: str,
    worktree: Path | str,
    timeout_seconds: float = DEFAULT_SECONDS,
    around: Surroundings | None = None,
    observer: Observer = unheard,
) -> RunResult:
    """Carry out a workflow in a working tree.

    Args:
        workflow: blocks.
        task: what is to be done; blocks find it as `ctx.task`.
        worktree: top of a clean git work tree; agents work in it.
        timeout_seconds: for each process alone.
        around: the surroundings; the process's own by default.
        observer: hears every event once it is durable.

    Raises:
        LoopRefusedError: nothing ran: the tree is dirty, no repository, or in use.
        KeyboardInterrupt, Terminated: it was interrupted; the log is complete.
    """
    around = Surroundings.real() if around is None else around
    place = Path(worktree)
    place = place if place.is_absolute() else Path.cwd() / place
    if not task.strip() or "\0" in task or not is_text(task):
        raise LoopRefusedError("the task is blank, holds a NUL character or has no UTF-8 form")
    if isinstance(timeout_seconds, bool) or not 0 < timeout_seconds <= LONGEST_SECONDS:
        raise LoopRefusedError("timeout_seconds has to be a positive number of seconds, a year at most")
    repository = repository_at(place, around)
    assignment = Assignment(workflow, task, Settings(timeout_seconds))
    with _opened(repository, around, observer) as begin:
        try:
            run = begin()
            run.started(repository, digest_text(task), ())
        except (EventNotWrittenError, EvidenceError) as error:
            return RunResult(Outcome.ABORTED, "", 0, 0.0, f"aborted: {_told(error)}")
        return _executed(run, repository, assignment)


def _executed(run: OpenRun, repository: Repository, assignment: Assignment) -> RunResult:
    site = Site(run.run, repository, None, run.log, run.steps, run.around)
    end = JobRun(site, assignment, Line(repository.head, repository.head)).carry_out()
    run.attempts = end.attempts
    summary, late = _finished(run, end)
    if (interruption := end.interruption or late) is not None:
        raise interruption
    return RunResult(Outcome(summary.outcome), run.run, end.attempts, summary.seconds, summary.reason)
