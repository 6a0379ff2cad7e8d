"""Where every command of accepted-outcome ends: its own exit codes, one sentence on stderr, no traceback.

Source: outcome.md, sections 12 and 14. With `--json` a refusal is one object on stdout too: its code and what
is safe for machines about it.
"""

from __future__ import annotations

import signal
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import typer

from skill_effectiveness.acceptance.outcome.errors import OutcomeError
from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.interruption import Interruption
from skill_effectiveness.cli.refusals import Refusal
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.launch.privacy import close_to_others

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "accepted-outcome"
_SIGNALLED: Final = 128


class ExitCode(IntEnum):
    """The closed exit codes of accepted-outcome; signals add 128+n."""

    ACCEPTED = 0
    NOT_ACCEPTED = 1
    INPUT = 2
    UNDECIDABLE = 3
    NOT_APPLICABLE = 4


class UsageRefused(Exception):  # noqa: N818 - a refusal is an answer, not a defect
    """The invocation is invalid; nothing was touched."""


def main(app: typer.Typer, arguments: Sequence[str] | None, called: str = PROGRAM) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code.

    Args:
        app: the application.
        arguments: the words after the program's name; `None`: the process's own.
        called: how the person reached it, for the usage text.
    """
    close_to_others()
    around = surroundings()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not screen.open_missing_streams(around.fs):
        screen.complain(f"{PROGRAM}: stdout is closed, so nobody would get the result; redirect it.")
        return ExitCode.UNDECIDABLE
    screen.speak_plainly()
    interruption = Interruption(around.monotonic)
    with interruption.heard():
        try:
            interruption.arm()
            code = _carry_out(app, words, called)
            interruption.disarm()
        except Terminated as ended:
            interruption.disarm()
            code = _SIGNALLED + ended.signum
    return code


def _carry_out(app: typer.Typer, words: Sequence[str], called: str) -> int:
    """The exit code of everything but a signal."""
    try:
        code = _judge(app, words, called)
        screen.flush()
    except BrokenPipeError:
        screen.silence(sys.stdout)
        return _SIGNALLED + signal.SIGPIPE
    except screen.StdoutLostError as lost:
        screen.silence(sys.stdout)
        screen.complain(f"{PROGRAM}: {lost}")
        return ExitCode.UNDECIDABLE
    return code


def _judge(app: typer.Typer, words: Sequence[str], called: str) -> int:  # noqa: PLR0911 - one for each way out
    command = typer.main.get_command(app)
    try:
        with command.make_context(called, list(words)) as context:
            given = command.invoke(context)
    except (BrokenPipeError, screen.StdoutLostError):
        raise
    except KeyboardInterrupt:
        return _SIGNALLED + signal.SIGINT
    except typer.Exit as asked:
        return asked.exit_code
    except typer.TyperException as wrong:
        return _usage(wrong.format_message().rstrip("."), command, words, called)
    except UsageRefused as wrong:
        return _usage(str(wrong), command, words, called)
    except OutcomeError as refused:
        return _refuse(refused.code.value, refused, words, undecidable=refused.undecidable)
    except (EvidenceError, Refusal) as refused:
        return _refuse(str(refused.code), refused, words, undecidable=isinstance(refused, EvidenceError))
    except (Exception, SystemExit) as unforeseen:  # noqa: BLE001 - the boundary: nothing may leave as a traceback
        told = crash.record(unforeseen, surroundings())
        screen.complain(f"{PROGRAM}: something unforeseen happened, so nothing is decided; {told}")
        return ExitCode.UNDECIDABLE
    return int(given) if isinstance(given, int) else ExitCode.ACCEPTED


def _refuse(code: str, refused: Exception, words: Sequence[str], *, undecidable: bool) -> int:
    screen.complain(f"{PROGRAM}: {refused}")
    if "--json" in words:
        message = refused.message if isinstance(refused, OutcomeError) else code
        screen.results({"error": code, "message": message}, as_json=True)
    return ExitCode.UNDECIDABLE if undecidable else ExitCode.INPUT


def _usage(message: str, command: Any, words: Sequence[str], called: str) -> int:  # noqa: ANN401 - the framework keeps its types
    """Say what is wrong with the invocation, then how it is meant."""
    screen.complain(f"{PROGRAM}: {message}")
    context = command.make_context(called, [], resilient_parsing=True)
    for word in words:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
        context = command.make_context(word, [], parent=context, resilient_parsing=True)
    for line in context.get_usage().splitlines():
        screen.complain(line)
    return ExitCode.INPUT
