"""How a command ends when it is told to: SIGINT, SIGTERM, SIGHUP and SIGQUIT become one exception."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.signals import TERMINATIONS, Terminated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

TIDYING_SECONDS: Final = 10.0
"""How long cleaning up may take before a further signal interrupts it as well."""


class Interruption:
    """The signals of one command line: heard within `heard()`, raised between `arm()` and `disarm()`.

    The first one is raised as `Terminated` where the command happens to be, so that every `finally` runs.
    Terminals and service managers send several in a row and people press twice, so further ones only count
    again after ten seconds: they would cut off the very cleaning up that they ask for.

    Args:
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._armed = False
        self._early: int | None = None
        self._raised_at: float | None = None

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear the signals; one that was ignored before, as under `nohup`, stays ignored."""
        former = {number: signal.getsignal(number) for number in TERMINATIONS} if _may_hear() else {}
        taken = [number for number, handler in former.items() if handler not in (signal.SIG_IGN, None)]
        try:
            for number in taken:
                signal.signal(number, self._take)
            yield
        finally:
            for number in taken:
                signal.signal(number, former[number])

    def arm(self) -> None:
        """From here on a signal is raised; one that was heard before is raised now."""
        self._armed = True
        if self._early is not None:
            self._raise(self._early)

    def disarm(self) -> None:
        """From here on the command is over and a signal changes nothing about it."""
        self._armed = False

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if not self._armed:
            self._early = number
        elif self._raised_at is None or self._monotonic() - self._raised_at > TIDYING_SECONDS:
            self._raise(number)

    def _raise(self, number: int) -> None:
        self._raised_at = self._monotonic()
        raise Terminated(number)


def _may_hear() -> bool:
    """Handlers belong to the main thread; elsewhere whoever called us hears the signals."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def told_how_to_go_on(tell: Callable[[str], object], advice: Callable[[], str]) -> Iterator[None]:
    """Within it, people hear what to do after a signal; the signal goes on.

    Args:
        tell: says a sentence to people.
        advice: half a sentence; asked when the signal has come.
    """
    try:
        yield
    except Terminated as ended:
        tell(f"Stopped by {signal.Signals(ended.signum).name}; {advice()}")
        raise
