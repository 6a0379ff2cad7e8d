"""How long an order is waited for (studies.md section 3): no silent worker holds a run up for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.studies.agent import Cancelled


@dataclass(slots=True)
class Limit:
    """How long an order is waited for: to its end, and then as long as a worker needs to obey.

    Attributes:
        clock: seconds that never go back.
        until: when everything that bounds the order has passed, by the clock.
        stop_seconds: what a worker that was told to end still has.
        ending: whether its worker is to be told to end.
    """

    clock: Callable[[], float]
    until: float
    stop_seconds: float
    ending: bool = False

    def over(self, cancelled: Cancelled) -> bool:
        """Whether nobody waits any more; begins to end it where it is time or somebody wants it."""
        now = self.clock()
        if not self.ending and (cancelled() or now >= self.until):
            self.ending, self.until = True, now + self.stop_seconds
        return self.ending and now >= self.until
