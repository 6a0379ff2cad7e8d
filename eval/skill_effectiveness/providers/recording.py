"""What a program said, byte for byte, for whoever keeps it or reads more out of it than a call does.

Source: studies.md section 3 (`stream.jsonl`, `stderr.bin`); providers.md sections 4 and 7.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Recording:
    """The output of one call. It may hold anything a model or a server said, so it stays private.

    Attributes:
        stdout: what was read of the stream until the call was decided: every line with its LF, then the bytes
            after the last one. Nothing is decoded and nothing left out before that point.
        stderr: what came there, up to its limit.
        export: what a program wrote about its session elsewhere, an export or a session file, as it came;
            `None` where it has none or none could be had.
    """

    stdout: bytes = field(repr=False)
    stderr: bytes = field(default=b"", repr=False)
    export: bytes | None = field(default=None, repr=False)

    @property
    def lines(self) -> tuple[bytes, ...]:
        """The whole lines of `stdout`, without their LF; half a line at the end is none."""
        return tuple(self.stdout.split(b"\n")[:-1])
