"""A detached worktree of one commit: made for one command or one session, deleted whatever happens.

Source: closeout.md, section 10, steps 2 and 4, and section 12; milestone.md, section 7.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.fsops import closing, read_public, remove_tree
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.session import SessionFolders
from skill_effectiveness.execution.session_sweep import sweep_sessions

if TYPE_CHECKING:
    from types import TracebackType

    from skill_effectiveness.evidence.surroundings import Surroundings

SECONDS: Final = 30.0
_OURS: Final = re.compile(r"skill-effectiveness-[0-9a-f]{16}")
_PATH_BYTES: Final = 65_536


class WorktreeError(Exception):
    """No worktree could be made.

    Attributes:
        sentence: the reason and what to do, for people.
    """

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(sentence)


class DetachedWorktree:
    """A new worktree in a private folder of its own, with HEAD detached at a commit.

    Questions about it afterwards are put to the administrative folder that git made for it, because whatever
    ran in the worktree may have replaced the `.git` file there.

    Attributes:
        path: the worktree; private, absolute.

    Args:
        git: of the checkout.
        commit: full id.
        around: the surroundings.
    """

    def __init__(self, git: Git, commit: str, around: Surroundings) -> None:
        self._git = git
        self._commit = commit
        self._around = around
        self._session = SessionFolders(around)
        self._name = f"skill-effectiveness-{around.entropy(8).hex()}"
        self._common: Path | None = None

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._session.work / self._name

    @property
    def _admin(self) -> Path:
        """What git keeps of it in the checkout, named after the last segment of its path."""
        if self._common is None:
            raise ValueError("a worktree exists inside its `with` block only")
        return self._common / "worktrees" / self._name

    @property
    def session(self) -> SessionFolders:
        """The private folders it lies in."""
        return self._session

    def __enter__(self) -> Self:
        """Make it.

        Raises:
            WorktreeError: git or the temporary folder refuses; nothing of it stays.
        """
        self._common = self._git.common()
        if self._common is None:
            raise WorktreeError("git does not say where it keeps its worktrees.")
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

    def _make(self) -> None:
        words = ("worktree", "add", "--detach", "--quiet", str(self.path), self._commit)
        if not self._git.ask(*words, seconds=SECONDS).good or self.head_moved():
            raise WorktreeError("git could not check it out in 30 seconds; see `git worktree add --detach`.")

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        try:
            self._git.ask("worktree", "remove", "--force", "--force", str(self.path))
        finally:
            try:
                # git refuses a worktree whose `.git` file was replaced, and folders without permissions.
                with suppress(EvidenceError):
                    remove_tree(self._around.fs, self._admin)
            finally:
                self._session.__exit__(None, None, None)

    def dirty(self, *, ignored: bool = False) -> bool:
        """Whether anything differs from the commit that HEAD is at, or git does not say.

        Args:
            ignored: ignored files count too.
        """
        also = ("--ignored",) if ignored else ()
        answered = self._inside("status", "--porcelain", "--untracked-files=all", *also)
        return answered is None or answered != b""

    def head_moved(self) -> bool:
        """Whether HEAD is at another commit than it was made at, or git does not say."""
        answered = self._inside("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return answered is None or answered.strip().decode(errors="replace") != self._commit

    def _inside(self, *words: str) -> bytes | None:
        where = (f"--git-dir={self._admin}", f"--work-tree={self.path}")
        answered = Git(self.path, self._around).ask(*where, *words)
        return answered.out if answered.good else None


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
    fs = around.fs
    if _exists(admin / "locked", around):
        return False
    try:
        # The file names the `.git` file of the worktree.
        data = read_public(fs, admin / "gitdir", _PATH_BYTES)
    except EvidenceError:
        return False
    place = data.decode(errors="surrogateescape").rstrip("\n")
    return place.startswith("/") and not _exists(Path(place).parent, around)


def _exists(path: Path, around: Surroundings) -> bool:
    try:
        around.fs.lstat(None, str(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
