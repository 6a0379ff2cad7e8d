"""Where every command of closeout ends: its own exit codes, one sentence on stderr, no traceback.

Source: closeout.md, sections 9, 11 and 16. Exit codes belong to their contract, so this is not `boundary`,
whose refusals end with 2: here only an invalid invocation does, and whatever is unforeseen blocks.
"""

from __future__ import annotations

import signal
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import typer

from skill_effectiveness.acceptance.closeout.errors import CloseoutError, UsageRefused
from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.interruption import Interruption
from skill_effectiveness.cli.refusals import Refusal
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.launch.privacy import close_to_others

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "closeout"
_SIGNALLED: Final = 128


class ExitCode(IntEnum):
    """The closed exit codes of closeout; signals add 128+n."""

    ACCEPTED = 0
    REJECTED = 1
    USAGE = 2
    BLOCKED = 3


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
        screen.complain(f"{PROGRAM}: stdout is closed, so nobody would get the decision; redirect it.")
        return ExitCode.BLOCKED
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
        return ExitCode.BLOCKED
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
    except (CloseoutError, EvidenceError, Refusal) as blocked:
        screen.complain(f"{PROGRAM}: {blocked}")
        return ExitCode.BLOCKED
    except (Exception, SystemExit) as unforeseen:  # noqa: BLE001 - the boundary: nothing may leave as a traceback
        told = crash.record(unforeseen, surroundings())
        screen.complain(f"{PROGRAM}: something unforeseen happened, so nothing is accepted; {told}")
        return ExitCode.BLOCKED
    return int(given) if isinstance(given, int) else ExitCode.ACCEPTED


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
    return ExitCode.USAGE
