"""What a run writes down, and what can be told of it from outside."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.loop.config import read_config
from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.acceptance.loop.events import EVENT_TYPES
from skill_effectiveness.acceptance.loop.inspection import BrokenLineError, Runs
from skill_effectiveness.acceptance.loop.repository import repository_at
from skill_effectiveness.acceptance.loop.runner import OpenRun, run_jobs
from skill_effectiveness.acceptance.loop.words import Outcome, RunState
from skill_effectiveness.evidence.canonical import digest_bytes
from skill_effectiveness.evidence.fsdoubles import FaultFs, Injection
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.execution.worktree import PlacedWorktree

if TYPE_CHECKING:
    from pathlib import Path

    from skill_effectiveness.acceptance.loop.summary import RunSummary
    from tests.support.loops import LoopRepository

WRITE = "pathlib.Path('value').write_text(str(call))\n"


def runs_of(repository: LoopRepository) -> Runs:
    return Runs(repository_at(repository.root, repository.around), repository.around)


def log_of(repository: LoopRepository, run: str) -> Path:
    return repository.runs / run / "events.ndjson"


class TestLogs:
    def test_rows_are_chained_and_private(self, repository: LoopRepository) -> None:
        """L62 L70: one object a line, 0600, each with the digest of the line before."""
        summary = repository.run(repository.job(WRITE, "verdict()\n", checks=["true"]))
        place = log_of(repository, str(summary.run))
        assert place.stat().st_mode & 0o777 == 0o600
        assert (place.parent / "run-summary.json").stat().st_mode & 0o777 == 0o600
        lines = place.read_bytes().splitlines()
        prev = "sha256:" + "0" * 64
        for number, line in enumerate(lines):
            event = json.loads(line)
            assert (event["seq"], event["prev"], event["run"]) == (number, prev, summary.run)
            assert {"ts", "type", "job", "attempt"} <= set(event)
            prev = digest_bytes(line)
        assert {json.loads(line)["type"] for line in lines} == EVENT_TYPES - {"cleanup"}
        assert [json.loads(line)["type"] for line in lines] == repository.types()

    def test_events_are_there_while_it_runs(self, repository: LoopRepository) -> None:
        """L62: an agent can read what was written before it."""
        pattern = f"{repository.runs}/*/events.ndjson"
        worker = WRITE + f"import glob\n(base / 'seen').write_text(open(glob.glob({pattern!r})[0]).read())\n"
        repository.run(repository.job(worker, checks=["true"]))
        seen = [json.loads(line)["type"] for line in (repository.base / "seen").read_text().splitlines()]
        assert seen == ["run_started", "job_started", "block_started", "block_started", "worker_started"]

    def test_bodies(self, repository: LoopRepository) -> None:
        """L20 L21: kept in a verbose log only; sizes and digests always."""
        worker = WRITE + "print('OUTPUT-OF-WORKER')\nprint('ERROR-OF-WORKER', file=sys.stderr)\n"
        review = "verdict(feedback='FEEDBACK-OF-REVIEWER')\n"
        checks = [["sh", "-c", "printf 'OUTPUT-OF-%s' CHECK"]]
        bodies = (
            "OUTPUT-OF-WORKER",
            "ERROR-OF-WORKER",
            "FEEDBACK-OF-REVIEWER",
            "OUTPUT-OF-CHECK",
            "## Task",
            "+1",
        )
        for verbose in (False, True):
            job = repository.job(worker, review, checks=checks, verbose=verbose, name=f"v{verbose:d}")
            summary = repository.run(job)
            assert summary.exit == 0
            log = log_of(repository, str(summary.run)).read_text()
            assert [body in log for body in bodies] == [verbose] * len(bodies)
        exited = repository.of("worker_exited")[0]
        assert exited["stdout_digest"] == digest_bytes(b"OUTPUT-OF-WORKER\n")
        assert exited["stderr_digest"] == digest_bytes(b"ERROR-OF-WORKER\n")
        assert repository.of("verdict")[0]["feedback_bytes"] == 20
        check = repository.of("check_result")[0]
        assert (check["output_digest"], check["output_bytes"]) == (digest_bytes(b"OUTPUT-OF-CHECK"), 15)
        started = repository.of("worker_started")[0]
        assert started["argv"][-1] == started["prompt_digest"] == digest_bytes(started["prompt"].encode())

    def test_the_summary(self, repository: LoopRepository) -> None:
        """L85: the same object as is answered."""
        summary = repository.run(repository.job(WRITE, checks=["true"]))
        stored = (repository.runs / str(summary.run) / "run-summary.json").read_bytes()
        assert stored == summary.line()

    @pytest.mark.parametrize("nth", [2, 9, 15])
    def test_a_full_disk(self, repository: LoopRepository, nth: int) -> None:
        """L62 L71 L85: aborted, without a summary; accepted content and the cleaning up stay."""
        before = repository.state()

        def about(path: str) -> bool:
            return path.endswith("/events.ndjson")

        full = FaultFs(
            repository.around.fs, *(Injection("write", 28, nth=n, about=about) for n in range(nth, 90))
        )
        around = replace(repository.around, fs=full)
        jobs = (repository.job(WRITE, checks=["true"]), repository.job(WRITE, checks=["true"], name="b"))
        summary = run_jobs(read_config(repository.config(*jobs)), around=around)
        assert (summary.outcome, summary.exit) == (Outcome.ABORTED, 4)
        assert summary.reason == "aborted: event not written"
        runs = runs_of(repository)
        (run,) = runs.ids()
        assert not (repository.runs / run / "run-summary.json").exists()
        assert len(runs.events(run)) == nth - 1
        assert repository.state() == before
        assert repository.run(repository.job(WRITE, checks=["true"], name="c")).exit == 0

    def test_room_again(self, repository: LoopRepository) -> None:
        """L62 L70 L71: what comes after an event that was lost is not written either."""

        def about(path: str) -> bool:
            return path.endswith("/events.ndjson")

        full = FaultFs(repository.around.fs, Injection("write", 28, nth=8, about=about))
        config = read_config(repository.config(repository.job(WRITE, checks=["true"])))
        summary = run_jobs(config, around=replace(repository.around, fs=full))
        assert (summary.outcome, summary.reason) == (Outcome.ABORTED, "aborted: event not written")
        assert len(runs_of(repository).events(runs_of(repository).chosen(None))) == 7


class TestInterrupts:
    def test_while_tidying(self, repository: LoopRepository, monkeypatch: pytest.MonkeyPatch) -> None:
        """L26 L71: the job is told as it ended and its worktree is gone; no further one begins."""
        remove = PlacedWorktree.remove

        def interrupted(worktree: PlacedWorktree) -> bool:
            signal.raise_signal(signal.SIGINT)
            return remove(worktree)

        monkeypatch.setattr(PlacedWorktree, "remove", interrupted)
        summary = repository.run(repository.job(WRITE, checks=["false"], maxAttempts=1))
        assert (summary.outcome, summary.reason) == (Outcome.ABORTED, "aborted: interrupted")
        assert summary.jobs[0].outcome is Outcome.EXHAUSTED
        assert repository.types()[-3:] == ["cleanup", "job_finished", "run_finished"]
        assert list(repository.temporary.iterdir()) == []

    @pytest.mark.parametrize("made", [True, False])
    def test_while_a_worktree_is_made(
        self, repository: LoopRepository, monkeypatch: pytest.MonkeyPatch, *, made: bool
    ) -> None:
        """L26 L71 L75: nothing of it stays, and the job is told as aborted."""
        make = PlacedWorktree.make

        def interrupted(worktree: PlacedWorktree) -> None:
            if made:
                make(worktree)
            raise KeyboardInterrupt

        monkeypatch.setattr(PlacedWorktree, "make", interrupted)
        summary = repository.run(repository.job(WRITE, checks=["false"]))
        assert (summary.outcome, summary.jobs[0].outcome) == (Outcome.ABORTED, Outcome.ABORTED)
        assert list(repository.temporary.iterdir()) == []
        assert "closedloop-" not in repository.git("worktree", "list")

    def test_when_it_is_over(self, repository: LoopRepository, monkeypatch: pytest.MonkeyPatch) -> None:
        """L71 L85: too late to change what became of the run."""
        finished = OpenRun.finished

        def interrupted(opened: OpenRun, outcome: Outcome, reason: str) -> RunSummary:
            signal.raise_signal(signal.SIGINT)
            return finished(opened, outcome, reason)

        monkeypatch.setattr(OpenRun, "finished", interrupted)
        assert repository.run(repository.job(WRITE, checks=["true"])).outcome is Outcome.PASSED
        assert repository.types().count("run_finished") == 1

    @pytest.mark.parametrize("kind", [KeyboardInterrupt, Terminated(signal.SIGTERM)])
    def test_in_the_middle(self, repository: LoopRepository, kind: BaseException) -> None:
        """L71 L75: aborted, log closed, worktree gone."""
        before = repository.state()

        def interrupt(event: dict[str, Any]) -> None:
            repository.seen.append(event)
            if event["type"] == "worker_exited":
                raise kind

        config = read_config(repository.config(repository.job(WRITE, checks=["true"])))
        summary = run_jobs(config, around=repository.around, observer=interrupt)
        assert (summary.outcome, summary.exit, summary.reason) == (Outcome.ABORTED, 4, "aborted: interrupted")
        assert repository.types()[-2:] == ["job_finished", "run_finished"]
        assert list(repository.temporary.iterdir()) == []
        assert runs_of(repository).status(str(summary.run)).outcome == "aborted"
        assert repository.state() == before


class TestInspecting:
    def test_states(self, repository: LoopRepository) -> None:
        """L64 L66 L68: running while it goes on, finished afterwards; the newest without an id."""
        seen: list[RunState] = []
        runs = runs_of(repository)
        assert runs.ids() == ()
        with pytest.raises(LoopRefusedError, match=r"^no run"):
            runs.chosen(None)
        config = read_config(repository.config(repository.job(WRITE, checks=["true"])))
        summary = run_jobs(
            config,
            around=repository.around,
            observer=lambda event: seen.append(runs.status(event["run"]).state),
        )
        assert set(seen[:-1]) == {RunState.RUNNING}
        assert seen[-1] is RunState.FINISHED
        again = repository.run(repository.job(WRITE, checks=["false"], maxAttempts=1))
        assert runs.ids() == (summary.run, again.run)
        assert runs.chosen(None) == again.run
        with pytest.raises(LoopRefusedError, match=r"^no run 12$"):
            runs.chosen("12")
        status = runs.status(runs.chosen(None))
        assert (status.state, status.outcome, status.exit, status.attempts) == (
            RunState.FINISHED,
            "exhausted",
            2,
            1,
        )
        assert status.last_attempt is not None
        assert (status.last_attempt.job, status.last_attempt.reason) == ("job", "not_passed")

    def test_a_torn_line(self, repository: LoopRepository) -> None:
        """L69: left out, and the file is not changed."""
        run = str(repository.run(repository.job(WRITE, checks=["true"])).run)
        place = log_of(repository, run)
        whole = place.read_bytes()
        place.write_bytes(whole + b'{"attempt":')
        runs = runs_of(repository)
        assert runs.status(run).state is RunState.FINISHED
        with runs.followed(run) as follower:
            assert b"".join(stored for stored, _ in follower.lines()) == whole
        assert place.read_bytes() == whole + b'{"attempt":'

    @pytest.mark.parametrize("change", ["edited", "removed", "cut", "swapped", "unknown"])
    def test_another_line(self, repository: LoopRepository, change: str) -> None:
        """L69 L70: edited, removed, cut off, moved or made up: an error with its number."""
        run = str(repository.run(repository.job(WRITE, checks=["true"])).run)
        place = log_of(repository, run)
        lines = place.read_bytes().splitlines(keepends=True)
        changed = {
            "edited": [*lines[:3], lines[3].replace(b'"attempt":1', b'"attempt":2'), *lines[4:]],
            "removed": [*lines[:3], *lines[4:]],
            "cut": lines[:3],
            "swapped": [*lines[:3], lines[4], lines[3], *lines[5:]],
            "unknown": [*lines[:3], b"garbage\n", *lines[4:]],
        }[change]
        data = b"".join(changed)
        place.write_bytes(data)
        with pytest.raises(BrokenLineError) as caught:
            runs_of(repository).status(run)
        assert str(caught.value) == "events line 4 is broken"
        assert place.read_bytes() == data


@pytest.mark.slow
class TestKills:
    def test_at_every_event(self, repository: LoopRepository) -> None:
        """L74 L67 L85: a readable log, state crashed, no summary; and the next run simply begins."""
        before = repository.state()
        config = read_config(repository.config(repository.job(WRITE, "verdict()\n", checks=["true"])))
        run_jobs(config, around=repository.around, observer=repository.seen.append)
        count = len(repository.seen)
        runs = runs_of(repository)
        for number in range(1, count):
            known = set(runs.ids())
            child = os.fork()
            if child == 0:
                left = iter(range(1, number))

                def die(_event: dict[str, Any], left: Any = left) -> None:  # noqa: ANN401 - an iterator
                    if next(left, None) is None:
                        os.kill(os.getpid(), signal.SIGKILL)

                around = replace(repository.around, pid=os.getpid())
                run_jobs(config, around=around, observer=die)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.WTERMSIG(status) == signal.SIGKILL
            (run,) = set(runs.ids()) - known
            told = runs.status(run)
            assert told.state is RunState.CRASHED
            assert len(runs.events(run)) == number
            assert not (repository.runs / run / "run-summary.json").exists()
            assert repository.state() == before
            if told.last_attempt is not None:
                assert told.worktrees, "the kept worktree is named"
        assert run_jobs(config, around=repository.around).exit == 0
