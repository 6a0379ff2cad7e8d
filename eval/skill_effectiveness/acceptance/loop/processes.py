"""Starting agents and checks: directly, bounded, observed to their end.

Source: loop.md, L15, L60, L61, L82. What a process prints is digested, and kept as far as a limit goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.errors import AbortedError
from skill_effectiveness.acceptance.loop.limits import STREAM_BYTES, TOLD_BYTES
from skill_effectiveness.acceptance.loop.texts import Ends
from skill_effectiveness.evidence.canonical import RunningDigest, digest_bytes
from skill_effectiveness.execution import Ended, Limits, ProcessResult, run_process
from skill_effectiveness.execution.programs import find_program
from skill_effectiveness.providers.environment import child_environment

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

_OF_PEOPLE: Final = frozenset(
    {
        "HOME",
        "LOGNAME",
        "SHELL",
        "TZ",
        "USER",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
    }
)
"""What a command line agent needs besides to find its own login and keep its own state."""
_STDERR_BYTES: Final = 8_388_608
_UNOBSERVED: Final = frozenset({Ended.SUPERVISOR_LOST, Ended.UNKILLED, Ended.CANCELLED, Ended.LIMIT})


@dataclass(frozen=True, slots=True)
class Observed:
    """One process, over.

    Attributes:
        exit: its exit code; `None` after a signal or at the time limit.
        signal: number of the signal that ended it.
        timed_out: whether it was ended at the time limit.
        seconds: how long it ran.
        stdout_digest: of all of it, up to the limit.
        stderr_digest: likewise.
        output_digest: of both, stdout first.
        stdout: its ends.
        stderr: its ends.
    """

    exit: int | None
    signal: int | None
    timed_out: bool
    seconds: float
    stdout_digest: str
    stderr_digest: str
    output_digest: str
    stdout: str
    stderr: str

    @property
    def good(self) -> bool:
        """Whether it exited with 0."""
        return self.exit == 0


def agent_environment(around: Surroundings, temporary: Path, passed: Collection[str]) -> dict[str, str]:
    """The environment of an agent: an allow-list and what the configuration names.

    Args:
        around: the environment of this program.
        temporary: a private folder, its TMPDIR.
        passed: names of the configuration.
    """
    return child_environment(
        around.environ, session={"TMPDIR": str(temporary)}, own_keys=_OF_PEOPLE | frozenset(passed)
    )


def run_observed(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    around: Surroundings,
    called: str,
) -> Observed:
    """Run a program to its end.

    Args:
        argv: its name or path, as for a shell, and its arguments.
        cwd: its working folder.
        env: its whole environment.
        seconds: its time.
        around: the surroundings.
        called: how people know it.

    Raises:
        AbortedError: it cannot be started, or nobody saw how it ended.
        KeyboardInterrupt, SystemExit, Terminated: as a signal handler raises them, once the tree is dead.
    """
    digest, ends = RunningDigest(), Ends(TOLD_BYTES)

    def keep(line: bytes) -> bool:
        digest.add(line + b"\n")
        ends.add(line + b"\n")
        return False

    program = find_program(argv[0], cwd, around)
    result = ProcessResult(Ended.UNSTARTABLE)
    if program is not None:
        result = run_process(
            [str(program), *argv[1:]],
            cwd=cwd,
            env=env,
            stdin=b"",
            limits=Limits(
                seconds,
                line_bytes=STREAM_BYTES,
                stdout_bytes=STREAM_BYTES,
                stderr_bytes=_STDERR_BYTES,
                drain=True,
            ),
            on_line=keep,
            around=around,
        )
    if result.ended is Ended.UNSTARTABLE:
        raise AbortedError(f"{called} cannot be started")
    if result.ended in _UNOBSERVED:
        raise AbortedError(f"{called} could not be observed to its end")
    digest.add(result.unterminated)
    ends.add(result.unterminated)
    told = Ends(TOLD_BYTES)
    told.add(result.stderr)
    stdout_digest = digest.digest
    digest.add(result.stderr)
    timed_out = result.ended is Ended.WALL_TIMEOUT
    return Observed(
        exit=None if timed_out else result.exit_code,
        signal=None if timed_out else result.signal,
        timed_out=timed_out,
        seconds=round(result.wall_seconds, 3),
        stdout_digest=stdout_digest,
        stderr_digest=digest_bytes(result.stderr),
        output_digest=digest.digest,
        stdout=ends.text,
        stderr=told.text,
    )
