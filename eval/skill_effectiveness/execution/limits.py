"""The limits of one child process, by name.

Source: providers.md P5; field-failures.md F9, F11, F17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum

MEBIBYTE = 1024 * 1024


class LimitName(StrEnum):
    """A limit of output: crossing it ends the child and names it in the result.

    `trace_bytes` is of what is recorded of the child, not of what it says: its caller watches over that.
    """

    LINE_BYTES = "line_bytes"
    STDOUT_BYTES = "stdout_bytes"
    STDERR_BYTES = "stderr_bytes"
    TRACE_BYTES = "trace_bytes"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one child may take. A value that is no positive finite number raises ValueError.

    Attributes:
        wall_seconds: from the start of the call until the child has to be over.
        idle_seconds: longest silence on stdout and stderr together; `None` is off, because a healthy
            program may print only at its end.
        grace_seconds: from TERM to KILL, and from the terminal marker to TERM. The default keeps a
            call that ignores TERM within two seconds of its wall limit.
        line_bytes: longest line of stdout, without its LF.
        stdout_bytes: all of stdout.
        stderr_bytes: all of stderr; this much is kept in memory.
        drain: what goes beyond `stdout_bytes` and `stderr_bytes` is read and dropped, and told in the result,
            instead of ending the child. Lines then need as much room as all of stdout.
    """

    wall_seconds: float
    idle_seconds: float | None = None
    grace_seconds: float = 1.5
    line_bytes: int = 16 * MEBIBYTE
    stdout_bytes: int = 256 * MEBIBYTE
    stderr_bytes: int = MEBIBYTE
    drain: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.drain, bool):
            raise ValueError(f"drain must be true or false, not {self.drain!r}")  # noqa: TRY004 - as the others
        if self.drain and self.line_bytes < self.stdout_bytes:
            raise ValueError("line_bytes must reach stdout_bytes where the rest is drained")
        for field in fields(self):
            if field.name == "drain":
                continue
            value: float | None = getattr(self, field.name)
            if value is None and field.name == "idle_seconds":
                continue
            if value is None or isinstance(value, bool) or not (math.isfinite(value) and value > 0):
                raise ValueError(f"{field.name} must be a positive number, not {value!r}")
