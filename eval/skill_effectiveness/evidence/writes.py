"""Writing into a private folder so that a name never shows a mixture.

Source: evidence.md, section 5 (steps of each operation) and section 4 (modes, temporaries).

Every function raises `FileError` only; on a fault its temporary is gone and the old content stays, so the
same call can be repeated.
"""

from __future__ import annotations

import errno
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError
from skill_effectiveness.evidence.files import (
    READ_LIMIT,
    demand_private,
    demand_replaceable,
    read_private,
)
from skill_effectiveness.evidence.fsops import FILE_MODE, FOLDER_MODE, closing, write_all
from skill_effectiveness.evidence.names import (
    TOKEN_BYTES,
    check_collision,
    check_written_name,
    temporary_name,
    temporary_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skill_effectiveness.evidence.files import Folder
    from skill_effectiveness.evidence.fsops import FileSystem

# Some file systems (several FUSE and network ones) have no fsync for folders and say so with these numbers.
_NO_FOLDER_FSYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def publish(folder: Folder, name: str, data: bytes) -> None:
    """Give a name its content once and for all; publishing the same bytes again changes nothing.

    Raises:
        FileError: `exists_different` when the name holds other bytes; `name_form`, `name_collision`; a code
            of `files.open_private` when what has the name is not a private file; a code of the failed write.
    """
    check_written_name(name, folder.prefix)
    with reported(folder.where(name)):
        if not _link_new(folder, name, data):
            _demand_same(folder, name, data)
        # Also when the name was there before: whoever put it there may have died before making it durable.
        sync_folder(folder.fs, folder.fd)


def _link_new(folder: Folder, name: str, data: bytes) -> bool:
    """Write a temporary and link it to the name; `False` when the name is taken."""
    if folder.status(name) is not None:
        return False
    check_collision(name, folder.fs.listdir(folder.fd), folder.prefix)
    temporary = write_temporary(folder, name, data)
    linked = False
    try:
        # link, unlike rename, never replaces.
        with suppress(FileExistsError):
            folder.fs.link(folder.fd, temporary, folder.fd, name)
            linked = True
        folder.fs.unlink(folder.fd, temporary)
    except BaseException:
        _drop(folder, temporary)
        raise
    return linked


def _demand_same(folder: Folder, name: str, data: bytes) -> None:
    """Demand that the name holds these bytes."""
    found = read_private(folder, name, max(READ_LIMIT, len(data)))
    if found != data:
        where = folder.where(name)
        digests = f"{digest_bytes(found)}; offered: {digest_bytes(data)}"
        sentence = (
            f"{where} exists with other content ({digests}) and is never overwritten; use a new folder."
        )
        raise FileError(Fault(FileCode.EXISTS_DIFFERENT, where, sentence))


def replace(folder: Folder, name: str, data: bytes) -> None:
    """Give a name new content at once; a reader sees the whole old or the whole new.

    Raises:
        FileError: `name_form`, `name_collision`; a code of `files.file_fault` or `file_links` when what has
            the name is not a private file of ours (it stays untouched); a code of the failed write.
    """
    check_written_name(name, folder.prefix)
    with reported(folder.where(name)):
        _exchange(folder, name, data)
        sync_folder(folder.fs, folder.fd)


def replace_all(folder: Folder, contents: Mapping[str, bytes | None]) -> None:
    """Give several names new content, or take them away, with one sync of their folder behind all of it.

    Every name is old or new at any moment, as by `replace` and `remove`; the names together are not: a crash
    may leave some of them new and some old. What this call has answered for is durable.

    Args:
        folder: where.
        contents: the new content by name; `None` takes a name away, absent or not.

    Raises:
        FileError: as `replace` and `remove`; names before the one at fault may be new already.
    """
    for name in contents:
        check_written_name(name, folder.prefix)
    for name, data in contents.items():
        with reported(folder.where(name)):
            if data is None:
                _take(folder, name)
            else:
                _exchange(folder, name, data)
    with reported(folder.prefix or "."):
        sync_folder(folder.fs, folder.fd)


def _exchange(folder: Folder, name: str, data: bytes) -> None:
    """Rename a complete file over a name; that it is durable is left to the caller."""
    status = folder.status(name)
    if status is None:
        check_collision(name, folder.fs.listdir(folder.fd), folder.prefix)
    else:
        demand_replaceable(folder, name, status)
    temporary = write_temporary(folder, name, data)
    try:
        folder.fs.rename(folder.fd, temporary, folder.fd, name)
    except BaseException:
        _drop(folder, temporary)
        raise


def note(folder: Folder, name: str, data: bytes) -> None:
    """Write what nothing depends on (an advisory file) in few steps; the caller holds the lock it is about.

    It is not durable, and a reader or a crash may see it empty. A name that differs in case only is not
    looked for: where a file system takes the two for one, what is there is judged, and elsewhere both live.

    Raises:
        FileError: a code of `files.file_fault` or `file_links` when what has the name is not a private file
            of ours (it stays untouched); a code of the failed write, and then nothing has the name.
    """
    with reported(folder.where(name)):
        try:
            _write_new(folder, name, data, durable=False)
        except FileExistsError:
            demand_replaceable(folder, name, folder.fs.lstat(folder.fd, name))
            folder.fs.unlink(folder.fd, name)
            _write_new(folder, name, data, durable=False)


def remove(folder: Folder, name: str) -> None:
    """Take a name away; nothing happens when it is absent already.

    Raises:
        FileError: a code of `files.file_fault` or `file_links` when what has the name is not a private file
            of ours (it stays); a code of the failed removal.
    """
    with reported(folder.where(name)):
        _take(folder, name)
        sync_folder(folder.fs, folder.fd)


def _take(folder: Folder, name: str) -> None:
    """Unlink a private file, if there is one; that it is gone for good is left to the caller."""
    status = folder.status(name)
    if status is not None:
        demand_replaceable(folder, name, status)
        folder.fs.unlink(folder.fd, name)


def sweep(folder: Folder) -> tuple[str, ...]:
    """Remove our own temporaries that a crash left; the caller holds the lock, so no live writer owns them.

    Returns:
        The names removed, sorted. Anything else unknown stays.
    """
    with reported(folder.prefix or "."):
        user = folder.fs.user()
        found: list[str] = []
        for name in sorted(folder.fs.listdir(folder.fd)):
            if temporary_of(name) is None:
                continue
            status = folder.fs.lstat(folder.fd, name)
            if stat.S_ISREG(status.st_mode) and status.st_uid == user:
                folder.fs.unlink(folder.fd, name)
                found.append(name)
        if found:
            sync_folder(folder.fs, folder.fd)
        return tuple(found)


def write_temporary(folder: Folder, name: str, data: bytes) -> str:
    """Write a new file under the temporary name of `name`.

    Returns:
        The temporary name; the file is 0600, complete and on the medium.

    Raises:
        OSError: the write failed; the temporary is gone.
        FileError: `file_mode`: this file system does not keep modes.
    """
    temporary = temporary_name(name, folder.entropy(TOKEN_BYTES))
    _write_new(folder, temporary, data, durable=True)
    return temporary


def _write_new(folder: Folder, name: str, data: bytes, *, durable: bool) -> None:
    """Create a file and write it; on a fault it is gone again.

    Raises:
        FileExistsError: the name is taken.
        OSError: the write failed.
        FileError: as `write_temporary`.
    """
    fd = folder.fs.create_exclusive(folder.fd, name)
    try:
        # A failed fsync is final for its descriptor: the kernel may have dropped the data and would report
        # success to a second call. So there is none: descriptor and file go, and a repeated publication
        # begins with a new file.
        with closing(folder.fs, fd):
            demand_fresh(folder, fd, name)
            write_all(folder.fs, fd, data)
            if durable:
                folder.fs.fsync(fd)
    except BaseException:
        _drop(folder, name)
        raise


def demand_fresh(folder: Folder, fd: int, name: str) -> bool:
    """Demand mode 0600 of a file created just now, whatever the umask took away.

    Returns:
        Whether it had another one and was given this.

    Raises:
        FileError: `file_mode`: this file system does not keep modes.
        OSError: it cannot be looked at.
    """
    status = folder.fs.fstat(fd)
    masked = stat.S_IMODE(status.st_mode) != FILE_MODE
    if masked:
        folder.fs.fchmod(fd, FILE_MODE)
        status = folder.fs.fstat(fd)
    demand_private(folder, name, status)
    return masked


def _drop(folder: Folder, name: str) -> None:
    """Take away what a failed write made."""
    # The error that brought us here is what the caller must hear about; `sweep` finds what cannot be removed
    # now.
    with suppress(OSError):
        folder.fs.unlink(folder.fd, name)


def make_folder(fs: FileSystem, parent: int, name: str) -> None:
    """Make a folder of mode 0700 and make its entry durable; nothing happens when the name is taken.

    Raises:
        OSError: it could not be made.
    """
    try:
        make_new_folder(fs, parent, name)
    except FileExistsError:
        # Somebody was faster; the caller judges what is there.
        return
    sync_folder(fs, parent)


def make_new_folder(fs: FileSystem, parent: int, name: str) -> None:
    """Make a folder of mode 0700 that is not there; the caller makes its entry durable.

    Raises:
        FileExistsError: the name is taken.
        OSError: it could not be made.
    """
    fs.mkdir(parent, name)
    # The umask may have taken bits away, and a setgid parent hands its bit down.
    if stat.S_IMODE(fs.lstat(parent, name).st_mode) != FOLDER_MODE:
        fs.chmod_dir(parent, name, FOLDER_MODE)


def sync_folder(fs: FileSystem, fd: int) -> bool:
    """Make the entries of an open folder durable.

    Returns:
        `False` when this file system has no fsync for folders.

    Raises:
        OSError: the fsync failed.
    """
    # A fresh descriptor each time, because a failed fsync is final for the descriptor it was called on.
    with closing(fs, fs.open_dir(fd, ".")) as fresh:
        try:
            fs.fsync_dir(fresh)
        except OSError as error:
            if error.errno in _NO_FOLDER_FSYNC:
                return False
            raise
    return True
