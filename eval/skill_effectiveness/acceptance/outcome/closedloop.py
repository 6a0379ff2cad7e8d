"""What the events of a loop say about an attempt.

Source: outcome.md, section 11; loop.md, sections 4, 7 and 8. The events are read as data and only when their
chain is whole. Budget: how many attempts the job may take. State: how the run ended. Commit: what the job's
private ref leads to, or what the events name themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.acceptance.outcome.errors import OutcomeCode, OutcomeError
from skill_effectiveness.acceptance.outcome.words import COMMIT, AttemptState
from skill_effectiveness.evidence.journal_verify import verify_file
from skill_effectiveness.execution.git import Git

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

    from skill_effectiveness.evidence.surroundings import Surroundings

EVENTS: Final = "events.ndjson"
_STATES: Final = {
    "passed": AttemptState.FINISHED,
    "exhausted": AttemptState.FAILED,
    "limitCycle": AttemptState.FAILED,
    "aborted": AttemptState.CANCELLED,
}
_SLUG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class LoopRun:
    """One job of a run as an attempt.

    Attributes:
        budget: what the job was given; `None` where the events do not say.
        state: how it ended, or that it has not.
        commit: of its passed content; `None` where there is none.
    """

    budget: dict[str, JsonValue] | None
    state: AttemptState
    commit: str | None


def read_loop(folder: Path, job: str | None, around: Surroundings) -> LoopRun:
    """Read a run's events.

    Args:
        folder: of the run, absolute.
        job: which; `None`: the only one.
        around: the surroundings.

    Raises:
        OutcomeError: `run_unreadable`.
    """
    events: list[dict[str, JsonValue]] = []
    report = verify_file(around.fs, folder / EVENTS, on_row=lambda row: events.append(row.value))
    if not report.sound:
        raise _unreadable(report.sentence)
    name = _job(events, job)
    own = [event for event in events if event.get("job") == name]
    started, ended = None, None
    for event in own:
        if event.get("type") == "job_started":
            # An end before this start is not the end of what runs now.
            started, ended = event, None
        elif event.get("type") == "job_finished":
            ended = event
    state = AttemptState.RUNNING
    if ended is not None:
        state = _STATES.get(str(ended.get("outcome")), AttemptState.CANCELLED)
    budget = _budget(started)
    commit = (
        _commit(folder, str(events[0].get("run")), name, ended, around)
        if state is AttemptState.FINISHED
        else None
    )
    return LoopRun(budget, state, commit)


def _job(events: list[dict[str, JsonValue]], asked: str | None) -> str:
    names = [str(event.get("job")) for event in events if event.get("type") == "job_started"]
    if asked is not None and asked in names:
        return asked
    if asked is None and len(names) == 1:
        return names[0]
    raise _unreadable("The run has another number of such jobs than one; name it with --job.")


def _budget(started: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    most = None if started is None else started.get("max")
    return {"max_attempts": most} if type(most) is int and most > 0 else None


def _commit(
    folder: Path, run: str, job: str, ended: dict[str, JsonValue] | None, around: Surroundings
) -> str | None:
    named = None if ended is None else ended.get("commit")
    if isinstance(named, str) and re.fullmatch(COMMIT, named):
        return named
    if not (_SLUG.fullmatch(run) and _SLUG.fullmatch(job)):
        return None
    # The folder lies in the repository's own git directory.
    return Git(folder, around).commit(f"refs/closedloop/{run}/{job}")


def _unreadable(sentence: str) -> OutcomeError:
    return OutcomeError(OutcomeCode.RUN_UNREADABLE, f"{sentence} Nothing was stored.")
