"""The installed commands: for a package what `run.py` is for a checkout, one function each.

Nothing is imported at the top but what every interpreter has: a signal while the program loads ends it with
128+n and no word, and what cannot be loaded is told in one sentence.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_SIGNALLED: Final = 128
_NOT_INSTALLED: Final = 2
_UNLOADABLE: Final = 70
_INTEGRITY: Final = 4
_NO_OUTCOME: Final = 1
_BLOCKED: Final = 3
"""What `closeout` and `accepted-outcome` answer to the unforeseen, so that nothing is accepted."""


def run() -> int:
    """The command `skill-effectiveness`; its exit code."""

    def load() -> Callable[[], int]:
        from skill_effectiveness.cli.main import main  # noqa: PLC0415 - signals have to be dealt with first

        return main

    return _enter("skill_effectiveness_trial", load, (_NOT_INSTALLED, _UNLOADABLE))


def run_closeout() -> int:
    """The command `closeout`; its exit code."""

    def load() -> Callable[[], int]:
        from skill_effectiveness.cli.closeout import main  # noqa: PLC0415 - signals have to be dealt with first

        return main

    return _enter("closeout", load, (_BLOCKED, _BLOCKED))


def run_accepted_outcome() -> int:
    """The command `accepted-outcome`; its exit code."""

    def load() -> Callable[[], int]:
        from skill_effectiveness.cli.accepted_outcome import main  # noqa: PLC0415 - as above

        return main

    return _enter("accepted-outcome", load, (_BLOCKED, _BLOCKED))


def run_milestone() -> int:
    """The command `milestone`; its exit code."""

    def load() -> Callable[[], int]:
        from skill_effectiveness.cli.milestone import main  # noqa: PLC0415 - as above

        return main

    return _enter("milestone", load, (_NOT_INSTALLED, _INTEGRITY))


def run_closedloop() -> int:
    """The command `closedloop`; its exit code."""

    def load() -> Callable[[], int]:
        from skill_effectiveness.cli.closedloop import main  # noqa: PLC0415 - signals have to be dealt with first

        return main

    return _enter("closedloop", load, (_NO_OUTCOME, _NO_OUTCOME))


def _enter(program: str, load: Callable[[], Callable[[], int]], codes: tuple[int, int]) -> int:
    """Load a command line and hand over to it.

    Args:
        program: begins a sentence to people.
        load: gives the command line's `main`.
        codes: the exit codes where a distribution is missing, and where something else is wrong.
    """
    # Nothing needs tidying while the program loads, and an exception in the middle of an import could be
    # swallowed or printed by whoever is being imported. The command line takes over from here.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        main = load()
    except ModuleNotFoundError as missing:
        return _refuse(program, f"{missing.name} is not installed here", codes[0])
    except Exception as broken:  # noqa: BLE001 - nothing may leave as a traceback, whatever fails to load
        return _refuse(program, f"the program cannot be loaded ({type(broken).__name__})", codes[1])
    return main()


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(_SIGNALLED + number)


def _refuse(program: str, told: str, code: int) -> int:
    # To nobody, perhaps: the exit code says it all the same.
    with contextlib.suppress(OSError):
        os.write(2, f"{program}: {told}; install the package again\n".encode("ascii", "backslashreplace"))
    return code
