"""Where every command ends: exit codes, one-line refusals, signals, crash files. (trials.md, section 11)

| exit | meaning |
|---|---|
| 0 | done |
| 1 | completed and did not pass |
| 2 | refused: bad input, usage included |
| 70 | unforeseen; a crash file says where, without any payload |
| 128+n | ended by signal n |
"""

from __future__ import annotations

import signal
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, NoReturn

import typer

from skill_effectiveness.calibration.errors import CalibrationError, ExaminationRefused
from skill_effectiveness.cli import crash, screen
from skill_effectiveness.evidence.faults import EvidenceError
from skill_effectiveness.evidence.signals import Terminated
from skill_effectiveness.execution import ExecutableError
from skill_effectiveness.protocol.errors import ProtocolError
from skill_effectiveness.providers import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from skill_effectiveness.evidence.surroundings import Surroundings

PREFIX = "skill_effectiveness_trial"
TYPED = (CalibrationError, EvidenceError, ExaminationRefused, ExecutableError, ProtocolError, ProviderError)


class ExitCode(IntEnum):
    """The closed exit codes of the command line; signals add 128+n."""

    DONE = 0
    NOT_PASSED = 1
    REFUSED = 2
    INTERNAL = 70


class Refusal(Exception):
    """A command cannot be carried out as asked; the sentence says what to do next."""


def terminate(signum: int, _frame: FrameType | None) -> NoReturn:
    """Turn a termination signal into an exception, so that every `finally` runs before the exit."""
    raise Terminated(signum)


def run(command: Callable[[Sequence[str]], object], arguments: Sequence[str], around: Surroundings) -> int:
    """Carry out one command line and turn whatever comes out of it into the exit code.

    Args:
        command: the parsed application; answers an exit code, or nothing for 0.
        arguments: the words after the program's name.
        around: where a crash file goes and when it happened.
    """
    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(signum, terminate)
    try:
        answer = command(arguments)
        sys.stdout.flush()
    except Terminated as ended:
        return 128 + ended.signum
    except (KeyboardInterrupt, typer.Abort):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        screen.silence_stdout()
        return 128 + signal.SIGPIPE
    except typer.TyperException as wrong:
        return refuse(f"{wrong.format_message()} See --help.")
    except (Refusal, *TYPED) as refused:
        return refuse(str(refused))
    except Exception as unforeseen:  # noqa: BLE001 - the boundary: nothing may leave as a traceback
        place = crash.record(unforeseen, around)
        screen.complain(f"{PREFIX}: something unforeseen happened; {place}")
        return ExitCode.INTERNAL
    return int(answer) if isinstance(answer, int) else ExitCode.DONE


def refuse(sentence: str) -> int:
    """Say why on one line of stderr and answer the exit code of a refusal."""
    screen.complain(f"{PREFIX}: {sentence}")
    return ExitCode.REFUSED
