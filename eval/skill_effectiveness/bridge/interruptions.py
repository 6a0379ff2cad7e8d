"""What a termination signal does to a request, and when (bridge.md, sections 5 and 7).

While a request is being read, and while it is judged, a signal is raised as `Terminated` where the program
happens to be: nothing of the state was changed, and whatever was begun is what a kill would leave. From the
change of the state on it is only remembered, so that the steps finish and the answer is given.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skill_effectiveness.evidence.signals import TERMINATIONS, Terminated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class Interruptions:
    """The termination signals of the process, heard within `heard()`.

    Attributes:
        number: of the first signal that came; None as long as none did.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._deferring = False

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear them, in the main thread; one that was ignored before, as under `nohup`, stays so."""
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
        """From here on a signal is remembered and not raised."""
        self._deferring = True

    def hear(self) -> None:
        """From here on a signal is raised again, one that was remembered at once.

        Raises:
            Terminated: one has come.
        """
        self._deferring = False
        if self.number is not None:
            raise Terminated(self.number)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number
            if not self._deferring:
                raise Terminated(number)
