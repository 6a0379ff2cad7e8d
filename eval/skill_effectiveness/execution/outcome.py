"""How a child process ended, as closed words and one record.

Source: providers.md P6, P10.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skill_effectiveness.execution.limits import LimitName


class Ended(StrEnum):
    """Why a call is over. Only `exited` and `lingered` can be part of a success.

    `exited`: by itself, with an exit code or by a signal that was not ours. `lingered`: it had shown its
    terminal marker, did not exit within the grace and was killed. `supervisor_lost`: the process that
    watched over the tree went away, so nothing the child said counts. `unkilled`: a process of the tree
    is still alive although it was killed.
    """

    EXITED = "exited"
    LINGERED = "lingered"
    WALL_TIMEOUT = "wall_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    LIMIT = "limit"
    CANCELLED = "cancelled"
    UNSTARTABLE = "unstartable"
    SUPERVISOR_LOST = "supervisor_lost"
    UNKILLED = "unkilled"


class StartFault(StrEnum):
    """Why a program could not be started."""

    ARGUMENT_FORM = "argument_form"
    MISSING = "missing"
    NOT_EXECUTABLE = "not_executable"
    NOT_A_PROGRAM = "not_a_program"
    TOO_LONG = "too_long"
    FOLDER_UNUSABLE = "folder_unusable"
    NO_RESOURCES = "no_resources"
    OTHER = "other"


_EXEC_FAULTS = {
    errno.ENOENT: StartFault.MISSING,
    errno.ENOTDIR: StartFault.MISSING,
    errno.EACCES: StartFault.NOT_EXECUTABLE,
    errno.EPERM: StartFault.NOT_EXECUTABLE,
    errno.ENOEXEC: StartFault.NOT_A_PROGRAM,
    errno.E2BIG: StartFault.TOO_LONG,
    errno.EAGAIN: StartFault.NO_RESOURCES,
    errno.ENOMEM: StartFault.NO_RESOURCES,
    errno.EMFILE: StartFault.NO_RESOURCES,
    errno.ENFILE: StartFault.NO_RESOURCES,
}


def start_fault(stage: str, number: int) -> StartFault:
    """The word for an errno at a stage of starting, `process`, `folder` or `exec`.

    A script whose interpreter line names a program that is not there is `missing` too: the kernel answers
    ENOENT for both.
    """
    if stage == "process":
        return StartFault.NO_RESOURCES
    if stage == "folder":
        return StartFault.FOLDER_UNUSABLE
    return _EXEC_FAULTS.get(number, StartFault.OTHER)


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """One call, after which no process of its tree is alive (unless `ended` is `unkilled`).

    Attributes:
        ended: why it is over.
        exit_code: of the program, `None` when it was ended by a signal, not started or lost.
        signal: number of the signal that ended the program, ours included.
        limit: which limit was crossed, when `ended` is `limit`.
        start_fault: why it did not start, when `ended` is `unstartable`.
        stderr: what it wrote there, up to the limit.
        unterminated: bytes of stdout after the last LF; never delivered as a line.
        survivors: descendants that were alive once the program had ended or had to be killed; they
            were killed.
        unkilled: processes that are alive in spite of that.
        wall_seconds: from the call to its end.
        stdin_complete: whether every byte was handed over and the stream closed by us; False when it
            closed its end first.
        token: the value of `SKILL_EFFECTIVENESS_CALL` in the environment of its processes.
        drained: the limits beyond which output was read and dropped.
    """

    ended: Ended
    exit_code: int | None = None
    signal: int | None = None
    limit: LimitName | None = None
    start_fault: StartFault | None = None
    stderr: bytes = b""
    unterminated: bytes = b""
    survivors: int = 0
    unkilled: int = 0
    wall_seconds: float = 0.0
    stdin_complete: bool = False
    token: str = ""
    drained: frozenset[LimitName] = frozenset()
