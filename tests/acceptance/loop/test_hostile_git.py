"""Workers that would have git lead us elsewhere: to programs of theirs, to configuration of theirs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.loop.config import read_config
from skill_effectiveness.acceptance.loop.runner import run_jobs
from skill_effectiveness.acceptance.loop.words import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.summary import RunSummary
    from tests.support.loops import LoopRepository

WRITE = "pathlib.Path('value').write_text(str(call))\n"
COMMON = (
    "words = ['git', 'rev-parse', '--path-format=absolute', '--git-common-dir', '--absolute-git-dir']\n"
    "common, own = map(pathlib.Path, subprocess.check_output(words, text=True).splitlines())\n"
)
ATTRIBUTES = "pathlib.Path('.gitattributes').write_text('* filter=evil')\n"


def evil(repository: LoopRepository) -> str:
    """A configuration with a filter that leaves a mark beside the repository."""
    program = f"touch {repository.base / 'ran'}; cat"
    return f'[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n'


def demand_refused(repository: LoopRepository, worker: str) -> None:
    """The worker's filter did not run, and its attempts did not pass."""
    summary = repository.run(repository.job(_hidden(worker), checks=["true"], maxAttempts=1))
    assert not (repository.base / "ran").exists()
    assert summary.outcome is Outcome.EXHAUSTED, summary
    assert [event["reason"] for event in repository.of("attempt_finished")] == ["protected_path_changed"]


class TestConfigurationElsewhere:
    def test_another_common_folder(self, repository: LoopRepository) -> None:
        """L80 L83: git's note of where the common folder is leads to no other."""
        worker = (
            "import shutil\nelse_ = base / 'else'\nshutil.copytree(common, else_, symlinks=True)\n"
            f"(else_ / 'config').write_text((common / 'config').read_text() + {evil(repository)!r})\n"
            "(own / 'commondir').write_text(str(else_))\n"
        )
        demand_refused(repository, worker)

    def test_a_git_folder_that_is_a_link(self, repository: LoopRepository) -> None:
        """L80 L83: nor does another folder in the place of the worktree's own."""
        worker = (
            "import shutil\nelse_ = base / 'else'\nshutil.copytree(common, else_, symlinks=True)\n"
            f"(else_ / 'config').write_text((common / 'config').read_text() + {evil(repository)!r})\n"
            "shutil.rmtree(own)\nown.symlink_to(else_ / 'worktrees' / own.name)\n"
        )
        demand_refused(repository, worker)

    @pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"])
    def test_a_file_that_a_variable_names(self, repository: LoopRepository, variable: str) -> None:
        """L80 L83: also one that was not there before."""
        place = repository.base / "xdg" / ("git/config" if variable.startswith("XDG") else "file")
        repository.environ["GIT_CONFIG_NOSYSTEM"] = "0"
        repository.environ[variable] = str(repository.base / "xdg" if variable.startswith("XDG") else place)
        worker = (
            f"place = pathlib.Path({str(place)!r})\nplace.parent.mkdir(parents=True)\n"
            f"place.write_text({evil(repository)!r})\n"
        )
        demand_refused(repository, worker)

    @pytest.mark.parametrize(
        ("key", "path"),
        [
            ("include.path", "{base}/more"),
            ("include.path", "../../more"),
            ("include.path", "~/more"),
            ("includeIf.onbranch:x.path", "{base}/more"),
        ],
    )
    def test_an_included_file_that_was_not_there(
        self, repository: LoopRepository, key: str, path: str
    ) -> None:
        """L80 L83: configuration may include files that do not exist."""
        repository.git("config", key, path.format(base=repository.base))
        place = "pathlib.Path(os.environ['HOME']) / 'more'" if path.startswith("~") else "base / 'more'"
        worker = (
            f"({place}).write_text({evil(repository)!r})\n"
            "subprocess.run(['git', 'symbolic-ref', 'HEAD', 'refs/heads/x'], check=True)\n"
        )
        demand_refused(repository, worker)

    def test_the_git_file_of_a_linked_worktree(self, repository: LoopRepository) -> None:
        """L80 L83: the working tree of the user may be a linked one, whose `.git` is a file."""
        linked = repository.base / "linked"
        repository.git("worktree", "add", "-q", "--detach", str(linked))
        worker = (
            "import shutil\nelse_ = base / 'else'\nshutil.copytree(common, else_, symlinks=True)\n"
            f"(else_ / 'config').write_text((common / 'config').read_text() + {evil(repository)!r})\n"
            f"(base / 'linked' / '.git').write_text(f'gitdir: {{else_}}/worktrees/linked\\n')\n"
        )
        summary = _run_in(repository, linked, repository.job(_hidden(worker), checks=["true"], maxAttempts=1))
        assert summary.outcome is Outcome.EXHAUSTED
        assert not (repository.base / "ran").exists()


class TestMarks:
    def test_behind_a_link(self, repository: LoopRepository) -> None:
        """L80 L83: a configuration kept elsewhere, with a link to it at home."""
        real = repository.base / "dotfile"
        real.write_text("[user]\n\tname = n\n")
        (repository.home / ".gitconfig").symlink_to(real)
        demand_refused(repository, f"pathlib.Path({str(real)!r}).write_text({evil(repository)!r})\n")

    def test_names_that_cannot_stand_beside_each_other(self, repository: LoopRepository) -> None:
        """L80: a folder is protected whatever names are in it."""
        repository.commit(**{"tests/A": "1", "tests/a": "2"})
        worker = WRITE + "pathlib.Path('tests/A').write_text('evil')\n"
        job = repository.job(worker, checks=["true"], protectedPaths=["tests"], maxAttempts=1)
        assert repository.run(job).exit == 2

    def test_a_file_without_end(self, repository: LoopRepository) -> None:
        """L78 L80: two tebibytes that take no room are not read."""
        worker = WRITE + "os.mkdir('big')\nopen('big/x', 'wb').truncate(1 << 41)\n"
        worker += "pathlib.Path('.gitignore').write_text('big')\n"
        job = repository.job(worker, checks=["true"], protectedPaths=["big"], maxAttempts=1)
        assert repository.run(job).exit == 2

    def test_a_check_that_changes_an_ignored_protected_file(self, repository: LoopRepository) -> None:
        """L52 L80: code of the worker that runs in a check is no better than the worker."""
        repository.write("ignored", "x")
        job = repository.job(
            WRITE, checks=[["sh", "-c", "echo y > ignored"]], protectedPaths=["ignored"],
            isolate=False, cleanChecks=False, maxAttempts=1,
        )  # fmt: skip
        assert repository.run(job).exit == 2
        assert repository.of("attempt_finished")[0]["reason"] == "repository_changed"


class TestObjects:
    def test_an_object_that_is_not_what_its_id_says(self, repository: LoopRepository) -> None:
        """L27 L78: git does not write what it has, so what would be merged is not what was reviewed."""
        worker = (
            WRITE
            + COMMON
            + (
                "import hashlib, zlib\n"
                "name = hashlib.sha1(b'blob 5\\0good\\n').hexdigest()\n"
                "place = common / 'objects' / name[:2] / name[2:]\nplace.parent.mkdir(exist_ok=True)\n"
                "place.write_bytes(zlib.compress(b'blob 5\\0evil\\n'))\n"
                "pathlib.Path('value').write_bytes(b'good\\n')\n"
            )
        )
        summary = repository.run(repository.job(worker, "verdict()\n", maxAttempts=1))
        assert summary.outcome is Outcome.ABORTED
        assert "git fsck" in summary.reason
        assert repository.git("for-each-ref", "refs/closedloop") == ""


def _run_in(repository: LoopRepository, top: Path, job: dict[str, Any]) -> RunSummary:
    """Run one job in another working tree of the repository."""
    data = json.dumps({"repo": str(top), "jobs": [job]}).encode()
    return run_jobs(read_config(data), around=repository.around, observer=repository.seen.append)


def _hidden(worker: str) -> str:
    return WRITE + COMMON + ATTRIBUTES + worker
