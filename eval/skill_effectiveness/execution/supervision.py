"""Our side of the supervisor: start it, give the order, hear its reports.

Source: supervisor.py holds the wire.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skill_effectiveness.execution.descriptors import FIRST_FREE, high_sockets

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence

CALL_VARIABLE = "SKILL_EFFECTIVENESS_CALL"
SUPERVISOR_VARIABLE = "SKILL_EFFECTIVENESS_SUPERVISOR"

SUPERVISOR = Path(__file__).with_name("supervisor.py")
# Subreapers exist on Linux only; elsewhere the process group and the token have to do.
REAPER = sys.platform == "linux"

# How long a supervisor may take to accept its order; it only reads it.
ORDER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class StartOrder:
    """What to start: an absolute program with its arguments, a folder, the whole environment."""

    argv: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    token: str
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
            "1" if REAPER else "0",
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
        over: there will be no further report.
    """

    def __init__(self, token: str, streams: Sequence[int]) -> None:
        """Start a supervisor that will hand the streams on; OSError when there is no process to be had."""
        self.started: int | None = None
        self._reaper = False
        self.unstartable: tuple[str, int] | None = None
        self.ended: tuple[int, int, int] | None = None
        self.over = False
        self._heard = b""
        ours, theirs = high_sockets()
        self._socket = ours
        try:
            with theirs:
                self._process = self._spawn(token, theirs, streams)
        except BaseException:
            ours.close()
            raise

    @staticmethod
    def _spawn(token: str, control: socket.socket, streams: Sequence[int]) -> subprocess.Popen[bytes]:
        numbers = [control.fileno(), *streams]
        return subprocess.Popen(  # noqa: S603 - our own interpreter and file, an argument vector, no shell
            [sys.executable, "-I", "-S", "-B", str(SUPERVISOR), *map(str, numbers)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={SUPERVISOR_VARIABLE: token},
            close_fds=True,
            pass_fds=[number for number in numbers if number >= FIRST_FREE],
            start_new_session=True,
        )

    @property
    def sure(self) -> bool:
        """Whether its final report speaks for every descendant."""
        return self.ended is not None and self._reaper

    def fileno(self) -> int:
        """The socket, for a selector."""
        return self._socket.fileno()

    def give(self, order: bytes, seconds: float) -> None:
        """Send the order; a supervisor that does not take it in time is lost."""
        try:
            self._socket.settimeout(min(seconds, ORDER_SECONDS))
            self._socket.sendall(order)
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
            self._understand(line.decode("ascii").split())

    def _understand(self, words: list[str]) -> None:
        match words:
            case ["started", pid, reaper]:
                self.started, self._reaper = int(pid), reaper == "1"
            case ["unstartable", stage, number]:
                self.unstartable, self.over = (stage, int(number)), True
            case ["ended", status, survivors, unkilled]:
                self.ended, self.over = (int(status), int(survivors), int(unkilled)), True

    def close(self, seconds: float) -> None:
        """Let go of the supervisor and reap it; closing again does nothing.

        One that has not reported, or does not end by itself in time, is killed, and its program with it.
        """
        reported = self.ended is not None or self.unstartable is not None
        self._socket.close()
        try:
            self._process.wait(seconds if reported else 0)
        except subprocess.TimeoutExpired:
            # A supervisor that reports its end and does not end may be stopped, and the report forged.
            self.ended = None
            self._process.kill()
            self._process.wait()
