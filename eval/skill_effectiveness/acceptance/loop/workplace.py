"""The place where blocks work: one working tree, measured before and after everything that happens in it.

Source: loop.md, sections 4 to 8. Here are the effects of the blocks; `blocks` says in which order they come.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.blocks import OURS, BlockResult, Iteration, Run, RunContext
from skill_effectiveness.acceptance.loop.conditions import (
    Condition,
    Measurement,
    VerdictPassed,
)
from skill_effectiveness.acceptance.loop.cycle import AttemptState, decision_digest
from skill_effectiveness.acceptance.loop.errors import AbortedError
from skill_effectiveness.acceptance.loop.events import (
    AnyEvent,
    AttemptFinished,
    BlockFinished,
    BlockStarted,
    Labelled,
    VerdictEvent,
)
from skill_effectiveness.acceptance.loop.invocation import Invocation, Order
from skill_effectiveness.acceptance.loop.limits import TOLD_BYTES
from skill_effectiveness.acceptance.loop.measuring import (
    CleanSource,
    CommandPlace,
    KeptOutputs,
    LoggedCommands,
)
from skill_effectiveness.acceptance.loop.state_view import StateView
from skill_effectiveness.acceptance.loop.texts import head_and_tail
from skill_effectiveness.acceptance.loop.words import Outcome, Reason
from skill_effectiveness.evidence.canonical import digest_object, digest_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.blocks import Block
    from skill_effectiveness.acceptance.loop.events import EventLog
    from skill_effectiveness.acceptance.loop.guard import Guard
    from skill_effectiveness.acceptance.loop.measured_tree import MeasuredTree, Standing
    from skill_effectiveness.acceptance.loop.steps import StepStore
    from skill_effectiveness.acceptance.loop.verdict import Verdict
    from skill_effectiveness.evidence.surroundings import Surroundings

LONE: Final = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """How a workflow is carried out.

    Attributes:
        timeout_seconds: for each process alone.
        material: what every prompt holds besides.
        job: its name, for events.
        verbose: keep bodies in the log.
        clean_checks: commands of conditions run in a clean checkout of the content.
        watches_cycles: a repeated state ends a loop.
    """

    timeout_seconds: float
    material: tuple[str, ...] = ()
    job: str | None = None
    verbose: bool = False
    clean_checks: bool = False
    watches_cycles: bool = True


@dataclass(slots=True)
class Workplace:
    """Carries out blocks in one working tree.

    Attributes:
        around: the surroundings.
        tree: the working tree.
        checkout: top of the repository, where clean checkouts are made from.
        steps: of the run.
        log: of the run.
        guard: what a worker must not change.
        settings: how.
        standing: the repository when it was last measured.
        previous: the step before, if there was one.
        attempts: of the outermost loop, finished.
    """

    around: Surroundings
    tree: MeasuredTree
    checkout: Path
    steps: StepStore
    log: EventLog
    guard: Guard
    settings: Settings
    standing: Standing = field(init=False)
    previous: int | None = None
    attempts: int = 0
    _baseline: Standing = field(init=False)
    _measured_last: Standing = field(init=False)
    _git_guarded: str = field(init=False)
    _guarded: str = field(init=False)

    def __post_init__(self) -> None:
        self.standing = self._baseline = self._measured_last = self.tree.measure()
        self._git_guarded = self.guard.git_mark()
        self._guarded = self.guard.mark()

    @property
    def watches_cycles(self) -> bool:
        """See `Place`."""
        return self.settings.watches_cycles

    def carry_out_workflow(self, workflow: Block, task: str) -> BlockResult:
        """Carry out a whole workflow; one without a loop is a single attempt.

        Raises:
            AbortedError: nobody can say what became of it.
        """
        lone = Iteration(LONE)
        ctx = RunContext(task, self.tree.path, LONE, "", self, lone)
        result = self.carry_out(workflow, ctx)
        if result.attempts:
            # A step after the last loop that failed: the attempts were measured, and the whole did not pass.
            failed = not result.ok and result.outcome is None
            told = f"a step after the loop did not pass ({result.reason.value})"
            return replace(result, outcome=Outcome.EXHAUSTED, told=told) if failed else result
        outcome = Outcome.PASSED if result.ok else Outcome.EXHAUSTED
        if not result.ok:
            lone.words.append(("body", result.reason.value))
        self.attempted(ctx, result.reason)
        told = "" if result.ok else "not passed in 1 attempts"
        return replace(result, outcome=outcome, attempts=LONE, told=told)

    # Blocks.

    def carry_out(self, block: Block, ctx: RunContext) -> BlockResult:
        """See `Place`."""
        if isinstance(block, OURS):
            return block.execute(ctx)

        def work(inner: RunContext) -> BlockResult:
            try:
                result = block.execute(inner)
            except AbortedError:
                raise
            except Exception as error:
                told = f"a block of kind {block.kind} raised {type(error).__name__}"
                raise AbortedError(told) from error
            if not isinstance(result, BlockResult):
                raise AbortedError(f"a block of kind {block.kind} answered with no BlockResult")
            self.standing = self.measure()
            missing = not result.ok and result.reason is Reason.PASSED
            return replace(result, reason=Reason.BLOCK_FAILED) if missing else result

        return self.within(block, ctx, work)

    def within(self, block: Block, ctx: RunContext, work: Callable[[RunContext], BlockResult]) -> BlockResult:
        """See `Place`."""
        step = self.steps.begin() if isinstance(block, Run) else None
        name = block.agent.name if isinstance(block, Run) else str(block.kind)
        kind = str(block.kind)
        self._note(BlockStarted(kind=kind, name=name, stepIndex=step), ctx)
        result = work(replace(ctx, _step=step))
        self._note(BlockFinished(kind=kind, name=name, stepIndex=step, ok=result.ok), ctx)
        return result

    def invoke(self, block: Run, ctx: RunContext) -> BlockResult:
        """See `Place`."""
        invocation = Invocation(
            Order(block, ctx, self.previous, self.standing, self._guarded, self.settings.material),
            self.around,
            self.tree.path,
            self.measure,
            self.steps,
            self.guard,
            self.settings.timeout_seconds,
            lambda event: self._note(event, ctx),
        )
        self.previous = ctx._step  # noqa: SLF001 - the context is made here
        made = invocation.carry_out()
        self.standing = made.standing
        ctx._iteration.stepped(made.step)  # noqa: SLF001 - as above
        if made.verdict is not None:
            self._note_verdict(made.verdict, ctx)
        return made.result

    def measure(self) -> Standing:
        """The repository now; git is not started once somebody has changed what it is led by.

        Raises:
            AbortedError: it cannot be measured.
        """
        mark = self.guard.git_mark()
        if mark == self._git_guarded:
            self._measured_last = self.tree.measure()
            return self._measured_last
        # Nobody knows the content, so it is the same as no other.
        unknown = digest_object({"git": mark, "unknown": self.around.entropy(16).hex()})
        return replace(self._measured_last, content=unknown)

    @property
    def _is_measured(self) -> bool:
        return self.standing == self._measured_last

    # Conditions.

    def judge(self, condition: Condition, ctx: RunContext, decider: str) -> tuple[Measurement, Reason]:
        """See `Place`."""
        with ExitStack() as stack:
            clean = CleanSource(self.tree, self.tree.start, self.checkout)
            place = CommandPlace(self.tree.path, clean if self.settings.clean_checks else None, stack)
            log = Labelled(self.log, self.settings.job, ctx.attempt, self.settings.verbose)
            commands = LoggedCommands(place, self.around, self.settings.timeout_seconds, log)
            view = StateView(
                self.tree.path,
                self.around.fs,
                commands,
                KeptOutputs(self.steps),
                ctx._iteration.latest,  # noqa: SLF001 - the context is made here
            )
            measured = self._measured(condition, view, ctx)
            commands.demand_run()
        reason = Reason.NOT_PASSED
        if commands.ran and self._moved():
            measured, reason = (
                Measurement(passed=False, word="changed", feedback=_CHANGED),
                Reason.REPOSITORY_CHANGED,
            )
        ctx._iteration.words.append((decider, measured.word))  # noqa: SLF001 - as above
        return measured, reason

    def _measured(self, condition: Condition, view: StateView, ctx: RunContext) -> Measurement:
        if isinstance(condition, VerdictPassed):
            verdict = condition.judge(view)
            self._note_verdict(verdict, ctx)
            told = verdict.feedback or (
                f"The verdict does not count: {verdict.fault}." if verdict.fault else ""
            )
            return replace(condition(view), feedback=told)
        try:
            answer: object = condition(view)
        except AbortedError:
            raise
        except Exception as error:
            raise AbortedError(f"a condition raised {type(error).__name__}") from error
        if isinstance(answer, bool):
            return Measurement(answer, str(answer))
        if not isinstance(answer, Measurement) or not answer.sound:
            raise AbortedError("a condition answered with neither a bool nor a sound Measurement")
        return answer if answer.word else replace(answer, word=str(answer.passed))

    def _moved(self) -> bool:
        """Measure again; whether the tree, its index, HEAD or a protected place is another than before."""
        before, self.standing = self.standing, self.measure()
        if not self.standing.same_place(before):
            return True
        # What git is led by has just been looked at.
        return bool(self.guard.places) and self.guard.mark() != self._guarded

    # Attempts.

    def attempted(self, ctx: RunContext, reason: Reason) -> AttemptState:
        """See `Place`."""
        iteration = ctx._iteration  # noqa: SLF001 - the context is made here
        words = iteration.words
        self.attempts += iteration.outer is None or iteration.outer.outer is None
        state = AttemptState(self.standing.content, decision_digest(words))
        diff = None
        if self.settings.verbose and self._is_measured:
            whole = self.tree.difference(self.tree.start, self.tree.written())
            diff = head_and_tail(whole, TOLD_BYTES)
        self._note(
            AttemptFinished(
                ok=reason is Reason.PASSED,
                reason=reason,
                content_digest=state.content,
                decision_digest=state.decision,
                diff=diff,
            ),
            ctx,
        )
        return state

    def accepted_commit(self, message: str, parent: str) -> str:
        """The content that passed, as a commit; its id.

        Raises:
            AbortedError: the working tree does not hold it any more.
        """
        if self._moved():
            raise AbortedError("the repository was moved by someone else after it had passed")
        return self.tree.commit(parent, message)

    @property
    def baseline(self) -> str:
        """The content digest at the beginning."""
        return self._baseline.content

    def _note_verdict(self, verdict: Verdict, ctx: RunContext) -> None:
        self._note(
            VerdictEvent(
                verdict=verdict.word,
                reason=verdict.fault,
                feedback_digest=digest_text(verdict.feedback),
                feedback_bytes=len(verdict.feedback.encode()),
                feedback=head_and_tail(verdict.feedback, TOLD_BYTES),
            ),
            ctx,
        )

    def _note(self, event: AnyEvent, ctx: RunContext) -> None:
        self.log.note(event, job=self.settings.job, attempt=ctx.attempt, verbose=self.settings.verbose)


_CHANGED: Final = "The repository changed while a condition was measured, so the measurement does not count."
