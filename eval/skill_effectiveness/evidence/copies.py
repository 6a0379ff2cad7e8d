"""A copy of a folder that is not private, for a program to work on.

Source: closeout.md, section 13: a conformance case is judged on a private copy, and its folder is never
written.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.chunks import regular_file
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import read_all, write_new_public
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.evidence.tree import walk_tree

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.evidence.fsops import FileSystem

FILE_BYTES: Final = 67_108_864


def copy_public_tree(fs: FileSystem, source: Path, target: Path) -> None:
    """Copy folders, regular files and links; a link is copied as a link and never followed.

    Args:
        fs: file operations.
        source: absolute; what is below it is copied.
        target: absolute; a folder of ours that is there, and below which nothing has these names.

    Raises:
        FileError: `not_regular`: something is a FIFO, a socket or a device; or a code of reading or writing.
        TreeError: `too_deep`.
    """
    for found in walk_tree(fs, source):
        where, mode = printable(found.path), found.status.st_mode
        goal = target / found.path
        with reported(where):
            if stat.S_ISDIR(mode):
                fs.mkdir(None, str(goal))
            elif stat.S_ISLNK(mode):
                goal.symlink_to(fs.readlink(found.parent, found.name))
            elif stat.S_ISREG(mode):
                with regular_file(fs, found.parent, found.name, where) as fd:
                    data = read_all(fs, fd, FILE_BYTES, where)
                write_new_public(fs, goal, data)
            else:
                sentence = f"{where} is a FIFO, a socket or a device; remove it."
                raise FileError(Fault(FileCode.NOT_REGULAR, where, sentence))


def append_public(fs: FileSystem, path: Path, data: bytes) -> None:
    """Make a regular file longer, in a copy that belongs to the caller.

    Raises:
        FileError: it is no regular file, or reading or writing failed.
    """
    with regular_file(fs, None, str(path), path.name) as fd:
        before = read_all(fs, fd, FILE_BYTES, path.name)
    with reported(path.name):
        fs.unlink(None, str(path))
    write_new_public(fs, path, before + data)
