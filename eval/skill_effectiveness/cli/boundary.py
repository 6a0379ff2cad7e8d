"""Where every command ends: exit codes, one-line refusals, signals, crash files.

Source: trials.md, section 11.

| exit | meaning |
|---|---|
| 0 | done |
| 1 | completed and did not pass |
| 2 | refused: bad input, usage included |
| 70 | unforeseen; a crash file says where, without any payload |
| 128+n | ended by signal n; 141 when nobody reads stdout any more |

A refusal is one line on stderr, `skill_effectiveness_trial: <sentence>`. When the command line contains
`--json` it is one canonical object on stdout as well: `{"code":"<closed code>","status":"refused"}`, and of
an examination also `"field"`, if it has one that cannot be taken for a path. The codes are `usage` and the
other words of `refusals.CommandCode`, and those of the rooms below.
"""

from __future__ import annotations

import signal
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import typer

from skill_effectiveness.cli import crash, screen
from skill_effectiveness.cli.interruption import Interruption
from skill_effectiveness.cli.refusals import CommandCode, Refusal, Refused, answer, refusals, usage_of
from skill_effectiveness.evidence.signals import Terminated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skill_effectiveness.evidence.surroundings import Surroundings

PREFIX: Final = "skill_effectiveness_trial"
JSON: Final = "--json"
_SIGNALLED: Final = 128


class ExitCode(IntEnum):
    """The closed exit codes of the command line; signals add 128+n."""

    DONE = 0
    NOT_PASSED = 1
    REFUSED = 2
    INTERNAL = 70


def run(command: Callable[[Sequence[str]], object], arguments: Sequence[str], around: Surroundings) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code.

    Args:
        command: the parsed application; answers an exit code, or nothing for 0.
        arguments: the words after the program's name.
        around: where a crash file goes and when it happened.
    """
    interruption = Interruption(around.monotonic)
    with interruption.heard():
        try:
            interruption.arm()
            code = _carry_out(command, arguments, around)
            interruption.disarm()
        except Terminated as ended:
            interruption.disarm()
            code = _SIGNALLED + ended.signum
    return code


def refuse(refused: Refused, *, as_json: bool) -> int:
    """Say why on one line of stderr, to machines as well if they asked, and answer the exit code."""
    screen.complain(f"{PREFIX}: {refused}")
    if as_json:
        screen.results(answer(refused), as_json=True)
    return ExitCode.REFUSED


def _carry_out(
    command: Callable[[Sequence[str]], object], arguments: Sequence[str], around: Surroundings
) -> int:
    """The exit code of everything but a signal; also when stdout is gone, before or while refusing."""
    try:
        with screen.guarded_stdout():
            code = _judge(command, arguments, around)
        screen.flush()
    except BrokenPipeError:
        screen.silence(sys.stdout)
        return _SIGNALLED + signal.SIGPIPE
    except screen.StdoutLostError as lost:
        screen.silence(sys.stdout)
        return refuse(Refusal(CommandCode.STDOUT_UNWRITABLE, str(lost)), as_json=False)
    return code


def _judge(command: Callable[[Sequence[str]], object], arguments: Sequence[str], around: Surroundings) -> int:
    """What came of the command; a reader of stdout that has gone passes through."""
    refused: Refused
    try:
        given = command(arguments)
    except (BrokenPipeError, screen.StdoutLostError):
        raise
    except KeyboardInterrupt:
        # Where the handlers are not ours, in a thread of somebody else's program.
        return _SIGNALLED + signal.SIGINT
    except (EOFError, typer.Abort):
        refused = Refusal(CommandCode.NOTHING_ENTERED, "Nothing was entered, so nothing was done.")
    except typer.TyperException as wrong:
        refused = Refusal(CommandCode.USAGE, f"{usage_of(wrong)} See --help.")
    except refusals() as known:
        refused = known
    except crash.RecordedError as recorded:
        return _unforeseen(recorded.told)
    except (Exception, SystemExit) as unforeseen:  # noqa: BLE001 - the boundary: nothing may leave as a traceback
        return _unforeseen(crash.record(unforeseen, around))
    else:
        return int(given) if isinstance(given, int) else ExitCode.DONE
    return refuse(refused, as_json=JSON in arguments)


def _unforeseen(told: str) -> int:
    screen.complain(f"{PREFIX}: something unforeseen happened; {told}")
    return ExitCode.INTERNAL
