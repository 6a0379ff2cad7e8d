"""Things that run: bounded child processes, exact programs, private session folders."""

from __future__ import annotations

from skill_effectiveness.execution.carriers import Leftover, leftovers
from skill_effectiveness.execution.executable import (
    NOT_LOOKED_AT,
    TEMPORARY_FOLDER,
    Executable,
    ExecutableCode,
    ExecutableError,
    identify,
    locate,
    unprepared,
)
from skill_effectiveness.execution.limits import LimitName, Limits
from skill_effectiveness.execution.outcome import Ended, ProcessResult, StartFault
from skill_effectiveness.execution.process import never, run_process
from skill_effectiveness.execution.sandbox import Sandbox
from skill_effectiveness.execution.session import SessionFolders
from skill_effectiveness.execution.session_sweep import SessionSweep, sweep_sessions

__all__ = [
    "NOT_LOOKED_AT",
    "TEMPORARY_FOLDER",
    "Ended",
    "Executable",
    "ExecutableCode",
    "ExecutableError",
    "Leftover",
    "LimitName",
    "Limits",
    "ProcessResult",
    "Sandbox",
    "SessionFolders",
    "SessionSweep",
    "StartFault",
    "identify",
    "leftovers",
    "locate",
    "never",
    "run_process",
    "sweep_sessions",
    "unprepared",
]
