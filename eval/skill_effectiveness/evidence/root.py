"""Private places: folders that are reachable only through descriptors.

The normal way: a door opens a root once (`PrivateRoot.create(path, kind, around=…, checkout=…)`) and hands it
down; everything below it is named by segments: `root.child("calibration", create=True).publish("result.json",
data)`. No function ever joins a private path.

Source: evidence.md, sections 4 and 5.
"""

from __future__ import annotations

import errno
import stat
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.evidence import files, writes
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, RootCode, RootError
from skill_effectiveness.evidence.fsops import FOLDER_MODE, closing
from skill_effectiveness.evidence.names import check_collision, check_name
from skill_effectiveness.evidence.rootwalk import (
    Destination,
    Fence,
    RootKind,
    find_checkout,
    identity_of,
    open_folder,
    reach,
    root_faults,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType

    from skill_effectiveness.evidence.identity import RootDocument
    from skill_effectiveness.evidence.lock import Held
    from skill_effectiveness.evidence.surroundings import Surroundings

__all__ = ["PrivateRoot", "RootKind", "find_checkout", "state_path"]

HISTORY: Final = "history"
_PRIVATE_FOLDER: Final = stat.S_IFDIR | FOLDER_MODE
# It is missing, no folder, a link (which BSD calls EMLINK), or one that its mode keeps us out of.
_NO_SUCH_FOLDER: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, errno.EACCES})


def state_path(around: Surroundings) -> Path:
    """Where the product keeps its own state: below `$XDG_STATE_HOME`, else below `~/.local/state`.

    Raises:
        RootError: `root_form`: neither `XDG_STATE_HOME` nor a home folder is known.
    """
    # The XDG Base Directory Specification says that a relative value is to be ignored.
    base = around.environ.get("XDG_STATE_HOME", "")
    if base.startswith("/"):
        return Path(base) / "skill-effectiveness"
    home = around.environ.get("HOME", "") or around.fs.user_home()
    if not home.startswith("/"):
        sentence = "There is no home folder to keep state in; set HOME or XDG_STATE_HOME to an absolute path."
        raise RootError(Fault(RootCode.ROOT_FORM, ".", sentence))
    return Path(home) / ".local" / "state" / "skill-effectiveness"


class PrivateRoot:
    """An open private folder; exists only after every check of evidence.md, section 4, has passed.

    Made by `open`, `create` and `child` only. Holds one descriptor until `close` or the end of `with`. Names
    are single segments; faults name them relative to the root that was opened first. Unless said otherwise
    every method raises `FileError` only.
    """

    def __init__(
        self, around: Surroundings, folder: files.Folder, path: str, kind: RootKind, fence: Fence | None
    ) -> None:
        self._around = around
        self._folder = folder
        # Many folders are opened, and few of them are asked for their path.
        self._path = path
        self._kind = kind
        self._fence = fence
        self._open = True

    @classmethod
    def open(cls, path: str | Path, kind: RootKind, *, around: Surroundings, checkout: Path | None) -> Self:
        """Open a root that exists.

        Args:
            path: absolute.
            kind: what it is for.
            around: the surroundings; kept for later operations.
            checkout: the source checkout that it must keep away from, `None` when there is none.

        Raises:
            RootError: a check of section 4 failed; nothing was changed.
            FileError: a kernel error on the way.
        """
        return cls._reach(path, kind, around, checkout, create=False)

    @classmethod
    def create(cls, path: str | Path, kind: RootKind, *, around: Surroundings, checkout: Path | None) -> Self:
        """Open a root, making it and missing folders above it first (mode 0700); a `store` is never made.

        Raises:
            RootError: a check of section 4 failed.
            FileError: a kernel error on the way.
        """
        return cls._reach(path, kind, around, checkout, create=kind is not RootKind.STORE)

    @classmethod
    def _reach(
        cls, path: str | Path, kind: RootKind, around: Surroundings, checkout: Path | None, *, create: bool
    ) -> Self:
        fenced = checkout is not None and kind is not RootKind.REPO
        fence = Fence.around(around.fs, checkout) if checkout is not None and fenced else None
        destination = Destination(kind, create, _homes(around), fence)
        fd, resolved = reach(around.fs, str(path), destination)
        return cls(around, files.Folder(around.fs, fd, "", around.entropy), resolved, kind, fence)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; closing again does nothing."""
        if self._open:
            self._open = False
            self._around.fs.close(self._folder.fd)

    @property
    def path(self) -> Path:
        """The resolved path, for digests and for child processes; never for file operations here."""
        return Path(self._path)

    @property
    def kind(self) -> RootKind:
        """What the root is for."""
        return self._kind

    @property
    def around(self) -> Surroundings:
        """The surroundings it was opened in."""
        return self._around

    @property
    def folder(self) -> files.Folder:
        """The open folder, for the other modules of this room."""
        if not self._open:
            raise ValueError("this private folder was closed")
        return self._folder

    def demand_in_place(self) -> None:
        """Demand that the path still leads to this very folder, by every check of section 4.

        The descriptor stays good when the folder is moved away, and nobody would find what is written then.

        Raises:
            RootError: a check fails; `root_missing` also when another folder has the path.
            FileError: a kernel error on the way.
        """
        fs = self._around.fs
        destination = Destination(self._kind, create=False, homes=_homes(self._around), fence=self._fence)
        fd, resolved = reach(fs, self._path, destination)
        with reported("the private folder", reading=True), closing(fs, fd):
            same = identity_of(fs.fstat(fd)) == identity_of(fs.fstat(self.folder.fd))
        if not same or resolved != self._path:
            sentence = f"{self._path} is another folder than the one that was opened; put that one back."
            raise RootError(Fault(RootCode.ROOT_MISSING, ".", sentence))

    def child(self, *segments: str, create: bool = False) -> PrivateRoot:
        """Open a private folder below, by the same checks: no link, ours, exactly 0700.

        Args:
            segments: one name per level, at least one.
            create: make missing ones.

        Raises:
            RootError: `root_missing`, `root_symlink`, `root_form` (not a folder), `root_owner`, `root_mode`,
                `root_in_checkout`; `where` is the root-relative name.
            FileError: `name_form`, `name_collision`, or the code of a kernel error.
        """
        if not segments:
            raise ValueError("a child needs a name")
        first, *others = segments
        below = self._below(first, create=create)
        if not others:
            return below
        with below:
            return below.child(*others, create=create)

    def _below(self, name: str, *, create: bool) -> PrivateRoot:
        """Open the private folder one level below."""
        folder = self.folder
        check_name(name, folder.prefix)
        where = folder.where(name)
        with reported(where, reading=True):
            fd = self._opened(name, create=create)
            try:
                opened = folder.fs.fstat(fd)
                demand_private_folder(opened, where, folder.fs.user())
                self._demand_outside_checkout(opened, fd, where)
            except BaseException:
                folder.fs.close(fd)
                raise
        below = files.Folder(folder.fs, fd, f"{where}/", folder.entropy)
        return PrivateRoot(self._around, below, f"{self._path}/{name}", self._kind, self._fence)

    def _opened(self, name: str, *, create: bool) -> int:
        """Open a folder below. Only of a name that cannot be opened as one is the status asked for."""
        folder = self.folder
        try:
            # This opens folders alone and has no effect on anything else; the caller judges what was opened.
            return folder.fs.open_dir(folder.fd, name)
        except OSError as error:
            if error.errno not in _NO_SUCH_FOLDER:
                raise
        where = folder.where(name)
        status = self._child_status(name, create=create)
        demand_private_folder(status, where, folder.fs.user())
        return open_folder(folder.fs, folder.fd, name, where, where=where)

    def _demand_outside_checkout(self, status: os.stat_result, fd: int, where: str) -> None:
        """Refuse an open folder below that shows the checkout, a part of it, or what holds it."""
        if self._fence is None:
            return
        fault = self._fence.fault(identity_of(status), self._folder.fs.place(fd), last=True)
        if fault is not None:
            raise RootError(replace(fault, where=where))

    def _child_status(self, name: str, *, create: bool) -> os.stat_result:
        """The status of a folder below, after making it if it is missing and that was asked for."""
        folder = self.folder
        if (status := folder.status(name)) is not None:
            return status
        if not create:
            where = folder.where(name)
            raise RootError(Fault(RootCode.ROOT_MISSING, where, f"The folder {where} does not exist."))
        check_collision(name, folder.fs.listdir(folder.fd), folder.prefix)
        with reported(folder.where(name)):
            writes.make_folder(folder.fs, folder.fd, name)
        return folder.fs.lstat(folder.fd, name)

    def exists(self, name: str) -> bool:
        """Whether anything has this name, whatever it is."""
        check_name(name, self.folder.prefix)
        with reported(self.folder.where(name), reading=True):
            return self.folder.status(name) is not None

    def names(self) -> tuple[str, ...]:
        """Every name in the folder, sorted; leftovers and foreign ones included."""
        with reported(self.folder.prefix or ".", reading=True):
            return tuple(sorted(self.folder.fs.listdir(self.folder.fd)))

    def read(self, name: str, limit: int = files.READ_LIMIT) -> bytes:
        """The content of a private file of at most `limit` bytes; see `files.read_private`."""
        return files.read_private(self.folder, name, limit)

    def publish(self, name: str, data: bytes) -> None:
        """Give a name its content once and for all; see `writes.publish`."""
        writes.publish(self.folder, name, data)

    def replace(self, name: str, data: bytes) -> None:
        """Give a name new content at once; see `writes.replace`."""
        writes.replace(self.folder, name, data)

    def replace_all(self, contents: Mapping[str, bytes | None]) -> None:
        """Give several names new content, or take them away, each at once; see `writes.replace_all`."""
        writes.replace_all(self.folder, contents)

    def remove(self, name: str) -> None:
        """Take a name away, absent or not; see `writes.remove`."""
        check_name(name, self.folder.prefix)
        writes.remove(self.folder, name)

    def sweep(self) -> tuple[str, ...]:
        """Remove our own leftovers in this folder, under the lock; see `writes.sweep`."""
        return writes.sweep(self.folder)

    def archive(self, name: str, data: bytes | None) -> None:
        """Keep the content of a name as `history/<stem>-<64 hex of its SHA-256>.<ext>`, then replace it.

        Args:
            name: a report that may be made again.
            data: the new content; `None` only takes the old away, so that a rerun that fails leaves no stale
                one.

        Raises:
            RootError: `history` is not a private folder.
            FileError: as `publish` and `replace`.
        """
        if self.exists(name):
            old = self.read(name)
            pure = PurePosixPath(name)
            kept = f"{pure.stem}-{digest_bytes(old).removeprefix('sha256:')}{pure.suffix}"
            with self.child(HISTORY, create=True) as history:
                history.publish(kept, old)
        if data is None:
            self.remove(name)
        else:
            self.replace(name, data)

    def identity(self, held: Held | None = None) -> RootDocument:
        """The identity of a trial store, made on first use; see `identity.identify`."""
        # Trial stores alone have one, and reading it needs the document models, which this module must load
        # without.
        from skill_effectiveness.evidence.identity import identify  # noqa: PLC0415 - see above

        return identify(self, held)


def _homes(around: Surroundings) -> tuple[str, ...]:
    """The home folders of the caller, as far as known."""
    homes = (around.environ.get("HOME", ""), around.fs.user_home())
    return tuple(home for home in homes if home.startswith("/"))


def demand_private_folder(status: os.stat_result, where: str, user: int) -> None:
    """Demand a folder that is no link, ours and exactly 0700.

    Raises:
        RootError: `root_symlink`, `root_form`, `root_owner`, `root_mode`.
    """
    if status.st_mode == _PRIVATE_FOLDER and status.st_uid == user:
        # What nearly every folder is; the rest says what else it is.
        return
    if stat.S_ISLNK(status.st_mode):
        sentence = f"{where} is a symbolic link; put the folder itself there."
        raise RootError(Fault(RootCode.ROOT_SYMLINK, where, sentence))
    if not stat.S_ISDIR(status.st_mode):
        raise RootError(Fault(RootCode.ROOT_FORM, where, f"{where} is not a folder; move it away."))
    # Folders below a store are made here like all others, so they have its owner but not its looser mode.
    if faults := root_faults(status, where, RootKind.OUT, user, where=where):
        raise RootError(*faults)
