"""A short time during which a termination waits: the window around the renames of a pair.

Source: evidence.md, section 8, steps 3 to 6.
"""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

    Handler = Callable[[int, FrameType | None], Any] | int

TERMINATIONS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Terminated(BaseException):
    """A termination signal arrived in a window, was delivered again after it, and its handler returned.

    The command line answers with exit code 128 + `signum`.
    """

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(f"terminated by signal {signum}")


class TerminationWindow:
    """Within `with`, SIGINT, SIGTERM, SIGHUP and SIGQUIT are only recorded; at its end each is raised again.

    The calling thread blocks the four, and, because the kernel may hand a signal of the process to any other
    thread that does not block it, their handlers record too. A signal that was ignored before (a job under
    `nohup`) stays ignored.

    Handlers belong to the main thread. In a window of any other thread only the mask is set: a signal that
    the main thread takes has its ordinary effect at once, and a process that dies of it leaves what SIGKILL
    leaves.

    Args:
        insist: raise `Terminated` when the handlers of what arrived have returned. Without it a handler that
            returns has decided that the program goes on.
    """

    def __init__(self, *, insist: bool = True) -> None:
        self._insist = insist
        self._recorded: list[int] = []
        self._watched: tuple[int, ...] = ()
        self._handlers: dict[int, Handler] = {}
        self._mask: set[int] = set()

    def __enter__(self) -> Self:
        self._watched = tuple(
            number for number in TERMINATIONS if signal.getsignal(number) is not signal.SIG_IGN
        )
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        try:
            # Mask first: from here on nothing is delivered to this thread, so nothing is lost before the
            # handlers record.
            signal.pthread_sigmask(signal.SIG_BLOCK, self._watched)
            if threading.current_thread() is threading.main_thread():
                self._take_handlers()
        except BaseException:
            # Both calls run the handlers of signals that arrived before, and a handler may raise
            # (KeyboardInterrupt).
            self._restore()
            raise
        return self

    def terminated(self) -> bool:
        """Whether one of the signals has arrived since the window was opened; it is consumed."""
        while pending := signal.sigpending() & set(self._watched):
            self._take(pending)
        return bool(self._recorded)

    def deliver(self) -> bool:
        """Let the former handlers hear what has arrived, at this point of the caller's choosing.

        Returns:
            Whether something has arrived that no handler here can hear; it has its effect when the window
            ends, so the caller had better come to an end.

        Raises:
            BaseException: what a handler raises. What arrived besides stays for the end of the window.
        """
        self.terminated()
        for number in tuple(self._recorded):
            former = self._handlers.get(number)
            if callable(former):
                self._recorded.remove(number)
                former(number, None)
        return bool(self._recorded)

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.terminated()
        self._restore()
        arrived = tuple(dict.fromkeys(self._recorded))
        for number in arrived:
            # Kills the process if nothing handles it; a handler may also raise.
            signal.raise_signal(number)
        if arrived and self._insist:
            raise Terminated(arrived[0]) from error

    def _take_handlers(self) -> None:
        for number in self._watched:
            former = signal.getsignal(number)
            # None: installed by C code, which Python could not put back.
            if former is not None:
                self._handlers[number] = former
                signal.signal(number, self._record)

    def _restore(self) -> None:
        """Put back handlers and mask, all of them, whatever a handler raises meanwhile."""
        with ExitStack() as stack:
            # Run last: what arrived after the last look is delivered when the mask goes, and meets its former
            # handler.
            stack.callback(signal.pthread_sigmask, signal.SIG_SETMASK, self._mask)
            for number, former in self._handlers.items():
                stack.callback(_put_back, number, former)

    def _record(self, number: int, _frame: FrameType | None) -> None:
        self._recorded.append(number)

    def _take(self, pending: set[int]) -> None:
        """Consume one of the pending signals."""
        if hasattr(signal, "sigtimedwait"):
            # `None`: another thread has taken it first; then its handler has recorded it.
            if (taken := signal.sigtimedwait(pending, 0)) is not None:
                self._recorded.append(taken.si_signo)
        else:
            # macOS has no sigtimedwait; sigwait returns at once for a pending signal.
            self._recorded.append(signal.sigwait(pending))


def _put_back(number: int, former: Handler) -> None:
    try:
        signal.signal(number, former)
    except BaseException:
        # signal.signal first runs handlers that are due and gives up if one raises; the second call has none
        # left to run.
        signal.signal(number, former)
        raise


class Cutoff:
    """The termination signals of one request of a door, heard within `heard()`; the first alone is raised.

    It is raised where the program happens to be, so that every `finally` runs and what was begun is what a
    kill would leave. From `defer` on it is only remembered, so that steps finish and an answer is given.

    Attributes:
        number: of the first signal that came; None as long as none did.
        times: how many came.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.times = 0
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

    def arrived(self) -> bool:
        """Whether one has come."""
        return self.number is not None

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self.times += 1
        if self.number is None:
            self.number = number
            if not self._deferring:
                raise Terminated(number)
