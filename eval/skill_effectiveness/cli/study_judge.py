"""`run.py study judge`: pairs to reviewers, blinded (studies.md section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - typer reads the annotations
from skill_effectiveness.cli.next_step import tell_next
from skill_effectiveness.cli.study_keys import state_root
from skill_effectiveness.cli.study_status import StudyFolder, open_study
from skill_effectiveness.studies.judging import JudgeStatus, judge_study
from skill_effectiveness.studies.pairing import PairStanding

if TYPE_CHECKING:
    from skill_effectiveness.studies.judging import Judged

_NOT_SHOWN: Final = {
    PairStanding.ABSENT: "without two outcomes that may be shown",
    PairStanding.UNSHOWABLE: "with nothing in it that can be shown",
    PairStanding.LEAK: "that would give an arm away",
    PairStanding.TOO_LARGE: "too large to be sent",
}
_EVERY: Final = 25
"""Votes between two lines of progress."""


def judge(folder: StudyFolder, *, as_json: AsJson = False) -> int:
    """Show every pair to every reviewer, both ways round, and keep what they say.

    The same line goes on where it stopped. Exit 0: every reviewer has voted on every showing. 1: votes are
    missing. 2: slots have not ended, or no reviewer's licence is live.
    """
    with (
        told_how_to_go_on(screen.complain, lambda: "the same line goes on; no vote is asked for twice."),
        state_root(surroundings()) as state,
        open_study(folder) as study,
        crash.kept_in(study.root),
        study.lock().hold(action="study judge"),
        study.journal(state) as journal,
    ):
        found = judge_study(study, journal, progress=_progress)
    _explain(found)
    values: dict[str, object] = {
        "judge_status": str(found.status),
        "votes": found.votes,
        "void": found.void,
        "canaries": found.canaries,
        "revoked": found.revoked,
    }
    screen.results(values, as_json=as_json)
    if found.status is JudgeStatus.COMPLETE:
        tell_next("study", "report", folder)
    return ExitCode.DONE if found.status is JudgeStatus.COMPLETE else ExitCode.NOT_PASSED


def _progress(done: int, of: int) -> None:
    if done == of or done % _EVERY == 0:
        screen.complain(f"{done} of {of} votes answered.")


def _explain(found: Judged) -> None:
    """Which pairs were not shown and which reviewers not asked to the end; totals only."""
    for standing, told in _NOT_SHOWN.items():
        if number := found.pairs.get(standing, 0):
            screen.complain(f"Pairs {told}, not judged: {number}.")
    for index, word in found.idle.items():
        screen.complain(f"Reviewer {index} was not asked to the end ({word}).")
    if found.missing:
        screen.complain(f"Votes missing: {found.missing}. Put the cause right, then run the same line again.")
