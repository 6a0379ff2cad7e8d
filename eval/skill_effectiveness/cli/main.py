"""`run.py`, installed as `skill-effectiveness`: the application and its one way out."""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from skill_effectiveness.cli import boundary, crash, keys, reviewers, verify
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.examination import reviewer_calibration

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "skill-effectiveness"

app = typer.Typer(
    name=PROGRAM,
    help="Find out, with evidence a stranger can check offline, whether a skill makes a coding agent better.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("reviewer-calibration")(reviewer_calibration)
app.command("verify")(verify.verify)
app.add_typer(reviewers.app, name="reviewers")
app.add_typer(keys.app, name="keys")


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer hands a flag's value over by position
    if wanted:
        sys.stdout.write(f"{PROGRAM} {crash.version()}\n")
        raise typer.Exit


@app.callback()
def _options(
    *, _show: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line (default: the process's own) and answer its exit code."""
    # A core file could hold a key.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = typer.main.get_command(app)
    return boundary.run(
        lambda given: command.main(args=list(given), prog_name=PROGRAM, standalone_mode=False), words, surroundings()
    )
