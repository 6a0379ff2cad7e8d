"""`run.py study run` and `watch`: running or resuming a study, and looking on (studies.md section 3)."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - typer reads the annotations
from skill_effectiveness.cli.next_step import tell_next
from skill_effectiveness.cli.study_cluster import (
    Cluster,
    Jobs,
    PlainTcp,
    at_work,
    read_crew,
)
from skill_effectiveness.cli.study_keys import state_root
from skill_effectiveness.cli.study_progress import StudyProgress
from skill_effectiveness.cli.study_status import StudyFolder, open_study, status_values
from skill_effectiveness.studies.cures import cure_of
from skill_effectiveness.studies.halting import Halt
from skill_effectiveness.studies.runner import RunOutcome, RunStatus, run_study
from skill_effectiveness.studies.state import Phase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_DRAINED: Final = 128 + signal.SIGINT
_WATCHED: Final = frozenset({Phase.PLANNED, Phase.RUNNING})
_LOOK: Final = 1.0


def run(
    folder: StudyFolder,
    *,
    jobs: Jobs = None,
    cluster: Cluster = None,
    allow_plain_tcp: PlainTcp = False,
    as_json: AsJson = False,
) -> int:
    """Run a planned study, or what is left of it, and grade every trial.

    Ctrl-C once lets what runs finish and starts nothing more; twice ends it now. The same line goes on.
    Exit 0: complete. 1: blocked, the reason is named. 2: plan or input changed. 130: drained or stopped.
    """
    halt, crew = Halt(), read_crew(jobs, cluster, plain=allow_plain_tcp)
    with (
        told_how_to_go_on(screen.complain, lambda: "the same line goes on."),
        state_root(surroundings()) as state,
        open_study(folder) as study,
        crash.kept_in(study.root),
        StudyProgress(study.plan.name, study.plan.allocation.slots) as progress,
        draining(halt),
        at_work(crew, study, state, halt, progress) as parts,
    ):
        outcome = run_study(parts)
        reviewed = bool(study.plan.reviewers)
    code = _told(outcome, as_json=as_json)
    if outcome.status is RunStatus.COMPLETE:
        tell_next("study", "judge" if reviewed else "report", folder)
    return code


@contextmanager
def draining(halt: Halt) -> Iterator[None]:
    """Within it SIGINT drains and then stops the run instead of ending the command.

    Whatever else ends the block stops the run as well, so that nobody waits for an agent in vain.
    """

    def heard(_number: int, _frame: FrameType | None) -> None:
        halt.request()
        screen.complain(
            "Stopping now."
            if halt.stopping()
            else "Draining: what runs may finish; Ctrl-C once more stops it."
        )

    former = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread()
    hears = ours and former not in {signal.SIG_IGN, None}
    if hears:
        signal.signal(signal.SIGINT, heard)
    try:
        yield
    except BaseException:
        halt.stop()
        raise
    finally:
        if hears:
            signal.signal(signal.SIGINT, former)


def tell_blocked(outcome: RunOutcome) -> None:
    """What blocks a run, and what to do about it."""
    reason = outcome.reason or ""
    screen.complain(f"Blocked by {reason}: {cure_of(reason)}; the same line goes on.")


def _told(outcome: RunOutcome, *, as_json: bool) -> int:
    counts = outcome.counts
    if outcome.status is RunStatus.BLOCKED:
        tell_blocked(outcome)
    values: dict[str, object] = {
        "run_status": str(outcome.status),
        "slots": counts.slots,
        "ended": counts.ended,
        "attempts": counts.attempts,
        "tokens": counts.known_tokens,
        "cost_units": screen.rounded(counts.known_cost),
    }
    screen.results(values, as_json=as_json)
    codes = {
        RunStatus.COMPLETE: int(ExitCode.DONE),
        RunStatus.BLOCKED: int(ExitCode.NOT_PASSED),
        RunStatus.DRAINED: _DRAINED,
    }
    return codes[outcome.status]


def watch(
    folder: StudyFolder,
    *,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    as_json: AsJson = False,
) -> int:
    """Follow a study until all its slots have ended; nothing is told per arm, and nothing is changed."""
    around = surroundings()
    with open_study(folder) as study:
        held = study.status()
        with StudyProgress(study.plan.name, study.plan.allocation.slots) as progress:
            progress.progressed(held)
            while held.state in _WATCHED and not once:
                around.sleep(_LOOK)
                held = study.status()
                progress.progressed(held)
    screen.results(status_values(held, as_json=as_json), as_json=as_json)
    return ExitCode.DONE
