"""`run.py`, installed as `skill-effectiveness`: the application and its one way out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skill_effectiveness.cli import (
    activation,
    active_control,
    arms,
    boundary,
    closeout,
    closeout_door,
    controller_paths,
    crash,
    gate,
    journal,
    keys,
    licence,
    pair,
    reviewers,
    screen,
    study,
    trials,
    verify,
)
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.examination import reviewer_calibration
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.cli.smoke import smoke
from skill_effectiveness.launch.privacy import close_to_others

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "skill-effectiveness"

app = typer.Typer(
    name=PROGRAM,
    help="Find out, with evidence a stranger can check offline, whether a skill makes a coding agent better.",
    add_completion=False,
    pretty_exceptions_enable=False,
    # Frames and colours of help texts would follow variables that have nothing to do with where they go.
    rich_markup_mode=None,
)
app.command("reviewer-calibration", short_help="Examine a reviewer.")(reviewer_calibration)
app.command("verify", short_help="Check a sealed folder.")(verify.verify)
app.command("smoke", short_help="Try out the trial machinery.")(smoke)
active_control.register(app)
app.add_typer(reviewers.app, name="reviewers", short_help="Score, seal, demonstrate.")
app.add_typer(licence.app, name="licence", short_help="Issue and check licences.")
app.add_typer(keys.app, name="keys", short_help="Make and export keys.")
app.add_typer(journal.app, name="journal", short_help="Verify journals.")
app.add_typer(arms.app, name="arms", short_help="Freeze and plan arms.")
app.add_typer(pair.app, name="pair", short_help="Blind pairs of outcomes.")
app.add_typer(gate.app, name="gate", short_help="Judge pilots.")
app.add_typer(activation.app, name="activation", short_help="Record use of a verdict.")
app.add_typer(trials.app, name="trials", short_help="See and check trials.")
app.add_typer(study.app, name="study", short_help="Plan, run, report a study.")
app.add_typer(closeout.app, name=closeout_door.PROGRAM, short_help="Judge work that is done.")


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer hands a flag's value over by position
    if wanted:
        screen.line(f"{PROGRAM} {crash.version()}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    _show: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line (default: the process's own) and answer its exit code."""
    close_to_others()
    around = surroundings()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == [closeout_door.PROGRAM]:
        # Its exit codes are its own.
        return closeout.main(words[1:], f"{PROGRAM} {closeout_door.PROGRAM}")
    try:
        has_stdout = screen.open_missing_streams(around.fs)
    except OSError:
        lacking = (
            "A standard stream is closed and there is nothing to put there; open stdin, stdout and stderr."
        )
        return boundary.refuse(Refusal(CommandCode.STDOUT_UNWRITABLE, lacking), as_json=False)
    if not has_stdout:
        closed = "stdout is closed, so nobody would get the results; redirect it to a file or to /dev/null."
        return boundary.refuse(Refusal(CommandCode.STDOUT_UNWRITABLE, closed), as_json=False)
    screen.speak_plainly()
    return boundary.run(_command, words, around)


def _command(words: Sequence[str]) -> object:
    if words[0:1] and words[0] in controller_paths.GATED:
        return controller_paths.carry_out(_parsed, words, surroundings())
    return _parsed(words)


def _parsed(words: Sequence[str]) -> object:
    """Parse and call; the answer of the command, or the exit code that it asked for.

    Not through the `main` of the framework, which would turn a broken pipe into exit 1 and read a variable
    for shell completion.
    """
    command = typer.main.get_command(app)
    try:
        with command.make_context(PROGRAM, list(words)) as context:
            return command.invoke(context)
    except typer.Exit as asked:
        return asked.exit_code
