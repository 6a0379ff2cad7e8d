"""Programs of a scenario started plainly: it asks git hundreds of times, and is about none of them."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

from skill_effectiveness.execution import Ended, ProcessResult, StartFault, never

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution import Limits

USERS = (
    "skill_effectiveness.execution.git.run_process",
    "skill_effectiveness.acceptance.milestone.verifying.run_process",
    "skill_effectiveness.acceptance.milestone.trackers.run_process",
)
"""Where `run_process` is called by what a scenario drives."""


def run_plainly(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes,
    limits: Limits,
    on_line: Callable[[bytes], bool],
    cancelled: Callable[[], bool] = never,
    around: Surroundings,
) -> ProcessResult:
    """What `run_process` does, without watching over a tree."""
    del cancelled, around
    try:
        done = subprocess.run(  # noqa: S603 - what the product starts
            list(argv), cwd=cwd, env=dict(env), input=stdin, capture_output=True, timeout=limits.wall_seconds,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ProcessResult(Ended.WALL_TIMEOUT, signal=signal.SIGKILL)
    except OSError:
        return ProcessResult(Ended.UNSTARTABLE, start_fault=StartFault.MISSING)
    *lines, rest = done.stdout.split(b"\n")
    for line in lines:
        on_line(line)
    return ProcessResult(
        Ended.EXITED,
        exit_code=done.returncode if done.returncode >= 0 else None,
        signal=None if done.returncode >= 0 else -done.returncode,
        stderr=done.stderr,
        unterminated=rest,
    )
