"""What a condition's commands and questions reach: nothing here leads to what an agent printed.

Source: loop.md, section 2; L46, L52, L81, L84.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skill_effectiveness.acceptance.loop.errors import AbortedError
from skill_effectiveness.acceptance.loop.events import CheckResult
from skill_effectiveness.acceptance.loop.processes import run_observed
from skill_effectiveness.acceptance.loop.state_view import CommandMeasurement
from skill_effectiveness.acceptance.loop.steps import OUT
from skill_effectiveness.execution.git import Git, without_routing
from skill_effectiveness.execution.worktree import DetachedWorktree, WorktreeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.events import Labelled
    from skill_effectiveness.acceptance.loop.measured_tree import MeasuredTree
    from skill_effectiveness.acceptance.loop.steps import StepStore
    from skill_effectiveness.evidence.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class KeptOutputs:
    """Outputs of steps, as they lie in the run directory."""

    _store: StepStore

    def output(self, step: int) -> Mapping[str, bytes]:
        """See `StepOutputs`."""
        return self._store.files(step, OUT) if self._store.has(step) else {}


@dataclass(frozen=True, slots=True)
class CleanSource:
    """What a clean checkout is made of.

    Attributes:
        tree: the working tree that was measured.
        parent: commit that it is put upon.
        checkout: top of the repository.
    """

    tree: MeasuredTree
    parent: str
    checkout: Path

    def checked_out(self, around: Surroundings) -> DetachedWorktree:
        """A checkout that is not made yet.

        Raises:
            AbortedError: git refuses.
        """
        commit = self.tree.commit(self.parent, "closedloop check")
        return DetachedWorktree(Git(self.checkout, around), commit, around)


class CommandPlace:
    """Where commands run: the working tree, or a clean checkout that is made for the first of them.

    Args:
        worktree: the working tree.
        clean: what a clean checkout is made of; it leaves when `stack` does.
        stack: what is taken away afterwards.
    """

    def __init__(self, worktree: Path, clean: CleanSource | None, stack: ExitStack) -> None:
        self._worktree = worktree
        self._clean = clean
        self._stack = stack
        self._made: Path | None = None

    def path(self, around: Surroundings) -> Path:
        """The folder.

        Raises:
            AbortedError: the clean checkout cannot be made.
        """
        if self._clean is None:
            return self._worktree
        if self._made is None:
            try:
                checkout = self._stack.enter_context(self._clean.checked_out(around))
            except WorktreeError as error:
                raise AbortedError(f"no clean checkout could be made: {error.sentence}") from error
            self._made = checkout.path
        return self._made


class LoggedCommands:
    """Runs commands for one condition, one event each.

    Attributes:
        ran: how many were run.
    """

    def __init__(
        self,
        place: CommandPlace,
        around: Surroundings,
        seconds: float,
        log: Labelled,
    ) -> None:
        self._place = place
        self._around = around
        self._seconds = seconds
        self._log = log
        self._failed: AbortedError | None = None
        self.ran = 0

    def run(self, argv: Sequence[str]) -> CommandMeasurement:
        """See `CommandRunner`.

        Raises:
            AbortedError: it cannot be started or observed, and counts whatever the condition makes of that.
        """
        try:
            return self._run(argv)
        except AbortedError as error:
            self._failed = error
            raise

    def demand_run(self) -> None:
        """Demand that every command was run to its end.

        Raises:
            AbortedError: one was not.
        """
        if self._failed is not None:
            raise self._failed

    def _run(self, argv: Sequence[str]) -> CommandMeasurement:
        if not argv or any("\0" in word for word in argv):
            raise AbortedError("a condition asked for a command that is none")
        cwd = self._place.path(self._around)
        self.ran += 1
        observed = run_observed(
            argv,
            cwd=cwd,
            env={**without_routing(self._around.environ), "PWD": str(cwd)},
            seconds=self._seconds,
            around=self._around,
            called=f"check {argv[0]}",
        )
        output = observed.stdout + observed.stderr
        self._log.note(
            CheckResult(
                argv=tuple(argv),
                exit=observed.exit,
                seconds=observed.seconds,
                output_digest=observed.output_digest,
                output_bytes=len(output.encode("utf-8", "replace")),
                output_tail=output,
            )
        )
        return CommandMeasurement(observed.exit, output)
