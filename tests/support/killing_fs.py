"""File operations that die at a chosen step: by SIGKILL in a child, or by an exception in the test itself.

Source: evidence.md, section 10, method "kill". A process that was killed does nothing any more, so after the
exception every operation fails but closing, which the kernel does for the dead.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, NoReturn, TypeVar

from skill_effectiveness.evidence.fsdoubles import MUTATIONS, FaultFs

if TYPE_CHECKING:
    from collections.abc import Callable

    from skill_effectiveness.evidence.fsops import FileSystem

_T = TypeVar("_T")


class Died(BaseException):
    """The process would be dead here."""


def by_exception() -> NoReturn:
    """Die so that the test can go on."""
    raise Died


def by_signal() -> None:
    """Die as a process does that is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


class MortalFs(FaultFs):
    """Dies instead of doing the mutating step of a number; writes half of it if that is a write.

    Args:
        inner: where the operations go.
        nth: the step, counted from 1.
        die: how.
    """

    def __init__(self, inner: FileSystem, nth: int, die: Callable[[], object] = by_exception) -> None:
        super().__init__(inner)
        self._left = nth
        self._die = die
        self.dead = False

    def _through(self, operation: str, path: str, call: Callable[[], _T], *details: object) -> _T:
        del path
        if operation == "close":
            return call()
        if self.dead:
            raise Died
        if operation in MUTATIONS:
            self._left -= 1
            if self._left == 0:
                self.dead = True
                if operation == "write":
                    self._write_half(*details)
                self._die()
        return call()

    def _write_half(self, *details: object) -> None:
        fd, data = details
        assert isinstance(fd, int)
        assert isinstance(data, bytes)
        self._inner.write(fd, data[: len(data) // 2])
