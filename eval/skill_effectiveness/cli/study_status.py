"""`run.py study status` and `amend`: a study that was planned (studies.md, sections 2 and 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - typer reads the annotations
from skill_effectiveness.cli.next_step import spelt
from skill_effectiveness.cli.study_keys import state_root
from skill_effectiveness.evidence.faults import RootCode, RootError
from skill_effectiveness.studies.amendments import amendment_of, demand_known_cost, read_setting
from skill_effectiveness.studies.errors import StudyCode, StudyError
from skill_effectiveness.studies.plan_seal import PLAN
from skill_effectiveness.studies.root import StudyRoot
from skill_effectiveness.studies.status import StudyStatus  # noqa: TC001 - as above
from skill_effectiveness.studies.study_file import STUDY_FILE

_NO_STUDY: Final = frozenset({RootCode.ROOT_MODE, StudyCode.PLAN_MISSING})
"""What a folder without a plan is refused for first."""

StudyFolder = Annotated[Path, typer.Argument(help="Folder of the planned study.", metavar="R")]


def open_study(folder: Path) -> StudyRoot:
    """The planned study in a folder; the caller closes it.

    Raises:
        StudyError: `study_missing`, `plan_missing`: there is no folder, or no plan in it; both say which
            command comes first. Otherwise as `StudyRoot.open`.
    """
    place = absolute(folder)
    try:
        return StudyRoot.open(place, around=surroundings(), checkout=checkout())
    except (RootError, StudyError) as error:
        if error.code is RootCode.ROOT_MISSING:
            command = spelt(("study", "plan", "S", "--out", folder))
            sentence = f"there is no such folder; plan a study into it: {command}."
            raise StudyError(StudyCode.STUDY_MISSING, folder.name, sentence) from error
        if error.code in _NO_STUDY and not _lies(place / PLAN):
            raise StudyError(StudyCode.PLAN_MISSING, folder.name, _unplanned(folder, place)) from error
        raise


def _unplanned(folder: Path, place: Path) -> str:
    """What a person should do with a folder that holds no plan."""
    if _lies(place / STUDY_FILE):
        command = spelt(("study", "plan", folder, "--out", "R"))
        return f"this folder holds a study file and no plan; plan it first: {command}, then name R."
    command = spelt(("study", "plan", "S", "--out", "R"))
    return f"no study was planned in this folder; name the one that was planned into, or plan one: {command}."


def _lies(path: Path) -> bool:
    try:
        surroundings().fs.lstat(None, str(path))
    except (OSError, ValueError):
        return False
    return True


def status(folder: StudyFolder, *, as_json: AsJson = False) -> int:
    """Print how far a study has come; nothing is told per arm."""
    with open_study(folder) as study:
        screen.results(status_values(study.status(), as_json=as_json), as_json=as_json)
    return ExitCode.DONE


def status_values(held: StudyStatus, *, as_json: bool) -> dict[str, object]:
    """What is told of a study's counts."""
    classes = {str(name): number for name, number in held.classes.items()}
    told = ",".join(f"{name}:{number}" for name, number in classes.items()) or "none"
    return {
        "state": str(held.state),
        "slots": held.slots,
        "ended": held.ended,
        "classes": classes if as_json else told,
        "tokens": held.known_tokens,
        "cost_units": screen.rounded(held.known_cost),
        "eta": None if held.eta_seconds is None else round(held.eta_seconds),
    }


def amend(
    folder: StudyFolder,
    *,
    setting: Annotated[
        str,
        typer.Option(
            "--set",
            help="Such as /budgets/study/tokens=1000000, or /reviewers/0=null to take one out.",
            metavar="POINTER=VALUE",
        ),
    ],
    reason: Annotated[str, typer.Option(help="Why; kept in the journal and in every report.")],
    as_json: AsJson = False,
) -> int:
    """Change a study budget, or take out a reviewer that has not voted; everything else is refused.

    Exit 0: the journal holds it. 2: it cannot be amended, or not any more.
    """
    around = surroundings()
    with (
        state_root(around) as state,
        open_study(folder) as study,
        study.lock().hold(action="study amend"),
        study.journal(state) as journal,
    ):
        wanted = read_setting(setting)
        amendment = amendment_of(study.plan, journal.state, wanted, reason)
        demand_known_cost(study.study(), wanted)
        journal.append(amendment)
        number = len(journal.state.amendments)
    screen.results({"amendment": number}, as_json=as_json)
    return ExitCode.DONE
