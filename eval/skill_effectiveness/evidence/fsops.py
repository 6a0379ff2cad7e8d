"""The file system calls of the product: small operations relative to an open folder.

Source: evidence.md, sections 1, 4 and 5.

`FileSystem` is what everything above speaks; `RealFs` is the kernel. Both only pass `OSError` on: `errnos`
turns it into a code, `root` judges what is found. The doubles that record, fail or kill stand in `fsdoubles`.

`read_public`, `write_new_public` and `remove_tree` serve the three places outside private roots: frozen input
files, files that a person asked for at a path, and folders in which a child process has run.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import stat
from collections import deque
from contextlib import suppress
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, FileCode, FileError

if TYPE_CHECKING:
    from types import TracebackType

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_PUBLIC_MODE: Final = 0o644
_CHUNK: Final = 1 << 20


class Place(NamedTuple):
    """Where a folder lies inside its file system, whatever mount point it was reached through."""

    device: str
    path: str


class FileSystem(Protocol):
    """File operations relative to a descriptor.

    The normal way: `open_dir(None, "/")`, then `open_dir(fd, segment)` once per segment, then the other
    operations with that descriptor and one further segment. A parent of `None` means that `name` is an
    absolute path. No operation ever follows a link in its last segment, except `resolve`. Every descriptor is
    close-on-exec. Every operation may raise `OSError`.
    """

    def user(self) -> int:
        """The effective user id."""

    def user_home(self) -> str:
        """The user's home folder by the password database, empty where it has none."""

    def boot_id(self) -> str:
        """The kernel's boot id, empty where the platform has none."""

    def process_start(self, pid: int) -> str:
        """An opaque mark of when a live process began, empty where unknown.

        Two observations with equal pid, boot id and mark are of the same process.
        """

    def resolve(self, path: str) -> str:
        """The absolute path without links; the path must exist."""

    def place(self, fd: int) -> Place | None:
        """Where an open folder lies inside its file system; `None` where the platform cannot say."""

    def open_dir(self, parent: int | None, name: str, *, search: bool = False) -> int:
        """Open a folder; with `search` only to look up names below it, which needs no read permission."""

    def open_read(self, parent: int | None, name: str) -> int:
        """Open for reading, never waiting for the other end of a FIFO."""

    def open_update(self, parent: int | None, name: str) -> int:
        """Open an existing file for reading and writing, never waiting."""

    def create_exclusive(self, parent: int | None, name: str, mode: int = FILE_MODE) -> int:
        """Create a file that did not exist and open it for reading and writing; the umask applies."""

    def read(self, fd: int, size: int) -> bytes:
        """At most `size` bytes, empty at the end."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write some of the data; the number of bytes taken."""

    def seek(self, fd: int, offset: int) -> int:
        """Move to an offset from the start; the new offset."""

    def truncate(self, fd: int, size: int) -> None:
        """Cut or extend to a size in bytes."""

    def fsync(self, fd: int) -> None:
        """Make the file's content and size durable."""

    def fsync_dir(self, fd: int) -> None:
        """Make a folder's entries durable."""

    def fchmod(self, fd: int, mode: int) -> None:
        """Set the mode of an open object."""

    def chmod_dir(self, parent: int | None, name: str, mode: int) -> None:
        """Set the mode of a folder that may not be open-able yet; a link there is not followed."""

    def fstat(self, fd: int) -> os.stat_result:
        """The status of an open object."""

    def lstat(self, parent: int | None, name: str) -> os.stat_result:
        """The status of a name, of the link itself if it is one."""

    def may_execute(self, parent: int | None, name: str) -> bool:
        """Whether this process, by its effective ids, may execute a file."""

    def listdir(self, fd: int) -> list[str]:
        """The names in an open folder, unordered."""

    def readlink(self, parent: int | None, name: str) -> str:
        """The target of a link."""

    def mkdir(self, parent: int | None, name: str, mode: int = FOLDER_MODE) -> None:
        """Make a folder; the umask applies."""

    def rmdir(self, parent: int | None, name: str) -> None:
        """Remove an empty folder."""

    def link(self, source_parent: int | None, source: str, target_parent: int | None, target: str) -> None:
        """Give a file a second name that did not exist."""

    def rename(self, source_parent: int | None, source: str, target_parent: int | None, target: str) -> None:
        """Rename, replacing the target at once."""

    def unlink(self, parent: int | None, name: str) -> None:
        """Remove a name that is not a folder."""

    def close(self, fd: int) -> None:
        """Close a descriptor."""


class RealFs:
    """`FileSystem` on the running kernel."""

    def user(self) -> int:
        """See `FileSystem`."""
        return os.geteuid()

    def user_home(self) -> str:
        """See `FileSystem`."""
        try:
            return pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            # Containers often run under a number without an account.
            return ""

    def boot_id(self) -> str:
        """See `FileSystem`."""
        return _kernel_text("/proc/sys/kernel/random/boot_id").strip()

    def process_start(self, pid: int) -> str:
        """See `FileSystem`."""
        # Other processes end, and their numbers are given to new ones.
        return _own_start(pid) if pid == os.getpid() else _start(pid)

    def resolve(self, path: str) -> str:
        """See `FileSystem`."""
        return os.path.realpath(path, strict=True)

    def place(self, fd: int) -> Place | None:
        """See `FileSystem`."""
        # A bind mount shows the same folder under a second path, and ".." leads out of the mount, not to the
        # folder's real parent. mountinfo (proc_pid_mountinfo(5)) is the only place that names the part of the
        # file system a mount shows.
        marks = dict(
            line.split(":", 1) for line in _kernel_text(f"/proc/self/fdinfo/{fd}").splitlines() if ":" in line
        )
        mount = marks.get("mnt_id", "").strip()
        for line in _kernel_text("/proc/self/mountinfo").splitlines():
            fields = line.split(" ")
            if mount and fields[0] == mount:
                shown = str(Path(f"/proc/self/fd/{fd}").readlink())
                return _place(fields[2], _unescaped(fields[3]), _unescaped(fields[4]), shown)
        return None

    def open_dir(self, parent: int | None, name: str, *, search: bool = False) -> int:
        """See `FileSystem`."""
        access = _SEARCH if search else os.O_RDONLY
        return os.open(name, access | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)

    def open_read(self, parent: int | None, name: str) -> int:
        """See `FileSystem`."""
        return os.open(name, os.O_RDONLY | _CAREFUL, dir_fd=parent)

    def open_update(self, parent: int | None, name: str) -> int:
        """See `FileSystem`."""
        return os.open(name, os.O_RDWR | _CAREFUL, dir_fd=parent)

    def create_exclusive(self, parent: int | None, name: str, mode: int = FILE_MODE) -> int:
        """See `FileSystem`."""
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CAREFUL, mode, dir_fd=parent)

    def read(self, fd: int, size: int) -> bytes:
        """See `FileSystem`."""
        return os.read(fd, size)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """See `FileSystem`."""
        return os.write(fd, data)

    def seek(self, fd: int, offset: int) -> int:
        """See `FileSystem`."""
        return os.lseek(fd, offset, os.SEEK_SET)

    def truncate(self, fd: int, size: int) -> None:
        """See `FileSystem`."""
        os.ftruncate(fd, size)

    def fsync(self, fd: int) -> None:
        """See `FileSystem`."""
        if _FULL_FSYNC is None:
            os.fsync(fd)
        else:
            fcntl.fcntl(fd, _FULL_FSYNC)

    def fsync_dir(self, fd: int) -> None:
        """See `FileSystem`."""
        self.fsync(fd)

    def fchmod(self, fd: int, mode: int) -> None:
        """See `FileSystem`."""
        os.fchmod(fd, mode)

    def chmod_dir(self, parent: int | None, name: str, mode: int) -> None:
        """See `FileSystem`."""
        if not hasattr(os, "O_PATH"):
            os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
            return
        # fchmodat(2) on Linux cannot refuse links and fchmod(2) refuses O_PATH descriptors; chmod of the
        # descriptor's own entry in /proc changes exactly the folder that was opened.
        fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            Path(f"/proc/self/fd/{fd}").chmod(mode)
        finally:
            os.close(fd)

    def fstat(self, fd: int) -> os.stat_result:
        """See `FileSystem`."""
        return os.fstat(fd)

    def lstat(self, parent: int | None, name: str) -> os.stat_result:
        """See `FileSystem`."""
        return os.stat(name, dir_fd=parent, follow_symlinks=False)

    def may_execute(self, parent: int | None, name: str) -> bool:
        """See `FileSystem`."""
        # access(2) judges the real ids unless it is told otherwise, and programs are run under the effective.
        return os.access(name, os.X_OK, dir_fd=parent, effective_ids=True, follow_symlinks=False)

    def listdir(self, fd: int) -> list[str]:
        """See `FileSystem`."""
        return os.listdir(fd)

    def readlink(self, parent: int | None, name: str) -> str:
        """See `FileSystem`."""
        return os.readlink(name, dir_fd=parent)

    def mkdir(self, parent: int | None, name: str, mode: int = FOLDER_MODE) -> None:
        """See `FileSystem`."""
        os.mkdir(name, mode, dir_fd=parent)

    def rmdir(self, parent: int | None, name: str) -> None:
        """See `FileSystem`."""
        os.rmdir(name, dir_fd=parent)

    def link(self, source_parent: int | None, source: str, target_parent: int | None, target: str) -> None:
        """See `FileSystem`."""
        os.link(source, target, src_dir_fd=source_parent, dst_dir_fd=target_parent, follow_symlinks=False)

    def rename(self, source_parent: int | None, source: str, target_parent: int | None, target: str) -> None:
        """See `FileSystem`."""
        os.rename(source, target, src_dir_fd=source_parent, dst_dir_fd=target_parent)

    def unlink(self, parent: int | None, name: str) -> None:
        """See `FileSystem`."""
        os.unlink(name, dir_fd=parent)

    def close(self, fd: int) -> None:
        """See `FileSystem`."""
        os.close(fd)


# On macOS fsync stops at the drive's cache; F_FULLFSYNC goes to the medium.
_FULL_FSYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)

# O_PATH lets the walk pass folders that may be searched but not listed (a home folder of mode 0711).
_SEARCH: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)

# O_NONBLOCK so that a FIFO or a device cannot hang the opener, O_NOCTTY so that a terminal does not become
# ours.
_CAREFUL: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def _start(pid: int) -> str:
    """The start mark of a process; empty where there is none."""
    # The second field is the program name in brackets and may itself hold blanks and brackets, so count from
    # the last one: starttime is field 22 of proc_pid_stat(5), the twentieth behind the bracket.
    fields = _kernel_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""  # noqa: PLR2004 - a position, explained above


@lru_cache(maxsize=1)
def _own_start(pid: int) -> str:
    """The start mark of this process, which every lock that it takes is marked with."""
    return _start(pid)


def _kernel_text(path: str) -> str:
    """A text file of /proc; empty where the platform or the process has none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - this is the one place for it
            return file.read()
    except OSError:
        return ""


def _unescaped(field: str) -> str:
    r"""A mountinfo field with its octal escapes (\040 for a blank) resolved."""
    head, *others = field.split("\\")
    return head + "".join(chr(int(other[:3], 8)) + other[3:] for other in others)


def _place(device: str, shown_part: str, mount_point: str, path: str) -> Place | None:
    """The place of `path` on a mount that shows `shown_part` of its file system at `mount_point`."""
    below = mount_point.rstrip("/")
    if path != mount_point and not path.startswith(below + "/"):
        # Behind a chroot or on a detached mount the two names have nothing in common.
        return None
    rest = path[len(below) :].strip("/")
    return Place(device, f"{shown_part.rstrip('/')}/{rest}".rstrip("/") or "/")


class closing:  # noqa: N801 - used like the function of this name in contextlib
    """Closes a descriptor at the end of the block."""

    __slots__ = ("_fd", "_fs")

    def __init__(self, fs: FileSystem, fd: int) -> None:
        self._fs = fs
        self._fd = fd

    def __enter__(self) -> int:
        """The descriptor."""
        return self._fd

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close it."""
        self._fs.close(self._fd)


def write_all(fs: FileSystem, fd: int, data: bytes) -> None:
    """Write everything, going on after short writes.

    Raises:
        OSError: the first error; what was written before it stays in the file.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[fs.write(fd, rest) :]


def read_all(fs: FileSystem, fd: int, limit: int, where: str) -> bytes:
    """Everything up to the end of an open file.

    Raises:
        FileError: `file_size` when there are more than `limit` bytes.
        OSError: the read failed.
    """
    parts: list[bytes] = []
    size = 0
    # One byte beyond the limit is asked for: the size of a growing file is known only by reading it.
    while part := fs.read(fd, min(_CHUNK, limit + 1 - size)):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise FileError(
                Fault(
                    FileCode.FILE_SIZE,
                    where,
                    f"{where} is larger than {limit} bytes, more than is read here.",
                )
            )
    return b"".join(parts)


def read_public(fs: FileSystem, path: Path, limit: int) -> bytes:
    """The bytes of a file that is not private: frozen inputs, exported public keys, bundles.

    Args:
        fs: file operations.
        path: absolute; links among its folders are followed, a link as its last segment is not.
        limit: most bytes accepted.

    Raises:
        FileError: `missing`, `file_symlink`, `not_regular` (at once, also for a FIFO), `file_size`,
            `not_readable`, `io_error`; `where` is the last segment.
    """
    where = path.name
    with reported(where, reading=True):
        demand_regular(fs.lstat(None, str(path)), where)
        with closing(fs, fs.open_read(None, str(path))) as fd:
            demand_regular(fs.fstat(fd), where)
            return read_all(fs, fd, limit, where)


def kind_fault(status: os.stat_result, where: str) -> Fault | None:
    """What is wrong with the kind of a file: it is a link, or not regular; None when nothing is.

    Args:
        status: of the name itself (`lstat`) or of the open file (`fstat`).
        where: how faults name the file.
    """
    if stat.S_ISLNK(status.st_mode):
        return Fault(FileCode.FILE_SYMLINK, where, f"{where} is a symbolic link; put the file itself there.")
    if not stat.S_ISREG(status.st_mode):
        return Fault(FileCode.NOT_REGULAR, where, f"{where} is not a regular file; move it away.")
    return None


def demand_regular(status: os.stat_result, where: str) -> None:
    """Raise the `FileError` of `kind_fault`, if any."""
    fault = kind_fault(status, where)
    if fault is not None:
        raise FileError(fault)


def write_new_public(fs: FileSystem, path: Path, data: bytes) -> None:
    """Write a file that a person asked for at a path outside private roots; it must not exist yet.

    The umask decides who may read it (0644 at most). On any fault the path does not exist.

    Raises:
        FileError: `exists_different` when the path is taken, whatever it holds; `missing` when its folder
            does not exist; otherwise the code of the failed write.
    """
    where = path.name
    with reported(where):
        try:
            fd = fs.create_exclusive(None, str(path), _PUBLIC_MODE)
        except FileExistsError as error:
            sentence = f"{where} exists already and is not overwritten; choose another name or move it away."
            raise FileError(Fault(FileCode.EXISTS_DIFFERENT, where, sentence)) from error
        try:
            with closing(fs, fd):
                write_all(fs, fd, data)
                fs.fsync(fd)
        except BaseException:
            # The first error is what the caller must hear about.
            with suppress(OSError):
                fs.unlink(None, str(path))
            raise


def remove_tree(fs: FileSystem, path: Path) -> None:
    """Remove a folder and everything below it, following no link; nothing happens when it is missing.

    For folders in which a child has run: they may hold links to anywhere, folders without any permission and
    trees deeper than the number of descriptors a process may open. Folders met on the way are therefore first
    made accessible and then lifted to the top, so that only three descriptors are open at any time.

    Args:
        fs: file operations.
        path: absolute; a link or file in its place is removed itself.

    Raises:
        FileError: `not_writable`, `io_error`: something stayed; `where` is the last segment of the path.
    """
    where = path.name
    with reported(where):
        try:
            parent = fs.open_dir(None, fs.resolve(str(path.parent)))
        except FileNotFoundError:
            return
        with closing(fs, parent):
            try:
                status = fs.lstat(parent, where)
            except FileNotFoundError:
                return
            if not stat.S_ISDIR(status.st_mode):
                fs.unlink(parent, where)
                return
            with closing(fs, _open_accessible(fs, parent, where)) as top:
                _empty(fs, top)
            fs.rmdir(parent, where)


def _open_accessible(fs: FileSystem, parent: int, name: str) -> int:
    """Open a folder that is about to be deleted, whatever its mode."""
    _make_accessible(fs, parent, name)
    return fs.open_dir(parent, name)


def _make_accessible(fs: FileSystem, parent: int, name: str) -> None:
    """Give ourselves the permissions to list and empty a folder."""
    # The rule "never chmod what you did not create" protects evidence; this folder is about to be deleted.
    if fs.lstat(parent, name).st_mode & FOLDER_MODE != FOLDER_MODE:
        fs.chmod_dir(parent, name, FOLDER_MODE)


def _empty(fs: FileSystem, top: int) -> None:
    """Remove everything below an open folder."""
    fresh = count()
    waiting = deque(_unlink_files(fs, top))
    while waiting:
        name = waiting.popleft()
        with closing(fs, _open_accessible(fs, top, name)) as folder:
            for inner in _unlink_files(fs, folder):
                # Under a new parent ".." changes, for which the kernel wants write permission on the folder
                # itself.
                _make_accessible(fs, folder, inner)
                lifted = next(free for number in fresh if not _exists(fs, top, free := f"lifted-{number}"))
                fs.rename(folder, inner, top, lifted)
                waiting.append(lifted)
        fs.rmdir(top, name)


def _unlink_files(fs: FileSystem, folder: int) -> list[str]:
    """Unlink what is not a folder; the names of the folders that stay."""
    folders: list[str] = []
    for name in fs.listdir(folder):
        if stat.S_ISDIR(fs.lstat(folder, name).st_mode):
            folders.append(name)
        else:
            fs.unlink(folder, name)
    return folders


def _exists(fs: FileSystem, parent: int, name: str) -> bool:
    """Whether the name is taken."""
    try:
        fs.lstat(parent, name)
    except FileNotFoundError:
        return False
    return True
