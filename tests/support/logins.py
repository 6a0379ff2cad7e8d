"""Login files that cannot be ones."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.faults import FileCode
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.fsops import RealFs

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

CODES = {
    "folder": FileCode.NOT_REGULAR,
    "fifo": FileCode.NOT_REGULAR,
    "loop": FileCode.FILE_SYMLINK,
    "unreadable": FileCode.NOT_READABLE,
    "too large": FileCode.FILE_SIZE,
}
BAD = tuple(CODES)


def spoil(path: Path, kind: str) -> FileSystem:
    """Put something of this kind in the place of a login file; the file system to look at it with."""
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        path.touch(mode=0o600)
    if kind == "too large":
        os.truncate(path, 2**31)
    if kind != "unreadable":
        return RealFs()
    # Permission bits do not bind the superuser.
    closed = Injection("open_read", errno.EACCES, nth=0, about=lambda name: name.endswith(path.name))
    return FaultFs(RealFs(), closed)
