"""Recorded streams of the real programs, read as a call reads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skill_effectiveness.execution import Ended, ProcessResult
from skill_effectiveness.providers.stream import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.providers import CallOutcome
    from skill_effectiveness.providers.stream import StreamReader

RECORDINGS = Path(__file__).parents[1] / "recordings"
ANSWER = '{"verdict": "pass", "score": 1, "reason": "fake model says so"}'
"""What the model said in every recording that came to an answer."""

KILLED = ProcessResult(ended=Ended.WALL_TIMEOUT, signal=15, stdin_complete=True)


def exited(code: int) -> ProcessResult:
    """A program that ended by itself."""
    return ProcessResult(ended=Ended.EXITED, exit_code=code, stdin_complete=True)


def taken(
    stream: Path,
    reader: StreamReader,
    process: ProcessResult,
    cut: int | None = None,
    *,
    stderr: bool = False,
) -> tuple[EventLog, ProcessResult]:
    """What a stream says up to a byte, and the end of its program, on request with what stderr said."""
    *framed, rest = stream.read_bytes()[:cut].split(b"\n")
    complaints = stream.with_suffix(".stderr")
    log = EventLog(reader.read, reader.salvage)
    for line in framed:
        log.take(line)
    said = complaints.read_bytes() if stderr and complaints.exists() else b""
    return log, replace(process, stderr=said, unterminated=rest, stdin_complete=True)


def every_beginning(stream: Path, replay: Callable[[int], CallOutcome]) -> None:
    """P6 F15: cut anywhere, even at the end of a line, a good stream does not count; whole it does."""
    size = len(stream.read_bytes())
    endings = [replay(cut).ending for cut in range(size + 1)]
    assert endings[0] == "no_answer"
    assert set(endings[1:-1]) == {"stream_invalid"}
    assert endings[-1] == "success"
