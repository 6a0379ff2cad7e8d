"""What a working tree holds and where its repository stands, measured with git and an index of our own.

Source: loop.md, section 8 (content), L52, L58.

Content is everything that git would commit: tracked changes and untracked files that are not ignored, by
path, mode and bytes. It is put into an index of ours, of which clean checkouts and the commit of a passed job
are made, so that they are what was measured. The index of the working tree itself is never used for that:
whoever works there can tell it not to look at a file.

Files that did not change since are not asked about again, because starting git takes longer than reading
them: our index for the content, the folders of refs, the index of the working tree.

Every question goes to the git folder that was there before any agent ran, whatever the `.git` in the working
tree says by now.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.loop.errors import AbortedError
from skill_effectiveness.acceptance.loop.marks import file_digest, folder_digest
from skill_effectiveness.evidence.canonical import digest_bytes, digest_object
from skill_effectiveness.evidence.faults import EvidenceError, FileCode, FileError
from skill_effectiveness.evidence.pointer import printable
from skill_effectiveness.execution.git import Git

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.surroundings import Surroundings

SECONDS: Final = 300.0
"""For one git command over a whole tree."""

_SETTINGS: Final = (
    "advice.addEmbeddedRepo=false",
    "core.fileMode=true",
    "core.safecrlf=false",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "index.sparse=false",
)
_CAREFUL: Final = tuple(word for setting in _SETTINGS for word in ("-c", setting))
_IDENTITY: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "closedloop"), ("EMAIL", "closedloop@localhost"))
}
_LISTING: Final = ("ls-files", "--stage", "-z")
_REFS: Final = ("refs", "reftable")
_SUBMODULE: Final = b"160000"
_ANSWERS: Final = 4


def _submodules(listing: bytes) -> frozenset[bytes]:
    """The paths of an index at which there are other repositories."""
    lines = (line.partition(b"\t") for line in listing.split(b"\0") if line.startswith(_SUBMODULE))
    return frozenset(path for _, _, path in lines)


@dataclass(frozen=True, slots=True)
class Standing:
    """A repository at one moment.

    Attributes:
        content: digest of the content of the working tree.
        head: digest of what HEAD says.
        index: digest of the index of the working tree, its stat data apart.
        refs: digest of every ref.
    """

    content: str
    head: str
    index: str
    refs: str

    def same_place(self, other: Standing) -> bool:
        """Whether the working tree, its index and HEAD are those of another moment, refs apart.

        Refs belong to all worktrees of a repository, and whoever owns it may go on working in another.
        """
        return (self.content, self.head, self.index) == (other.content, other.head, other.index)


class _Remembered:
    """An answer that holds as long as the files behind it are the same."""

    def __init__(self) -> None:
        self._key = ""
        self._answer = ""

    def of(self, key: str, answer: Callable[[], str]) -> str:
        """The answer for the files that have this digest."""
        if key != self._key:
            self._key, self._answer = key, answer()
        return self._answer

    def rekey(self, key: str) -> None:
        """The answer holds for the files that have this digest too."""
        self._key = key


class MeasuredTree:
    """A working tree that is measured again and again.

    Attributes:
        path: the working tree.
        git_folder: its own git folder.
        common: the git folder that all worktrees of the repository share.
        start: the commit that HEAD was at.

    Args:
        path: top of the working tree, absolute.
        index: path of an index of ours that does not exist yet, in a private folder.
        around: the surroundings.

    Raises:
        AbortedError: git does not say where it keeps what.
    """

    def __init__(self, path: Path, index: Path, around: Surroundings) -> None:
        self.path = path
        self._around = around
        self._git = Git(path, around)
        self._environ = {"GIT_INDEX_FILE": str(index)}
        self._own_index = index
        self.git_folder, self.common, self.start = self._found()
        self._where = (f"--git-dir={self.git_folder}", f"--work-tree={path}", *_CAREFUL)
        self._content, self._refs, self._index = _Remembered(), _Remembered(), _Remembered()
        self._left = ""
        self.ask("read-tree", self.start)
        self._submodules = _submodules(self.ask(*_LISTING))

    def _found(self) -> tuple[Path, Path, str]:
        words = (
            "rev-parse",
            "--path-format=absolute",
            "--absolute-git-dir",
            "--git-common-dir",
            "HEAD^{commit}",
        )
        answered = self._git.ask(*words)
        lines = answered.out.decode(errors="surrogateescape").split("\n")
        if not answered.good or len(lines) != _ANSWERS:
            raise AbortedError("git does not say where it keeps this repository")
        return Path(lines[0]), Path(lines[1]), lines[2]

    def ask(self, *words: str, own_index: bool = True, stdin: bytes = b"") -> bytes:
        """What a git command about this working tree says.

        Args:
            words: the command.
            own_index: use the index of ours.
            stdin: what it reads.

        Raises:
            AbortedError: it failed.
        """
        environ = {**_IDENTITY, **(self._environ if own_index else {})}
        if own_index and self._digest_file(self._own_index) != self._left:
            raise AbortedError("the index of this tool was changed by someone else")
        answered = self._git.ask(*self._where, *words, environ=environ, seconds=SECONDS, stdin=stdin)
        if not answered.good:
            raise AbortedError(f"the content of the repository cannot be measured (git {words[0]})")
        if own_index:
            self._left = self._digest_file(self._own_index)
        return answered.out

    def tree_of(self, commit: str) -> str:
        """The id of the tree of a commit.

        Raises:
            AbortedError: there is none.
        """
        return self.ask("rev-parse", "--verify", f"{commit}^{{tree}}").strip().decode()

    def measure(self) -> Standing:
        """The repository now.

        Raises:
            AbortedError: it cannot be measured, or hides something from git.
        """
        # Before git is started: it would wait for a pipe in the place of one of these.
        head = self._digest_file(self.git_folder / "HEAD")
        self._digest_file(self.git_folder / "index")
        self.ask("add", "--all")
        return Standing(
            self._content.of(self._left, self._listed),
            head,
            self._index.of(self._digest_file(self.git_folder / "index"), self._their_index),
            self._refs.of(self._digest_refs(), self._all_refs),
        )

    def _listed(self) -> str:
        listing = self.ask(*_LISTING)
        fresh = _submodules(listing) - self._submodules
        if fresh:
            where = printable(min(fresh).decode(errors="surrogateescape"))
            raise AbortedError(f"{where} became a repository of its own, whose files git does not show")
        return digest_bytes(listing)

    def _their_index(self) -> str:
        # Asking git for the status writes new stat data, which is no change that matters.
        return digest_bytes(self.ask("ls-files", "--stage", "-v", "-z", own_index=False))

    def _all_refs(self) -> str:
        return digest_bytes(self.ask("for-each-ref", "--format=%(objectname) %(refname) %(symref)"))

    def _digest_file(self, place: Path) -> str:
        """The digest of one file of git's; of nothing when there is none."""
        try:
            return file_digest(self._around.fs, place)
        except FileError as error:
            if error.code is FileCode.MISSING:
                return ""
            raise AbortedError(f"{place.name} of the repository cannot be read") from error

    def _digest_refs(self) -> str:
        """One digest for the files in which refs are kept; what cannot be digested is never the same."""
        places = [folder / name for folder in {self.common, self.git_folder} for name in _REFS]
        try:
            trees = [
                folder_digest(self._around.fs, place) for place in sorted(places) if self._is_folder(place)
            ]
        except EvidenceError:
            trees = [self._around.entropy(16).hex()]
        return digest_object([*trees, self._digest_file(self.common / "packed-refs")])

    def _is_folder(self, place: Path) -> bool:
        try:
            return stat.S_ISDIR(self._around.fs.lstat(None, str(place)).st_mode)
        except OSError:
            return False

    def written(self) -> str:
        """The content as it was last measured, as a tree object; its id.

        Raises:
            AbortedError: git refuses.
        """
        tree = self.ask("write-tree").strip().decode()
        # Git notes the ids of folders in the index, whose entries stay as they are.
        self._content.rekey(self._left)
        return tree

    def commit(self, parent: str, message: str) -> str:
        """The content as it was last measured, as a commit object; its id.

        Raises:
            AbortedError: git refuses, or an object of it is not what its id says.
        """
        made = self.ask("commit-tree", "--no-gpg-sign", "-p", parent, "-m", message, self.written())
        commit = made.strip().decode()
        self._demand_sound(commit, parent)
        return commit

    def _demand_sound(self, commit: str, parent: str) -> None:
        """Demand that the objects of a commit, its parent's apart, are what their ids say.

        Git does not write an object that it has already, nor look at its bytes when it checks it out; and
        whoever works here can have put one there with others. It does look when it is asked for the object
        behind the object.
        """
        listed = self.ask("rev-list", "--objects", "--no-object-names", commit, f"^{parent}").split()
        asked = b"".join(each + b"^{object}\n" for each in listed)
        answered = self.ask("cat-file", "--batch-check=%(objectname)", stdin=asked)
        if answered.split() != listed:
            raise AbortedError("an object of the repository is not what its id says; see git fsck")

    def difference(self, before: str, after: str) -> str:
        """The difference of two trees as text, for people.

        Raises:
            AbortedError: git refuses.
        """
        words = ("diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", before, after)
        return self.ask(*words).decode("utf-8", "replace")
