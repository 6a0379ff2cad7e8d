"""Lines of a file of any size, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.strict import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT: Final = Profile.ROW.max_bytes + 1
"""Bytes of a line that are kept: one more than a row may have, which is enough to see that it is too long."""


class LineFeed:
    """Cuts chunks into lines at the byte LF and nowhere else.

    Args:
        on_line: called with each complete line without its LF (of a line that is longer than any row, only
            the beginning) and with its size in bytes.
    """

    def __init__(self, on_line: Callable[[bytes, int], None]) -> None:
        self._on_line = on_line
        self._held = b""
        self._held_size = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file."""
        first, *lines = chunk.split(b"\n")
        self._hold(first)
        if not lines:
            return
        rest = lines.pop()
        self._on_line(self._held, self._held_size)
        self._held, self._held_size = b"", 0
        on_line = self._on_line
        for line in lines:
            size = len(line)
            on_line(line if size <= _KEPT else line[:_KEPT], size)
        self._hold(rest)

    def rest(self) -> tuple[bytes, int]:
        """What stands behind the last LF: its beginning, and its size in bytes."""
        return self._held, self._held_size

    def _hold(self, part: bytes) -> None:
        self._held_size += len(part)
        if len(self._held) < _KEPT:
            self._held = (self._held + part)[:_KEPT] if self._held else part[:_KEPT]
