"""Where every command of closedloop ends: its own exit codes, one sentence on stderr, no traceback.

Source: loop.md, sections 8 and 13. Exit codes belong to their contract, so this is neither `boundary` nor the
door of closeout: an invalid invocation ends with 5 here, and 1 is no outcome.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Final

import typer

from skill_effectiveness.acceptance.loop.errors import LoopRefusedError
from skill_effectiveness.acceptance.loop.words import REFUSED_EXIT
from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.interruption import Interruption
from skill_effectiveness.cli.refusals import Refusal
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.launch.privacy import close_to_others

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM: Final = "closedloop"
UNFORESEEN: Final = 1
_SIGNALLED: Final = 128


def main(app: typer.Typer, words: Sequence[str], called: str) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code.

    Args:
        app: the application.
        words: the words after the program's name.
        called: how the person reached it, for the usage text.
    """
    close_to_others()
    around = surroundings()
    if not screen.open_missing_streams(around.fs):
        screen.complain(f"{PROGRAM}: stdout is closed, so nobody would get the result; redirect it.")
        return REFUSED_EXIT
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
        return UNFORESEEN
    return code


def _judge(app: typer.Typer, words: Sequence[str], called: str) -> int:
    command = typer.main.get_command(app)
    try:
        with command.make_context(called, list(words)) as context:
            given = command.invoke(context)
    except (BrokenPipeError, screen.StdoutLostError):
        raise
    except typer.Exit as asked:
        return asked.exit_code
    except typer.TyperException as wrong:
        screen.complain(f"{PROGRAM}: {wrong.format_message().rstrip('.')}; see {PROGRAM} --help")
        return REFUSED_EXIT
    except (LoopRefusedError, Refusal, EvidenceError) as refused:
        screen.complain(str(refused))
        return REFUSED_EXIT
    except (Exception, SystemExit) as unforeseen:  # noqa: BLE001 - the boundary: nothing may leave as a traceback
        told = crash.record(unforeseen, surroundings())
        screen.complain(f"{PROGRAM}: something unforeseen happened, which is no outcome; {told}")
        return UNFORESEEN
    return int(given) if isinstance(given, int) else 0
