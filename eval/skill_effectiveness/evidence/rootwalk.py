"""Reaching a private root from `/` one folder at a time, judging every step.

Source: evidence.md, section 4, the table of checks.

The judgements (`check_form`, `ancestor_fault`, `root_faults`, `Fence.fault`) are pure; `reach` opens.
"""

from __future__ import annotations

import errno
import shlex
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import Fault, RootCode, RootError
from skill_effectiveness.evidence.fsops import FOLDER_MODE, closing
from skill_effectiveness.evidence.names import NAME_BYTES
from skill_effectiveness.evidence.writes import make_folder

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from skill_effectiveness.evidence.fsops import FileSystem, Place

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
# Linux answers ENOTDIR when O_DIRECTORY meets a link under O_NOFOLLOW, others ELOOP.
_NOT_A_FOLDER_ANY_MORE: Final = frozenset({errno.ENOTDIR, errno.ELOOP})
_HOME: Final = "it must not be the home folder; name one inside"
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_PACKAGE: Final = Path(__file__).resolve().parents[1]


class RootKind(StrEnum):
    """What a private root is for, which decides its mode and whether it may lie in the source checkout."""

    OUT = "out"
    STORE = "store"
    STATE = "state"
    REPO = "repo"


Identity = tuple[int, int]
"""Device and inode of a folder: equal under every name it can be reached by."""


def identity_of(status: os.stat_result) -> Identity:
    """The identity behind a status."""
    return status.st_dev, status.st_ino


@dataclass(frozen=True, slots=True)
class Fence:
    """The source checkout, which no private root but one of kind `repo` may lie in, be or hold.

    Attributes:
        checkout: identity of the checkout.
        above: identities of the folders above it, up to `/`.
        place: where the checkout lies inside its file system, where the platform can say.
    """

    checkout: Identity
    above: frozenset[Identity]
    place: Place | None

    @classmethod
    def around(cls, fs: FileSystem, checkout: Path) -> Fence:
        """The fence of an existing checkout; links on the way to it are followed."""
        with reported(checkout.name, reading=True):
            resolved = Path(fs.resolve(str(checkout)))
            above = frozenset(identity_of(fs.lstat(None, str(folder))) for folder in resolved.parents)
            with closing(fs, fs.open_dir(None, str(resolved), search=True)) as fd:
                return cls(identity_of(fs.fstat(fd)), above, fs.place(fd))

    def fault(self, step: Identity, place: Place | None, *, last: bool) -> Fault | None:
        """Judge one folder on the way to a root.

        Args:
            step: the folder's identity.
            place: where it lies inside its file system.
            last: whether it is the root itself.
        """
        if step == self.checkout or _holds(self.place, place):
            sentence = (
                "The folder lies in the source checkout, which is what is being measured; choose another."
            )
            return Fault(RootCode.ROOT_IN_CHECKOUT, ".", sentence)
        if last and (step in self.above or _holds(place, self.place)):
            sentence = "The folder holds the source checkout; choose one beside it."
            return Fault(RootCode.ROOT_HOLDS_CHECKOUT, ".", sentence)
        return None


def _holds(outer: Place | None, inner: Place | None) -> bool:
    """Whether `inner` is `outer` or lies below it in their file system, which a bind mount hides."""
    if outer is None or inner is None or outer.device != inner.device:
        return False
    return f"{inner.path.rstrip('/')}/".startswith(f"{outer.path.rstrip('/')}/")


def find_checkout(fs: FileSystem, door: Path, package: Path = _PACKAGE) -> Path:
    """The source checkout of the door in use.

    The nearest folder above it that holds `.git`, else the nearest that holds `pyproject.toml`; for an
    installed distribution its package folder, whatever project its environment belongs to.

    Args:
        fs: file operations.
        door: a file of the program that runs; links on the way to it are followed.
        package: the package folder of this installation.

    Raises:
        FileError: a folder above the door cannot be looked into.
    """
    with reported("the source checkout", reading=True):
        above = Path(fs.resolve(str(door))).parents
        if _INSTALLED & {*package.parts, *(folder.name for folder in above)}:
            return package
        if _stands(fs, package / "frozen"):
            return package
        for mark in (".git", "pyproject.toml"):
            for folder in above:
                if _stands(fs, folder / mark):
                    return folder
    return package


def _stands(fs: FileSystem, path: Path) -> bool:
    """Whether something has this name, a link included."""
    try:
        fs.lstat(None, str(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def check_form(path: str, homes: Sequence[str]) -> tuple[str, ...]:
    """Judge the text of a root's path.

    Args:
        path: as given.
        homes: absolute paths of the caller's home folders, as far as known.

    Returns:
        Its segments.

    Raises:
        RootError: `root_form`.
    """
    reason = _fault_of_form(path, homes)
    if reason is not None:
        sentence = f"{path!a} cannot be a private folder: {reason}."
        raise RootError(Fault(RootCode.ROOT_FORM, ".", sentence))
    return _segments(path)


def _segments(path: str) -> tuple[str, ...]:
    return tuple(segment for segment in path.split("/") if segment not in {"", "."})


def _fault_of_form(path: str, homes: Sequence[str]) -> str | None:
    """What is wrong with the text of a root's path; `None` when nothing is."""
    segments = _segments(path)
    size = max((len(segment.encode(errors="surrogatepass")) for segment in segments), default=0)
    checks = (
        (not path.startswith("/"), "the path must be absolute"),
        ("\0" in path, "the path holds a NUL"),
        (".." in segments, "the path must not hold '..' (give the folder's real path)"),
        (not segments, "it must not be the root of the file system"),
        (any(_segments(home) == segments for home in homes), _HOME),
        (any("\ud800" <= character <= "\udfff" for character in path), "the path is not UTF-8"),
        (size > NAME_BYTES, f"a segment is longer than {NAME_BYTES} bytes"),
    )
    return next((reason for wrong, reason in checks if wrong), None)


def ancestor_fault(status: os.stat_result, path: str, user: int) -> Fault | None:
    """Judge a folder above a root: owned by root or the caller, and nobody else can exchange what it holds.

    In a sticky folder (mode 1777, like a temporary folder) others can write but not rename or remove what is
    ours.
    """
    if status.st_uid not in {0, user}:
        sentence = (
            f"{path} above the folder belongs to user {status.st_uid}, who could exchange it; choose another."
        )
        return Fault(RootCode.ROOT_ANCESTOR, ".", sentence)
    if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
        sentence = (
            f"{path}, a folder above the private one, can be written by others, who could exchange what it "
            f"holds; take that away (chmod go-w {shlex.quote(path)}), or choose another place."
        )
        return Fault(RootCode.ROOT_ANCESTOR, ".", sentence)
    return None


def root_faults(
    status: os.stat_result, path: str, kind: RootKind, user: int, where: str = "."
) -> tuple[Fault, ...]:
    """Judge owner and mode of a private folder.

    Args:
        status: of the folder itself.
        path: how people know it.
        kind: what it is for.
        user: the effective user id.
        where: its root-relative name.
    """
    faults: list[Fault] = []
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != user:
        sentence = f"{path} belongs to user {status.st_uid}, not to you (user {user}); choose one of yours."
        faults.append(Fault(RootCode.ROOT_OWNER, where, sentence))
    if kind is RootKind.STORE:
        if mode & _OTHERS_WRITE:
            sentence = f"{path} has mode {mode:04o}: others can write in it; choose another one."
            faults.append(Fault(RootCode.ROOT_MODE, where, sentence))
    elif mode != FOLDER_MODE:
        sentence = f"{path} has mode {mode:04o}, but a private folder has 0700; choose a new one."
        faults.append(Fault(RootCode.ROOT_MODE, where, sentence))
    return tuple(faults)


def open_folder(
    fs: FileSystem, parent: int, name: str, path: str, *, where: str = ".", search: bool = False
) -> int:
    """Open what was a folder when it was looked at.

    Args:
        fs: file operations.
        parent: open folder.
        name: one segment.
        path: how people know it.
        where: its root-relative name.
        search: see `FileSystem.open_dir`.

    Raises:
        RootError: `root_symlink`: it is no folder any more.
        OSError: it cannot be opened.
    """
    try:
        return fs.open_dir(parent, name, search=search)
    except OSError as error:
        if error.errno in _NOT_A_FOLDER_ANY_MORE:
            sentence = f"{path} was exchanged, perhaps for a link, while it was being opened."
            raise RootError(Fault(RootCode.ROOT_SYMLINK, where, sentence)) from error
        raise


@dataclass(frozen=True, slots=True)
class Destination:
    """What is to be reached.

    Attributes:
        kind: decides mode and checkout rule.
        create: make missing folders.
        homes: absolute paths of the caller's home folders.
        fence: the checkout, `None` when there is none or the kind may lie in it.
    """

    kind: RootKind
    create: bool
    homes: tuple[str, ...]
    fence: Fence | None


def reach(fs: FileSystem, path: str, destination: Destination) -> tuple[int, str]:
    """Open a private root.

    Returns:
        Its descriptor, and its path without links.

    Raises:
        RootError: the codes of the first step that fails its checks.
        FileError: a kernel error on the way.
    """
    walk = _Walk(fs, destination, check_form(path, destination.homes))
    with reported("the private folder", reading=True):
        while (fd := walk.down()) is None:
            # Behind the one link that is allowed the walk begins again, now without any exception.
            pass
    return fd, walk.text()


class _Walk:
    """One way down from `/`.

    Each folder is judged through its descriptor, so that swapping the name behind our back gains nothing.
    """

    def __init__(self, fs: FileSystem, destination: Destination, segments: tuple[str, ...]) -> None:
        self._fs = fs
        self._to = destination
        self._segments = segments
        self._user = fs.user()
        self._may_follow = True

    def text(self, depth: int | None = None) -> str:
        """The path of the first `depth` segments, of all by default."""
        return "/" + "/".join(self._segments[:depth])

    def down(self) -> int | None:
        """Open folder after folder; `None` when a link was resolved and the walk must begin again."""
        fd = self._fs.open_dir(None, "/", search=True)
        for depth in range(len(self._segments)):
            with closing(self._fs, fd):
                self._judge_ancestor(fd, depth)
                below = self._open_below(fd, depth)
            if below is None:
                return None
            fd = below
        try:
            self._judge_root(fd)
        except BaseException:
            self._fs.close(fd)
            raise
        return fd

    def _open_below(self, parent: int, depth: int) -> int | None:
        """Open the next folder, perhaps making it; `None` when it is a link that was resolved."""
        segment, last = self._segments[depth], depth == len(self._segments) - 1
        status = self._find(parent, segment)
        if stat.S_ISLNK(status.st_mode):
            self._follow(parent, depth, status)
            return None
        if not stat.S_ISDIR(status.st_mode):
            self._refuse(RootCode.ROOT_FORM, f"{self.text(depth + 1)} is not a folder; choose another path.")
        try:
            return open_folder(self._fs, parent, segment, self.text(depth + 1), search=not last)
        except PermissionError:
            if last:
                # A folder of mode 0000 cannot be opened; its mode is what is wrong with it.
                self._raise_any(root_faults(status, self.text(), self._to.kind, self._user))
            raise

    def _find(self, parent: int, segment: str) -> os.stat_result:
        """The status of the next segment itself, perhaps after making it."""
        try:
            return self._fs.lstat(parent, segment)
        except FileNotFoundError:
            if not self._to.create:
                self._refuse(RootCode.ROOT_MISSING, f"{self.text()} does not exist.")
        with reported("the private folder"):
            make_folder(self._fs, parent, segment)
        return self._fs.lstat(parent, segment)

    def _follow(self, parent: int, depth: int, link: os.stat_result) -> None:
        """Put the target of a link in its place, if it is one that only the system can have made."""
        folder = self._fs.fstat(parent)
        last = depth == len(self._segments) - 1
        trusted = link.st_uid == 0 and folder.st_uid == 0 and not folder.st_mode & _OTHERS_WRITE
        if last or not trusted or not self._may_follow:
            self._refuse(RootCode.ROOT_SYMLINK, f"{self.text(depth + 1)} is a link; give the real path.")
        target = self._fs.readlink(parent, self._segments[depth])
        head = [] if target.startswith("/") else list(self._segments[:depth])
        for segment in _segments(target):
            if segment == "..":
                del head[-1:]
            else:
                head.append(segment)
        self._segments = (*head, *self._segments[depth + 1 :])
        self._may_follow = False

    def _judge_ancestor(self, fd: int, depth: int) -> None:
        """Judge an open folder above the root."""
        status = self._fs.fstat(fd)
        fence = self._fence_fault(fd, status, last=False)
        self._raise_any((fence, ancestor_fault(status, self.text(depth), self._user)))

    def _judge_root(self, fd: int) -> None:
        """Judge the open root itself."""
        status = self._fs.fstat(fd)
        home = None
        if any(self._is(status, path) for path in self._to.homes):
            home = Fault(RootCode.ROOT_FORM, ".", f"{self.text()} cannot be a private folder: {_HOME}.")
        fence = self._fence_fault(fd, status, last=True)
        self._raise_any((home, fence, *root_faults(status, self.text(), self._to.kind, self._user)))

    def _is(self, status: os.stat_result, path: str) -> bool:
        """Whether a path leads to the folder of this status."""
        try:
            found = self._fs.lstat(None, self._fs.resolve(path))
        except OSError:
            # A home folder that cannot be reached is not the one that was.
            return False
        return identity_of(found) == identity_of(status)

    def _fence_fault(self, fd: int, status: os.stat_result, *, last: bool) -> Fault | None:
        if self._to.fence is None:
            return None
        return self._to.fence.fault(identity_of(status), self._fs.place(fd), last=last)

    @staticmethod
    def _raise_any(faults: Sequence[Fault | None]) -> None:
        found = [fault for fault in faults if fault is not None]
        if found:
            raise RootError(*found)

    @staticmethod
    def _refuse(code: RootCode, sentence: str) -> NoReturn:
        raise RootError(Fault(code, ".", sentence))
