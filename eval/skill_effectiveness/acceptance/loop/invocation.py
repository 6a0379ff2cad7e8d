"""One invocation of an agent: given its inputs, observed to its end, its outputs kept, the tree measured.

Source: loop.md, sections 5 and 6; L33 to L44, L57 to L61, L80.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.loop.blocks import BlockResult
from skill_effectiveness.acceptance.loop.command_words import with_prompt
from skill_effectiveness.acceptance.loop.errors import AbortedError, LoopRefusedError
from skill_effectiveness.acceptance.loop.events import AgentExited, AgentStarted
from skill_effectiveness.acceptance.loop.processes import Observed, agent_environment, run_observed
from skill_effectiveness.acceptance.loop.prompts import Places, compose
from skill_effectiveness.acceptance.loop.state_view import LatestStep
from skill_effectiveness.acceptance.loop.steps import (
    OUT,
    Files,
    InputUnavailableError,
    Output,
    lay_mirror,
    read_output,
)
from skill_effectiveness.acceptance.loop.verdict import Verdict, invalid
from skill_effectiveness.acceptance.loop.words import Reason, Role, VerdictFault
from skill_effectiveness.evidence.canonical import digest_text
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.execution import SessionFolders
from skill_effectiveness.providers.codex_loop import loop_arguments

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.blocks import Run, RunContext
    from skill_effectiveness.acceptance.loop.events import AnyEvent
    from skill_effectiveness.acceptance.loop.guard import Guard
    from skill_effectiveness.acceptance.loop.measured_tree import Standing
    from skill_effectiveness.acceptance.loop.steps import StepStore
    from skill_effectiveness.evidence.surroundings import Surroundings

_MARK_BYTES = 8


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be invoked.

    Attributes:
        block: agent, prompt and wiring.
        ctx: with what.
        previous: the step before, if any.
        standing: the repository before.
        guarded: what the guard said at the beginning of the job.
        material: what every prompt holds besides.
    """

    block: Run
    ctx: RunContext
    previous: int | None
    standing: Standing
    guarded: str
    material: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Invoked:
    """What came of it.

    Attributes:
        result: of the block.
        standing: the repository afterwards.
        step: what a condition may know.
        verdict: an invalid one, where a reviewer's verdict cannot count any more.
    """

    result: BlockResult
    standing: Standing
    step: LatestStep
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """One invocation; made for one order and carried out once."""

    order: Order
    around: Surroundings
    worktree: Path
    measure: Callable[[], Standing]
    steps: StepStore
    guard: Guard
    seconds: float
    note: Callable[[AnyEvent], None]

    def carry_out(self) -> Invoked:
        """Carry it out.

        Raises:
            AbortedError: the agent cannot be started or observed, or something cannot be kept or measured.
        """
        try:
            given = self._given()
            self.steps.give(self._number, given)
            with SessionFolders(self.around) as session:
                observed, output = self._observe(session, given)
            manifest = self.steps.take(self._number, output)
        except InputUnavailableError as error:
            return self._ended(
                self.order.standing, VerdictFault.INPUT_UNAVAILABLE, Reason.INPUT_UNAVAILABLE, str(error)
            )
        except EvidenceError as error:
            raise AbortedError(f"a step cannot be kept ({error.code})") from error
        standing = self.measure()
        return self._judged(observed, output, manifest, standing)

    @property
    def _number(self) -> int:
        step = self.order.ctx._step  # noqa: SLF001 - blocks and their context are one room
        if step is None:
            raise ValueError("an invocation needs a step")
        return step

    @property
    def _role(self) -> Role:
        return Role.WORKER if self.order.ctx._duty is None else Role.REVIEWER  # noqa: SLF001 - as above

    def _given(self) -> Files:
        wiring = self.order.block.inputs
        if wiring is not None:
            return self.steps.wired(wiring)
        return {} if self.order.previous is None else self.steps.files(self.order.previous, OUT)

    def _observe(self, session: SessionFolders, given: Files) -> tuple[Observed, Output]:
        agent = self.order.block.agent
        places = Places(self.worktree, session.work / "in", session.work / "out")
        lay_mirror(self.around.fs, places.inputs, given)
        lay_mirror(self.around.fs, places.outputs, {})
        prompt = self._prompt(places)
        digest = digest_text(prompt)
        args = loop_arguments(agent.command, agent.args, places.outputs)
        self.note(
            AgentStarted(
                type="worker_started" if self._role is Role.WORKER else "reviewer_started",
                argv=(agent.command, *with_prompt(args, digest)),
                prompt_digest=digest,
                prompt_bytes=len(prompt.encode()),
                prompt=prompt,
            )
        )
        observed = run_observed(
            [agent.command, *with_prompt(args, prompt)],
            cwd=self.worktree,
            env=agent_environment(self.around, session.tmp, agent.pass_env),
            seconds=self.seconds,
            around=self.around,
            called=f"agent {agent.name}",
        )
        return observed, read_output(self.around.fs, places.outputs)

    def _prompt(self, places: Places) -> str:
        block, ctx = self.order.block, self.order.ctx
        try:
            asked = block.prompt(ctx) if callable(block.prompt) else block.prompt
        except Exception as error:
            raise AbortedError(f"the prompt of {block.agent.name} raised {type(error).__name__}") from error
        if asked is not None and not isinstance(asked, str):
            raise AbortedError(f"the prompt of {block.agent.name} is no text")
        own = () if block.agent.context is None else (f"## Context\n{block.agent.context}",)
        try:
            return compose(
                ctx.task if asked is None else asked,
                (*own, *self.order.material),
                places,
                duty=ctx._duty,  # noqa: SLF001 - blocks and their context are one room
                content=self.order.standing.content,
                feedback=ctx.feedback,
                mark=self.around.entropy(_MARK_BYTES).hex(),
            )
        except LoopRefusedError as error:
            raise AbortedError(str(error)) from error

    def _judged(self, observed: Observed, output: Output, manifest: str, standing: Standing) -> Invoked:
        mark = self.guard.mark()
        changed = standing != self.order.standing or mark != self.order.guarded
        self.note(
            AgentExited(
                type="worker_exited" if self._role is Role.WORKER else "reviewer_exited",
                exit=observed.exit,
                signal=observed.signal,
                timed_out=observed.timed_out,
                seconds=observed.seconds,
                stdout_digest=observed.stdout_digest,
                stderr_digest=observed.stderr_digest,
                repo_changed=changed,
                out_manifest_digest=manifest,
                stdout=observed.stdout,
                stderr=observed.stderr,
            )
        )
        name = self.order.block.agent.name
        if observed.timed_out:
            told = f"The agent {name} was ended at its time limit of {self.seconds:g} seconds."
            return self._ended(standing, VerdictFault.REVIEWER_TIMED_OUT, Reason.AGENT_TIMED_OUT, told)
        if not observed.good:
            how = f"signal {observed.signal}" if observed.exit is None else f"exit code {observed.exit}"
            told = f"The agent {name} ended with {how}."
            return self._ended(standing, VerdictFault.REVIEWER_FAILED, Reason.AGENT_FAILED, told)
        if output.fault is not None:
            told = f"The output of {name} was rejected: {output.fault.value}."
            return self._ended(standing, VerdictFault.OUTPUT_REJECTED, Reason.OUTPUT_REJECTED, told)
        if self._role is Role.REVIEWER and changed:
            told = f"The reviewer {name} changed the repository, so its verdict does not count."
            return self._ended(standing, VerdictFault.REPOSITORY_CHANGED, Reason.REPOSITORY_CHANGED, told)
        if mark != self.order.guarded:
            told = f"The agent {name} changed a protected path, or hooks or configuration of git; undo that."
            return self._ended(standing, None, Reason.PROTECTED_PATH_CHANGED, told)
        step = LatestStep(self._number, changed, self.order.standing.content)
        return Invoked(BlockResult(ok=True), standing, step)

    def _ended(self, standing: Standing, fault: VerdictFault | None, reason: Reason, told: str) -> Invoked:
        """A step that failed; where it was a reviewer's, so did its verdict."""
        verdict = invalid(fault) if fault is not None and self._role is Role.REVIEWER else None
        step = LatestStep(self._number, standing != self.order.standing, self.order.standing.content)
        return Invoked(BlockResult(ok=False, reason=reason, feedback=told), standing, step, verdict)
