"""Our side of the supervisor: start it, give the order, hear its reports.

Source: supervisor.py holds the wire.
"""

from __future__ import annotations

import os
import pkgutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skill_effectiveness.execution.descriptors import FIRST_FREE, high_sockets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CALL_VARIABLE = "SKILL_EFFECTIVENESS_CALL"
SUPERVISOR_MARK = "SKILL_EFFECTIVENESS_SUPERVISOR"
"""With `=` and the token of its call, the last argument of a supervisor: its environment nobody can read."""


def _own_source(name: str) -> bytes:
    """A file of this room from whatever loaded the room, so that it is verified where the room is."""
    source = pkgutil.get_data(__package__, name)
    if source is None:
        raise ImportError(f"{name} is not beside the code; install the package again.")
    return source


SOURCE = _own_source("supervisor.py")
# All that its command line shows: neither a path of ours nor the source.
BOOT: Final = (
    "import os, sys\n"
    "control, size, source = int(sys.argv[1]), int(sys.argv[5]), b''\n"
    "while len(source) < size and (part := os.read(control, size - len(source))): source += part\n"
    "if len(source) == size: exec(compile(source, 'supervisor', 'exec'))\n"
)
# Subreapers exist on Linux only; elsewhere the process group and the token have to do.
REAPER = sys.platform == "linux"

# Reads after the end; a real supervisor leaves one line at most.
LAST_WORDS: Final = 8
# How long a supervisor may take to accept its order; it only reads it.
ORDER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class StartOrder:
    """What to start: an absolute program with its arguments, a folder, the whole environment.

    Attributes:
        argv: the program and its arguments.
        folder: where it runs.
        environment: all of it but the token.
        token: what every process of the call carries.
        proof: what every report has to carry; printable ASCII without blanks that no other call has.
        wall_seconds: after which the call is over, grace and a margin apart, although nobody says so.
        grace_seconds: from TERM to KILL.
    """

    argv: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    token: str
    proof: str
    wall_seconds: float
    grace_seconds: float

    def encoded(self) -> bytes | None:
        """The order on the wire, as supervisor.py describes it; `None` when no kernel could take it.

        That is one whose program is not named by an absolute path, one with a NUL or an unpaired surrogate in
        a word, and one with an empty variable name or `=` in it.
        """
        environment = {**self.environment, CALL_VARIABLE: self.token}
        words = [self.folder, *self.argv, *environment, *environment.values()]
        if not self.argv or not self.argv[0].startswith("/") or any("\0" in word for word in words):
            return None
        if any(not name or "=" in name for name in environment):
            return None
        fields = [
            str(float(self.grace_seconds)),
            str(float(self.wall_seconds)),
            "1" if REAPER else "0",
            self.proof,
            self.folder,
            str(len(self.argv)),
            *self.argv,
            *(f"{name}={value}" for name, value in environment.items()),
        ]
        try:
            body = b"\0".join(os.fsencode(field) for field in fields)
        except UnicodeEncodeError:
            return None
        return b"%d\n%b" % (len(body), body)


class Supervision:
    """A running supervisor and the socket to it.

    End of file on the socket, in whichever way it comes about, ends the tree.

    Attributes:
        started: pid, process group and session of the program, once it runs.
        unstartable: stage and errno when it could not be started.
        ended: wait status (-1 unknown), survivors and unkilled of the final report.
        late: whether the wall limit was over before that end, by the supervisor's own clock.
        over: there will be no further report.
    """

    def __init__(self, python: str, token: str, proof: str, streams: Sequence[int]) -> None:
        """Start a supervisor that will hand the streams on; OSError when there is no process to be had.

        Args:
            python: the interpreter itself, not the link of a virtual environment to it: that may lie in the
                checkout, and everybody can read what a process was started as.
            token: of the call; everybody may know it.
            proof: that of the order; a report without it is somebody else's.
            streams: the program's three.
        """
        self.started: int | None = None
        self.late = False
        self._proof = proof
        self._reaper = False
        self._contradicted = False
        self.unstartable: tuple[str, int] | None = None
        self.ended: tuple[int, int, int] | None = None
        self.over = False
        self._heard = b""
        ours, theirs = high_sockets()
        self._socket = ours
        try:
            with theirs:
                self._process = self._spawn(python, token, theirs, streams)
        except BaseException:
            ours.close()
            raise

    @staticmethod
    def _spawn(
        python: str, token: str, control: socket.socket, streams: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        numbers = [control.fileno(), *streams]
        mark = f"{SUPERVISOR_MARK}={token}"
        return subprocess.Popen(  # noqa: S603 - our own interpreter and source, an argument vector, no shell
            [python, "-I", "-S", "-B", "-c", BOOT, *map(str, numbers), str(len(SOURCE)), mark],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            close_fds=True,
            pass_fds=[number for number in numbers if number >= FIRST_FREE],
            start_new_session=True,
        )

    @property
    def sure(self) -> bool:
        """Whether its final report speaks for every descendant, as far as it is the supervisor's word."""
        return self.ended is not None and self._reaper

    def fileno(self) -> int:
        """The socket, for a selector."""
        return self._socket.fileno()

    def give(self, order: bytes, seconds: float) -> None:
        """Send source and order; a supervisor that does not take them in time is lost."""
        try:
            self._socket.settimeout(min(seconds, ORDER_SECONDS))
            self._socket.sendall(SOURCE + order)
        except OSError:
            self.over = True
        finally:
            self._socket.settimeout(0)

    def ask(self) -> None:
        """TERM now, KILL after the grace."""
        self._send(b"t")

    def kill(self) -> None:
        """KILL now."""
        self._send(b"k")

    def _send(self, letter: bytes) -> None:
        try:
            self._socket.send(letter)
        except OSError:
            return  # it is gone, which the next read tells
        self._process.send_signal(signal.SIGCONT)  # a program can stop its supervisor

    def listen(self) -> None:
        """Take in what has been reported; sets `over` at the last report and at end of file."""
        try:
            data = self._socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.over = True
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            self._understand(line.decode("ascii", "replace").split())

    def _understand(self, words: list[str]) -> None:
        if self.ended is not None or self.unstartable is not None:
            # The last word was not the last: one of them is not the supervisor's.
            self._contradicted = True
            return
        match words:
            case [self._proof, "started", pid, reaper]:
                self.started, self._reaper = int(pid), reaper == "1"
            case [self._proof, "unstartable", stage, number]:
                self.unstartable, self.over = (stage, int(number)), True
            case [self._proof, "ended", status, survivors, unkilled, late]:
                self.ended = int(status), int(survivors), int(unkilled)
                self.late, self.over = late == "1", True

    def close(self, seconds: float) -> None:
        """Let go of the supervisor and reap it; closing again does nothing.

        One that has not reported, or does not end by itself in time, is killed, and its program with it. A
        report counts only when nothing follows it and the supervisor then ends by itself and well: it may be
        forged, and its author have killed or stopped the supervisor.
        """
        reported = self.ended is not None or self.unstartable is not None
        with suppress(OSError):
            # Of a supervisor that still watches this is the end of the tree, and it says so.
            self._socket.shutdown(socket.SHUT_WR)
        try:
            well = self._process.wait(seconds if reported else 0) == 0
        except subprocess.TimeoutExpired:
            well = False
            self._process.kill()
            self._process.wait()
        self._hear_out()
        self._socket.close()
        if not well or self._contradicted:
            self.ended = self.unstartable = None

    def _hear_out(self) -> None:
        """Take in what a supervisor that is gone has left on the socket, whoever else holds an end of it."""
        self.over = False
        for _ in range(LAST_WORDS):
            if self.over:
                break
            self.listen()
        self.over = True
