"""Which program exactly: path, bytes and version, before a call and after it.

Source: providers.md P2; calibration.md section 3.
"""

from __future__ import annotations

import errno
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_file
from skill_effectiveness.evidence.faults import FileCode, FileError
from skill_effectiveness.execution.limits import Limits
from skill_effectiveness.execution.outcome import Ended, StartFault
from skill_effectiveness.execution.process import run_process

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skill_effectiveness.evidence.faults import EvidenceError
    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution.outcome import ProcessResult

VERSION_SECONDS: Final = 20.0
VERSION_BYTES: Final = 1024
TEMPORARY_FOLDER: Final = (
    "Set TMPDIR to the absolute path of a folder with room in it that you can write and others cannot."
)
"""What to do where no private folders can be made."""


_LACKS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})


class ExecutableCode(StrEnum):
    """Why a path is not a program that a record can name.

    Two say nothing about the program: `no_resources`, the machine had no process, memory or descriptor left
    to look at it, and `no_session_folders`, there was no place for the private folders in which it is asked.
    """

    NOT_ABSOLUTE = "not_absolute"
    MISSING = "missing"
    NOT_REGULAR = "not_regular"
    NOT_EXECUTABLE = "not_executable"
    UNREADABLE = "unreadable"
    NO_VERSION = "no_version"
    NO_RESOURCES = "no_resources"
    NO_SESSION_FOLDERS = "no_session_folders"


NOT_LOOKED_AT: Final = frozenset({ExecutableCode.NO_RESOURCES, ExecutableCode.NO_SESSION_FOLDERS})
"""What keeps a program from being looked at and is none of its faults."""


class ExecutableError(Exception):
    """A program cannot be bound; `code` is for machines, the text for people."""

    def __init__(self, code: ExecutableCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code: Final = code


@dataclass(frozen=True, slots=True)
class Executable:
    """One exact program.

    Attributes:
        path: as it was named, absolute; this is what is run, because some programs look at the name
            they are called by.
        resolved: the file behind it, without links; this is what was hashed.
        sha256: digest text of that file.
        version: the one line that `--version` prints.
    """

    path: Path
    resolved: Path
    sha256: str
    version: str

    def unchanged(self, around: Surroundings, env: Mapping[str, str]) -> bool:
        """Whether the path still leads to the same file, bytes and version; asked before and after a call.

        A machine that has nothing left to look with is no change of the program. What the call itself makes
        of that has a name of its own (`StartFault.NO_RESOURCES`).
        """
        try:
            return (
                _bytes_behind(self.path, around) == (self.resolved, self.sha256)
                and _ask_version(self.path, env, around, VERSION_SECONDS) == self.version
            )
        except ExecutableError as error:
            return error.code is ExecutableCode.NO_RESOURCES


def identify(
    path: Path, *, env: Mapping[str, str], around: Surroundings, timeout_seconds: float = VERSION_SECONDS
) -> Executable:
    """Bind a program: follow its links, hash the file, ask it for its version.

    Args:
        path: absolute.
        env: the whole environment of the `--version` call.
        around: the surroundings.
        timeout_seconds: what that call may take.

    Raises:
        ExecutableError: `not_absolute`, `missing`, `not_regular`, `not_executable`, `unreadable`;
            `no_version` when it does not answer `--version` with exit code 0 and exactly one line of
            printable text; `no_resources` when it could not be asked because of the machine.
    """
    resolved, digest = _bytes_behind(path, around)
    return Executable(path, resolved, digest, _ask_version(path, env, around, timeout_seconds))


def _bytes_behind(path: Path, around: Surroundings) -> tuple[Path, str]:
    """The file behind a path, and its digest text; errors as `identify`."""
    resolved = locate(path, around=around)
    try:
        return resolved, digest_file(around.fs, resolved)
    except FileError as error:
        raise _unreadable(path, error) from error


def locate(path: Path, *, around: Surroundings) -> Path:
    """The regular, executable file behind a path; nothing is read and nothing started.

    Raises:
        ExecutableError: `not_absolute`, `missing`, `not_regular`, `not_executable`; `unreadable` when it
            cannot be looked up; `no_resources`.
    """
    if not path.is_absolute():
        raise ExecutableError(
            ExecutableCode.NOT_ABSOLUTE, f"Name the program by its absolute path, not {str(path)!r}."
        )
    try:
        resolved = Path(around.fs.resolve(str(path)))
        mode = around.fs.lstat(None, str(resolved)).st_mode
        permitted = around.fs.may_execute(None, str(resolved))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ExecutableError(
            ExecutableCode.MISSING, f"There is no program at {path}; install it or correct the path."
        ) from error
    except (OSError, ValueError) as error:
        if _is_lack(error):
            raise _no_resources(path) from error
        raise ExecutableError(
            ExecutableCode.UNREADABLE, f"{path} cannot be looked up; check its links and permissions."
        ) from error
    if not stat.S_ISREG(mode):
        raise ExecutableError(ExecutableCode.NOT_REGULAR, f"{path} is not a file; name the program itself.")
    if not mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH) or not permitted:
        raise ExecutableError(
            ExecutableCode.NOT_EXECUTABLE, f"{path} may not be executed; give it execute permission."
        )
    return resolved


def _unreadable(path: Path, error: FileError) -> ExecutableError:
    """A file that was there a moment ago and cannot be hashed."""
    if _is_lack(error.__cause__):
        return _no_resources(path)
    codes = {FileCode.MISSING: ExecutableCode.MISSING, FileCode.NOT_REGULAR: ExecutableCode.NOT_REGULAR}
    code = next((mine for theirs, mine in codes.items() if error.code is theirs), ExecutableCode.UNREADABLE)
    return ExecutableError(code, f"{path} cannot be read and so not be named exactly; make it readable.")


def unprepared(path: Path, error: EvidenceError) -> ExecutableError:
    """Why a program is not even asked, when the private folders for that cannot be made or removed."""
    if _is_lack(error.__cause__):
        return _no_resources(path)
    return ExecutableError(
        ExecutableCode.NO_SESSION_FOLDERS,
        f"There is no place for the private folders in which {path} is asked for its version: {error} "
        f"{TEMPORARY_FOLDER}",
    )


def _ask_version(path: Path, env: Mapping[str, str], around: Surroundings, timeout_seconds: float) -> str:
    lines: list[bytes] = []

    def keep(line: bytes) -> bool:
        lines.append(line)
        return False

    result = run_process(
        [str(path), "--version"],
        cwd=Path("/"),
        env=env,
        stdin=b"",
        limits=Limits(timeout_seconds, line_bytes=VERSION_BYTES, stdout_bytes=2 * VERSION_BYTES),
        on_line=keep,
        around=around,
    )
    if result.start_fault is StartFault.NO_RESOURCES:
        raise _no_resources(path)
    version = one_line(lines, result.unterminated)
    if version is None or result.ended is not Ended.EXITED or result.exit_code != 0:
        told = _why_no_version(result, timeout_seconds)
        raise ExecutableError(ExecutableCode.NO_VERSION, f"{path} {told}.")
    return version


_NOT_STARTED: Final = {
    StartFault.MISSING: "is a script whose interpreter is not there; install that, or correct its first line",
    StartFault.NOT_EXECUTABLE: "or the interpreter it names may not be executed; look at permissions",
    StartFault.NOT_A_PROGRAM: "is neither a program of this machine nor a script; name the program itself",
}


def _why_no_version(result: ProcessResult, timeout_seconds: float) -> str:
    """What came instead of one line and exit code 0, and what to do."""
    match result.ended:
        case Ended.UNSTARTABLE:
            fault = result.start_fault or StartFault.OTHER
            return _NOT_STARTED.get(fault, f"cannot be started ({fault}); repair it, or name another program")
        case Ended.WALL_TIMEOUT:
            return f"--version did not end within {timeout_seconds:g} s; run it by hand to see why"
        case Ended.SUPERVISOR_LOST | Ended.UNKILLED:
            return "--version could not be watched to its end, so it does not count; try again"
        case Ended.EXITED if result.signal is not None:
            return f"--version was ended by signal {result.signal}; run it by hand to see why"
        case _:
            return "--version did not print exactly one line and exit with 0; name the program, not a wrapper"


def one_line(lines: Sequence[bytes], unterminated: bytes) -> str | None:
    """The text of an output that is exactly one line, with or without its LF; `None` for anything else.

    A line is UTF-8 without control characters, not blank, and is taken as it is, blanks at its ends included.
    """
    parts = [*lines, unterminated] if unterminated else list(lines)
    if len(parts) != 1:
        return None
    try:
        text = parts[0].decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.strip() and text.isprintable() else None


def _is_lack(error: BaseException | None) -> bool:
    """Whether the machine had nothing left to look with."""
    return isinstance(error, OSError) and error.errno in _LACKS


def _no_resources(path: Path) -> ExecutableError:
    return ExecutableError(
        ExecutableCode.NO_RESOURCES,
        f"{path} could not be looked at, because no process, memory or descriptor was left; "
        "end other programs or raise the limits (ulimit -n, -u), then try again.",
    )
