"""The end of one private file, kept open, at which whole groups of bytes are added or nothing.

Source: evidence.md, section 7, append. What could not be added completely is cut off again; if that fails
too, the end is not known any more and the appender is dead.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

from skill_effectiveness.evidence import files
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.fsops import write_all
from skill_effectiveness.evidence.rootwalk import identity_of

if TYPE_CHECKING:
    from skill_effectiveness.evidence.files import Folder

_LF = b"\n"


class Appender:
    """An open file and the size it is known to have.

    Args:
        folder: where it lies.
        name: one segment.
        fd: open for reading and writing; closed by `close`.
        size: up to where the file is ours and durable; it may be longer until `cut`.
    """

    def __init__(self, folder: Folder, name: str, fd: int, size: int) -> None:
        self._folder = folder
        self._name = name
        self._fd: int | None = fd
        self._identity = identity_of(folder.fs.fstat(fd))
        self.size = size
        self.alive = True

    @classmethod
    def open(cls, folder: Folder, name: str, size: int) -> Self:
        """Open a file that exists.

        Raises:
            FileError: as `files.open_private`.
        """
        return cls(folder, name, files.open_private(folder, name, update=True), size)

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._folder.fs.close(fd)

    def is_as_remembered(self) -> bool:
        """Whether the name still leads to this file, which still has its size and ends with LF.

        Raises:
            FileError: it is not private any more (`file_mode`, `file_owner`, `file_links`), or could not be
                looked at.
        """
        fs, fd = self._folder.fs, self._open_fd
        with reported(self._where, reading=True):
            status = self._folder.status(self._name)
            if status is None or identity_of(status) != self._identity or status.st_size != self.size:
                return False
            # A second name or another mode since it was opened: somebody else may write there now.
            files.demand_replaceable(self._folder, self._name, status)
            if self.size == 0:
                return True
            fs.seek(fd, self.size - 1)
            return fs.read(fd, 1) == _LF

    def append(self, data: bytes) -> None:
        """Add bytes and make them durable.

        Raises:
            FileError: they could not be added, and nothing of them stays unless the appender died.
        """
        fs, fd = self._folder.fs, self._open_fd
        try:
            with reported(self._where):
                fs.seek(fd, self.size)
                write_all(fs, fd, data)
                fs.fsync(fd)
        except BaseException:
            self.undo()
            raise
        self.size += len(data)

    def undo(self, size: int | None = None) -> None:
        """Cut off whatever was added; the appender is dead afterwards if that fails.

        Args:
            size: the size to go back to; the remembered one by default.
        """
        self.size = self.size if size is None else size
        # The error that made this necessary is the one that the caller must hear about.
        with suppress(Exception):
            self.cut()

    def cut(self) -> None:
        """Cut the file to the remembered size and make that durable.

        Raises:
            FileError: that failed; the appender is dead.
        """
        self.alive = False
        # A failed fsync is final for its descriptor, so this needs another one.
        self.close()
        self._fd = fd = files.open_private(self._folder, self._name, update=True)
        with reported(self._where):
            if identity_of(self._folder.fs.fstat(fd)) == self._identity:
                self._folder.fs.truncate(fd, self.size)
                self._folder.fs.fsync(fd)
                self.alive = True

    def sync(self) -> None:
        """Make what is in the file durable.

        Raises:
            FileError: that failed.
        """
        with reported(self._where):
            self._folder.fs.fsync(self._open_fd)

    @property
    def _where(self) -> str:
        return self._folder.where(self._name)

    @property
    def _open_fd(self) -> int:
        if self._fd is None:
            raise ValueError("this file was closed")
        return self._fd
