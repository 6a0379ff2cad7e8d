"""Lines from a byte stream: LF alone ends a line, and a line has a longest length.

Source: providers.md P5; field-failures.md F17, F20, F44.
"""

from __future__ import annotations


class LineFramer:
    r"""Cuts chunks of bytes into lines that end in `b"\n"` and nothing else.

    CR, vertical tab, U+0085 and U+2028 are content. Bytes are never decoded here, so a character split
    over two chunks arrives whole. After `overflowed` is True nothing more is returned.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._held = 0
        self.overflowed = False

    @property
    def rest(self) -> bytes:
        """What came after the last LF; at most the longest line."""
        return b"".join(self._parts)

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, in order, without their LF.

        Those before an over-long one are still returned.
        """
        lines: list[bytes] = []
        if self.overflowed:
            return lines
        *ended, tail = chunk.split(b"\n")
        for part in ended:
            if not self._hold(part):
                return lines
            lines.append(self.rest)
            self._parts, self._held = [], 0
        self._hold(tail)
        return lines

    def _hold(self, part: bytes) -> bool:
        if self._held + len(part) > self._longest:
            self._parts, self._held, self.overflowed = [], 0, True
            return False
        if part:
            self._parts.append(part)
            self._held += len(part)
        return True
