"""From kernel error numbers to closed codes.

The one place where an `OSError` of a file operation becomes a fault. The original `OSError` stays reachable
as `__cause__`, because the lock judges some numbers differently from a write.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.faults import Fault, FileCode, FileError

if TYPE_CHECKING:
    from types import TracebackType

_CODES: Final[dict[int, FileCode]] = {
    errno.ENOSPC: FileCode.NO_SPACE,
    errno.EDQUOT: FileCode.NO_SPACE,
    errno.EFBIG: FileCode.NO_SPACE,
    errno.EIO: FileCode.IO_ERROR,
    errno.EROFS: FileCode.NOT_WRITABLE,
    errno.EACCES: FileCode.NOT_WRITABLE,
    errno.EPERM: FileCode.NOT_WRITABLE,
    errno.ENOENT: FileCode.MISSING,
    # O_NOFOLLOW answers ELOOP for a link; some BSDs say EMLINK or EFTYPE instead.
    errno.ELOOP: FileCode.FILE_SYMLINK,
    errno.EISDIR: FileCode.NOT_REGULAR,
    errno.ENOTDIR: FileCode.NOT_REGULAR,
    # Opening a socket, or a FIFO for writing that nobody reads.
    errno.ENXIO: FileCode.NOT_REGULAR,
    errno.ENAMETOOLONG: FileCode.NAME_FORM,
}

_SENTENCES: Final[dict[FileCode, str]] = {
    FileCode.NO_SPACE: "There is no space left for {where}; free some and repeat the command.",
    FileCode.IO_ERROR: "The storage failed on {where} ({name}); check the disk, then repeat.",
    FileCode.NOT_WRITABLE: "{where} cannot be written ({name}); make its folder writable, then repeat.",
    FileCode.NOT_READABLE: "{where} cannot be read ({name}); give yourself read permission, then repeat.",
    FileCode.MISSING: "{where} does not exist.",
    FileCode.FILE_SYMLINK: "{where} is a symbolic link; put the file itself there.",
    FileCode.NOT_REGULAR: "{where} is not a regular file; move it away.",
    FileCode.NAME_FORM: "The name {where} is too long for this file system; choose a shorter one.",
}

_PERMISSION: Final = frozenset({errno.EACCES, errno.EPERM})


def file_error(error: OSError, where: str, *, reading: bool = False) -> FileError:
    """The fault for a kernel error on the root-relative name `where`.

    A number without a code of its own counts as `io_error` and is named in the sentence.

    Args:
        error: what the kernel answered.
        where: root-relative name, shown to people.
        reading: a permission error then means `not_readable` rather than `not_writable`.
    """
    number = error.errno or 0
    code = _CODES.get(number, FileCode.IO_ERROR)
    if reading and number in _PERMISSION:
        code = FileCode.NOT_READABLE
    name = errno.errorcode.get(number, "unknown error")
    fault = FileError(Fault(code, where, _SENTENCES[code].format(where=where, name=name)))
    fault.__cause__ = error
    return fault


class reported:  # noqa: N801 - used like a function, in front of every block that asks the kernel
    """Turns every `OSError` of the block into the `FileError` for `where`.

    Args:
        where: root-relative name, shown to people.
        reading: as for `file_error`.
    """

    # No generator: one stands around every file operation, also around those that are counted in
    # microseconds.
    __slots__ = ("_reading", "_where")

    def __init__(self, where: str, *, reading: bool = False) -> None:
        self._where = where
        self._reading = reading

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Raise the `FileError`, if the kernel refused."""
        if isinstance(error, OSError):
            raise file_error(error, self._where, reading=self._reading) from error
