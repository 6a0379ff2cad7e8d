"""Repositories that are not as most are."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.loop.config import read_config
from skill_effectiveness.acceptance.loop.runner import run_jobs

if TYPE_CHECKING:
    from tests.support.loops import LoopRepository

WRITE = "pathlib.Path('value').write_text(str(call))\n"


class TestWorkingTrees:
    @pytest.mark.parametrize(
        "words", [("update-index", "--assume-unchanged", "value"), ("sparse-checkout", "set")]
    )
    def test_what_the_status_does_not_show(self, repository: LoopRepository, words: tuple[str, ...]) -> None:
        """L78: a working tree that git was told to overlook is told as such; no agent ran in it."""
        repository.commit(**{"folder/file": "x"})
        repository.git(*words)
        if words[0] == "update-index":
            repository.write("value", "hidden")
        summary = repository.run(repository.job(WRITE, checks=["true"], isolate=False))
        assert summary.exit == 4
        assert "git status does not show" in summary.reason
        assert "its edits" not in summary.reason
        assert repository.run(repository.job(WRITE, checks=["true"])).exit == 0

    def test_a_git_folder_elsewhere(self, repository: LoopRepository) -> None:
        """L4 L80: `.git` may be a link to a folder of another name, which changes all the time."""
        (repository.root / ".git").rename(repository.base / "elsewhere")
        (repository.root / ".git").symlink_to(repository.base / "elsewhere")
        assert repository.run(repository.job(WRITE, checks=["true"])).exit == 0

    def test_ids_of_64_digits(self, repository: LoopRepository) -> None:
        """L4 L27: a repository of SHA-256 ids."""
        top = repository.base / "long"
        for words in (
            ["init", "-q", "--object-format=sha256", str(top)],
            ["-C", str(top), "commit", "-q", "--allow-empty", "-m", "x"],
        ):
            subprocess.run(["git", *words], check=True, env=repository.variables())  # noqa: S603, S607 - fixed
        job = repository.job(WRITE, checks=["test -f value"])
        data = json.dumps({"repo": str(top), "jobs": [job]}).encode()
        assert run_jobs(read_config(data), around=repository.around).exit == 0
