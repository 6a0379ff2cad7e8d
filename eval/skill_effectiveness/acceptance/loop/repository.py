"""The repository of a run before anything runs in it, and the folder in which its runs lie.

Source: loop.md, section 5; L1, L2, L4, L5, L41.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.evidence.faults import EvidenceError, LockCode, LockError
from skill_effectiveness.evidence.lock import Lock
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.programs import find_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings

FOLDER: Final = "closedloop"
RUNS: Final = "runs"
LOCK: Final = ".run.lock"
DIRTY: Final = "git working tree is dirty; commit or stash changes first"
_ID_BYTES: Final = 3
_ANSWERS: Final = 3


@dataclass(frozen=True, slots=True)
class Repository:
    """A git work tree with a commit.

    Attributes:
        top: of the work tree, without links.
        common: the git folder that its worktrees share.
        head: the commit that is checked out.
    """

    top: Path
    common: Path
    head: str

    @property
    def runs(self) -> Path:
        """The folder of everything that is kept of runs."""
        return self.common / FOLDER


def repository_at(path: Path, around: Surroundings, *, anywhere: bool = False) -> Repository:
    """The repository at a path.

    Args:
        path: absolute.
        around: the surroundings.
        anywhere: the path may lie below the top, and there need not be a commit.

    Raises:
        LoopRefusedError: `repo: <reason>`.
    """
    if find_tool("git", around) is None:
        raise LoopRefusedError("repo: git is not on PATH; install it")
    try:
        place = Path(around.fs.resolve(str(path)))
        around.fs.close(around.fs.open_dir(None, str(place)))
    except (OSError, ValueError):
        raise LoopRefusedError("repo: there is no such folder") from None
    git = Git(place, around)
    said = git.ask("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir")
    lines = said.out.decode(errors="surrogateescape").split("\n")
    if not said.good or len(lines) != _ANSWERS:
        raise LoopRefusedError("repo: this is no git work tree")
    top, common = Path(lines[0]), Path(lines[1])
    if top != place and not anywhere:
        raise LoopRefusedError("repo: this lies inside a git work tree; name its top")
    head = git.commit("HEAD")
    if head is None and not anywhere:
        raise LoopRefusedError("repo: there is no commit yet; make one first")
    return Repository(top, common, head or "")


def demand_clean(repository: Repository, around: Surroundings) -> None:
    """Demand a work tree without changes; untracked files that are not ignored are changes.

    Raises:
        LoopRefusedError: there are some, or git does not say.
    """
    answered = Git(repository.top, around).ask("status", "--porcelain", "-z", "--untracked-files=normal")
    if not answered.good:
        raise LoopRefusedError("repo: git does not say whether the work tree is clean")
    if answered.out:
        raise LoopRefusedError(DIRTY)


@contextmanager
def alone(repository: Repository, around: Surroundings) -> Iterator[PrivateRoot]:
    """Be the only run of a repository; gives the folder of its runs.

    Raises:
        LoopRefusedError: `repo: <reason>`: another run is going on, or the folder is not private.
    """
    try:
        root = PrivateRoot.create(repository.runs, RootKind.REPO, around=around, checkout=None)
    except EvidenceError as error:
        raise LoopRefusedError(f"repo: {error.faults[0].sentence}") from error
    with root:
        hold = Lock(root, LOCK).hold(0, "a run of closedloop")
        try:
            hold.__enter__()
        except LockError as error:
            busy = error.code is LockCode.LOCK_BUSY
            told = "another run is going on here; wait until it is over" if busy else error.faults[0].sentence
            raise LoopRefusedError(f"repo: {told}") from error
        try:
            yield root
        finally:
            hold.__exit__(None, None, None)


def new_run_id(around: Surroundings) -> str:
    """An id of a new run; ids sort by the moment at which their runs began."""
    moment = around.now().strftime("%Y%m%dt%H%M%S%f")[:-3]
    return f"{moment}-{around.entropy(_ID_BYTES).hex()}"
