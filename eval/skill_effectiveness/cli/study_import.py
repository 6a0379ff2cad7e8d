"""`run.py study import`: tasks that were written for another harness (studies.md section 1)."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.boundary import PREFIX, ExitCode
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - likewise
from skill_effectiveness.studies.harbor_import import ImportWord, import_harbor

app = typer.Typer(add_completion=False, help="Take over tasks of another harness.", rich_markup_mode=None)


@app.callback()
def _only_a_group() -> None:
    """Nothing: without a command of its own the framework would not take it for a group."""


@app.command(short_help="Take over task folders of Harbor.")
def harbor(
    folder: Annotated[
        Path, typer.Argument(help="Folder with one folder for each task, or one of these.", metavar="DIR")
    ],
    *,
    out: Annotated[Path, typer.Option(help="New folder for the tasks.", metavar="D")],
    host: Annotated[
        bool,
        typer.Option("--host", help="Turn a Dockerfile that only puts files somewhere into those files."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Take over task folders in the shape of Harbor and Terminal-Bench; no container is driven.

    Exit 0: all are imported. 1: one was refused, its reasons are on stderr; the others are imported. 2: there
    is no task, or D holds something else.
    """
    tasks = import_harbor(absolute(folder), absolute(out), host=host, around=surroundings())
    for task in tasks:
        for refusal in task.refusals:
            screen.complain(f"{PREFIX}: task {task.task_id}: {refusal}")
    screen.results({f"task.{task.task_id}": str(task.word) for task in tasks}, as_json=as_json)
    whole = all(task.word is ImportWord.IMPORTED for task in tasks)
    return ExitCode.DONE if whole else ExitCode.NOT_PASSED
