"""The one place that starts child processes.

Source: providers.md P4, P5, P10; calibration.md section 5; field-failures.md F6 to F11, F17.

Normally::

    run_process(
        [program, "--flag"], cwd=folders.work, env={"PATH": path}, stdin=prompt,
        limits=Limits(wall_seconds=220), on_line=parser.line, around=around,
    )

It returns when no process of the tree is left, and says in one word why the call is over. The child gets
exactly the environment that is passed and one variable more, `SKILL_EFFECTIVENESS_CALL`, by which processes
of a call can be found later; no descriptor of ours but its three standard streams; default signals; no core
file; a session of its own.

That the tree is dead is believed of the supervisor only: its reports carry a proof that the program is never
given, it has to end by itself and well afterwards, and then nothing may be left that carries the token.

What is not promised: a program that kills its supervisor, takes back its own parent-death signal, leaves its
session and empties the environment of what it starts can leave a process behind that nobody finds. One that
stops its supervisor and us (SIGSTOP) runs on until either is continued; stopping us alone does not help it.
As root, or where root's capabilities are given to it, it can read and steer every process. Whoever has to
stop that needs a sandbox around the program. Where the platform has no subreapers the process group and the
token have to do, so a process that left both stays.
"""

from __future__ import annotations

import os
import selectors
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from skill_effectiveness.evidence.signals import TerminationWindow
from skill_effectiveness.execution.carriers import kill_carriers
from skill_effectiveness.execution.outcome import Ended, ProcessResult, StartFault, start_fault
from skill_effectiveness.execution.streams import Streams, unheard
from skill_effectiveness.execution.supervision import StartOrder, Supervision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from skill_effectiveness.evidence.surroundings import Surroundings
    from skill_effectiveness.execution.limits import Limits

TOKEN_BYTES: Final = 16
PROOF_BYTES: Final = 16
# Longest wait between two looks at the clock and at `cancelled`, in seconds.
TICK_SECONDS: Final = 0.1
# What a supervisor may take after the grace to kill the tree and report; it gives up by itself before that.
REPORT_SECONDS: Final = 8.0
# How much later than the grace a supervisor that said nothing is told again.
OVERDUE_SECONDS: Final = 0.25
# What a supervisor may take to exit once it has reported.
EXIT_SECONDS: Final = 5.0


def never() -> bool:
    """The call is not cancelled."""
    return False


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes,
    limits: Limits,
    on_line: Callable[[bytes], bool],
    cancelled: Callable[[], bool] = never,
    around: Surroundings,
) -> ProcessResult:
    """Run one program to its end and leave nothing of it alive.

    Args:
        argv: the program by absolute path, and its arguments; never a shell.
        cwd: its working folder.
        env: its whole environment, to which only `SKILL_EFFECTIVENESS_CALL` is added.
        stdin: what it can read; then its stdin is closed. Empty: its stdin is the null device.
        limits: what it may take; crossing one ends the tree.
        on_line: receives each line of stdout without its LF, in order, and answers whether the terminal
            marker stands after it: the grace runs as long as the answer is True, and a later False takes the
            marker back. An exception from it ends the tree and then reaches the caller. Once the call has
            been decided to be over it is not called any more.
        cancelled: asked at least every tenth of a second; True ends the tree.
        around: clock and randomness.

    Returns:
        The result; nothing is raised for what the program does, or for one that cannot be started.

    Raises:
        KeyboardInterrupt, SystemExit, Terminated: as a signal handler raises them, once the tree is dead.
    """
    began = around.monotonic()
    token, proof = around.entropy(TOKEN_BYTES).hex(), around.entropy(PROOF_BYTES).hex()
    order = StartOrder(argv, str(cwd), env, token, proof, limits.wall_seconds, limits.grace_seconds).encoded()
    if order is None:
        return ProcessResult(Ended.UNSTARTABLE, start_fault=StartFault.ARGUMENT_FORM, token=token)
    # A handler that raises wherever the program happens to be could leave a part of the tree alive, at the
    # latest while the first exception is being dealt with; so handlers are called between two steps only.
    with TerminationWindow(insist=False) as window:
        try:
            call = _Call(
                token, proof, stdin=stdin, limits=limits, on_line=on_line, around=around, began=began
            )
        except OSError:
            return ProcessResult(Ended.UNSTARTABLE, start_fault=StartFault.NO_RESOURCES, token=token)
        try:
            call.run(order, cancelled, window)
        finally:
            call.reap(window)
    return call.result()


class _Call:
    """One program from its start until nothing of it is left."""

    def __init__(
        self,
        token: str,
        proof: str,
        *,
        stdin: bytes,
        limits: Limits,
        on_line: Callable[[bytes], bool],
        around: Surroundings,
        began: float,
    ) -> None:
        """Lay the pipes and start the supervisor; OSError when there is no process or descriptor left."""
        self._token = token
        self._limits = limits
        self._around = around
        self._monotonic = around.monotonic
        self._began = began
        self._heard_at = began
        self._marked: int | None = None
        self._marked_at = began
        self._ended: Ended | None = None
        self._found, self._alive = 0, 0
        with ExitStack() as undo:
            self._selector = undo.enter_context(selectors.DefaultSelector())
            self._streams = Streams(stdin, limits, self._selector, on_line)
            undo.callback(self._streams.close)
            try:
                python = around.fs.resolve(sys.executable)
                self._supervision = Supervision(python, token, proof, self._streams.theirs)
            finally:
                self._streams.let_go()
            undo.callback(self._supervision.close, 0)
            self._selector.register(self._supervision, selectors.EVENT_READ)
            undo.pop_all()

    def run(self, order: bytes, cancelled: Callable[[], bool], window: TerminationWindow) -> None:
        """Start the program, write and read until it is over or has to be."""
        self._supervision.give(order, self._limits.wall_seconds)
        until = self._began + self._limits.wall_seconds
        while self._undecided():
            self._step(until)
            unhandled = window.deliver()
            if self._undecided() and unhandled:
                self._end(Ended.CANCELLED, at_once=True)
            elif self._undecided():
                self._judge(cancelled=cancelled())
        if self._ended is None and self._supervision.ended is not None:
            self._streams.drain()
            if self._streams.crossed is not None:
                self._ended = Ended.LIMIT
            elif self._supervision.late:
                # We were stopped, or slow, and the supervisor kept the time.
                self._ended = Ended.WALL_TIMEOUT

    def _undecided(self) -> bool:
        return self._ended is None and not self._supervision.over

    def _step(self, until: float) -> None:
        """Wait for the next thing to happen, at most one tick and not beyond a time, and take it in."""
        received = self._streams.received
        wait = max(0.0, min(TICK_SECONDS, until - self._monotonic()))
        # Whoever was stopped meanwhile finds the time over, and has not looked yet.
        for key, _ in self._selector.select(wait) or self._selector.select(0):
            if key.fileobj is self._supervision:
                self._supervision.listen()
            else:
                self._streams.move(key.fd)
        if self._streams.received != received:
            self._heard_at = self._monotonic()
        if self._streams.marked != self._marked:
            self._marked, self._marked_at = self._streams.marked, self._monotonic()

    def _judge(self, *, cancelled: bool) -> None:
        """End the call where a limit or the caller says so."""
        now, limits = self._monotonic(), self._limits
        if self._streams.crossed is not None:
            self._end(Ended.LIMIT, at_once=True)
        elif cancelled:
            self._end(Ended.CANCELLED)
        elif now - self._began >= limits.wall_seconds:
            self._end(Ended.WALL_TIMEOUT)
        elif limits.idle_seconds is not None and now - self._heard_at >= limits.idle_seconds:
            self._end(Ended.IDLE_TIMEOUT)
        elif self._marked is not None and now - self._marked_at >= limits.grace_seconds:
            self._end(Ended.LINGERED)

    def _end(self, why: Ended, *, at_once: bool = False) -> None:
        self._ended = why
        self._streams.on_line = unheard
        if at_once:
            self._supervision.kill()
        else:
            self._supervision.ask()

    def reap(self, window: TerminationWindow) -> None:
        """Return only when the tree is dead; a signal meanwhile makes the end a quick one."""
        if self._undecided():
            self._end(Ended.CANCELLED, at_once=True)  # an exception is on its way to the caller
        overdue = self._monotonic() + self._limits.grace_seconds + OVERDUE_SECONDS
        until = overdue - OVERDUE_SECONDS + REPORT_SECONDS
        while not self._supervision.over and self._monotonic() < until:
            self._step(until)
            if window.terminated() or self._monotonic() >= overdue:
                self._supervision.kill()
        self._streams.close()
        self._supervision.close(EXIT_SECONDS)
        self._look_ourselves()
        self._selector.close()

    def _look_ourselves(self) -> None:
        """Kill what is left by the look of it, unless the supervisor says itself that it left something."""
        ended = self._supervision.ended
        if self._supervision.unstartable is not None or (ended is not None and ended[2]):
            return
        # After a report that counts, the number of the session may be a stranger's already.
        session = None if self._supervision.sure else self._supervision.started
        self._found, self._alive = kill_carriers(self._token, session, self._around)

    def result(self) -> ProcessResult:
        """The record of a call that is over."""
        status, survivors, unkilled = self._supervision.ended or (-1, 0, 0)
        code = os.waitstatus_to_exitcode(status) if status >= 0 else None
        fault = self._supervision.unstartable
        return ProcessResult(
            ended=self._verdict(unkilled=unkilled + self._alive),
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            limit=self._streams.crossed if self._ended is Ended.LIMIT else None,
            start_fault=None if fault is None else start_fault(*fault),
            stderr=self._streams.stderr,
            unterminated=self._streams.unterminated,
            survivors=survivors + self._found,
            unkilled=unkilled + self._alive,
            wall_seconds=self._monotonic() - self._began,
            stdin_complete=fault is None and self._streams.stdin_complete,
            token=self._token,
            drained=self._streams.drained,
        )

    def _verdict(self, *, unkilled: int) -> Ended:
        if self._supervision.unstartable is not None:
            return Ended.UNSTARTABLE
        if unkilled:
            return Ended.UNKILLED
        if self._supervision.ended is None or (self._supervision.sure and self._found):
            return Ended.SUPERVISOR_LOST
        return self._ended or Ended.EXITED
