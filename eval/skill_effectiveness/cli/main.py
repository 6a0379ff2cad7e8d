"""`run.py`, installed as `skill-effectiveness`: the application and its one way out."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from skill_effectiveness.cli import boundary, controller_paths, crash, lazy, screen
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.lazy import Card, LazyGroup
from skill_effectiveness.cli.refusals import CommandCode, Refusal
from skill_effectiveness.launch.privacy import close_to_others

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM: Final = "skill-effectiveness"

_ACTIVE: Final = "active_control"
_OWN_EXITS: Final = {
    "accepted-outcome": "accepted_outcome",
    "closedloop": "closedloop",
    "closeout": "closeout",
    "milestone": "milestone",
}
"""Commands whose exit codes are their own, and the modules whose `main` gives them."""


class _Commands(LazyGroup):
    cards: ClassVar[Mapping[str, Card]] = {
        "reviewer-calibration": Card("examination", "reviewer_calibration", "Examine a reviewer."),
        "provider-probe": Card("provider_probe", "provider_probe", "Probe session isolation."),
        "verify": Card("verify", "verify", "Check a sealed folder."),
        "smoke": Card("smoke", "smoke", "Try out the trial machinery."),
        "active-control-freeze-candidate": Card(_ACTIVE, "freeze_candidate", "Freeze an author's texts."),
        "active-control-freeze-owner-reference": Card(
            _ACTIVE, "freeze_owner_reference", "Freeze owner texts."
        ),
        "active-control-prepare": Card(_ACTIVE, "prepare", "Make the selector's inputs."),
        "active-control-finalize": Card(_ACTIVE, "finalize", "Seal the selection."),
        "active-control-verify": Card(_ACTIVE, "verify", "Check a selection."),
        "active-control-measure": Card(_ACTIVE, "measure", "Measure the choice."),
        "active-control-measure-verify": Card(_ACTIVE, "measure_verify", "Check a measurement."),
        controller_paths.MATCHED_CALL: Card(_ACTIVE, "matched_call", "Declare matched calls."),
        controller_paths.MATCHED_CALL_VERIFY: Card(_ACTIVE, "matched_call_verify", "Check a declaration."),
        "providers": Card("providers", "app", "See what can be asked."),
        "reviewers": Card("reviewers", "app", "Score, seal, demonstrate."),
        "licence": Card("licence", "app", "Issue and check licences."),
        "keys": Card("keys", "app", "Make and export keys."),
        "journal": Card("journal", "app", "Verify journals."),
        "arms": Card("arms", "app", "Freeze and plan arms."),
        "pair": Card("pair", "app", "Blind pairs of outcomes."),
        "gate": Card("gate", "app", "Judge pilots."),
        "activation": Card("activation", "app", "Record use of a verdict."),
        "trials": Card("trials", "app", "See and check trials."),
        "study": Card("study", "app", "Plan, run, report a study."),
        "closeout": Card("closeout", "app", "Judge work that is done."),
        "closedloop": Card("closedloop", "app", "Repeat work until it is measured to be done."),
        "accepted-outcome": Card("accepted_outcome", "app", "Grade claims, close issues."),
        "milestone": Card("milestone", "app", "Close a milestone."),
    }


app = typer.Typer(
    name=PROGRAM,
    cls=_Commands,
    help="Find out, with evidence a stranger can check offline, whether a skill makes a coding agent better.",
    add_completion=False,
    pretty_exceptions_enable=False,
    # Frames and colours of help texts would follow variables that have nothing to do with where they go.
    rich_markup_mode=None,
)


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
    if words and words[0] in _OWN_EXITS:
        module = import_module(f"skill_effectiveness.cli.{_OWN_EXITS[words[0]]}")
        return int(module.main(words[1:], f"{PROGRAM} {words[0]}"))
    lazy.preload(_Commands, words)
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
    # The framework takes a leading `--` for nothing; so must whoever looks at the first word.
    first = next((word for word in words if word != "--"), "")
    if first in controller_paths.GATED:
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
