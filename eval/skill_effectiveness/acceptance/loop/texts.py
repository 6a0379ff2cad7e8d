"""Texts from outside, cut to what a prompt or an event may hold. Pure.

Source: loop.md, section 4 (feedback) and L21.
"""

from __future__ import annotations

from typing import Final

from skill_effectiveness.evidence.strict import LONE_SURROGATE

_GAP: Final = "\n[… {bytes} bytes left out …]\n"
_GAP_ROOM: Final = 48


def is_text(value: object) -> bool:
    """Whether something is text that has a UTF-8 form: no name of a file that is no text."""
    return isinstance(value, str) and not LONE_SURROGATE.search(value)


def readable(data: bytes) -> str:
    """Bytes as text; what is no UTF-8, and NUL, which no argument vector takes, show as U+FFFD."""
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


def head_and_tail(text: str, limit: int) -> str:
    """The text itself if its UTF-8 form has at most `limit` bytes, else its two ends with a mark between.

    Args:
        text: any text without lone surrogates.
        limit: bytes of UTF-8; what is answered never has more.
    """
    data = text.replace("\0", "\ufffd").encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    room = limit - _GAP_ROOM
    if room <= 0:
        return ""
    head = data[: room // 2].decode("utf-8", "ignore")
    tail = data[-(room - room // 2) :].decode("utf-8", "ignore")
    left_out = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}{_GAP.format(bytes=left_out)}{tail}"


class Ends:
    """The first and the last bytes of a stream of any length.

    Args:
        limit: bytes that are kept; half of them from either end.
    """

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        """Take in the next bytes."""
        self.size += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[max(0, room) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def text(self) -> str:
        """What was kept."""
        tail = bytes(self._tail[-self._half :])
        left_out = self.size - len(self._head) - len(tail)
        gap = _GAP.format(bytes=left_out) if left_out else ""
        return readable(bytes(self._head)) + gap + readable(tail)
