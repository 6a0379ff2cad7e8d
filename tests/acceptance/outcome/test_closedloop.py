"""What the events of a loop say about an attempt."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from skill_effectiveness.acceptance.outcome.closedloop import read_loop
from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.evidence.single_file import FileJournal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.outcomes import Bench

RUN = "20260304-050607-abc123"


def event(kind: str, job: str | None = None, **members: object) -> dict[str, Any]:
    common = {"ts": "2026-03-04T05:06:07.000Z", "run": RUN, "job": job, "attempt": None}
    return {"type": kind, **common, **members}


def write(bench: Bench, *events: dict[str, Any]) -> Path:
    """The folder of a run with these events, in the repository's own git folder."""
    bench.commit()
    folder = bench.repository / ".git" / "closedloop" / "runs" / RUN
    with (
        PrivateRoot.create(folder, RootKind.REPO, around=bench.plain, checkout=None) as root,
        FileJournal.open(root, "events.ndjson", state=None) as journal,
    ):
        journal.append(list(events))
    return folder


STARTED = event("run_started", jobs=["fix"])
JOB = event("job_started", "fix", baseline_digest="sha256:" + "0" * 64, isolate=True, max=4)


def ended(outcome: str, job: str = "fix") -> dict[str, Any]:
    return event("job_finished", job, outcome=outcome, attempts=1, worktree=None, kept=False)


def test_passed(bench: Bench) -> None:
    """O30: budget, state, and the commit on the job's private ref."""
    folder = write(bench, STARTED, JOB, ended("passed"))
    commit = bench.commit()
    where = ["git", "-C", str(bench.repository), "update-ref", f"refs/closedloop/{RUN}/fix", commit]
    subprocess.run(where, check=True)  # noqa: S603 - ours
    run = read_loop(folder, None, bench.around)
    assert (run.budget, run.state.value, run.commit) == ({"max_attempts": 4}, "finished", commit)


def test_passed_without_a_ref(bench: Bench) -> None:
    """O51: in the working tree itself, where nothing was committed."""
    run = read_loop(write(bench, STARTED, JOB, ended("passed")), None, bench.around)
    assert (run.state.value, run.commit) == ("finished", None)


def test_a_commit_that_the_events_name(bench: Bench) -> None:
    run = read_loop(write(bench, STARTED, JOB, ended("passed") | {"commit": "d" * 40}), None, bench.around)
    assert run.commit == "d" * 40


@pytest.mark.parametrize(
    ("outcome", "state"),
    [("exhausted", "failed"), ("limitCycle", "failed"), ("aborted", "cancelled"), ("not_run", "cancelled")],
)
def test_other_ends(bench: Bench, outcome: str, state: str) -> None:
    """O51: without a commit."""
    run = read_loop(write(bench, STARTED, JOB, ended(outcome)), None, bench.around)
    assert (run.state.value, run.commit) == (state, None)


def test_not_over(bench: Bench) -> None:
    """O50: or crashed, which looks the same."""
    assert read_loop(write(bench, STARTED, JOB), None, bench.around).state.value == "running"


def test_begun_again_after_its_end(bench: Bench) -> None:
    """O50: an end counts for the start before it."""
    folder = write(bench, STARTED, JOB, ended("passed") | {"commit": "d" * 40}, JOB | {"max": 2})
    run = read_loop(folder, "fix", bench.around)
    assert (run.budget, run.state.value, run.commit) == ({"max_attempts": 2}, "running", None)


def test_one_of_two_jobs(bench: Bench) -> None:
    two = event("job_started", "docs", baseline_digest="sha256:" + "0" * 64, isolate=True, max=2)
    folder = write(bench, STARTED, JOB, ended("passed"), two, ended("exhausted", "docs"))
    assert read_loop(folder, "docs", bench.around).budget == {"max_attempts": 2}
    for job in (None, "other"):
        with pytest.raises(OutcomeError, match="run_unreadable"):
            read_loop(folder, job, bench.around)


def test_events_that_were_changed(bench: Bench) -> None:
    """O79: are trusted in nothing."""
    folder = write(bench, STARTED, JOB, ended("exhausted"))
    events = folder / "events.ndjson"
    events.write_bytes(events.read_bytes().replace(b"exhausted", b"passed"))
    with pytest.raises(OutcomeError, match="run_unreadable"):
        read_loop(folder, None, bench.around)


def test_no_run(bench: Bench) -> None:
    with pytest.raises(OutcomeError, match="run_unreadable"):
        read_loop(bench.base / "none", None, bench.around)
