"""Watching which files a program touches: strace, found on the machine, never brought along.

Source: trials.md section 5; studies.md section 1. Facts were observed on strace 6.1 with bubblewrap 0.8.0.

Normally::

    tracer = Tracer.found(around)
    if tracer is not None:
        argv = tracer.watching(sandbox.holding(argv, ...), log)
        ...
        trace = read_trace(around.fs, log, prelude=1)

It stands outside the sandbox, so its log and its process are out of reach of what is watched; inside, both
would be at its mercy. It needs no privilege there either: it watches its own child, and the user who makes a
user namespace is the one who may look into it. What the sandbox itself does before it starts the program is
in the log and does not count (`prelude`).

A program that is watched cannot watch another one itself, and is slower: every call it makes stops twice.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.evidence.chunks import file_chunks
from skill_effectiveness.evidence.faults import FileError
from skill_effectiveness.execution.framing import LineFramer
from skill_effectiveness.execution.limits import Limits
from skill_effectiveness.execution.outcome import Ended
from skill_effectiveness.execution.process import run_process
from skill_effectiveness.execution.programs import find_tool
from skill_effectiveness.execution.trace_log import LINE_BYTES, TRACED, Trace, TraceReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings

PROGRAM: Final = "strace"
PROBE_SECONDS: Final = 10.0
LOG_BYTES: Final = 4 * 1024 * 1024 * 1024
"""Longest log that is read, and that a call's logs may take on disk together."""

_QUIET: Final = "!SIGCHLD,SIGURG,SIGWINCH,SIGCONT"
"""Signals of no consequence; those that end a process have to be told, or its end is not."""
_WORDS: Final = (
    "--follow-forks",
    "--decode-fds=path",
    # All texts in hexadecimal, so that no name can look like a part of a line.
    "--strings-in-hex=all",
    # What clone answers inside is another number than that of the process out here.
    "--decode-pids=pidns",
    "--string-limit=0",
    f"--signal={_QUIET}",
    # Programs do without it where a kernel has none; what is asked for through it would not be seen.
    "--inject=?io_uring_setup:error=ENOSYS",
    f"--trace={','.join('?' + name for name in TRACED)}",
)


@dataclass(frozen=True, slots=True)
class Tracer:
    """strace as it is on this machine.

    Attributes:
        program: its absolute path.
    """

    program: Path

    @classmethod
    def found(cls, around: Surroundings) -> Self | None:
        """The strace on the PATH of the surroundings, if it is new enough and may watch here."""
        program = find_tool(PROGRAM, around)
        if program is None:
            return None
        tracer = cls(program)
        return tracer if tracer._works(around) else None

    def _works(self, around: Surroundings) -> bool:
        result = run_process(
            self.watching([str(self.program), "--version"], Path("/dev/null")),
            cwd=Path("/"),
            env={},
            stdin=b"",
            limits=Limits(PROBE_SECONDS),
            on_line=lambda _: False,
            around=around,
        )
        return result.ended is Ended.EXITED and result.exit_code == 0

    def watching(self, argv: Sequence[str], log: Path) -> list[str]:
        """The argument vector that runs a program and writes what it does to files into a log.

        Args:
            argv: the program by absolute path, and its arguments.
            log: absolute; made anew.
        """
        return [str(self.program), *_WORDS, f"--output={log}", "--", *argv]


def logged_bytes(fs: FileSystem, logs: Iterable[Path]) -> int:
    """How much logs take by now; one that is not there yet takes nothing."""
    size = 0
    for log in logs:
        with suppress(OSError):
            size += fs.lstat(None, str(log)).st_size
    return size


def read_trace(fs: FileSystem, log: Path, *, prelude: int = 0, folder: Path | None = None) -> Trace:
    """What a log comes to; one that is missing, cut or beyond all reason is not whole.

    Args:
        fs: file operations.
        log: absolute.
        prelude: see `TraceReader`.
        folder: see `TraceReader`.
    """
    reader = TraceReader(prelude=prelude, folder=None if folder is None else str(folder).encode())
    framer = LineFramer(LINE_BYTES)
    size = 0
    try:
        for chunk in file_chunks(fs, None, str(log), "the log of strace"):
            size += len(chunk)
            for line in framer.feed(chunk):
                reader.take(line)
            if framer.overflowed or size > LOG_BYTES:
                reader.broken("the log is longer than is read")
                break
    except FileError:
        reader.broken("the log cannot be read")
    if framer.rest:
        reader.broken("the log ends in the middle of a line")
    return reader.finish()
