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
from skill_effectiveness.execution.sandbox import Place, Sandbox, View
from skill_effectiveness.execution.session import SessionFolders
from skill_effectiveness.execution.session_sweep import SessionSweep, sweep_sessions
from skill_effectiveness.execution.trace_log import Access, Trace
from skill_effectiveness.execution.tracing import Tracer, read_trace

__all__ = [
    "NOT_LOOKED_AT",
    "TEMPORARY_FOLDER",
    "Access",
    "Ended",
    "Executable",
    "ExecutableCode",
    "ExecutableError",
    "Leftover",
    "LimitName",
    "Limits",
    "Place",
    "ProcessResult",
    "Sandbox",
    "SessionFolders",
    "SessionSweep",
    "StartFault",
    "Trace",
    "Tracer",
    "View",
    "identify",
    "leftovers",
    "locate",
    "never",
    "read_trace",
    "run_process",
    "sweep_sessions",
    "unprepared",
]
