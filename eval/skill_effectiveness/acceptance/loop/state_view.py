"""All that a condition gets to see.

Source: loop.md, section 2; L51, L52, L84. Nothing that can be reached from here holds what an agent printed,
how it exited or what became of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from skill_effectiveness.acceptance.loop.limits import READ_BYTES
from skill_effectiveness.acceptance.loop.tree_files import TreeFiles, segments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem


@dataclass(frozen=True, slots=True)
class CommandMeasurement:
    """A command that was run.

    Attributes:
        exit_code: `None` when a signal or the time limit ended it.
        output: what it printed, stdout before stderr, its ends if it is long.
    """

    exit_code: int | None
    output: str


class CommandRunner(Protocol):
    """Runs commands for conditions."""

    def run(self, argv: Sequence[str]) -> CommandMeasurement:
        """Run one to its end."""


class StepOutputs(Protocol):
    """The artifacts of steps that are over."""

    def output(self, step: int) -> Mapping[str, bytes]:
        """Every file of a step's output; none for a step that there is not."""


@dataclass(frozen=True, slots=True)
class LatestStep:
    """The last step of the iteration that a condition judges.

    Attributes:
        number: of the step.
        changed: whether the repository was changed during it.
        content: digest of the content that it was given.
    """

    number: int
    changed: bool
    content: str


@dataclass(frozen=True, slots=True)
class StateView:
    """The measured state.

    Attributes:
        worktree: the shared working tree.
    """

    worktree: Path
    _fs: FileSystem = field(repr=False)
    _commands: CommandRunner = field(repr=False)
    _outputs: StepOutputs = field(repr=False)
    _latest: LatestStep | None = field(repr=False)

    def read_file(self, path: str) -> str | None:
        """A file of the working tree; `None` where there is no such regular file of UTF-8 text.

        Raises:
            PathRefusedError: the path leaves the working tree or enters `.git`.
            FileError: the file is too long or cannot be read.
        """
        return _text(TreeFiles(self._fs, self.worktree).read(path, READ_BYTES))

    def exists(self, path: str) -> bool:
        """Whether a path of the working tree leads to anything inside it.

        Raises:
            PathRefusedError: as `read_file`.
        """
        return TreeFiles(self._fs, self.worktree).place(path, links=True) is not None

    def run_command(self, argv: Sequence[str]) -> CommandMeasurement:
        """Run a command, without a shell; one that cannot be started ends the run."""
        return self._commands.run(tuple(argv))

    def step_out(self, step_index: int, path: str) -> str | None:
        """An artifact of a step; `None` where there is no such file of UTF-8 text.

        Raises:
            PathRefusedError: the path leaves the output.
        """
        return _text(self._outputs.output(step_index).get("/".join(segments(path))))

    def _is_file(self, path: str) -> bool:
        return TreeFiles(self._fs, self.worktree).is_file(path)


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
