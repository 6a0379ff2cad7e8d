"""New descriptors above the standard streams."""

from __future__ import annotations

import fcntl
import os
import socket
from typing import Final

FIRST_FREE: Final = 3
"""Numbers below are the standard streams of whatever process they are handed to."""


def lifted(number: int) -> int:
    """The descriptor, moved above the standard streams: a process may be started with one of those closed."""
    if number >= FIRST_FREE:
        return number
    moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE)
    os.close(number)
    return moved


def high_pipe() -> tuple[int, int]:
    """Reading and writing end of a new pipe, neither of them a standard stream."""
    reading, writing = os.pipe()
    return lifted(reading), lifted(writing)


def high_sockets() -> tuple[socket.socket, socket.socket]:
    """Two connected stream sockets, neither of them a standard stream."""
    ours, theirs = socket.socketpair()
    return socket.socket(fileno=lifted(ours.detach())), socket.socket(fileno=lifted(theirs.detach()))
