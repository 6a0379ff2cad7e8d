"""`run.py providers`: what the agent command lines on this machine are, and what can be proved of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from skill_effectiveness.cli import screen
from skill_effectiveness.cli.door import absolute, surroundings
from skill_effectiveness.cli.examination import (  # noqa: TC001 - typer reads the annotations
    ClaudePath,
    CodexPath,
    KimiPath,
    OpencodePath,
)
from skill_effectiveness.cli.keys import AsJson  # noqa: TC001 - likewise
from skill_effectiveness.execution import ExecutableCode
from skill_effectiveness.execution.programs import find_tool
from skill_effectiveness.providers.doctor import Diagnosis, LoginState, ProgramState, diagnose, programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings

app = typer.Typer(
    add_completion=False, help="See which agent command lines can be asked here.", rich_markup_mode=None
)

_LOGINS: Final = {
    LoginState.FILE: "yes, by file",
    LoginState.VARIABLE: "yes, by variable",
    LoginState.UNUSABLE: "no: what is there is none",
    LoginState.NOT_SEEN: "none seen",
}
_FAULTS: Final[Mapping[str, str]] = {
    ExecutableCode.MISSING: "there is nothing at its path; install it or correct the path",
    ExecutableCode.NOT_REGULAR: "its path is that of a folder or device; name the program itself",
    ExecutableCode.NOT_EXECUTABLE: "it may not be executed; name a program, or chmod +x it",
    ExecutableCode.UNREADABLE: "its file cannot be read; give yourself the right to read it",
    ExecutableCode.NO_VERSION: "asked for --version it did not print exactly one line and end well; "
    "name the program itself, not a wrapper, and see that what it is started with (such as node) is on PATH",
    ExecutableCode.NO_RESOURCES: "no process, memory or descriptor was left to look at it; try again",
    ExecutableCode.NO_SESSION_FOLDERS: "no private folder can be made to ask it in; set TMPDIR to one",
}
"""What is wrong with a program that cannot be bound, and what to do."""
_REPAIR: Final = "repair it or name another program"


@app.callback()
def _group() -> None:
    """Keep `doctor` a word of its own while it is the only one."""


@app.command(short_help="Show what is here: program, login, proofs.")
def doctor(
    *,
    codex_path: CodexPath = None,
    claude_path: ClaudePath = None,
    opencode_path: OpencodePath = None,
    kimi_path: KimiPath = None,
    as_json: AsJson = False,
) -> None:
    """Show each command line that is named or on PATH: program, login, kinds of call, what can be proved.

    A program is asked for its version and no model is asked anything. Exit 0: shown, whatever was found. 2: a
    wrong option.
    """
    around = surroundings()
    named = {"codex": codex_path, "claude": claude_path, "opencode": opencode_path, "kimi": kimi_path}
    found = [diagnose(kind, _place(name, named, around), around) for name, kind in programs().items()]
    if as_json:
        screen.results({"providers": [_values(one) for one in found]}, as_json=True)
        return
    present = [one for one in found if one.state is not ProgramState.NOT_FOUND]
    if present:
        _table(present)
    if absent := [one.provider for one in found if one.state is ProgramState.NOT_FOUND]:
        option = f"--{absent[0]}-path"
        screen.complain(f"Not on PATH: {', '.join(absent)}. Name a program by its path, such as {option}.")
    for one in present:
        if one.state is ProgramState.UNUSABLE:
            screen.complain(
                f"{one.provider} cannot be asked ({one.fault}): {_FAULTS.get(one.fault or '', _REPAIR)}."
            )


def _place(name: str, named: Mapping[str, Path | None], around: Surroundings) -> Path | None:
    path = named.get(name)
    return find_tool(name, around) if path is None else absolute(path)


def _values(one: Diagnosis) -> dict[str, object]:
    """One provider, for machines; the path is what was asked for."""
    return {
        "provider": one.provider,
        "status": str(one.state),
        "fault": one.fault,
        "path": None if one.path is None else str(one.path),
        "version": one.program and one.program.version,
        "sha256": one.program and one.program.sha256,
        "login": one.login and str(one.login),
        "call_kinds": [str(kind) for kind in one.kinds],
        "requested_session_mode": one.session_label,
        "tool_access": one.tool_label,
    }


def _table(found: Sequence[Diagnosis]) -> None:
    """A column for each provider: what people compare stands side by side."""
    rows = (
        ("program", [str(one.path) for one in found]),
        ("version", [one.program.version if one.program else str(one.fault) for one in found]),
        ("sha256", [one.program.sha256.removeprefix("sha256:") if one.program else "" for one in found]),
        ("logged in", ["" if one.login is None else _LOGINS[one.login] for one in found]),
        ("calls", [", ".join(one.kinds) for one in found]),
        ("sessions", [one.session_label for one in found]),
        ("tools when judging", [one.tool_label for one in found]),
    )
    columns = ("", *(one.provider for one in found))
    screen.table("agent command lines", columns, [(name, *cells) for name, cells in rows], stderr=False)
