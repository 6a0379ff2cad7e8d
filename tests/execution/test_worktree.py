"""Worktrees that leave nothing behind, in the right hands and in the wrong ones."""

from __future__ import annotations

import errno
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.execution.git import Git
from skill_effectiveness.execution.worktree import (
    DetachedWorktree,
    PlacedWorktree,
    WorktreeError,
    sweep_worktrees,
)
from tests.support.repositories import PlainRepository

if TYPE_CHECKING:
    from skill_effectiveness.evidence.surroundings import Surroundings


@pytest.fixture
def repository(tmp_path: Path) -> PlainRepository:
    """An empty repository."""
    return PlainRepository(tmp_path)


def worktrees(repository: PlainRepository) -> list[str]:
    """Every worktree but the main one, as git lists them."""
    return [line.split()[0] for line in repository.git("worktree", "list").splitlines()[1:]]


def placed(
    repository: PlainRepository, commit: str, name: str = "chosen", around: Surroundings | None = None
) -> PlacedWorktree:
    around = around or repository.around
    return PlacedWorktree(Git(repository.root, around), repository.base / name, commit, around)


class TestForOneUse:
    def test_it_is_gone_after_an_exception(self, repository: PlainRepository) -> None:
        """C41: whatever is raised inside."""
        commit = repository.commit(value="v")
        around = repository.around
        seen: list[Path] = []

        def interrupted() -> None:
            with DetachedWorktree(Git(repository.root, around), commit, around) as worktree:
                seen.append(worktree.path)
                assert (worktree.path / "value").read_text() == "v"
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert not seen[0].exists()
        assert worktrees(repository) == []
        assert list(repository.temporary.iterdir()) == []
        assert not (repository.root / ".git" / "worktrees").exists()

    def test_what_is_seen_of_it(self, repository: PlainRepository) -> None:
        """C27 C28: clean and in place at first; then dirty, then moved."""
        commit = repository.commit(value="v", **{".gitignore": "out\n"})
        around = repository.around
        with DetachedWorktree(Git(repository.root, around), commit, around) as worktree:
            seen = (worktree.dirty(), worktree.dirty(ignored=True), worktree.head_moved())
            assert seen == (False, False, False)
            (worktree.path / "out").write_text("")
            assert (worktree.dirty(), worktree.dirty(ignored=True)) == (False, True)
            (worktree.path / "new").write_text("")
            assert worktree.dirty()
        with pytest.raises(ValueError, match="no worktree"):
            worktree.dirty()

    def test_a_link_in_its_place_is_not_followed(self, repository: PlainRepository) -> None:
        """C41: another worktree of the same checkout outlives whoever pointed ours at it."""
        commit = repository.commit(value="v")
        around = repository.around
        other = repository.base / "other"
        repository.git("worktree", "add", "-q", "--detach", str(other))
        (other / "unsaved").write_text("work of days")
        with DetachedWorktree(Git(repository.root, around), commit, around) as worktree:
            shutil.rmtree(worktree.path)
            worktree.path.symlink_to(other)
        assert (other / "unsaved").read_text() == "work of days"
        assert worktrees(repository) == [str(other)]

    def test_what_a_killed_runner_left_is_found(self, repository: PlainRepository) -> None:
        """C41 F10: its own worktrees whose folder is gone, and no others."""
        repository.commit(value="v")
        ours, living, locked, theirs = (
            repository.base / name
            for name in (
                "skill-effectiveness-0123456789abcdef",
                "skill-effectiveness-0000000000000000",
                "skill-effectiveness-1111111111111111",
                "mine",
            )
        )
        for place in (ours, living, locked, theirs):
            repository.git("worktree", "add", "-q", "--detach", str(place))
        repository.git("worktree", "lock", str(locked))
        for place in (ours, locked, theirs):
            shutil.rmtree(place)
        sweep_worktrees(Git(repository.root, repository.around), repository.around)
        assert {Path(path).name for path in worktrees(repository)} == {living.name, locked.name, theirs.name}


class TestPlaced:
    def test_made_seen_and_removed(self, repository: PlainRepository) -> None:
        commit = repository.commit(value="v", **{".gitignore": "out\n"})
        worktree = placed(repository, commit)
        assert not worktree.made
        worktree.make()
        assert worktree.made
        assert worktrees(repository) == [str(worktree.path)]
        assert (worktree.dirty(), worktree.head_moved()) == (False, False)
        (worktree.path / "out").write_text("")
        assert (worktree.dirty(), worktree.dirty(ignored=True)) == (False, True)
        (worktree.path / "value").write_text("w")
        assert worktree.dirty()
        assert worktree.remove()
        assert not worktree.path.exists()
        assert not worktree.made
        assert not (repository.root / ".git" / "worktrees").exists()
        assert worktree.remove(), "nothing is left the second time either"

    def test_of_a_checkout_that_shows_a_part(self, repository: PlainRepository) -> None:
        """C42: a worktree holds the commit, not what somebody has on disk of it."""
        commit = repository.commit(**{"kept/file": "1", "left/out": "2"})
        repository.git("sparse-checkout", "set", "kept")
        worktree = placed(repository, commit)
        worktree.make()
        assert (worktree.path / "left" / "out").read_text() == "2"
        assert (worktree.dirty(), worktree.head_moved()) == (False, False)
        assert not (repository.root / "left").exists()

    @pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
    def test_what_git_was_told_not_to_look_at(self, repository: PlainRepository, flag: str) -> None:
        """C28: nobody knows what is in it."""
        commit = repository.commit(value="v", **{"näme\n": "w"})
        worktree = placed(repository, commit)
        worktree.make()
        assert not worktree.dirty()
        repository.git("-C", str(worktree.path), "update-index", flag, "value")
        assert worktree.dirty()

    def test_a_moved_head(self, repository: PlainRepository) -> None:
        commit = repository.commit(value="v")
        other = repository.commit(value="w")
        worktree = placed(repository, commit)
        worktree.make()
        repository.git("-C", str(worktree.path), "checkout", "-q", "--detach", other)
        assert (worktree.dirty(), worktree.head_moved()) == (False, True)
        assert worktree.remove()

    def test_it_outlives_whoever_made_it(self, repository: PlainRepository) -> None:
        """A second object of the same arguments finds it, through a linked parent too."""
        commit = repository.commit(value="v")
        placed(repository, commit).make()
        (repository.base / "linked").symlink_to(repository.base)
        again = placed(repository, commit, "linked/chosen")
        assert again.made
        assert not again.dirty()
        assert again.remove()
        assert worktrees(repository) == []

    def test_one_that_git_was_told_to_keep_relative(self, repository: PlainRepository) -> None:
        """The setting of newer versions does not hide it."""
        commit = repository.commit(value="v")
        repository.git("config", "worktree.useRelativePaths", "true")
        worktree = placed(repository, commit)
        worktree.make()
        assert placed(repository, commit).remove()

    @pytest.mark.parametrize("kind", ["file", "folder", "link"])
    def test_a_taken_place_is_left_alone(self, repository: PlainRepository, kind: str) -> None:
        commit = repository.commit(value="v")
        place = repository.base / "chosen"
        if kind == "file":
            place.write_text("theirs")
        elif kind == "folder":
            place.mkdir()
        else:
            place.symlink_to(repository.base / "nowhere")
        worktree = placed(repository, commit)
        with pytest.raises(WorktreeError, match="already"):
            worktree.make()
        assert not worktree.remove(), "what is there is not ours, so nobody can be certain"
        assert place.is_symlink() or place.exists()
        assert worktrees(repository) == []

    def test_one_that_cannot_be_made(self, repository: PlainRepository) -> None:
        """Nothing new stays, neither in the checkout nor at the place."""
        repository.commit(value="v")
        worktree = placed(repository, "0" * 40)
        with pytest.raises(WorktreeError, match="git could not check it out"):
            worktree.make()
        assert not worktree.path.exists()
        assert worktrees(repository) == []

    def test_outside_a_checkout(self, repository: PlainRepository) -> None:
        around = repository.around
        worktree = PlacedWorktree(Git(repository.base, around), repository.base / "x", "0" * 40, around)
        with pytest.raises(WorktreeError):
            worktree.make()

    def test_a_replaced_git_file(self, repository: PlainRepository) -> None:
        """Questions go to what git keeps, whatever the file in the worktree says."""
        commit = repository.commit(value="v")
        worktree = placed(repository, commit)
        worktree.make()
        (worktree.path / "value").write_text("changed")
        (worktree.path / ".git").write_text("gitdir: /nowhere\n")
        assert (worktree.dirty(), worktree.head_moved()) == (True, False)
        assert worktree.remove()
        assert worktrees(repository) == []

    def test_a_link_to_another_worktree(self, repository: PlainRepository) -> None:
        """The link goes, what it leads to stays."""
        commit = repository.commit(value="v")
        other = repository.base / "other"
        repository.git("worktree", "add", "-q", "--detach", str(other))
        worktree = placed(repository, commit)
        worktree.make()
        shutil.rmtree(worktree.path)
        worktree.path.symlink_to(other)
        assert worktree.remove()
        assert (other / "value").read_text() == "v"
        assert worktrees(repository) == [str(other)]

    @pytest.mark.parametrize("where", ["value", "HEAD"])
    def test_what_cannot_be_removed_is_not_certain(self, repository: PlainRepository, where: str) -> None:
        """A file of the worktree, or of what git keeps of it."""
        commit = repository.commit(value="v")
        placed(repository, commit).make()
        fault = Injection("unlink", errno.EBUSY, about=lambda path: path.endswith(f"/{where}"))
        faulty = replace(repository.around, fs=FaultFs(repository.around.fs, fault))
        worktree = placed(repository, commit, around=faulty)
        assert not worktree.remove()
        assert worktree.made
        assert worktree.remove(), "once nothing is in the way"

    def test_nothing_of_the_repository_is_run(self, repository: PlainRepository) -> None:
        """L83: a hook that git would run after a checkout does not run."""
        commit = repository.commit(value="v")
        hook = repository.root / ".git" / "hooks" / "post-checkout"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {repository.base}/ran\n")
        hook.chmod(0o755)
        worktree = placed(repository, commit)
        worktree.make()
        assert worktree.remove()
        assert not (repository.base / "ran").exists()


class TestTheTop:
    def test_of_checkouts(self, repository: PlainRepository) -> None:
        """C1: the folder itself, a linked worktree; nothing inside, outside or without files."""
        commit = repository.commit(**{"below/file": "v"})
        worktree = placed(repository, commit)
        worktree.make()
        repository.git("init", "-q", "--bare", str(repository.base / "bare"))
        (repository.root / "below" / ".git").mkdir()
        tops = {
            folder.name: Git(folder, repository.around).is_top()
            for folder in (
                repository.root,
                worktree.path,
                repository.root / "below",
                repository.root / ".git",
                repository.base,
                repository.base / "bare",
            )
        }
        assert tops == {
            "repository": True,
            "chosen": True,
            "below": False,
            ".git": False,
            repository.base.name: False,
            "bare": False,
        }
