"""How a termination signal ends a request of the wire.

Before the one call of a sample may have been spent, and all the time in a finalization, a signal is raised as
`Terminated` where the program happens to be, so that every `finally` runs. From `defer` on it is only
remembered: the call is told to end in order (`arrived`), and a paid answer is stored rather than lost.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.signals import TERMINATIONS, Terminated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class Cutoff:
    """The termination signals of one request, heard within `heard()`; the first alone is raised."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._deferring = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear the signals, in the main thread; one that was ignored before, as under `nohup`, stays so."""
        former = {number: signal.getsignal(number) for number in TERMINATIONS}
        taken = [number for number, handler in former.items() if handler not in (signal.SIG_IGN, None)]
        try:
            for number in taken:
                signal.signal(number, self._take)
            yield
        finally:
            for number in taken:
                signal.signal(number, former[number])

    def defer(self) -> None:
        """From here on a signal is remembered and no longer raised."""
        self._deferring = True

    def arrived(self) -> bool:
        """Whether one has come."""
        return self._number is not None

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if self._number is not None:
            return
        self._number = number
        if not self._deferring:
            raise Terminated(number)
