"""Standard input and output of a door: one request in, answers out, nothing else.

Source: bridge.md section 1 (stdout carries one line and nothing else); field-failures.md F53.

`Wire.open` is called before anything beyond the standard library is imported. From then on descriptor 1 is
stderr, for this process and for its children; the answer goes through a duplicate of the real one that no
child inherits.
"""

from __future__ import annotations

import os
import select

from skill_effectiveness.launch.faults import UndeliverableError

# Not the typing module, which a manifest probe has no time for.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
READ_SIZE: Final = 1 << 16
LOOK_MILLISECONDS: Final = 100


def never() -> bool:
    """The answer is not given up."""
    return False


class Wire:
    """The two ends of the conversation with whoever started the door.

    Attributes:
        spoken: whether a byte of an answer may have left.
        request_id: of the request in hand, where the door that was opened knows it.
    """

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._ahead = b""
        self.spoken = False
        self.request_id: str | None = None

    @classmethod
    def open(cls) -> Wire:
        """Take stdout away from everybody else.

        Raises:
            UndeliverableError: there is no descriptor left.
        """
        _open_standard_descriptors()
        try:
            answers = os.dup(STDOUT)
            os.dup2(STDERR, STDOUT)
        except OSError as error:
            raise UndeliverableError(f"Standard output cannot be set apart ({error.strerror}).") from error
        return cls(answers)

    def request(self, limit: int) -> bytes:
        """Standard input up to its end, or `limit` + 1 bytes of it: more than `limit` is too much.

        Raises:
            UndeliverableError: it cannot be read.
        """
        parts: list[bytes] = []
        room = limit + 1
        while room > 0 and (part := _read(min(room, READ_SIZE))):
            parts.append(part)
            room -= len(part)
        return b"".join(parts)

    def line(self, limit: int) -> tuple[bytes, bool]:
        """Standard input up to and with the next LF, however long it is, and whether there was one.

        Of a line over `limit` bytes no more than `limit` + 1 are kept; the rest is skipped.

        Raises:
            UndeliverableError: it cannot be read.
        """
        kept, parts = limit + 1, []
        while True:
            part, self._ahead = self._ahead or _read(READ_SIZE), b""
            head, ended, self._ahead = part.partition(b"\n")
            parts.append(head[:kept])
            kept -= len(parts[-1])
            if ended or not part:
                return b"".join(parts), bool(ended)

    def send(self, line: bytes, given_up: Callable[[], bool] = never) -> None:
        """Write an answer completely; a reader that takes its time is waited for.

        Args:
            line: the answer.
            given_up: asked while nobody reads; True ends the waiting.

        Raises:
            UndeliverableError: nobody reads any more, or the waiting was given up.
        """
        self.spoken = True
        rest = memoryview(line)
        while rest:
            if not _ready(self._answers, select.POLLOUT, LOOK_MILLISECONDS):
                if given_up():
                    raise UndeliverableError("The answer was not read, and a signal ended the waiting.")
                continue
            try:
                # No more than what a pipe that is ready takes at once.
                rest = rest[os.write(self._answers, rest[: select.PIPE_BUF]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise UndeliverableError(f"The answer cannot be written ({error.strerror}).") from error


def _open_standard_descriptors() -> None:
    """Give descriptors 0 to 2 something to be, so that no file of ours gets their numbers.

    A missing stdout becomes one that cannot be written, so that the answer is known to be lost.
    """
    for number, flags in ((STDIN, os.O_RDONLY), (STDOUT, os.O_RDONLY), (STDERR, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # noqa: FBT003 - no keyword there


def _read(size: int) -> bytes:
    """Some bytes of standard input, none at its end."""
    while True:
        try:
            return os.read(STDIN, size)
        except BlockingIOError:
            _ready(STDIN, select.POLLIN, None)
        except OSError as error:
            raise UndeliverableError(f"The request cannot be read ({error.strerror}).") from error


def _ready(number: int, event: int, milliseconds: int | None) -> bool:
    """Whether a descriptor became ready in that time, which may be without end."""
    waiting = select.poll()
    waiting.register(number, event)
    return bool(waiting.poll(milliseconds))
