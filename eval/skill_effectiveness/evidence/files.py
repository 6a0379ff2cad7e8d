"""Files of a private folder: which of them may be read, and reading them.

Source: evidence.md, section 4, row "files read here".
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.fsops import FILE_MODE, closing, kind_fault, read_all
from skill_effectiveness.evidence.names import check_name, temporary_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from skill_effectiveness.evidence.fsops import FileSystem

READ_LIMIT: Final = 67_108_864
"""Bytes; the size limit of the `document` profile (evidence.md, section 2)."""

_PRIVATE_FILE: Final = stat.S_IFREG | FILE_MODE

# How often a file may be replaced under a reader before the reader gives up.
_MOVING_TARGET: Final = 100


@dataclass(frozen=True, slots=True)
class Folder:
    """An open private folder.

    Attributes:
        fs: file operations.
        fd: its descriptor.
        prefix: root-relative name of the folder with a slash behind it, empty for the root itself.
        entropy: random bytes for temporary names.
    """

    fs: FileSystem
    fd: int
    prefix: str
    entropy: Callable[[int], bytes]

    def where(self, name: str) -> str:
        """The root-relative name."""
        return self.prefix + name

    def status(self, name: str) -> os.stat_result | None:
        """The status of the name itself; `None` when there is none."""
        try:
            return self.fs.lstat(self.fd, name)
        except FileNotFoundError:
            return None


def file_fault(status: os.stat_result, where: str, user: int) -> Fault | None:
    """Judge a status: regular, not a link, ours, exactly 0600.

    Link counts need the folder: see `open_private`.

    Args:
        status: of the name itself (`lstat`) or of the open file (`fstat`).
        where: root-relative name.
        user: the effective user id.
    """
    mode = status.st_mode
    if (fault := kind_fault(status, where)) is not None:
        return fault
    if status.st_uid != user:
        sentence = f"{where} belongs to user {status.st_uid}, not to you (user {user}); it is not trusted."
        return Fault(FileCode.FILE_OWNER, where, sentence)
    if stat.S_IMODE(mode) != FILE_MODE:
        sentence = (
            f"{where} has mode {stat.S_IMODE(mode):04o}, but private files have 0600: others may have "
            "changed it. If you know they did not, run chmod 600 on it."
        )
        return Fault(FileCode.FILE_MODE, where, sentence)
    return None


def demand_private(folder: Folder, name: str, status: os.stat_result) -> None:
    """Raise the `FileError` of `file_fault`, if any."""
    if status.st_mode == _PRIVATE_FILE and status.st_uid == folder.fs.user():
        # What nearly every file is; the rest says what else it is.
        return
    fault = file_fault(status, folder.where(name), folder.fs.user())
    if fault is not None:
        raise FileError(fault)


def demand_replaceable(folder: Folder, name: str, status: os.stat_result) -> None:
    """Refuse to take the name of anything that this program would not have left there.

    Raises:
        FileError: a code of `file_fault`, or `file_links`.
    """
    demand_private(folder, name, status)
    if status.st_nlink > 1 and not _only_ours(folder, name, status):
        raise FileError(_links_fault(folder, name, status))


def open_private(folder: Folder, name: str, *, update: bool = False) -> int:
    """Open a private file after judging both its name and what was opened.

    Args:
        folder: where it is.
        name: one segment.
        update: open for writing too.

    Raises:
        FileError: `missing`, `file_symlink`, `not_regular`, `file_owner`, `file_mode`, `file_links`, or the
            code of a kernel error.
    """
    check_name(name, folder.prefix)
    where = folder.where(name)
    opening = folder.fs.open_update if update else folder.fs.open_read
    with reported(where, reading=True):
        for _ in range(_MOVING_TARGET):
            # Judged before opening, because opening a device can have effects; and after, because the name
            # may have been given to something else in between.
            demand_private(folder, name, folder.fs.lstat(folder.fd, name))
            fd = opening(folder.fd, name)
            try:
                settled = _judge_opened(folder, name, fd)
            except BaseException:
                folder.fs.close(fd)
                raise
            if settled:
                return fd
            folder.fs.close(fd)
        sentence = f"{where} is replaced faster than it can be opened; stop its writer."
        raise FileError(Fault(FileCode.FILE_LINKS, where, sentence))


def _judge_opened(folder: Folder, name: str, fd: int) -> bool:
    """Whether the open file is the one behind the name; `False` asks for another try."""
    status = folder.fs.fstat(fd)
    demand_private(folder, name, status)
    if status.st_nlink == 1 or _only_ours(folder, name, status):
        return True
    # Replaced since it was opened, or a publisher dropped its temporary between the count and the search for
    # it.
    if folder.fs.fstat(fd).st_nlink <= 1:
        return False
    raise FileError(_links_fault(folder, name, status))


def _only_ours(folder: Folder, name: str, status: os.stat_result) -> bool:
    """Whether the one other name of a file is our own temporary, left by a crash during a publish."""
    name_and_temporary = 2
    return status.st_nlink == name_and_temporary and any(_own_names(folder, name, status))


def _own_names(folder: Folder, name: str, status: os.stat_result) -> Iterator[str]:
    for other in folder.fs.listdir(folder.fd):
        if temporary_of(other) == name:
            found = folder.status(other)
            if found is not None and (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino):
                yield other


def _links_fault(folder: Folder, name: str, status: os.stat_result) -> Fault:
    where = folder.where(name)
    sentence = (
        f"{where} has {status.st_nlink} names (hard links), so it can be changed from elsewhere; "
        "keep one of them only."
    )
    return Fault(FileCode.FILE_LINKS, where, sentence)


def read_private(folder: Folder, name: str, limit: int = READ_LIMIT) -> bytes:
    """The whole content of a private file.

    Args:
        folder: where it is.
        name: one segment.
        limit: most bytes accepted.

    Raises:
        FileError: as `open_private`, and `file_size`.
    """
    where = folder.where(name)
    with closing(folder.fs, open_private(folder, name)) as fd, reported(where, reading=True):
        return read_all(folder.fs, fd, limit, where)
