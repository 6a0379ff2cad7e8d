"""`run.py study export`: a reported study in the form of another harness (studies.md section 7)."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.boundary import ExitCode
from skill_effectiveness.cli.door import absolute, checkout, surroundings
from skill_effectiveness.cli.interruption import told_how_to_go_on
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - likewise
from skill_effectiveness.cli.study_keys import state_root
from skill_effectiveness.cli.study_status import StudyFolder, open_study
from skill_effectiveness.evidence.root import PrivateRoot, RootKind
from skill_effectiveness.studies.inspect_export import export_inspect

app = typer.Typer(add_completion=False, help="Write a study for another harness.", rich_markup_mode=None)


@app.callback()
def _only_a_group() -> None:
    """Nothing: without a command of its own the framework would not take it for a group."""


@app.command(short_help="Write an Inspect log for each arm.")
def inspect(
    folder: StudyFolder,
    *,
    out: Annotated[Path, typer.Option(help="Private folder for the logs.", metavar="D")],
    as_json: AsJson = False,
) -> int:
    """Write a log for each arm of a reported study, which Inspect's viewer and its data frames read.

    Logs hold what the agents handed in. Exit 0: written. 2: there is no report yet, or another file has the
    name of a log.
    """
    around = surroundings()
    with (
        told_how_to_go_on(screen.complain, lambda: "the same line goes on."),
        state_root(around) as state,
        open_study(folder) as study,
        crash.kept_in(study.root),
        study.lock().hold(action="study export"),
        study.journal(state) as journal,
        PrivateRoot.create(absolute(out), RootKind.OUT, around=around, checkout=checkout()) as target,
    ):
        names = [f"{out.name}/{name}" for name in export_inspect(study, journal, target)]
    screen.results({"log": names if as_json else ",".join(names)}, as_json=as_json)
    return ExitCode.DONE
