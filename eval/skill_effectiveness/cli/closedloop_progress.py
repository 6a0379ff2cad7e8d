"""What people are told of a run: its progress, one line an event, and how to go on when it is over.

Source: loop.md, section 7. Pure; events that are not listed there give no line.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from skill_effectiveness.acceptance.loop.words import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from skill_effectiveness.acceptance.loop.summary import JobSummary, RunSummary

Event = dict[str, Any]


def progress_line(event: Event, *, hint: bool = True) -> str | None:
    """The line for an event, if it has one.

    Args:
        event: as stored.
        hint: say how to follow the run.
    """
    if event["type"] == "run_started":
        follow = f" · follow with: closedloop watch {event['run']}" if hint else ""
        return f"run {event['run']} started{follow}"
    if event["type"] == "run_finished":
        return f"run finished: {event['outcome']} ({event['attempts']} attempts, {event['seconds']:.1f}s)"
    told = _of_attempt(event)
    return None if told is None else f"[{event['attempt']}] {event['type']}{told}"


def _of_attempt(event: Event) -> str | None:
    match event["type"]:
        case "worker_started":
            return ""
        case "worker_exited" | "reviewer_exited":
            return f" exit={_exit(event)} {event['seconds']:.1f}s"
        case "check_result":
            return f" {shlex.join(event['argv'])} exit={_exit(event)} {event['seconds']:.1f}s"
        case "verdict":
            return f" {event['verdict']}" + ("" if event["reason"] is None else f" ({event['reason']})")
        case _:
            return None


def _exit(event: Event) -> str:
    if event["exit"] is not None:
        return str(event["exit"])
    if event.get("timed_out"):
        return "timeout"
    return "none" if event.get("signal") is None else f"signal:{event['signal']}"


def end_lines(summary: RunSummary, isolated: Collection[str]) -> Iterator[str]:
    """What became of every job and why, what is left of it where, and the command to go on with.

    Args:
        summary: of the run.
        isolated: names of the jobs that had a worktree of their own.
    """
    for job in summary.jobs:
        yield from _end_of(job, isolated=job.name in isolated)
    passed = [job for job in summary.jobs if job.ref is not None]
    if passed and all(job.name in isolated for job in passed):
        yield f"take what passed with: git merge {passed[-1].ref}"
    if summary.outcome in {Outcome.EXHAUSTED, Outcome.LIMIT_CYCLE}:
        yield 'to see why: "verbose": true and closedloop watch --json, or --keep and run the check yourself'
    if summary.reason and summary.reason not in {job.reason for job in summary.jobs}:
        yield summary.reason


def _end_of(job: JobSummary, *, isolated: bool) -> Iterator[str]:
    if job.reason:
        # The reason of an aborted job says so itself.
        word = "" if job.outcome is Outcome.ABORTED else f"{job.outcome.value}: "
        yield f"job {job.name}: {word}{job.reason}"
    if job.ref is not None:
        where = "" if isolated else "; its edits are in your working tree, uncommitted"
        yield f"job {job.name}: passed as {job.ref}{where}"
    if job.worktree is not None and isolated:
        removal = f"git worktree remove --force {shlex.quote(job.worktree)}"
        yield f"job {job.name}: kept in {job.worktree}; remove it with: {removal}"
