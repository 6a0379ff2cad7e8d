"""The four blocks: agent, run, seq, loop.

Source: loop.md, section 2. Blocks say what happens in which order; every effect is the workplace's. A block
of somebody else's making stands beside them as long as it has a `kind` and an `execute`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from skill_effectiveness.acceptance.loop.command_words import demand_prompt_word
from skill_effectiveness.acceptance.loop.conditions import Condition, Measurement, VerdictPassed
from skill_effectiveness.acceptance.loop.cycle import History
from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.acceptance.loop.prompts import Duty
from skill_effectiveness.acceptance.loop.words import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.cycle import AttemptState
    from skill_effectiveness.acceptance.loop.state_view import LatestStep

RUN: Final = "run"
SEQ: Final = "seq"
LOOP: Final = "loop"
GATE: Final = "checks"


@dataclass(frozen=True, slots=True)
class BlockResult:
    """What a block came to.

    Attributes:
        ok: whether the next block may begin.
        reason: why not, or that it passed.
        feedback: what the next attempt may be told; untrusted.
        outcome: of a loop.
        attempts: how many a loop made, or the loops of a sequence together.
        told: more about it, for people.
    """

    ok: bool
    reason: Reason = Reason.PASSED
    feedback: str = ""
    outcome: Outcome | None = None
    attempts: int = 0
    told: str = ""


@runtime_checkable
class Block(Protocol):
    """Anything that can stand in a workflow."""

    @property
    def kind(self) -> str:
        """Its kind, for events."""

    def execute(self, ctx: RunContext) -> BlockResult:
        """Carry it out."""


@dataclass(slots=True)
class Iteration:
    """One attempt of a loop, while it goes on.

    Attributes:
        number: from 1.
        outer: the attempt of the loop around, if any.
        latest: the last step so far.
        words: what deciders measured so far: who, and the word.
    """

    number: int
    outer: Iteration | None = None
    latest: LatestStep | None = None
    words: list[tuple[str, str]] = field(default_factory=list)

    def stepped(self, step: LatestStep) -> None:
        """A step is over, of this attempt and of those around it."""
        self.latest = step
        if self.outer is not None:
            self.outer.stepped(step)


class Place(Protocol):
    """What blocks ask of the place where they work."""

    def carry_out(self, block: Block, ctx: RunContext) -> BlockResult:
        """Carry out any block, with its events."""

    def within(self, block: Block, ctx: RunContext, work: Callable[[RunContext], BlockResult]) -> BlockResult:
        """Do the work of a block of ours between its events."""

    def invoke(self, block: Run, ctx: RunContext) -> BlockResult:
        """Invoke an agent."""

    def judge(self, condition: Condition, ctx: RunContext, decider: str) -> tuple[Measurement, Reason]:
        """Measure a condition; the reason counts when it did not pass."""

    def attempted(self, ctx: RunContext, reason: Reason) -> AttemptState:
        """Write down that an attempt is over; the state it ended in."""

    @property
    def watches_cycles(self) -> bool:
        """Whether a repeated state ends a loop."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a block is carried out with.

    Attributes:
        task: the text given at invocation.
        worktree: the shared working tree.
        attempt: number of the attempt of the innermost loop.
        feedback: of the attempt before; untrusted.
    """

    task: str
    worktree: Path
    attempt: int
    feedback: str
    _place: Place = field(repr=False)
    _iteration: Iteration = field(repr=False)
    _duty: Duty | None = field(default=None, repr=False)
    _step: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Agent:
    """A reusable declaration of a command line agent; see `agent`."""

    name: str
    command: str
    args: tuple[str, ...]
    context: str | None = None
    pass_env: tuple[str, ...] = ()


def agent(
    name: str,
    *,
    command: str,
    args: Sequence[str],
    context: str | None = None,
    pass_env: Sequence[str] = (),
) -> Agent:
    """Declare an agent.

    Args:
        name: for events and messages.
        command: what is started, found as a shell would, without one.
        args: its arguments; exactly one is `{{prompt}}`.
        context: static material for every prompt of it.
        pass_env: variables it gets besides those on the list of this product.

    Raises:
        LoopRefusedError: the prompt has no place, or more than one.
    """
    if not name.strip():
        raise LoopRefusedError("an agent needs a name")
    demand_prompt_word(command, args)
    return Agent(name, command, tuple(args), context, tuple(pass_env))


@dataclass(frozen=True, slots=True)
class Run:
    """One invocation of an agent; see `run`."""

    agent: Agent
    prompt: str | Callable[[RunContext], str] | None = None
    inputs: Mapping[str, str] | None = None
    kind: str = field(default=RUN, init=False)

    def execute(self, ctx: RunContext) -> BlockResult:
        """See `Block`."""
        place = ctx._place  # noqa: SLF001 - blocks and their context are one room
        return place.within(self, ctx, lambda stepped: place.invoke(self, stepped))


@dataclass(frozen=True, slots=True)
class Seq:
    """Blocks one after another; see `seq`."""

    blocks: tuple[Block, ...]
    kind: str = field(default=SEQ, init=False)

    def execute(self, ctx: RunContext) -> BlockResult:
        """See `Block`."""
        return ctx._place.within(self, ctx, self._work)  # noqa: SLF001 - as above

    def _work(self, ctx: RunContext) -> BlockResult:
        attempts = 0
        for index, block in enumerate(self.blocks):
            result = ctx._place.carry_out(block, self._for(index, ctx))  # noqa: SLF001 - as above
            attempts += result.attempts
            if not result.ok:
                return replace(result, attempts=attempts)
        return BlockResult(ok=True, attempts=attempts, outcome=Outcome.PASSED if attempts else None)

    def _for(self, index: int, ctx: RunContext) -> RunContext:
        """The last block alone has the duty of a verdict, and does not hear what was said before."""
        if index < len(self.blocks) - 1:
            return replace(ctx, _duty=None)
        alone = len(self.blocks) == 1 or ctx._duty is None  # noqa: SLF001 - as above
        return ctx if alone else replace(ctx, feedback="")


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition between two blocks: the sequence ends here unless it is measured to pass.

    Attributes:
        condition: what is measured.
    """

    condition: Condition
    kind: str = field(default=GATE, init=False)

    def execute(self, ctx: RunContext) -> BlockResult:
        """See `Block`."""
        return ctx._place.within(self, ctx, self._work)  # noqa: SLF001 - as above

    def _work(self, ctx: RunContext) -> BlockResult:
        measured, reason = ctx._place.judge(self.condition, ctx, GATE)  # noqa: SLF001 - as above
        if measured.passed:
            return BlockResult(ok=True)
        return BlockResult(
            ok=False,
            reason=Reason.CHECK_FAILED if reason is Reason.NOT_PASSED else reason,
            feedback=measured.feedback,
        )


@dataclass(frozen=True, slots=True)
class Loop:
    """A body repeated until a condition is measured to pass; see `loop`."""

    body: Block
    until: Condition
    max: int
    kind: str = field(default=LOOP, init=False)

    def execute(self, ctx: RunContext) -> BlockResult:
        """See `Block`."""
        return ctx._place.within(self, ctx, self._work)  # noqa: SLF001 - as above

    def _work(self, ctx: RunContext) -> BlockResult:
        place, history, feedback = ctx._place, History(), ctx.feedback  # noqa: SLF001 - as above
        until = self.until
        duty = Duty(until.file, until.bound) if isinstance(until, VerdictPassed) else None
        for number in range(1, self.max + 1):
            iteration = Iteration(number, ctx._iteration)  # noqa: SLF001 - as above
            inner = replace(ctx, attempt=number, feedback=feedback, _iteration=iteration, _duty=duty)
            reason, feedback = self._attempt(inner)
            state = place.attempted(inner, reason)
            if reason is Reason.PASSED:
                return BlockResult(ok=True, outcome=Outcome.PASSED, attempts=number)
            repeated = history.repeated(number, state) if place.watches_cycles else None
            if repeated is not None:
                return self._ended(Outcome.LIMIT_CYCLE, number, feedback, str(repeated))
        return self._ended(Outcome.EXHAUSTED, self.max, feedback, f"not passed in {self.max} attempts")

    def _attempt(self, ctx: RunContext) -> tuple[Reason, str]:
        """One attempt: why it passed or did not, and what the next one may be told."""
        place, words = ctx._place, ctx._iteration.words  # noqa: SLF001 - as above
        body = place.carry_out(self.body, ctx)
        if not body.ok:
            words.append(("body", body.reason.value))
            return body.reason, body.feedback
        measured, reason = place.judge(self.until, ctx, "until")
        return (Reason.PASSED if measured.passed else reason), measured.feedback

    @staticmethod
    def _ended(outcome: Outcome, attempts: int, feedback: str, told: str) -> BlockResult:
        return BlockResult(
            ok=False,
            reason=Reason.INNER_LOOP,
            feedback=feedback,
            outcome=outcome,
            attempts=attempts,
            told=told,
        )


OURS: Final = (Run, Seq, Gate, Loop)


def run(
    agent: Agent,
    *,
    prompt: str | Callable[[RunContext], str] | None = None,
    inputs: Mapping[str, str] | None = None,
) -> Block:
    """One invocation of an agent.

    Args:
        agent: who.
        prompt: what is asked, or a function of the context that says so; by default the task.
        inputs: path in `in/` and path of a file or folder of an earlier step, `steps/<n>/out/…`; by default
            the whole output of the step before.
    """
    return Run(agent, prompt, None if inputs is None else dict(inputs))


def seq(blocks: Sequence[Block]) -> Block:
    """One block after another; the first that fails ends it.

    Raises:
        LoopRefusedError: there is none.
    """
    if not blocks:
        raise LoopRefusedError("a sequence needs at least one block")
    return Seq(tuple(blocks))


def loop(*, body: Block, until: Condition, max: int) -> Block:  # noqa: A002 - the contract's own spelling
    """Repeat a block until measured state passes, at most `max` times.

    Raises:
        LoopRefusedError: `max` is no positive integer, or the condition cannot be called.
    """
    if type(max) is not int or max < 1:
        raise LoopRefusedError("max has to be a positive integer")
    if not callable(until):
        raise LoopRefusedError("until has to be a condition")
    return Loop(body, until, max)
