"""Where every command of milestone ends: its own exit codes, one typed code, no traceback.

Source: milestone.md, sections 12 and 14. Exit codes belong to their contract, so this is not `boundary`.
"""

from __future__ import annotations

import signal
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import typer

from skill_effectiveness.acceptance.milestone.errors import MilestoneError, Stopped
from skill_effectiveness.acceptance.milestone.words import Outcome
from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.door import surroundings
from skill_effectiveness.cli.interruption import Interruption
from skill_effectiveness.cli.refusals import Refusal
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.launch.privacy import close_to_others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skill_effectiveness.acceptance.milestone.engines import Binder

PROGRAM: Final = "milestone"
READERS: Final = frozenset({"audit", "deliver"})
"""Verbs that have no other exit codes than 0, 1 and 2."""

_SIGNALLED: Final = 128
_JSON: Final = "--json"


class ExitCode(IntEnum):
    """The closed exit codes of milestone; signals add 128+n."""

    DONE = 0
    NOT_PASSED = 1
    REFUSED = 2
    HELD = 3
    INTEGRITY = 4


def main(app: typer.Typer, arguments: Sequence[str] | None, called: str, binder: Binder | None) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code.

    Args:
        app: the application.
        arguments: the words after the program's name; `None`: the process's own.
        called: how the person reached it, for the usage text.
        binder: how engine profiles become adapters; `None`: by the registry.
    """
    close_to_others()
    around = surroundings()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not screen.open_missing_streams(around.fs):
        screen.complain(f"{PROGRAM}: stdout is closed, so nobody would get the result; redirect it.")
        return ExitCode.REFUSED
    screen.speak_plainly()
    interruption = Interruption(around.monotonic)
    with interruption.heard():
        try:
            interruption.arm()
            code = _carry_out(app, words, called, binder)
            interruption.disarm()
        except Terminated as ended:
            interruption.disarm()
            code = _SIGNALLED + ended.signum
    return code


def _carry_out(app: typer.Typer, words: Sequence[str], called: str, binder: Binder | None) -> int:
    """The exit code of everything but a signal."""
    try:
        code = _judge(app, words, called, binder)
        screen.flush()
    except BrokenPipeError:
        screen.silence(sys.stdout)
        return _SIGNALLED + signal.SIGPIPE
    except screen.StdoutLostError as lost:
        screen.silence(sys.stdout)
        screen.complain(f"{PROGRAM}: {lost}")
        return _integrity(words)
    return code


def _integrity(words: Sequence[str]) -> int:
    return ExitCode.REFUSED if READERS.intersection(words[:1]) else ExitCode.INTEGRITY


def _judge(app: typer.Typer, words: Sequence[str], called: str, binder: Binder | None) -> int:  # noqa: PLR0911 - one for each way out
    command = typer.main.get_command(app)
    try:
        with command.make_context(called, list(words), obj=binder) as context:
            given = command.invoke(context)
    except (BrokenPipeError, screen.StdoutLostError):
        raise
    except KeyboardInterrupt:
        return _SIGNALLED + signal.SIGINT
    except typer.Exit as asked:
        return asked.exit_code
    except typer.TyperException as wrong:
        return _usage(wrong.format_message().rstrip("."), command, words, called)
    except MilestoneError as refused:
        code = refused.code.exit if not READERS.intersection(words[:1]) else ExitCode.REFUSED
        return _refuse(refused.code.value, refused.detail, str(refused), words, code)
    except Stopped as stopped:
        return told_stop(stopped, as_json=_JSON in words)
    except (Refusal, EvidenceError) as refused:
        return _refuse(str(refused.code), "", f"{refused.code}: {refused}", words, ExitCode.REFUSED)
    except (Exception, SystemExit) as unforeseen:  # noqa: BLE001 - the boundary: nothing may leave as a traceback
        told = crash.record(unforeseen, surroundings())
        sentence = f"internal: something unforeseen happened; {told}"
        return _refuse("internal", "", sentence, words, _integrity(words))
    return int(given) if isinstance(given, int) else ExitCode.DONE


def _refuse(code: str, detail: str, sentence: str, words: Sequence[str], exit_code: int) -> int:
    """Say the one typed code, to machines as well if they asked."""
    screen.complain(f"{PROGRAM}: {sentence}")
    if _JSON in words:
        screen.results({"code": code, "detail": detail, "status": "refused"}, as_json=True)
    return exit_code


def told_stop(stopped: Stopped, *, as_json: bool) -> int:
    """Say how a verb was stopped, and answer its exit code."""
    stop = stopped.stop
    screen.complain(f"{PROGRAM}: {stopped}")
    if as_json:
        value = {"code": stop.code.value, "outcome": stop.outcome.value, "reason": stop.reason}
        screen.results({**stop.carries, **value}, as_json=True)
    return ExitCode.HELD if stop.outcome is Outcome.HELD else ExitCode.NOT_PASSED


def _usage(message: str, command: Any, words: Sequence[str], called: str) -> int:  # noqa: ANN401 - the framework keeps its types
    """Say what is wrong with the invocation, then how it is meant."""
    screen.complain(f"{PROGRAM}: usage: {message}")
    context = command.make_context(called, [], resilient_parsing=True)
    inner = getattr(command, "commands", {}).get(words[0]) if words else None
    if inner is not None:
        context = inner.make_context(words[0], [], parent=context, resilient_parsing=True)
    for line in context.get_usage().splitlines():
        screen.complain(line)
    if _JSON in words:
        screen.results({"code": "usage", "detail": "", "status": "refused"}, as_json=True)
    return ExitCode.REFUSED
