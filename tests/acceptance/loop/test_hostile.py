"""Agents that set out to be believed, or to be called later than they should."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from skill_effectiveness.acceptance.loop.words import Outcome

if TYPE_CHECKING:
    from tests.support.loops import LoopRepository

WRITE = "pathlib.Path('value').write_text(str(call))\n"
COMMON = (
    "words = ['git', 'rev-parse', '--path-format=absolute', '--git-common-dir', '--absolute-git-dir']\n"
    "common, own = map(pathlib.Path, subprocess.check_output(words, text=True).splitlines())\n"
)
RUN = COMMON + "(running,) = (common / 'closedloop' / 'runs').iterdir()\n"
PASSING = '{"verdict": "pass"}'


class TestTheRunDirectory:
    def test_a_planted_step(self, repository: LoopRepository) -> None:
        """L38 L45 L54: a container made before its step began is never taken for an output."""
        plant = (
            WRITE + RUN + "os.umask(0o077)\n"
            "place = running / 'steps' / '2' / 'out'\nplace.mkdir(parents=True)\n"
            f"(place / 'verdict.json').write_text('{PASSING}')\n"
        )
        summary = repository.run(repository.job(plant, "", maxAttempts=1))
        assert summary.outcome is Outcome.ABORTED
        assert "the run directory was changed by someone else" in summary.reason

    def test_a_verdict_written_into_the_container(self, repository: LoopRepository) -> None:
        """L38 L45 L54: an agent writes into its mirror; what it writes behind it does not count."""
        review = (
            RUN + "os.umask(0o077)\n"
            f"(running / 'steps' / '2' / 'out' / 'verdict.json').write_text('{PASSING}')\n"
        )
        summary = repository.run(repository.job(WRITE, review, maxAttempts=1))
        assert summary.outcome is Outcome.ABORTED

    def test_forged_events(self, repository: LoopRepository) -> None:
        """L62 L70: a log that somebody else has written into ends the run."""
        forge = WRITE + RUN + "with (running / 'events.ndjson').open('a') as log:\n    log.write('{}\\n')\n"
        summary = repository.run(repository.job(forge, checks=["true"], maxAttempts=1))
        assert (summary.outcome, summary.reason) == (Outcome.ABORTED, "aborted: event not written")

    def test_a_ref_that_is_there_already(self, repository: LoopRepository) -> None:
        """L27: a private ref is made by the run or not at all."""
        ref = "f'refs/closedloop/{running.name}/job'"
        plant = WRITE + RUN + f"subprocess.run(['git', 'update-ref', {ref}, 'HEAD'], check=True)\n"
        summary = repository.run(repository.job(plant, checks=["true"], maxAttempts=1))
        assert summary.outcome is Outcome.ABORTED


class TestGit:
    @pytest.mark.parametrize("where", ["--local", "--global"])
    def test_a_filter(self, repository: LoopRepository, where: str) -> None:
        """L80 L82 L83: a program that a worker configured for git is not run by us."""
        repository.environ |= {"SECRET_TOKEN": "s"}
        ran = repository.base / "ran"
        worker = (
            WRITE + "pathlib.Path('.gitattributes').write_text('* filter=evil')\n"
            f"words = ['git', 'config', {where!r}, 'filter.evil.clean', 'env > {ran}; cat']\n"
            "subprocess.run(words, check=True)\n"
        )
        summary = repository.run(repository.job(worker, "verdict()\n", checks=["true"], maxAttempts=2))
        assert summary.outcome is Outcome.EXHAUSTED
        assert [event["reason"] for event in repository.of("attempt_finished")] == [
            "protected_path_changed"
        ] * 2
        assert not ran.exists()

    def test_a_filter_set_up_by_a_check(self, repository: LoopRepository) -> None:
        """L52 L80: code of the worker that runs in a check gets no further."""
        ran = repository.base / "ran"
        script = f"printf '* filter=evil' > .gitattributes; git config filter.evil.clean 'touch {ran}; cat'"
        job = repository.job(WRITE, checks=[["sh", "-c", script]], maxAttempts=1, cleanChecks=False)
        summary = repository.run(job)
        assert summary.outcome is Outcome.EXHAUSTED
        assert repository.of("attempt_finished")[0]["reason"] == "repository_changed"
        assert not ran.exists()

    def test_an_index_of_ours(self, repository: LoopRepository) -> None:
        """L58 L81: what is to be committed is not slipped in beside the working tree."""
        worker = (
            WRITE + "import glob\n"
            "for place in glob.glob(os.environ['TMPDIR'] + '/../../skill-effectiveness-*/data/index'):\n"
            "    words = ['git', 'hash-object', '-w', '--stdin']\n"
            "    blob = subprocess.check_output(words, input=b'evil').decode().strip()\n"
            "    entry = f'100644,{blob},value'\n"
            "    environ = os.environ | {'GIT_INDEX_FILE': place}\n"
            "    subprocess.run(['git', 'update-index', '--cacheinfo', entry], env=environ, check=True)\n"
            "    words = ['git', 'update-index', '--assume-unchanged', 'value']\n"
            "    subprocess.run(words, env=environ, check=True)\n"
            "    (base / 'found').touch()\n"
        )
        summary = repository.run(repository.job(worker, "verdict()\n", maxAttempts=1))
        assert (repository.base / "found").exists()
        assert summary.outcome is Outcome.ABORTED
        assert repository.git("for-each-ref", "refs/closedloop") == ""

    @pytest.mark.parametrize("name", ["HEAD", "index"])
    def test_a_pipe_in_the_place_of_a_file_of_git(self, repository: LoopRepository, name: str) -> None:
        """L78: nothing hangs; nobody can say what the repository is."""
        worker = WRITE + COMMON + f"(own / {name!r}).unlink()\nos.mkfifo(own / {name!r})\n"
        summary = repository.run(repository.job(worker, checks=["true"], maxAttempts=1))
        assert summary.outcome is Outcome.ABORTED

    def test_a_pipe_in_the_working_tree(self, repository: LoopRepository) -> None:
        """L78: git does not see it, so it is no content; nobody waits for it."""
        worker = WRITE + "os.mkfifo('pipe')\n"
        job = repository.job(worker, checks=["test ! -e pipe"], maxAttempts=1, protectedPaths=["other"])
        assert repository.run(job).exit == 0
        assert (
            repository.run(
                repository.job(worker, checks=["true"], maxAttempts=1, protectedPaths=["pipe"], name="b")
            ).exit
            == 2
        )

    @pytest.mark.usefixtures("supervised")
    def test_a_working_tree_that_is_gone(self, repository: LoopRepository) -> None:
        """L78 L75: aborted and tidied up."""
        before = repository.state()
        worker = "import shutil\nshutil.rmtree(os.getcwd())\n"
        summary = repository.run(repository.job(worker, checks=["true"], maxAttempts=1))
        assert summary.outcome is Outcome.ABORTED
        assert list(repository.temporary.iterdir()) == []
        assert repository.state() == before

    def test_a_link_to_the_tree_of_the_user(self, repository: LoopRepository) -> None:
        """L26 L75: cleaning up follows no link."""
        before = repository.state()
        worker = (
            "import shutil\nplace = os.getcwd()\nshutil.rmtree(place)\n"
            f"os.symlink({str(repository.root)!r}, place)\n"
        )
        summary = repository.run(repository.job(worker, checks=["false"], maxAttempts=1))
        assert summary.exit in {2, 4}
        assert repository.state() == before


@pytest.mark.slow
@pytest.mark.usefixtures("supervised")
class TestProcesses:
    def test_something_that_writes_later(self, repository: LoopRepository) -> None:
        """L61: a process that left its group and its session is gone when the step is over."""
        later = (
            "import time, pathlib, sys\ntime.sleep(2)\npathlib.Path(sys.argv[1], 'late').write_text('x')\n"
        )
        worker = (
            WRITE + "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
            f"        os.execv(sys.executable, [sys.executable, '-c', {later!r}, os.getcwd()])\n"
            "    os._exit(0)\n"
        )
        summary = repository.run(repository.job(worker, checks=["true"], maxAttempts=1))
        assert summary.exit == 0
        time.sleep(3)
        assert repository.git("ls-tree", "--name-only", str(summary.jobs[0].ref)) == ".gitignore\nvalue"
        assert not list(repository.temporary.rglob("late"))

    def test_its_own_supervisor_killed(self, repository: LoopRepository) -> None:
        """L78: nobody saw how it ended, so it is no failed attempt and no pass."""
        worker = WRITE + "os.kill(os.getppid(), 9)\ntime.sleep(30)\n"
        summary = repository.run(repository.job(worker, checks=["true"], maxAttempts=1))
        assert summary.outcome is Outcome.ABORTED
        assert "could not be observed" in summary.reason

    def test_output_without_end(self, repository: LoopRepository) -> None:
        """L72 L61: a hundred mebibytes on each stream, without a line feed, end nothing."""
        worker = (
            WRITE + "for _ in range(100):\n    os.write(1, b'x' * 1048576)\n    os.write(2, b'y' * 1048576)\n"
        )
        summary = repository.run(repository.job(worker, checks=["true"], maxAttempts=1))
        assert summary.exit == 0
