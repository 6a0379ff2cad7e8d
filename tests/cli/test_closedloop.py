"""The command line of the loop: words, exit codes, both streams."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from skill_effectiveness.cli import closedloop, door
from skill_effectiveness.cli.closedloop_progress import progress_line
from skill_effectiveness.cli.main import main as whole
from tests.support.commands import Said, no_traceback
from tests.support.loops import LoopRepository, bare_process
from tests.support.private import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Command = Callable[..., Said]

WRITE = "pathlib.Path('value').write_text(str(call))\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopRepository]:
    """A repository as the working folder of commands run in this process."""
    made = LoopRepository(tmp_path / "loop")
    for name, value in made.variables().items():
        monkeypatch.setenv(name, value)
    for module in ("execution.git", "acceptance.loop.processes"):
        monkeypatch.setattr(f"skill_effectiveness.{module}.run_process", bare_process)
    monkeypatch.chdir(made.root)
    door.surroundings.cache_clear()
    yield made
    door.surroundings.cache_clear()


@pytest.fixture
def command(repository: LoopRepository, capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    del repository

    def carry_out(*words: object) -> Said:
        capsysbinary.readouterr()
        code = closedloop.main([str(word) for word in words])
        out, err = capsysbinary.readouterr()
        said = Said(int(code), out.decode(), err.decode())
        assert no_traceback(said)
        return said

    return carry_out


def written(repository: LoopRepository, *jobs: dict[str, Any]) -> Path:
    place = repository.base / "loop.json"
    place.write_bytes(repository.config(*jobs))
    return place


class TestRuns:
    def test_progress(self, repository: LoopRepository, command: Command) -> None:
        """L65: to stderr, as a run goes on; nothing on stdout."""
        config = written(
            repository, repository.job(WRITE, "verdict('fail' if call == 1 else 'pass')\n", checks=["true"])
        )
        said = command(config)
        assert (said.code, said.out) == (0, "")
        lines = [line.split(" exit=")[0] for line in said.err.splitlines()]
        run = lines[0].split()[1]
        assert lines[0] == f"run {run} started · follow with: closedloop watch {run}"
        assert lines[1:11] == [
            "[1] worker_started", "[1] worker_exited", "[1] check_result true", "[1] reviewer_exited",
            "[1] verdict fail",
            "[2] worker_started", "[2] worker_exited", "[2] check_result true", "[2] reviewer_exited",
            "[2] verdict pass",
        ]  # fmt: skip
        assert lines[11].startswith("run finished: passed (2 attempts, ")
        assert f"git merge refs/closedloop/{run}/job" in said.err

    def test_quiet(self, repository: LoopRepository, command: Command) -> None:
        """L65: neither progress nor hint; what is left is told all the same."""
        config = written(repository, repository.job(WRITE, checks=["false"], maxAttempts=1))
        said = command("--quiet", "--keep", config)
        assert (said.code, said.out) == (2, "")
        assert "started" not in said.err
        assert "kept in " in said.err
        assert "remove it with: git worktree remove --force " in said.err
        assert "to see why: " in said.err

    def test_how_to_go_on(self, repository: LoopRepository, command: Command) -> None:
        """L25 L27: one merge for all jobs, and none where the working tree has the edits already."""
        jobs = [repository.job(WRITE, checks=["true"], name=name) for name in ("a", "b")]
        said = command("--quiet", written(repository, *jobs))
        (merge,) = [line for line in said.err.splitlines() if "git merge" in line]
        assert merge.endswith("/b")
        repository.git(*merge.partition("git ")[2].split())
        assert (repository.root / "value").read_text() == "1"
        lone = repository.job("pathlib.Path('value').write_text('2')\n", checks=["true"], isolate=False)
        said = command("--quiet", written(repository, lone))
        assert "its edits are in your working tree, uncommitted" in said.err
        assert "git merge" not in said.err

    def test_json(self, repository: LoopRepository, command: Command) -> None:
        """L21a L21b L85: one object on stdout, equal to the stored one and valid by the published schema."""
        schema = json.loads((REPOSITORY / "schemas" / "closedloop" / "run-summary.schema.json").read_bytes())
        config = written(repository, repository.job(WRITE, checks=["true"]))
        Draft202012Validator(
            json.loads((REPOSITORY / "schemas" / "closedloop" / "config.schema.json").read_bytes())
        ).validate(json.loads(config.read_bytes()))
        for words, code in ((("--json", config), 0), (("--json", "--keep", "--quiet", config), 0)):
            said = command(*words)
            assert said.code == code
            Draft202012Validator(schema).validate(said.document)
            assert said.document["outcome"] == "passed"
            stored = repository.runs / said.document["run"] / "run-summary.json"
            assert stored.read_text() == said.out
        bad = command("--json", repository.base / "none.json")
        assert (bad.code, bad.document["outcome"], bad.document["exit"], bad.document["run"]) == (
            5,
            "invalid",
            5,
            None,
        )

    @pytest.mark.parametrize(
        ("worker", "keys", "code"),
        [
            (WRITE, {"checks": ["true"]}, 0),
            (WRITE, {"checks": ["false"], "maxAttempts": 2}, 2),
            ("", {"checks": ["false"]}, 3),
            (WRITE, {"checks": ["no-such-check"]}, 4),
        ],
    )
    def test_exit_codes(
        self, repository: LoopRepository, command: Command, worker: str, keys: dict[str, Any], code: int
    ) -> None:
        """L71: one for each outcome."""
        assert command(written(repository, repository.job(worker, **keys))).code == code

    def test_refusals(self, repository: LoopRepository, command: Command) -> None:
        """L2 L6 L71: 5 and one sentence; nothing runs and nothing is made."""
        good = written(repository, repository.job(WRITE, checks=["true"]))
        bad = repository.base / "bad.json"
        bad.write_text("{}")
        for words, told in (
            ((bad,), "config: /repo "),
            ((repository.base / "none.json",), "config: the file cannot be read (missing)"),
            ((good, good), "closedloop: "),
            (("--nonsense", good), "closedloop: "),
            (("status", "--nonsense"), "closedloop: "),
            (("status", "20260101t000000000-abcdef"), "no run 20260101t000000000-abcdef"),
            (("watch",), "no run yet"),
        ):
            said = command(*words)
            assert (said.code, said.out) == (5, ""), words
            assert said.err.startswith(told), said
            assert said.err.count("\n") == 1
        repository.write("value", "dirty")
        said = command(good)
        assert said == Said(5, "", "git working tree is dirty; commit or stash changes first\n")
        assert not repository.runs.exists()

    def test_something_unforeseen(
        self, repository: LoopRepository, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """L71: 1, which is no outcome."""

        def broken(*_arguments: object, **_others: object) -> None:
            raise RuntimeError("x")

        monkeypatch.setattr(closedloop, "run_jobs", broken)
        said = command(written(repository, repository.job(WRITE, checks=["true"])))
        assert (said.code, said.out) == (1, "")

    def test_help(self, command: Command) -> None:
        """L21a: what it takes."""
        said = command("--help")
        assert said.code == 0
        assert "[--json] [--keep] [--quiet] CONFIG" in " ".join(said.out.split())

    def test_behind_the_whole_program(self, repository: LoopRepository) -> None:
        """L71: its exit codes are its own there too."""
        assert whole(["closedloop", str(repository.base / "none.json")]) == 5
        assert whole(["closedloop", "runs"]) == 0


class TestInspecting:
    def test_all_three(self, repository: LoopRepository, command: Command) -> None:
        """L64 L66 L68: runs, status and watch of a finished run; stored bytes come out as they are."""
        assert command("runs") == Said(0, "", "")
        command(written(repository, repository.job(WRITE, checks=["false"], maxAttempts=1)))
        (run,) = (path.name for path in repository.runs.iterdir())
        assert command("runs").out == f"{run} finished exhausted (1 attempts)\n"
        said = command("status")
        assert (said.code, said.values["state"], said.values["outcome"], said.values["exit"]) == (
            0,
            "finished",
            "exhausted",
            "2",
        )
        document = command("status", run, "--json").document
        assert (document["run"], document["last_attempt"]["reason"]) == (run, "not_passed")
        log = (repository.runs / run / "events.ndjson").read_text()
        assert command("watch", "--json").out == log
        assert command("watch", run).out.splitlines()[-1].startswith("run finished: exhausted")
        assert command("status", "--repo", repository.root).code == 0

    def test_a_broken_line(self, repository: LoopRepository, command: Command) -> None:
        """L69 L70: 5 and its number; other runs are still listed."""
        command(written(repository, repository.job(WRITE, checks=["true"])))
        (run,) = (path.name for path in repository.runs.iterdir())
        place = repository.runs / run / "events.ndjson"
        place.write_bytes(place.read_bytes().replace(b'"worker"', b'"docker"', 1))
        said = command("status")
        assert said.code == 5
        assert said.err.startswith("events line ")
        assert command("watch", "--json").out == ""
        assert command("runs").out.startswith(f"{run} broken: events line ")


def test_lines_of_other_events() -> None:
    """L65: the listed events have a line, and no other."""
    assert progress_line({"type": "cleanup", "attempt": None}) is None
    exited = {
        "type": "worker_exited",
        "attempt": 2,
        "exit": None,
        "timed_out": True,
        "signal": None,
        "seconds": 1.25,
    }
    assert progress_line(exited) == "[2] worker_exited exit=timeout 1.2s"
    assert progress_line(exited | {"timed_out": False, "signal": 9}) == "[2] worker_exited exit=signal:9 1.2s"
    check = {"type": "check_result", "attempt": 1, "argv": ["a b", "c"], "exit": 0, "seconds": 0.0}
    assert progress_line(check) == "[1] check_result 'a b' c exit=0 0.0s"


@pytest.mark.slow
class TestProcesses:
    def started(self, repository: LoopRepository, *words: object, **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401 - as Popen takes
        return subprocess.Popen(  # noqa: S603 - words of the test
            [sys.executable, str(REPOSITORY / "run.py"), "closedloop", *map(str, words)],
            cwd=repository.root, env=repository.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            **options,
        )  # fmt: skip

    def waiting(self, repository: LoopRepository) -> Path:
        marker = repository.base / "working"
        worker = WRITE + f"pathlib.Path({str(marker)!r}).touch()\ntime.sleep(60)\n"
        return written(repository, repository.job(worker, checks=["true"]))

    def until(self, place: Path) -> None:
        for _ in range(600):
            if place.exists():
                return
            time.sleep(0.05)
        raise AssertionError(f"{place} never came")

    def test_an_interrupt(self, repository: LoopRepository) -> None:
        """L61 L64 L71 L75: 4, the group killed, the log closed, the worktree gone, and a watcher heard it."""
        before = repository.state()
        process = self.started(repository, "--json", self.waiting(repository))
        self.until(repository.base / "working")
        watching = self.started(repository, "watch", "--json")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 4, err
        assert b"aborted: interrupted" in err
        document = json.loads(out)
        assert document["outcome"] == "aborted"
        seen, told = watching.communicate(timeout=60)
        assert watching.returncode == 0, told
        assert seen == (repository.runs / document["run"] / "events.ndjson").read_bytes()
        assert list(repository.temporary.iterdir()) == []
        assert repository.state() == before

    def test_a_killed_parent(self, repository: LoopRepository) -> None:
        """L66 L67 L74: crashed; what the agent would have done later is not done."""
        process = self.started(repository, self.waiting(repository))
        self.until(repository.base / "working")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        status = self.started(repository, "status", "--json")
        out, err = status.communicate(timeout=60)
        assert status.returncode == 0, err
        document = json.loads(out)
        assert (document["state"], document["outcome"]) == ("crashed", None)
        assert len(document["worktrees"]) == 1
