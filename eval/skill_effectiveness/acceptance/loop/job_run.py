"""One job of a run: where it works, what it starts from, and what is left of it.

Source: loop.md, section 4; L22 to L27, L75, L80.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.errors import AbortedError, EventNotWrittenError, LoopRefusedError
from skill_effectiveness.acceptance.loop.events import Cleanup, JobFinished, JobStarted
from skill_effectiveness.acceptance.loop.guard import guard_of
from skill_effectiveness.acceptance.loop.measured_tree import MeasuredTree
from skill_effectiveness.acceptance.loop.prompts import material_of
from skill_effectiveness.acceptance.loop.repository import demand_clean
from skill_effectiveness.acceptance.loop.summary import JobSummary
from skill_effectiveness.acceptance.loop.words import LimitCycle, Outcome
from skill_effectiveness.acceptance.loop.workplace import Settings, Workplace
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.laying import drop_empty
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.signals import Terminated, TerminationWindow
from skill_effectiveness.execution import SessionFolders
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.session import base_folder
from skill_effectiveness.execution.worktree import PlacedWorktree, WorktreeError

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.blocks import Block
    from skill_effectiveness.acceptance.loop.config import Job
    from skill_effectiveness.acceptance.loop.events import EventLog
    from skill_effectiveness.acceptance.loop.repository import Repository
    from skill_effectiveness.acceptance.loop.steps import StepStore
    from skill_effectiveness.evidence.surroundings import Surroundings

REFS: Final = "refs/closedloop"
INTERRUPTED: Final = "interrupted"
MOVED: Final = "the repository was moved by someone else"
HIDDEN: Final = (
    "the working tree differs from HEAD in what git status does not show (a sparse checkout, or files marked "
    'assume-unchanged or skip-worktree); undo that, or use "isolate": true'
)
_INDEX: Final = "index"


@dataclass(slots=True)
class Line:
    """How far the accepted content has come.

    Attributes:
        tip: commit of all that was accepted, where the next isolated job starts.
        in_tree: commit whose content the working tree of the user holds.
    """

    tip: str
    in_tree: str


@dataclass(frozen=True, slots=True)
class JobEnd:
    """What became of a job.

    Attributes:
        outcome: of it.
        attempts: how many were finished.
        worktree: where something of it is left.
        ref: of its content, if it passed.
        reason: why, for people.
        interruption: what is to be raised again, if it was interrupted.
    """

    outcome: Outcome
    attempts: int = 0
    worktree: str | None = None
    ref: str | None = None
    reason: str = ""
    interruption: BaseException | None = None

    def summary(self, name: str) -> JobSummary:
        """As it stands in the summary."""
        return JobSummary(
            name=name,
            outcome=self.outcome,
            attempts=self.attempts,
            worktree=self.worktree,
            kept=self.worktree is not None,
            ref=self.ref,
            reason=self.reason,
        )


@dataclass(frozen=True, slots=True)
class Site:
    """What all jobs of a run share.

    Attributes:
        run: id of the run.
        repository: where.
        configuration: the file of the run, if there is one.
        log: of the run.
        steps: of the run.
        around: the surroundings.
        keep: failed worktrees stay.
    """

    run: str
    repository: Repository
    configuration: Path | None
    log: EventLog
    steps: StepStore
    around: Surroundings
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one job is about.

    Attributes:
        workflow: its blocks.
        task: its text.
        settings: how it is carried out.
        protected: paths that the worker must not change.
        isolate: whether it works in a worktree of its own.
        most: its maximum of attempts.
    """

    workflow: Block
    task: str
    settings: Settings
    protected: tuple[str, ...] = ()
    isolate: bool = False
    most: int = 1


def assignment_of(job: Job, workflow: Block) -> Assignment:
    """The assignment of a configured job."""
    keys = job.keys
    settings = Settings(
        timeout_seconds=keys.timeout_seconds,
        material=material_of(job.context, keys.constraints),
        job=job.name,
        verbose=keys.verbose,
        clean_checks=keys.clean_checks,
        watches_cycles=keys.limit_cycle is LimitCycle.ON,
    )
    return Assignment(workflow, keys.task, settings, keys.protected_paths, keys.isolate, keys.max_attempts)


class JobRun:
    """Carries out one assignment.

    Args:
        site: where.
        assignment: what.
        line: how far accepted content has come; moved on when the job passes.
    """

    def __init__(self, site: Site, assignment: Assignment, line: Line) -> None:
        self._site = site
        self._assignment = assignment
        self._line = line
        self._git = Git(site.repository.top, site.around)
        self._place: Workplace | None = None

    def carry_out(self) -> JobEnd:
        """Carry it out and clean up behind it; nothing is raised for what becomes of it.

        Raises:
            EventNotWrittenError: the log could not be written; the cleaning up is done.
        """
        if not self._assignment.isolate:
            end = self._guarded(self.site_top)
            worked = self._place is not None and self._assignment.settings.job is not None
            if end.outcome is not Outcome.PASSED and worked:
                told = f"{end.reason}; its edits stay in the working tree"
                end = replace(end, worktree=printable(str(self.site_top)), reason=told)
            return self._told(end)
        worktree = self._placed()
        return self._over(self._guarded(worktree.path, worktree), worktree)

    def _over(self, end: JobEnd, worktree: PlacedWorktree) -> JobEnd:
        """Clean up, and write down what became of the job; a signal that comes meanwhile waits for that."""
        over = end
        try:
            with TerminationWindow(insist=False):
                over = self._told(self._cleaned(end, worktree))
        except (KeyboardInterrupt, Terminated) as signal:
            over = replace(over, interruption=signal)
        return over

    @property
    def site_top(self) -> Path:
        """The working tree of the user."""
        return self._site.repository.top

    def _placed(self) -> PlacedWorktree:
        site = self._site
        parent = base_folder(site.around, None) / f"closedloop-{site.run}"
        name = self._assignment.settings.job or "job"
        return PlacedWorktree(self._git, parent / name, self._line.tip, site.around)

    def _made(self, worktree: PlacedWorktree) -> None:
        around = self._site.around
        try:
            PrivateRoot.create(worktree.path.parent, RootKind.REPO, around=around, checkout=None).close()
            worktree.make()
        except (EvidenceError, WorktreeError) as error:
            raise AbortedError(f"no worktree could be made: {error}") from error

    def _guarded(self, path: Path, worktree: PlacedWorktree | None = None) -> JobEnd:
        """Work, in a worktree that is made first; whatever happens becomes the end of the job."""
        try:
            if worktree is not None:
                self._made(worktree)
            return self._worked(path)
        except AbortedError as error:
            return JobEnd(Outcome.ABORTED, self._attempts, reason=f"aborted: {error}")
        except EvidenceError as error:
            return JobEnd(Outcome.ABORTED, self._attempts, reason=f"aborted: {error}")
        except (KeyboardInterrupt, Terminated) as signal:
            told = f"aborted: {INTERRUPTED}"
            return JobEnd(Outcome.ABORTED, self._attempts, reason=told, interruption=signal)

    @property
    def _attempts(self) -> int:
        return 0 if self._place is None else self._place.attempts

    def _worked(self, path: Path) -> JobEnd:
        site, assignment = self._site, self._assignment
        with SessionFolders(site.around) as session:
            tree = MeasuredTree(path, session.data / _INDEX, site.around)
            if not assignment.isolate:
                self._bring_up_to_date(tree)
            top = site.repository.top
            guard = guard_of(site.around, tree, assignment.protected, site.configuration, top)
            place = Workplace(
                site.around, tree, site.repository.top, site.steps, site.log, guard, assignment.settings
            )
            self._place = place
            job = assignment.settings.job
            started = JobStarted(
                baseline_digest=place.baseline, isolate=assignment.isolate, max=assignment.most
            )
            site.log.note(started, job=job)
            result = place.carry_out_workflow(assignment.workflow, assignment.task)
            outcome = result.outcome or Outcome.ABORTED
            if outcome is not Outcome.PASSED:
                return JobEnd(outcome, place.attempts, reason=result.told)
            return self._accepted(place, path)

    def _bring_up_to_date(self, tree: MeasuredTree) -> None:
        """Write content that passed before into the working tree of the user, uncommitted.

        Raises:
            AbortedError: the working tree is not as it was left, or git refuses.
        """
        line = self._line
        tree.measure()
        head = self._site.repository.head
        if tree.start != head or tree.written() != tree.tree_of(line.in_tree):
            raise AbortedError(HIDDEN if tree.start == head and self._looks_clean() else MOVED)
        if line.tip != line.in_tree:
            tree.ask("read-tree", "-m", "-u", line.in_tree, line.tip)
            line.in_tree = line.tip

    def _looks_clean(self) -> bool:
        try:
            demand_clean(self._site.repository, self._site.around)
        except LoopRefusedError:
            return False
        return True

    def _accepted(self, place: Workplace, path: Path) -> JobEnd:
        site, job = self._site, self._assignment.settings.job
        commit = place.accepted_commit(f"closedloop {site.run} {job or ''}".rstrip(), self._line.tip)
        kept = printable(str(path)) if self._assignment.isolate else None
        if job is None:
            return JobEnd(Outcome.PASSED, place.attempts, kept)
        ref = f"{REFS}/{site.run}/{job}"
        if not self._git.ask("update-ref", ref, commit, "0" * len(commit)).good:
            raise AbortedError(f"{ref} could not be made")
        self._line.tip = commit
        if not self._assignment.isolate:
            self._line.in_tree = commit
        return JobEnd(Outcome.PASSED, place.attempts, kept, ref)

    def _cleaned(self, end: JobEnd, worktree: PlacedWorktree) -> JobEnd:
        """Remove the worktree of a job that did not pass, unless it is to stay."""
        path = printable(str(worktree.path))
        if not worktree.made:
            # It never was, so there is nothing to tell.
            drop_empty(self._site.around.fs, worktree.path.parent)
            return end
        if end.outcome is Outcome.PASSED or self._site.keep:
            return replace(end, worktree=path)
        certain = worktree.remove()
        if certain:
            # The last of a run takes the folder of all with it.
            drop_empty(self._site.around.fs, worktree.path.parent)
        else:
            told = f"aborted: cleanup uncertain: {path}"
            end = replace(end, outcome=Outcome.ABORTED, worktree=path, reason=told)
        self._note(Cleanup(path=path, removed=certain, certain=certain))
        return end

    def _told(self, end: JobEnd) -> JobEnd:
        self._note(
            JobFinished(
                outcome=end.outcome,
                attempts=end.attempts,
                worktree=end.worktree,
                kept=end.worktree is not None,
            )
        )
        return end

    def _note(self, event: Cleanup | JobFinished) -> None:
        if self._assignment.settings.job is not None:
            # A log that could not be written is told by the end of the run, which cannot be written either.
            with suppress(EventNotWrittenError):
                self._site.log.note(event, job=self._assignment.settings.job)
