"""Things that run: bounded child processes, exact programs, private session folders."""

from __future__ import annotations

from skill_effectiveness.execution.carriers import Leftover, leftovers
from skill_effectiveness.execution.executable import (
    Executable,
    ExecutableCode,
    ExecutableError,
    identify,
    locate,
)
from skill_effectiveness.execution.limits import LimitName, Limits
from skill_effectiveness.execution.outcome import Ended, ProcessResult, StartFault
from skill_effectiveness.execution.process import run_process
from skill_effectiveness.execution.session import SessionFolders

__all__ = [
    "Ended",
    "Executable",
    "ExecutableCode",
    "ExecutableError",
    "Leftover",
    "LimitName",
    "Limits",
    "ProcessResult",
    "SessionFolders",
    "StartFault",
    "identify",
    "leftovers",
    "locate",
    "run_process",
]
