"""What a milestone asks of git, and the few local refs that it moves.

Source: milestone.md, sections 5, 7 to 9 and 11. Nothing here pushes: the one remote command is `ls-remote`.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.milestone.delivery import RemoteBranch
from skill_effectiveness.acceptance.milestone.errors import MilestoneCode, MilestoneError
from skill_effectiveness.acceptance.milestone.identity import UNAVAILABLE, Identity
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.worktree import DetachedWorktree, WorktreeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skill_effectiveness.evidence.surroundings import Surroundings

REMOTE_SECONDS: Final = 60.0
COMMIT_SECONDS: Final = 120.0
_TREE: Final = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_NAME, _ADDRESS = "milestone close", "milestone@localhost"
# In the environment, because what a person has set there would win over any setting.
_AUTHOR: Final = {
    "GIT_AUTHOR_EMAIL": _ADDRESS,
    "GIT_AUTHOR_NAME": _NAME,
    "GIT_COMMITTER_EMAIL": _ADDRESS,
    "GIT_COMMITTER_NAME": _NAME,
}
PRIVATE_FOLDER: Final = ".crw"
"""What a call may keep in its worktree beside the work."""


@dataclass(frozen=True, slots=True)
class _Checkout:
    """Where a branch is checked out."""

    path: Path
    branch: str


class Repository:
    """The repository of a milestone.

    Args:
        path: its top, absolute.
        around: the surroundings.
    """

    def __init__(self, path: Path, around: Surroundings) -> None:
        self.path: Final = path
        self.git: Final = Git(path, around)
        self._around = around
        # A commit's tree never changes, and is asked for again and again.
        self._trees: dict[str, str] = {}

    @property
    def identity(self) -> str | None:
        """What two names of one repository have in common; `None` where there is none."""
        common = self.git.common()
        return None if common is None else self._around.fs.resolve(str(common))

    def tip(self, branch: str) -> str | None:
        """The commit of a local branch; `None` where there is none.

        What only leads to a commit from a branch, such as `main~1` or `main@{1}`, is no branch.
        """
        if "\0" in branch or not self.git.ask("check-ref-format", f"refs/heads/{branch}").good:
            return None
        return self.git.commit(f"refs/heads/{branch}")

    def tree(self, commit: str) -> str | None:
        """The tree of a commit; `None` where git does not say."""
        if commit not in self._trees:
            answered = self.git.ask("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
            line = answered.out.strip()
            if not answered.good or not _TREE.fullmatch(line):
                return None
            self._trees[commit] = line.decode()
        return self._trees[commit]

    def identity_at(self, commit: str) -> Identity:
        """The clean identity of a commit."""
        return Identity.at(commit, self.tree(commit), dirty=False)

    def contains(self, commit: str, ancestor: str) -> bool | None:
        """Whether a commit contains another; `None` where git does not say."""
        code = self.git.ask("merge-base", "--is-ancestor", ancestor, commit).code
        return {0: True, 1: False}.get(-1 if code is None else code)

    def merge_base(self, *commits: str) -> str | None:
        """The best commit that all of these contain."""
        if len(set(commits)) == 1:
            return commits[0]
        answered = self.git.ask("merge-base", "--octopus", *commits)
        line = answered.out.strip()
        return line.decode() if answered.good and _TREE.fullmatch(line) else None

    def commits(self, base: str, head: str) -> tuple[str, ...] | None:
        """The commits of a range, newest first; `None` where git does not say."""
        answered = self.git.ask("rev-list", f"{base}..{head}")
        return tuple(answered.out.decode().split()) if answered.good else None

    def remote_branch(self, branch: str, head: str) -> RemoteBranch:
        """What origin says about a branch; nothing is fetched."""
        ref = f"refs/heads/{branch}"
        # Without such a remote, git would ask a folder of that name, which the range itself may hold.
        if not self.git.ask("remote", "get-url", "origin").good:
            return RemoteBranch(readable=False)
        answered = self.git.ask("ls-remote", "--exit-code", "origin", ref, seconds=REMOTE_SECONDS)
        absent = 2  # what --exit-code answers when nothing matches
        if answered.code == absent:
            return RemoteBranch(readable=True)
        named = [line.split(b"\t") for line in answered.out.splitlines()]
        tips = [each[0] for each in named if each[1:] == [ref.encode()] and _TREE.fullmatch(each[0])]
        if not answered.good or len(tips) != 1:
            return RemoteBranch(readable=False)
        tip = tips[0].decode()
        known = self.git.commit(tip) is not None
        return RemoteBranch(readable=True, tip=tip, contains_head=self.contains(tip, head) if known else None)

    # Worktrees.

    @contextmanager
    def scratch(self, commit: str) -> Iterator[DetachedWorktree]:
        """A fresh worktree of a commit, gone afterwards.

        Raises:
            MilestoneError: `git_failed`.
        """
        worktree = DetachedWorktree(self.git, commit, self._around)
        try:
            worktree.__enter__()
        except WorktreeError as error:
            raise MilestoneError(MilestoneCode.GIT_FAILED, "worktree", error.sentence) from error
        try:
            yield worktree
        finally:
            worktree.__exit__(None, None, None)

    def identity_of(self, worktree: DetachedWorktree, commit: str) -> Identity:
        """The identity of a worktree that was made at a commit; unavailable once its HEAD is elsewhere."""
        if worktree.head_moved():
            return UNAVAILABLE
        return Identity.at(commit, self.tree(commit), dirty=worktree.dirty())

    # What is moved here, and nowhere else.

    def commit_files(self, worktree: Path, parent: str, index: Path, message: str) -> str | None:
        """Commit the files of a worktree, but for the private folder, on top of a commit; `None` on failure.

        Whoever worked there may have changed its `.git` file and index, so neither is used: the files are
        read through the repository's own folder into an index of ours.

        Args:
            worktree: where the files are.
            parent: full id.
            index: a private place for the index.
            message: of the commit.

        Returns:
            The commit; the parent where nothing differs from it.
        """
        common = self.git.common()
        if common is None:
            return None
        inside = Git(worktree, self._around)
        where = (f"--git-dir={common}", f"--work-tree={worktree}")
        environ = {**_AUTHOR, "GIT_INDEX_FILE": str(index)}

        def ask(*words: str, stdin: bytes = b"") -> bytes | None:
            answered = inside.ask(*where, *words, stdin=stdin, seconds=COMMIT_SECONDS, environ=environ)
            return answered.out.strip() if answered.good else None

        if ask("read-tree", parent) is None:
            return None
        if ask("add", "--all", "--", ".", f":(exclude,top){PRIVATE_FOLDER}") is None:
            return None
        tree = ask("write-tree")
        if tree is None or not _TREE.fullmatch(tree):
            return None
        if tree.decode() == self.tree(parent):
            return parent
        commit = ask("commit-tree", "-p", parent, tree.decode(), stdin=message.encode())
        return commit.decode() if commit is not None and _TREE.fullmatch(commit) else None

    def set_branch(self, branch: str, commit: str) -> bool:
        """Let a branch of our own lead to a commit."""
        return self.git.ask("update-ref", f"refs/heads/{branch}", commit).good

    def advance(self, branch: str, old: str, new: str) -> bool:
        """Move a local branch from one commit to a descendant; False when it is not where it was.

        Where the branch is checked out, git moves it there with the files, and refuses over local changes.
        """
        if self.tip(branch) != old or not self.contains(new, old):
            return False
        checkout = next((each for each in self._checkouts() if each.branch == branch), None)
        if checkout is not None:
            return Git(checkout.path, self._around).ask("merge", "--ff-only", "--quiet", new).good
        return self.git.ask("update-ref", f"refs/heads/{branch}", new, old).good

    def _checkouts(self) -> list[_Checkout]:
        answered = self.git.ask("worktree", "list", "--porcelain", "-z")
        found: list[_Checkout] = []
        path: Path | None = None
        for field in answered.out.split(b"\0"):
            word, _, value = field.partition(b" ")
            if word == b"worktree":
                path = Path(value.decode(errors="surrogateescape"))
            elif word == b"branch" and path is not None:
                name = value.decode(errors="surrogateescape").removeprefix("refs/heads/")
                found.append(_Checkout(path, name))
        return found
