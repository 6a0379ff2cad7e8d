"""A mark of whatever is at a place: two equal marks, nothing changed there.

Source: loop.md, L58, L80. A mark must be had of everything that a hostile program can leave: names that no
document of ours would hold, pipes, files without end. What cannot be marked is never the same as before.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_chunks, digest_object
from skill_effectiveness.evidence.chunks import chunks_of, regular_file
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.tree import walk_tree

if TYPE_CHECKING:
    import os

    from skill_effectiveness.evidence.fsops import FileSystem
    from skill_effectiveness.evidence.surroundings import Surroundings

LARGEST: Final = 1_073_741_824
"""A longer file is known by its status, which nobody can set back, and not read: it may be sparse."""
_GIT: Final = ".git"
_RANDOM_BYTES: Final = 16

Mark = list[str]


def mark_of(around: Surroundings, place: Path) -> Mark:
    """The mark of a place, there or not; where a link leads is a part of it.

    Args:
        around: the surroundings.
        place: absolute. Of a folder `.git` only is told that it is one.
    """
    fs, shallow = around.fs, place.name == _GIT
    try:
        mark = [_hex(fs.resolve(str(place.parent)))]
        status = fs.lstat(None, str(place))
        if stat.S_ISLNK(status.st_mode):
            mark.append(f"link {_hex(fs.readlink(None, str(place)))}")
            place = Path(fs.resolve(str(place)))
            mark.append(_hex(str(place)))
            status = fs.lstat(None, str(place))
        return [*mark, _content(around, place, status, shallow=shallow)]
    except (FileNotFoundError, NotADirectoryError):
        return ["nothing"]
    except OSError as error:
        return ["unreadable", str(error.errno)]


def _content(around: Surroundings, place: Path, status: os.stat_result, *, shallow: bool) -> str:
    try:
        if not stat.S_ISDIR(status.st_mode):
            return _entry(around.fs, None, str(place), status)
        return "folder" if shallow else f"folder {folder_digest(around.fs, place)}"
    except EvidenceError as error:
        return f"unreadable {error.code} {around.entropy(_RANDOM_BYTES).hex()}"


def folder_digest(fs: FileSystem, folder: Path) -> str:
    """One digest for a folder and all below it, whatever the names and kinds of things there.

    Raises:
        EvidenceError: it cannot be read, or is nested too deep.
    """
    return digest_object(
        [
            [_hex(found.path), _entry(fs, found.parent, found.name, found.status)]
            for found in walk_tree(fs, folder)
        ]
    )


def _entry(fs: FileSystem, parent: int | None, name: str, status: os.stat_result) -> str:
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        return f"link {_hex(fs.readlink(parent, name))}"
    if stat.S_ISDIR(mode):
        return "folder"
    if not stat.S_ISREG(mode):
        return "special"
    kind = "program" if mode & stat.S_IXUSR else "file"
    return f"{kind} {_file(fs, parent, name, 'a file')}"


def file_digest(fs: FileSystem, place: Path) -> str:
    """A digest of one regular file.

    Raises:
        FileError: it is missing, no regular file, or cannot be read.
    """
    return _file(fs, None, str(place), place.name)


def _file(fs: FileSystem, parent: int | None, name: str, where: str) -> str:
    with regular_file(fs, parent, name, where) as fd:
        status = fs.fstat(fd)
        if status.st_size > LARGEST:
            known = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            return "large " + " ".join(map(str, known))
        return digest_chunks(chunks_of(fs, fd))


def _hex(name: str) -> str:
    return name.encode(errors="surrogateescape").hex()
