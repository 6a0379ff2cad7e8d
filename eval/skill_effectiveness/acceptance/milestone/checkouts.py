"""The checkouts of a round: one for each pass, looked at before any engine starts, taken away afterwards.

Source: milestone.md, section 7, Checkouts. Ignored files are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.milestone.errors import (
    MilestoneCode,
    MilestoneError,
    Reason,
    StopCode,
    escalated,
)
from skill_effectiveness.acceptance.milestone.store import not_written
from skill_effectiveness.acceptance.milestone.words import RowType
from skill_effectiveness.evidence.errnos import reported
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.execution.worktree import PlacedWorktree, WorktreeError

if TYPE_CHECKING:
    from collections.abc import Collection

    from skill_effectiveness.acceptance.milestone.run import Run
    from skill_effectiveness.acceptance.milestone.words import PassName

FOLDER: Final = "crosscheck-wt"
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class CheckoutName:
    """What tells the checkout of one attempt of one pass apart."""

    milestone: str
    round: int
    evidence_round: int
    head: str

    def of(self, name: PassName, attempt: int) -> str:
        """The folder's name."""
        about = f"{self.milestone}-r{self.round}-e{self.evidence_round}"
        return f"{about}-{name}{attempt}-{self.head[:_SHOWN]}"


class Checkouts:
    """The checkouts of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def folder(self) -> Path:
        """Where all of them lie; nothing outside is ever removed."""
        return self._run.folder.path / FOLDER

    def prepare(self, name: str, head: str) -> PlacedWorktree:
        """A checkout of the head, made or found again, that is exactly its tree.

        Raises:
            Stopped: `crosscheck_failed` for `crosscheck_worktree_moved` or `crosscheck_worktree_dirty`; the
                folder stays as it is.
            MilestoneError: `worktree_foreign`, `git_failed`.
        """
        run = self._run
        try:
            run.folder.root.child(FOLDER, create=True).close()
        except EvidenceError as error:
            raise not_written(error) from error
        worktree = PlacedWorktree(run.repository.git, self.folder / name, head, run.site.around)
        if not worktree.made:
            self._make(worktree)
        if worktree.head_moved():
            raise _unusable(Reason.WORKTREE_MOVED, name)
        if worktree.dirty():
            raise _unusable(Reason.WORKTREE_DIRTY, name)
        return worktree

    def _make(self, worktree: PlacedWorktree) -> None:
        if self._occupied(worktree.path):
            told = "Something that is no checkout of this repository has its place; move it away."
            raise MilestoneError(MilestoneCode.WORKTREE_FOREIGN, worktree.path.name, told)
        try:
            worktree.make()
        except WorktreeError as error:
            raise MilestoneError(MilestoneCode.GIT_FAILED, worktree.path.name, error.sentence) from error

    def _occupied(self, path: Path) -> bool:
        try:
            with reported("a checkout", reading=True):
                self._run.site.around.fs.lstat(None, str(path))
        except EvidenceError:
            return False
        return True

    def remove(self, path: Path, head: str) -> bool:
        """Take away a checkout; False, and nothing touched, for a path outside the folder."""
        if path.parent != self.folder or path.name in {"", ".", ".."}:
            return False
        run = self._run
        # What git keeps of it goes with it; `git worktree prune` would forget the worktrees of others too.
        return PlacedWorktree(run.repository.git, path, head, run.site.around).remove()

    def sweep(self, keep: Collection[str]) -> None:
        """Take away the checkouts that rows of killed attempts name, but for those of this round."""
        for row in self._run.rows.all(RowType.PREPARED, purpose="crosscheck"):
            named, head = row.body.get("checkout"), row.body.get("head")
            if isinstance(named, str) and isinstance(head, str) and Path(named).name not in keep:
                self.remove(Path(named), head)


def _unusable(reason: Reason, name: str) -> Exception:
    told = f"The checkout {name} is not the tree of the head; no engine was started and it stays as it is."
    return escalated(StopCode.CROSSCHECK_FAILED, told, reason.value, checkout=name)
