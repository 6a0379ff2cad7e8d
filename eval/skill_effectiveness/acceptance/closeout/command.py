"""Running one command item: an argument vector in a worktree, and what came of it.

Source: closeout.md, section 10, steps 3 and 4. What is recorded is what was observed: exit, timeout, signal,
and what the worktree and its HEAD look like afterwards. Nothing that the command says is a fact here.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.closeout.errors import CloseoutCode, CloseoutError
from skill_effectiveness.acceptance.closeout.records import Execution
from skill_effectiveness.execution import Ended, Limits, ProcessResult, run_process
from skill_effectiveness.execution.git import without_routing
from skill_effectiveness.execution.programs import find_program

if TYPE_CHECKING:
    from skill_effectiveness.acceptance.closeout.policy_models import ResolvedCommand
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution.worktree import DetachedWorktree

STREAM_BYTES: Final = 262_144
"""Bytes of each stream that a log keeps."""

# The grace after TERM; with the report of the supervisor it stays below the five seconds of the contract.
_GRACE_SECONDS: Final = 1.5
_UNOBSERVED: Final = frozenset({Ended.SUPERVISOR_LOST, Ended.UNKILLED, Ended.CANCELLED, Ended.LIMIT})


@dataclass(frozen=True, slots=True)
class CommandRun:
    """What a record and a log say about one run."""

    execution: Execution
    log: bytes


def run_command(item: ResolvedCommand, worktree: DetachedWorktree, around: Surroundings) -> CommandRun:
    """Run an item's argument vector in a fresh worktree and look at the worktree afterwards.

    Raises:
        CloseoutError: `command_unobserved`: nobody saw how it ended, so there is nothing to record.
        KeyboardInterrupt, SystemExit, Terminated: as a signal handler raises them, once the tree is dead.
    """
    said: list[bytes] = []

    def keep(line: bytes) -> bool:
        said.append(line + b"\n")
        return False

    program = find_program(item.exec[0], worktree.path, around)
    if program is None:
        result = ProcessResult(Ended.UNSTARTABLE)
    else:
        result = run_process(
            [str(program), *item.exec[1:]],
            cwd=worktree.path,
            # As a shell would after going there: the caller's folder is the working tree, not the candidate.
            env={**without_routing(around.environ), "PWD": str(worktree.path)},
            stdin=b"",
            limits=Limits(
                item.timeout_seconds,
                grace_seconds=_GRACE_SECONDS,
                line_bytes=STREAM_BYTES,
                stdout_bytes=STREAM_BYTES,
                stderr_bytes=STREAM_BYTES,
                drain=True,
            ),
            on_line=keep,
            around=around,
        )
    if result.ended in _UNOBSERVED:
        raise CloseoutError(
            CloseoutCode.COMMAND_UNOBSERVED,
            f"command {item.id} could not be observed to its end",
            "Nothing was recorded for it; look for processes that are left and repeat the run.",
        )
    execution = _execution(item, result, dirty=worktree.dirty(), moved=worktree.head_moved())
    return CommandRun(
        execution, b"STDOUT\n%b\nSTDERR\n%b" % (b"".join(said) + result.unterminated, result.stderr)
    )


def _execution(item: ResolvedCommand, result: ProcessResult, *, dirty: bool, moved: bool) -> Execution:
    timed_out = result.ended is Ended.WALL_TIMEOUT
    killed = {} if timed_out or result.signal is None else {"signal": signal_name(result.signal)}
    return Execution(
        argv=item.exec,
        exitCode=None if timed_out else result.exit_code,
        timedOut=timed_out,
        dirty=dirty,
        headMoved=moved,
        durationMs=round(result.wall_seconds * 1000),
        truncated=bool(result.drained),
        **killed,
    )


def signal_name(number: int) -> str:
    """The name of a signal, such as `SIGSEGV`; one without a name of its own is told by its number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
