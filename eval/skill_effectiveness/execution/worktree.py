"""Detached worktrees of one commit: one for a single command or session, and one at a place of the caller's.

Source: closeout.md, section 10, steps 2 and 4, and section 12; loop.md, section 4; milestone.md, section 7.

Both are taken away without `git worktree remove`: where a link was put in the place of a worktree, git
follows it, and would delete the other worktree that it leads to.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import closing, read_public, remove_tree
from skill_effectiveness.evidence.laying import drop_empty
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.session import SessionFolders
from skill_effectiveness.execution.session_sweep import sweep_sessions

if TYPE_CHECKING:
    from types import TracebackType

    from skill_effectiveness.evidence.surroundings import Surroundings

SECONDS: Final = 30.0
_OURS: Final = re.compile(r"skill-effectiveness-[0-9a-f]{16}")
_PATH_BYTES: Final = 65_536
_WHOLE: Final = (
    # Newer versions of git can be told to keep relative paths, which say nothing without their folder.
    "-c",
    "worktree.useRelativePaths=false",
    # A checkout that shows a part of its files would give a worktree of that part.
    "-c",
    "core.sparseCheckout=false",
)
_STATUS: Final = ("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none")
_LOOKED_AT: Final = b"H "


class WorktreeError(Exception):
    """No worktree could be made.

    Attributes:
        sentence: the reason and what to do, for people.
    """

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(sentence)


class _Worktree(ABC):
    """What both kinds are asked.

    Questions are put to the administrative folder that git made, because whatever ran in the worktree may
    have replaced the `.git` file there.
    """

    def __init__(self, git: Git, commit: str, around: Surroundings) -> None:
        self._git = git
        self._commit = commit
        self._around = around
        self._admin: Path | None = None

    @property
    @abstractmethod
    def path(self) -> Path:
        """Where it is."""

    def _make(self) -> None:
        words = ("worktree", "add", "--detach", "--quiet", str(self.path), self._commit)
        made = self._git.ask(*_WHOLE, *words, seconds=SECONDS)
        self._admin = _administration(self._git, self.path, self._around)
        if not made.good or self._admin is None or self.head_moved():
            raise WorktreeError("git could not check it out in 30 seconds; see `git worktree add --detach`.")

    def _forget(self) -> None:
        """Take away what git keeps of it; a FileError: something stayed."""
        if self._admin is None:
            return
        remove_tree(self._around.fs, self._admin)
        # As git does: there is a folder of worktrees while there is a worktree.
        drop_empty(self._around.fs, self._admin.parent)

    def dirty(self, *, ignored: bool = False) -> bool:
        """Whether anything differs from the commit that HEAD is at, or git does not say.

        Args:
            ignored: ignored files count too.
        """
        also = ("--ignored",) if ignored else ()
        answered = self._inside(*_STATUS, *also)
        return answered is None or answered != b"" or self._overlooked()

    def _overlooked(self) -> bool:
        """Whether git was told not to look at a file: what is in it then is not known."""
        answered = self._inside("ls-files", "-v")
        return answered is None or not all(line.startswith(_LOOKED_AT) for line in answered.splitlines())

    def head_moved(self) -> bool:
        """Whether HEAD is at another commit than it was made at, or git does not say."""
        answered = self._inside("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return answered is None or answered.strip().decode(errors="replace") != self._commit

    def _inside(self, *words: str) -> bytes | None:
        if self._admin is None:
            raise ValueError("there is no worktree, or none any more")
        where = (f"--git-dir={self._admin}", f"--work-tree={self.path}")
        answered = Git(self.path, self._around).ask(*where, *words)
        return answered.out if answered.good else None


class DetachedWorktree(_Worktree):
    """A new worktree in a private folder of its own, with HEAD detached at a commit, for a `with` block.

    Attributes:
        path: the worktree; private, absolute.

    Args:
        git: of the checkout.
        commit: full id.
        around: the surroundings.
    """

    def __init__(self, git: Git, commit: str, around: Surroundings) -> None:
        super().__init__(git, commit, around)
        self._session = SessionFolders(around)
        self._name = f"skill-effectiveness-{around.entropy(8).hex()}"

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._session.work / self._name

    @property
    def session(self) -> SessionFolders:
        """The private folders it lies in."""
        return self._session

    def __enter__(self) -> Self:
        """Make it.

        Raises:
            WorktreeError: git or the temporary folder refuses; nothing of it stays.
        """
        try:
            self._session.__enter__()
        except EvidenceError as error:
            raise WorktreeError(str(error)) from error
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        try:
            with suppress(EvidenceError):
                self._forget()
        finally:
            self._admin = None
            self._session.__exit__(None, None, None)


class PlacedWorktree(_Worktree):
    """A worktree at a place of the caller's, with HEAD detached at a commit; it may outlive whoever made it.

    An object of the same arguments finds, asks and removes what an earlier one made. What git does not know
    as a worktree of this checkout is never touched.

    Attributes:
        path: the worktree, absolute.

    Args:
        git: of the checkout.
        path: where it is or will be; its parent exists.
        commit: full id.
        around: the surroundings.
    """

    def __init__(self, git: Git, path: Path, commit: str, around: Surroundings) -> None:
        super().__init__(git, commit, around)
        self._path = path
        self._admin = _administration(git, path, around)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    @property
    def made(self) -> bool:
        """Whether git keeps a worktree of this checkout at this place, as far as this object knows."""
        return self._admin is not None

    def make(self) -> None:
        """Make it.

        Raises:
            WorktreeError: something is at its place already, or git knows it, or git refuses; nothing new
                stays.
        """
        if self.made or _exists(self._path, self._around):
            raise WorktreeError("there is something at its place already; choose another place.")
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    def remove(self) -> bool:
        """Take away the worktree and what git keeps of it.

        Returns:
            Whether it is certain that nothing of it is left. False: something could not be removed, or what
            is at its place is no worktree of this checkout and stays.
        """
        try:
            if self.made:
                remove_tree(self._around.fs, self._path)
                self._forget()
                self._admin = None
        except EvidenceError:
            return False  # what stays is told by the answer
        return not _exists(self._path, self._around)


def _administration(git: Git, path: Path, around: Surroundings) -> Path | None:
    """The folder in which git keeps a worktree at a path; `None` when there is none."""
    common = git.common()
    if common is None:
        return None
    fs = around.fs
    try:
        with reported("worktrees", reading=True):
            place = Path(fs.resolve(str(path.parent))) / path.name / ".git"
            with closing(fs, fs.open_dir(None, str(common / "worktrees"))) as folder:
                admins = [common / "worktrees" / name for name in sorted(fs.listdir(folder))]
    except EvidenceError:
        return None  # no worktree at all, or none at this path
    return next((admin for admin in admins if _file_of(admin, around) == str(place)), None)


def _file_of(admin: Path, around: Surroundings) -> str | None:
    """The `.git` file of the worktree behind an administrative folder; `None` when that is not known."""
    try:
        data = read_public(around.fs, admin / "gitdir", _PATH_BYTES)
    except EvidenceError:
        return None
    return data.decode(errors="surrogateescape").rstrip("\n")


def sweep_worktrees(git: Git, around: Surroundings) -> None:
    """Take away what a killed runner left: its session folders, and what git keeps of worktrees in them.

    Only worktrees of our naming whose folder is gone are forgotten; git marks one that is being made with a
    lock of its own. What cannot be removed now is found again at the next start.
    """
    with suppress(EvidenceError):
        sweep_sessions(around)
    common = git.common()
    if common is None:
        return
    fs = around.fs
    with suppress(EvidenceError), reported("worktrees"):
        with closing(fs, fs.open_dir(None, str(common / "worktrees"))) as folder:
            names = [name for name in fs.listdir(folder) if _OURS.fullmatch(name)]
        for name in names:
            if _forgotten(common / "worktrees" / name, around):
                remove_tree(fs, common / "worktrees" / name)


def _forgotten(admin: Path, around: Surroundings) -> bool:
    """Whether the worktree behind an administrative folder is certainly gone."""
    if _exists(admin / "locked", around):
        return False
    place = _file_of(admin, around)
    return place is not None and place.startswith("/") and not _exists(Path(place).parent, around)


def _exists(path: Path, around: Surroundings) -> bool:
    """Whether there is something, or that cannot be told."""
    try:
        around.fs.lstat(None, str(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
