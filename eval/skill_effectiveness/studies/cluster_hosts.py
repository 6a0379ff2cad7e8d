"""Which hosts of a cluster have shown that their agents see what they should (studies.md section 4).

A batch opens with an assay on every host that is there. One that joins later gets no attempt of that batch
before the same assay was made on it; one that fails gets none. So a host is asked once a batch and run.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skill_effectiveness.studies.words import Arm


class HostAssays:
    """What the assays of this run came to, host by host; safe to be used by several threads.

    Args:
        arms: of the plan.
    """

    def __init__(self, arms: Iterable[Arm]) -> None:
        self._arms = tuple(arms)
        self._passed: dict[tuple[int, str, Arm], bool] = {}
        self._last: dict[tuple[str, Arm], bool] = {}
        self._lock = threading.Lock()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def note(self, batch: int, host: str, arm: Arm, *, passed: bool) -> None:
        """An assay was made."""
        with self._lock:
            self._passed[batch, host, arm] = passed
            self._last[host, arm] = passed

    def lacking(self, batch: int, host: str) -> tuple[Arm, ...]:
        """The arms that a host has not passed for in a batch: it may not be given attempts of it yet."""
        with self._lock:
            return tuple(arm for arm in self._arms if not self._passed.get((batch, host, arm), False))

    def admitted(self, batch: int, hosts: Iterable[str]) -> tuple[str, ...]:
        """Those of some hosts that may be given attempts of a batch."""
        return tuple(host for host in hosts if not self.lacking(batch, host))

    def clean(self, host: str) -> bool:
        """Whether the last assay of every arm on a host showed nothing but its treatment."""
        with self._lock:
            return all(self._last.get((host, arm), False) for arm in self._arms)

    def turn(self, host: str) -> threading.Lock:
        """Held while a host is assayed: marks lie about there, which nobody else's agent may meet."""
        with self._lock:
            return self._turns[host]
